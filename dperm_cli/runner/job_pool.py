"""Run jobs in several processes; a job may start more jobs. It serves audits and experiments."""

from __future__ import annotations

import concurrent.futures as futures
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.environment import ENDING_SIGNALS, end_with
from dperm_cli.core.errors import DpermError
from dperm_cli.loops.thread_count import cores
from dperm_cli.runner.sweep.progress import Meter, open_meter

MAX_WORKERS = 8  # workers of auto: beyond, there are too few jobs that are long


@dataclass(frozen=True)
class Job:
    """A call and its words for the progress line."""

    words: tuple[str, ...]
    call: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> Any:
        """What the call returns."""
        return self.call(*self.arguments)


def _run_job(job: Job) -> Any:
    """In a worker: an error is raised in a form that survives being handed over."""
    try:
        return job.run()
    except DpermError as error:
        plain = DpermError(str(error))
        plain.exit_code = error.exit_code
        raise plain from None


More = Callable[[Job, Any], Sequence[Job]]


def run_jobs(jobs: Sequence[Job], more: More, workers: Any) -> Generator[Any, None, None]:
    """The results, in the order in which they come; those of ``more`` jobs too.

    Args:
        jobs: what is to be done at first.
        more: the jobs that follow from a job and its result.
        workers: ``auto`` for the cores that there are, or a number. Where processes cannot be
            copied, everything is done in this one.
    """
    count = count_workers(workers)
    with open_meter(len(jobs)) as shown:
        if count == 1:
            yield from _run_here(list(jobs), more, shown)
        else:
            yield from _run_in_pools(list(jobs), more, count, shown)


def count_workers(workers: Any) -> int:
    """How many processes `workers` asks for, a number or ``auto``, where they can be copied."""
    if sys.platform != "linux":  # elsewhere libraries do not outlive a copy of their process
        return 1
    return min(cores(), MAX_WORKERS) if workers == "auto" else int(workers)


def _run_here(waiting: list[Job], more: More, shown: Meter) -> Iterator[Any]:
    for done in itertools.count():
        if not waiting:
            return
        job = waiting.pop(0)
        shown.cell(done, " ".join(job.words))
        result = job.run()
        _add_jobs(more(job, result), waiting, shown)
        yield result


def _add_jobs(new: Sequence[Job], waiting: list[Job], shown: Meter) -> None:
    """Put follow-up jobs first, since they belong to long ones."""
    waiting[:0] = new
    shown.cells += len(new)


def _run_in_pools(waiting: list[Job], more: More, count: int, shown: Meter) -> Iterator[Any]:
    """Run jobs in worker processes; when one dies, what is left goes to a pool of half the size.

    DpermError names the job at which the only worker of a pool died twice.
    """
    suspect: Job | None = None
    while waiting:
        try:
            yield from _run_in_pool(waiting, more, count, shown)
        except futures.process.BrokenProcessPool:
            if suspect is not None and suspect is waiting[0]:
                words = f"two workers died at {' '.join(suspect.words)}: out of memory, perhaps"
                raise DpermError(words) from None
            suspect = waiting[0] if count == 1 else None
            count = max(1, count // 2)
            shown.note(f"a worker died: {count} go on")


def _run_in_pool(waiting: list[Job], more: More, count: int, shown: Meter) -> Iterator[Any]:
    """Run jobs in worker processes; what runs when the pool breaks is put back, to run first."""
    copied = multiprocessing.get_context("fork")
    with futures.ProcessPoolExecutor(count, copied, _start_worker) as pool:
        running: dict[futures.Future[Any], Job] = {}
        try:
            while waiting or running:
                while waiting and len(running) < count + (count > 1):
                    running[pool.submit(_run_job, waiting[0])] = waiting[0]
                    waiting.pop(0)  # not before: a broken pool takes no job
                ended, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                for future in ended:
                    result = future.result()
                    job = running.pop(future)
                    _add_jobs(more(job, result), waiting, shown)
                    ended_before = shown.cells - len(waiting) - len(running) - 1
                    shown.cell(ended_before, " ".join(job.words))
                    yield result
        except futures.process.BrokenProcessPool:
            waiting[:0] = running.values()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """In a worker: one thread, no progress of its own, signals as they were, and an end with the
    parent's."""
    from dperm_cli.core import progress

    progress._listeners.clear()
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    threadpool_limits(1)
    end_with(os.getppid())
