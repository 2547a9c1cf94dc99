"""Ask SLURM whether it accepts jobs and which ones are still in the queue.

submitit finds the end of a job in SLURM's accounting. On a cluster without accounting it would
wait for ever for a job that was killed. This module asks the queue itself.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dperm_cli.core.errors import InputError

KEYS = {"partition": str, "minutes": int, "memory": str, "cores": int, "account": str}
_FLAGS = {"partition": "partition", "minutes": "time", "memory": "mem", "cores": "cpus-per-task",
          "account": "account"}  # fmt: skip
# Between looks for results, and between questions to the queue.
_POLL_SECONDS, _QUEUE_SECONDS = 0.5, 10.0
_PATIENCE = 60.0  # for one answer


def check(backend: str, asked: Mapping[str, Any]) -> None:
    """InputError unless SLURM is here and would take jobs like these; nothing is submitted."""
    if shutil.which("sbatch") is None:
        raise InputError("backend", backend, "needs SLURM, and no sbatch is found on the path")
    flags = [f"--{_FLAGS[key]}={value}" for key, value in asked.items() if key in _FLAGS]
    code, said = _run_command(["sbatch", "--test-only", *flags, "--wrap=true"])
    if code:
        raise InputError("slurm", dict(asked), f"SLURM takes no such job: {_last(said)}")


def run_without_signal(query: Callable[[Any], Any], chunk: Any) -> Any:
    """A chunk in a job of submitit, whose warning of the time limit would end the cell at hand.

    Finished cells are kept whenever the job ends; till then it works.
    """
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    return query(chunk)


def watch_jobs(jobs: Sequence[Any]) -> Iterator[Any]:
    """The jobs of one array as they end: with a result, or gone from the queue without one."""
    left = {job.job_id: job for job in jobs}
    missed: set[str] = set()
    asked = time.monotonic()
    while left:
        ready = [name for name, job in left.items() if has_result(job)]
        if not ready and time.monotonic() - asked > _QUEUE_SECONDS:
            absent = left.keys() - list_jobs(left)
            # twice, since a result may be seen here later than the end of its job
            ready = sorted(absent & missed)
            missed, asked = absent, time.monotonic()
        yield from (left.pop(name) for name in ready)
        if left and not ready:
            time.sleep(_POLL_SECONDS)


def has_result(job: Any) -> bool:
    """Whether the job has left a result or an error."""
    folder = job.paths.folder
    with contextlib.suppress(OSError):  # a network file system then forgets what it knew
        folder.chmod(folder.stat().st_mode)
    return job.paths.result_pickle.exists()


def list_jobs(names: Mapping[str, Any]) -> set[str]:
    """Those of the jobs that wait or run; all of them where the queue does not answer."""
    arrays = sorted({name.partition("_")[0] for name in names})
    code, said = _run_command(
        ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={','.join(arrays)}"]
    )
    if code:  # a job that ended some minutes ago is not known any more
        return set() if "Invalid job id" in said else set(names)
    return {line.strip() for line in said.splitlines()}


def _run_command(words: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it does not say why"]
    return lines[-1].removeprefix("sbatch: error: ").removeprefix("allocation failure: ")[:200]
