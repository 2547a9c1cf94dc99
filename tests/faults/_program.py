"""The program as a user starts it: processes, their children, their folders and what they say."""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SMALL = [
    "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2",
    "mechanism=noisy_gd", "mechanism.steps=3", "trials=2",
]  # fmt: skip
# Words on the command line of a process that computes cells, by the words that ask for it.
WORKERS = {
    "local": (["workers=2"], "LokyProcess-"),
    "dask": (["workers=2", "backend=dask"], "spawn_main"),
    "submitit": (["workers=2", "backend=submitit", "slurm={cluster: local}"], "_submit"),
}


def epsilons(cells: int) -> str:
    """The axis of a sweep of so many cells."""
    return "epsilon=" + ",".join(str(i / 4) for i in range(1, cells + 1))


SWEEP = ["run", "-m", *SMALL, epsilons(4), "out=study"]


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it printed."""

    code: int
    out: str
    err: str


def assert_refused_in_a_line(ended: Ended, code: int = 2) -> None:
    """The program says in one line what is wrong, and prints no result."""
    assert "Traceback" not in ended.err, ended.err[-2000:]
    assert ended.code == code, (ended.code, ended.err[-2000:])
    assert ended.out == ""
    last = ended.err.splitlines()[-1]
    assert last.startswith("dperm: "), ended.err[-2000:]


def start_dperm(
    words: Sequence[str],
    folder: Path,
    *,
    env: dict[str, str] | None = None,
    before: str = "",
    after: str = "",
    package: Path = REPOSITORY,
) -> subprocess.Popen:
    """Start ``dperm WORDS`` in a session of its own.

    Args:
        words: The command line.
        folder: Its working directory.
        env: Its whole environment but for PYTHONPATH; None for that of this process without the
            limit on threads, which the suite sets for itself.
        before: A shell command in front of it, such as ``ulimit -v 100000``.
        after: Redirections of the shell, such as ``>&-``.
        package: The folder that the package is imported from.
    """
    command = f'{before or ":"}; exec "$@" {after}'
    asked = dict(os.environ if env is None else env)
    if env is None:
        asked.pop("OPENBLAS_NUM_THREADS", None)
    asked["PYTHONPATH"] = str(package)
    return subprocess.Popen(
        ["sh", "-c", command, "sh", sys.executable, "-m", "dperm_cli", *words],
        cwd=folder, env=asked, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(process: subprocess.Popen, seconds: float = 240.0) -> Ended:
    """Its end; whatever still runs of its session after that time is killed."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        kill_session(process)
        raise
    return Ended(process.returncode, out, err)


def run_dperm(words: Sequence[str], folder: Path, seconds: float = 240.0, **asked) -> Ended:
    """``dperm WORDS`` from its start to its end; see ``start_dperm``."""
    return wait_for(start_dperm(words, folder, **asked), seconds)


def kill_session(process: subprocess.Popen) -> None:
    """End a process with all that it started, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in descendants(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.communicate()


def _processes() -> Iterator[tuple[int, int, int, str]]:
    """(number, parent, group, command line) of every living process, from ``ps``."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,pgid=,stat=,args="],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in listed.stdout.splitlines():
        pid, parent, group, state, command = (*line.split(None, 4), "")[:5]
        if not state.startswith("Z"):
            yield int(pid), int(parent), int(group), command


def descendants(root: int) -> dict[int, str]:
    """Children, grandchildren and so on of a process, with their command lines."""
    found: dict[int, str] = {}
    parents, listed = {root}, list(_processes())
    while True:
        new = {
            pid: line for pid, parent, _, line in listed if parent in parents and pid not in found
        }
        if not new:
            return found
        found |= new
        parents = set(new)


def wait_for_none(group: int, seconds: float = 20.0) -> list[str]:
    """Command lines of what is still there of a process group after that time: none, if all ended.

    A process that ``start_dperm`` started has a group of its own number.
    """
    end = time.monotonic() + seconds
    while True:
        left = [line for _, _, of, line in _processes() if of == group]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def wait_for_worker(process: subprocess.Popen, word: str, seconds: float = 120.0) -> int:
    """The first process below this one with ``word`` on its command line; 0 if it ends before."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        for pid, line in descendants(process.pid).items():
            if word in line:
                return pid
        time.sleep(0.02)
    return 0


def wait_for_records(process: subprocess.Popen, study: Path, most: int) -> None:
    """Return when the study has so many records, or when the process has ended."""
    while process.poll() is None and count_records(study) < most:
        time.sleep(0.01)


def count_records(study: Path) -> int:
    records = study / "records"
    return sum(path.suffix == ".parquet" for path in records.iterdir()) if records.is_dir() else 0


def read_table(study: Path) -> list[dict[str, str]]:
    """The rows of ``table.csv``."""
    with open(study / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def leftovers(study: Path) -> list[str]:
    """What a run has to have taken away when it has ended."""
    return sorted(
        str(path.relative_to(study))
        for path in study.rglob("*")
        if path.name == ".work" or path.name.endswith(".tmp")
    )
