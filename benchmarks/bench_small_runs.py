"""What small commands and sweeps cost, beside the import of numpy: ratios inside this one run.

    python -m benchmarks.bench_small_runs [--keep] [--against FOLDER]

Processor time of whole commands, in turns; each ratio is the median of a few. Targets are seconds
that the project set itself: 0.05 s for ``dperm --help``, 0.5 s for ``account``, 0.7 s for a
finished study, 1.5 s for the default run, 150 tiny cells a second on two cores, 2,000 looked-up
cells a second, and 5 s to plan 100,000 cells. Every ratio is larger where dperm is faster. Other
programs slow down numpy's import less than the rest, so that ratios are smaller on a busy machine.
``kept_small_runs.csv`` holds the ratios that were measured once: exit code 1 where one is smaller
by more than a third. ``--keep`` writes that file anew.

These seconds are of the machine on which the work was planned. There commit 98bf31b5 took 3.5 s for
the default run, 63 ms for a tiny cell and 1.0 to 1.5 s for ``account``. ``--against FOLDER`` runs
the checkout of such a commit in turns with this one, and prints how many times as long its commands
take, which depends on no machine; nothing is judged then. Where that commit takes 6.2 s, 128 ms and
2.4 s, numpy is imported in 0.15 s: so numpy's import takes 0.08 s where the targets are from.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.kept_ratios import judge

KEPT = Path(__file__).parent / "kept_small_runs.csv"
NUMPY = 0.08  # seconds of its import where the targets are seconds
REPEATS = 5
TINY = ["run", "-m", "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2",
        "mechanism=noisy_gd", "mechanism.steps=2"]  # fmt: skip
FEW, MANY, PLANNED = 20, 620, 100_000


def measure(words: Sequence[str], fresh: Path | None = None, checkout: Path | None = None) -> float:
    """Seconds of processor time of a Python process.

    Args:
        words: What Python is given.
        fresh: A folder that the process makes.
        checkout: The files of another commit, which the process runs.
    """
    if fresh is not None:
        shutil.rmtree(fresh, ignore_errors=True)
    # what is installed has been compiled to byte code
    settled = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if checkout is not None:
        settled["PYTHONPATH"] = str(checkout)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, env=settled, cwd=checkout,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_numpy() -> float:
    """Seconds of an import of numpy, the median of three."""
    return statistics.median(measure(["-c", "import numpy"]) for _ in range(3))


def compare_in_turns(folder: Path) -> dict[str, float]:
    """The time of an import of numpy over that of each command."""
    dperm, done, new = ["-m", "dperm_cli"], folder / "done", folder / "new"
    commands: dict[str, tuple[list[str], Path | None]] = {
        "help": ([*dperm, "--help"], None),
        "account": ([*dperm, "account", "mechanism=noisy_gd", "epsilon=1", "n=1000"], None),
        "study": ([*dperm, "run", f"out={done}"], None),
        "run": ([*dperm, "run", f"out={new}"], new),
    }
    for words, fresh in commands.values():  # compiles what is kept, and finishes the study
        measure(words, fresh)
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):
        unit = measure_numpy()
        for name, (words, fresh) in commands.items():
            found[name].append(unit / measure(words, fresh))
    return {name: statistics.median(ratios) for name, ratios in found.items()}


def sweep(count: int, out: Path) -> list[str]:
    """A command for so many tiny cells."""
    axis = "epsilon=" + ",".join(f"{0.5 + i / 400:g}" for i in range(count))
    return ["-m", "dperm_cli", *TINY, axis, f"out={out}"]


def find_ratios(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Each ratio with its target."""
    found = compare_in_turns(folder)
    for name, seconds in (("help", 0.05), ("account", 0.5), ("study", 0.7), ("run", 1.5)):
        yield f"import of numpy / {name}", found[name], NUMPY / seconds
    few, many = sweep(FEW, folder / "few"), sweep(MANY, folder / "many")
    for name, rate, repeats in (("new", 75, 1), ("looked-up", 2000, REPEATS)):
        unit = measure_numpy()
        # looked-up cells take less than what else a run does, which differs from run to run
        taken = [min(measure(words) for _ in range(repeats)) for words in (few, many)]
        cells = (MANY - FEW) / max(taken[1] - taken[0], 1e-3)
        yield f"{name} cells and report in an import of numpy", cells * unit, NUMPY * rate
    grid = ["epsilon=range(1,11)", f"seed=range(0,{PLANNED // 10})"]
    unit = measure_numpy()
    seconds = measure(["-m", "dperm_cli", *TINY, *grid, "--cfg", "job"])
    yield "planned cells in an import of numpy", PLANNED * unit / seconds, NUMPY * PLANNED / 5.0


def compare_commits(checkout: Path, folder: Path) -> Iterator[tuple[str, float, float]]:
    """How many times as long another commit takes, and how many times it should."""
    run, few, many = (folder / name for name in ("run", "few", "many"))
    account = ["-m", "dperm_cli", "account", "mechanism=noisy_gd", "epsilon=1", "n=1000"]
    sides = (checkout, Path(__file__).parents[1])
    seconds: dict[str, dict[Path, list[float]]] = {"account": {}, "run": {}, "new cells": {}}
    for side in sides * (REPEATS + 1):  # the first of each compiles what is kept
        cells = [
            measure(sweep(count, out), out, side) for count, out in ((FEW, few), (10 * FEW, many))
        ]
        seconds["new cells"].setdefault(side, []).append(cells[1] - cells[0])
        seconds["account"].setdefault(side, []).append(measure(account, None, side))
        words = ["-m", "dperm_cli", "run", f"out={run}"]
        seconds["run"].setdefault(side, []).append(measure(words, run, side))
    for name, target in (("account", 1.25 / 0.5), ("run", 3.5 / 1.5), ("new cells", 0.063 * 75)):
        before, now = (statistics.median(seconds[name][side][1:]) for side in sides)
        yield f"{name}, {checkout.name} / this commit", before / now, target


def main() -> int:
    """Print each ratio; 1 where one fell by more than a third below what was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write kept_small_runs.csv")
    parser.add_argument("--against", metavar="FOLDER", help="a checkout of another commit")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if asked.against:
            for ratio in compare_commits(Path(asked.against).resolve(), Path(name)):
                print("{:50s} {:9.2f} {:7.2f}".format(*ratio), flush=True)
            return 0
        return judge(find_ratios(Path(name)), KEPT, asked.keep)


if __name__ == "__main__":
    sys.exit(main())
