"""What the benchmarks of scale share: watched commands, and the tables of docs/scale.md.

Anonymous memory is what a process holds for itself. Pages of mapped files are not in it: they are
dropped when memory is short. Of a command with workers it is the sum over all its processes.
"""

from __future__ import annotations

import csv
import datetime
import os
import platform
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dperm_cli import __version__
from dperm_cli.loops.thread_count import cores

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
MACHINES = Path(__file__).parent / "scale_machines.csv"
MACHINE_HEAD = (
    "table", "processor", "vectors", "cores", "memory_gib", "python", "numpy", "dperm", "day",
)  # fmt: skip
MACHINE_SHOWN = (
    "table", "processor", "vectors", "cores", "memory (GiB)", "Python", "numpy", "dperm", "day",
)  # fmt: skip
STEP = 0.02  # seconds between two looks at the memory


@dataclass(frozen=True)
class Watched:
    """What a command printed, and what it took.

    Attributes:
        code: its exit code; None where it was stopped at the limit.
        elapsed: seconds on the clock, from its start to its end.
        processor: seconds of processor time, of all its processes that have ended.
        anonymous_gib: the largest anonymous memory of all its processes together.
    """

    code: int | None
    text: str
    errors: str
    elapsed: float
    processor: float
    anonymous_gib: float


def list_family(number: int) -> list[int]:
    """The numbers of a process and of all that it started."""
    found = [number]
    for tasks in Path(f"/proc/{number}/task").glob("*/children"):
        for child in tasks.read_text().split():
            found += list_family(int(child))
    return found


def read_anonymous(number: int) -> int:
    """Anonymous memory of a process and of all that it started, in kB; 0 where it is gone."""
    total = 0
    try:
        for member in list_family(number):
            status = Path(f"/proc/{member}/status").read_text()
            found = re.search(r"RssAnon:\s+(\d+) kB", status)
            total += int(found[1]) if found else 0
    except OSError:
        pass
    return total


def run_watched(
    command: Sequence[str], folder: Path, limit: float | None = None, **variables: str
) -> Watched:
    """Run a command to its end, or for ``limit`` seconds; its output goes through ``folder``."""
    with open(folder / "watched.out", "w+") as out, open(folder / "watched.err", "w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            list(command), stdout=out, stderr=err, env=os.environ | variables,
            start_new_session=True,
        )  # fmt: skip
        most, stopped = 0, False
        while True:
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            most = max(most, read_anonymous(process.pid))
            if limit is not None and time.perf_counter() - began > limit and not stopped:
                os.killpg(process.pid, signal.SIGKILL)
                stopped = True
            time.sleep(STEP)
        elapsed = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Watched(
            None if stopped else process.returncode, out.read(), err.read(), elapsed,
            usage.ru_utime + usage.ru_stime, most / 2**20,
        )  # fmt: skip


def read_kept(kept: Path) -> list[list[str]]:
    """The lines of a kept table, its head first."""
    return list(csv.reader(kept.read_text().splitlines()))


def write_kept(kept: Path, lines: Iterable[Sequence[str]]) -> None:
    """Keep a table, its head first."""
    with open(kept, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)


def format_table(shown: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in markdown."""
    table = [shown, ["---"] * len(shown), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in table)


def read_page(name: str) -> str:
    """What stands between the marks of that name in docs/scale.md."""
    rest = PAGE.read_text().split(f"<!-- {name} -->\n")[1]
    return rest.split(f"<!-- end of {name} -->")[0].strip()


def write_page(name: str, text: str) -> None:
    """Put a text between the marks of that name in docs/scale.md."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{rest.split(end)[1]}")


def describe_machine(table: str) -> tuple[str, ...]:
    """The machine that measured a table, and what was installed there."""
    processor, memory = Path("/proc/cpuinfo").read_text(), Path("/proc/meminfo").read_text()
    named = re.search(r"model name\s*: (.*)", processor)
    size = re.search(r"MemTotal:\s+(\d+) kB", memory)
    flags = [word.upper() for word in ("avx512f", "avx2") if f" {word} " in processor]
    return (
        table, named[1].strip() if named else platform.machine(), flags[0] if flags else "-",
        str(cores()), str(int(size[1]) >> 20) if size else "-", platform.python_version(),
        np.__version__, __version__, datetime.date.today().isoformat(),
    )  # fmt: skip


def keep_machine(table: str) -> None:
    """Keep that this machine measured the table of that name, and show it on the page."""
    before = read_kept(MACHINES)[1:] if MACHINES.exists() else []
    found = {line[0]: tuple(line) for line in before} | {table: describe_machine(table)}
    lines = [found[name] for name in sorted(found)]
    write_kept(MACHINES, [MACHINE_HEAD, *lines])
    write_page("machines", format_table(MACHINE_SHOWN, lines))
