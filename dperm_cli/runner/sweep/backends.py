"""Back ends that run chunks of cells: local processes, Dask, or jobs of a batch system.

A back end maps a function over chunks and yields what comes back, in any order. It knows nothing of
cells; workers write their records themselves, so that nothing but small reports travels.
"""

from __future__ import annotations

import importlib.util
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import ExitStack, closing, contextmanager
from dataclasses import field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.environment import THREADS, follow_parent
from dperm_cli.core.errors import DpermError, InputError
from dperm_cli.core.extras import say_how_to_install
from dperm_cli.core.fields import Auto, Check, CheckedFields, Choices, Count, Help, Range, fields_of
from dperm_cli.core.system_calls import GROUP_SIGNALS, block_signals
from dperm_cli.loops.thread_count import cores
from dperm_cli.runner.sweep import slurm_jobs
from dperm_cli.runner.sweep.attempts import Attempts

NAMES = ("local", "dask", "submitit")
_SCHEMES = ("tcp://", "tls://")
MOST_WORKERS, MOST_THREADS = 4096, 256
_JOB = {"minutes": 60, "memory": "4GB", "cores": 1}  # of a Dask worker that SLURM starts
# Fewer cells per worker than this do not justify starting a process.
WORTH = 16

# Seconds after which a worker without work ends; what its libraries are told.
_IDLE_SECONDS = 300
_ONE_THREAD = dict.fromkeys(THREADS, "1")
_WAIT_SECONDS, _MOST_WAITS = 5.0, 12  # for Dask's workers to come back, or to take up work
_SILENT = 51  # above all levels of ``logging``: what ends a sweep is said by errors, in a line
_NO_THREAD = "can't start new thread"  # Python's words
_pools: dict[int, Any] = {}

Call = Callable[[Any], Any]


class WorkerDied(Exception):
    """Worker processes died; says how, as far as it is known. Their cells are not known here."""


class NoneWorks(WorkerDied):
    """Workers live and take up no work: more of their kind will not either."""


@dataclass(frozen=True)
class Backend(ABC):
    """Workers; ``owned`` is True where they are this process's own and must end with it."""

    owned: ClassVar[bool] = False
    workers: int

    def chunks(self, cells: int) -> int:
        """How many chunks to cut this many cells into: small enough to share them evenly."""
        size = max(1, min(32, cells // (8 * self.workers)))
        return -(-cells // size)

    @abstractmethod
    def run(self, call: Call, chunks: Sequence[Any], folder: Path) -> Iterator[Any]:
        """``call(chunk)`` for every chunk as it is done; WorkerDied when workers died."""


def check_address(key: str, value: Any) -> str:
    """Where Dask's scheduler is: a word or an address."""
    known = isinstance(value, str) and (value in ("auto", "slurm") or value[:6] in _SCHEMES)
    if not known:
        raise InputError(key, value, "must be auto, slurm or tcp://HOST:PORT of a Dask scheduler")
    return value


def check_jobs(key: str, value: Any) -> Mapping[str, Any]:
    """What is asked of SLURM's jobs, by the keys of ``slurm_jobs.KEYS``."""
    if not isinstance(value, Mapping):
        raise InputError(key, value, "must be a map such as {partition: cpu, minutes: 60}")
    for name, asked in value.items():
        if name != "cluster":
            checks.known_keys([name], slurm_jobs.KEYS, "slurm.")
        kind = str if name == "cluster" else slurm_jobs.KEYS[name]
        if not isinstance(asked, kind) or isinstance(asked, bool) or (kind is int and asked < 1):
            form = "a whole number >= 1" if kind is int else "text"
            raise InputError(f"slurm.{name}", asked, f"must be {form}")
    return value


@dataclass(frozen=True, kw_only=True)
class Options(CheckedFields):
    """What was asked for, checked; nothing is started or imported yet."""

    backend: Annotated[str, Choices(*NAMES), Help("Dask's workers, SLURM jobs")] = "local"
    workers: Annotated[
        Count | Auto,
        Range(1, MOST_WORKERS),
        Help("cells at once; auto = as many as there are cores"),
    ] = 1
    threads: Annotated[
        Count | Auto,
        Range(1, MOST_THREADS),
        Help("of one worker; auto = the cores by the workers of this machine"),
    ] = "auto"
    address: Annotated[
        str,
        Check(check_address),
        Help("backend=dask: tcp://HOST:PORT of a scheduler; slurm; auto = a cluster here"),
    ] = "auto"
    slurm: Annotated[
        Mapping[str, Any],
        Check(check_jobs),
        Help("of the jobs: {partition: cpu, minutes: 60, memory: 4GB, cores: 1}"),
    ] = field(default_factory=dict)
    split: Annotated[
        str,
        Choices("cells", "rows"),
        Help("what workers share: cells, or with backend=dask the rows of stored records"),
    ] = "cells"
    on_error: Annotated[
        str, Choices("continue", "stop"), Help("what a failed cell means for those after it")
    ] = "continue"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.address != "auto" and self.backend != "dask":
            raise InputError("address", self.address, "is for backend=dask")
        if self.split == "rows" and self.backend != "dask":
            allowed = "is for backend=dask, whose workers share the rows of one run"
            raise InputError("split", self.split, allowed)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """From a configuration, of which only the keys of this class are read."""
        options = cls(**{key: given[key] for key in fields_of(cls) if key in given})
        options.check_available()
        return options

    def check_available(self) -> None:
        """InputError where an extra is missing, or SLURM would not take the jobs.

        It is known before anything is composed or written.
        """
        if self.backend == "dask":
            _need("distributed", "backend", "dask", "dask")
            if self.address == "slurm":
                _need("dask_jobqueue", "address", "slurm", "slurm")
                slurm_jobs.check("dask", {**_JOB, **self.slurm})
        elif self.backend == "submitit":
            _need("submitit", "backend", "submitit", "slurm")
            if "cluster" not in self.slurm:
                slurm_jobs.check("submitit", self.slurm)

    def count_own_threads(self) -> int | None:
        """Threads of this process where it runs the cells itself; None: one for each core."""
        return None if self.threads == "auto" else self.threads

    def count_threads(self, backend: Backend) -> int:
        """Threads of one worker: workers times threads is no more than the cores of a machine.

        A worker of a cluster has one, unless more are asked for.
        """
        if self.threads != "auto":
            return self.threads
        return max(1, cores() // backend.workers) if isinstance(backend, Local) else 1

    def choose_backend(self, cells: int) -> Backend | None:
        """The back end for so many cells; None: run them in this process."""
        asked = None if self.workers == "auto" else self.workers
        if self.backend == "dask":
            return Dask(asked or cores(), self.address, self.slurm)
        if self.backend == "submitit":
            return Submitit(asked or 8, self.slurm)
        workers = asked or min(cores(), cells // WORTH)
        return Local(workers) if workers > 1 and cells > 1 else None


@dataclass(frozen=True)
class Local(Backend):
    """Processes of this machine."""

    owned = True

    def run(self, call: Call, chunks: Sequence[Any], folder: Path) -> Iterator[Any]:
        from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

        _start_tracker()
        # kept from one sweep to the next of as many workers: a start takes seconds
        pool = _pools.pop(self.workers, None) or ProcessPoolExecutor(
            self.workers, timeout=_IDLE_SECONDS, env=_ONE_THREAD,
            # from its start on: this process may be gone before a worker has anything to do
            initializer=follow_parent, initargs=(os.getpid(),),
        )  # fmt: skip
        waiting, running = iter(chunks), set[Any]()
        whole = False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                while True:
                    for chunk in islice(waiting, 2 * self.workers - len(running)):
                        running.add(pool.submit(call, chunk))
                    if not running:
                        break
                    done, running = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            whole = True
        except BrokenProcessPool as error:
            codes = re.search(r"exit codes of the workers are \{(.*)\}", str(error))
            raise WorkerDied(codes[1] if codes else _first_line(error)) from error
        except RuntimeError as error:  # of the pool, or of a worker that comes to no cell
            if _NO_THREAD not in str(error):
                raise
            raise WorkerDied(f"{_NO_THREAD}: the limit of ulimit -u is reached") from error
        finally:
            if whole:
                _pools[self.workers] = pool
            else:
                pool.shutdown(kill_workers=True)  # they have ended when this returns


@dataclass(frozen=True)
class Dask(Backend):
    """Workers of a Dask scheduler: one that runs (``tcp://..``), one started here, or SLURM's."""

    address: str
    slurm: Mapping[str, Any]

    def run(self, call: Call, chunks: Sequence[Any], folder: Path) -> Iterator[Any]:
        from distributed.scheduler import KilledWorker

        with _listen_to_nannies() as heard, self.open_client(folder) as client:
            waiting = {client.submit(call, chunk, pure=False) for chunk in chunks}
            died = 0  # chunks in a row that were lost with their workers
            try:
                while waiting and died <= 2 * self.workers:
                    done = self._wait(client, waiting, Attempts(folder))
                    waiting -= done
                    for future in done:
                        try:
                            yield future.result()
                            died = 0
                        except KilledWorker as error:
                            heard.append(_first_line(error))
                            died += 1
            finally:
                client.cancel(waiting)
            if heard:
                raise WorkerDied(heard[0])

    def _wait(self, client: Any, waiting: set[Any], attempts: Attempts) -> set[Any]:
        """Those that have ended, at least one; WorkerDied when no worker of ours is left or works.

        Where the clock was put back, Dask's messages wait until it is as late as it was.
        """
        from distributed import wait

        absent = idle = 0
        while True:
            try:
                with client.as_current():
                    done: Any = wait(waiting, _WAIT_SECONDS, return_when="FIRST_COMPLETED")
                return set(done.done)
            except TimeoutError:
                if self.address == "auto":
                    absent = 0 if client.nthreads() else absent + 1
                    idle = 0 if attempts.is_anyone_at_work() else idle + 1
            if absent > _MOST_WAITS:
                raise WorkerDied("none comes back")
            if idle > _MOST_WAITS:
                raise NoneWorks("none takes up its work")

    @contextmanager
    def open_client(self, folder: Path) -> Iterator[Any]:
        """A client of the scheduler, and of a cluster that is there as long as the client."""
        import logging  # by need

        from dask import config
        from distributed import Client

        logging.getLogger("distributed").setLevel(_SILENT)
        config.set({"distributed.scheduler.allowed-failures": 1})
        with ExitStack() as opened:
            if self.address in ("auto", "slurm"):
                try:
                    cluster = opened.enter_context(closing(self._start_cluster(folder)))
                    client = Client(cluster, set_as_default=False)
                except Exception as error:  # of many kinds: a worker died as it started
                    raise WorkerDied(_first_line(error)) from error
            else:
                try:
                    client = Client(self.address, timeout=10, set_as_default=False)
                except (OSError, ValueError, TimeoutError) as error:
                    allowed = f"no Dask scheduler answers there: {_first_line(error)}"
                    raise InputError("address", self.address, allowed) from None
            yield opened.enter_context(closing(client))

    def _start_cluster(self, folder: Path) -> Any:
        if self.address == "auto":
            from distributed import LocalCluster

            here: Any = {"dashboard_address": None, "local_directory": str(folder)}
            return LocalCluster(n_workers=self.workers, threads_per_worker=1, processes=True,
                                silence_logs=_SILENT, **here)  # fmt: skip
        from dask_jobqueue.slurm import SLURMCluster

        asked = {**_JOB, **self.slurm}
        hours, minutes = divmod(asked["minutes"], 60)
        cluster = SLURMCluster(
            queue=asked.get("partition"), account=asked.get("account"), cores=asked["cores"],
            processes=1, memory=asked["memory"], walltime=f"{hours:02d}:{minutes:02d}:00",
            log_directory=str(folder), local_directory=str(folder),
        )  # fmt: skip
        # not scale(): a worker whose job ends is replaced
        cluster.adapt(minimum_jobs=self.workers, maximum_jobs=self.workers)
        return cluster


@dataclass(frozen=True)
class Submitit(Backend):
    """One SLURM array, a chunk of cells a job: what is lost with a job is resumed by the next run.

    ``slurm={cluster: local}`` is for tests: the same jobs as processes of this machine.
    """

    slurm: Mapping[str, Any]

    def chunks(self, cells: int) -> int:
        return min(cells, self.workers)

    def run(self, call: Call, chunks: Sequence[Any], folder: Path) -> Iterator[Any]:
        jobs = self._submit_chunks(call, chunks, folder)
        lost: Exception | None = None
        try:
            for job in self._watch_jobs(jobs):
                try:
                    yield self._result(job)
                except WorkerDied as error:  # the jobs beside it go on
                    lost = lost or error
        finally:
            for job in jobs:
                if not slurm_jobs.has_result(job):
                    job.cancel(check=False)
        if lost is not None:
            raise lost

    def _submit_chunks(self, call: Call, chunks: Sequence[Any], folder: Path) -> list[Any]:
        import submitit
        from submitit.core.utils import FailedJobError

        names = {
            "minutes": "timeout_min", "cores": "cpus_per_task", "partition": "slurm_partition",
            "memory": "slurm_mem", "account": "slurm_account",
        }  # fmt: skip
        asked = {"minutes": 60, "cores": 1, **self.slurm}
        executor = submitit.AutoExecutor(folder=folder / "%j", cluster=self._cluster)
        executor.update_parameters(
            name="dperm", nodes=1, tasks_per_node=1, slurm_array_parallelism=self.workers,
            **{names[key]: value for key, value in asked.items() if key in names},
        )  # fmt: skip
        try:
            return executor.map_array(partial(slurm_jobs.run_without_signal, call), list(chunks))
        except FailedJobError as error:
            raise DpermError(f"SLURM did not take the jobs: {_first_line(error)}") from error

    @property
    def _cluster(self) -> str:
        return self.slurm.get("cluster", "slurm")

    def _watch_jobs(self, jobs: list[Any]) -> Iterator[Any]:
        if self._cluster == "slurm":
            return slurm_jobs.watch_jobs(jobs)
        from submitit.helpers import as_completed

        return as_completed(jobs, poll_frequency=0.5)

    def _result(self, job: Any) -> Any:
        from submitit.core.utils import FailedJobError, UncompletedJobError

        if self._cluster == "slurm" and not slurm_jobs.has_result(job):
            raise WorkerDied(f"job {job.job_id} left the queue without a result")
        try:
            return job.result()
        except (FailedJobError, UncompletedJobError) as error:
            raise WorkerDied(_first_line(error)) from error


@contextmanager
def _listen_to_nannies() -> Iterator[list[str]]:
    """What the parents of Dask's workers on this machine say of those that end."""
    import logging  # by need

    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found = re.search("killed by signal [0-9]+|exited with status [0-9]+",
                              record.getMessage())  # fmt: skip
            if found:
                heard.append(found[0])

    nannies, listener = logging.getLogger("distributed.nanny"), Listener()
    level, passed_on = nannies.level, nannies.propagate
    nannies.addHandler(listener)
    nannies.setLevel(logging.INFO)
    nannies.propagate = False
    try:
        yield heard
    finally:
        nannies.removeHandler(listener)
        nannies.setLevel(level)
        nannies.propagate = passed_on


def _start_tracker() -> None:
    """Start loky's process that takes semaphores away, deaf to signals that are sent to all.

    By itself it is deaf to Ctrl-C and SIGTERM only, and the pool complains when it has gone.
    """
    from joblib.externals.loky.backend import resource_tracker

    with block_signals(GROUP_SIGNALS):
        resource_tracker.ensure_running()


def _need(module: str, key: str, value: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        allowed = f"needs {module}, which is not installed: {say_how_to_install(extra)}"
        raise InputError(key, value, allowed)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
