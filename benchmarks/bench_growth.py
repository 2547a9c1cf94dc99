"""How time and memory of a run grow with columns, nonzeros, trials, epsilons and workers.

    python -m benchmarks.bench_growth [--entries 1e7] [--only AXIS,...] [--keep]

Every line is one ``dperm run`` of ``noisy_gd`` with 100 steps, in a process of its own with an
empty cache. The number of records follows from ``--entries``: records times columns, or times
nonzeros of a row. ``release`` is the sum over all trials and cells, in seconds on the clock, as
``optimum`` and ``run`` are; ``processor`` is processor time of the whole run, all its processes and
threads together. ``ns`` is the time of the releases for one record, column (or nonzero), step,
trial and epsilon. ``--keep`` writes ``growth.csv`` and its table in docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.watched_runs import (
    Watched,
    format_table,
    keep_machine,
    read_kept,
    run_watched,
    write_kept,
    write_page,
)

KEPT = Path(__file__).parent / "growth.csv"
HEAD = (
    "axis", "records", "columns", "entries_per_row", "trials", "epsilons", "workers",
    "seconds_release", "ns", "seconds_optimum", "seconds_run", "processor_seconds", "anonymous_gib",
)  # fmt: skip
SHOWN = (
    "grows", "n", "p", "entries a row", "trials", "epsilons", "workers", "release (s)", "ns",
    "optimum (s)", "run (s)", "processor (s)", "memory (GiB)",
)  # fmt: skip
MARKS = "growth"
STEPS = 100
WIDE = 1000  # columns of sparse rows
BOUNDED = 50  # columns where something else grows
AXES = {
    "columns": (10, 100, 1000, 10_000, 100_000),
    "nonzeros": (3, 30, 300),
    "trials": (1, 10, 100),
    "epsilons": (1, 4, 16),
    "workers": (1, 2),
}


@dataclass(frozen=True)
class Size:
    """What a run is asked for; ``sparse`` rows come from an svmlight file."""

    records: int
    columns: int
    entries: int
    trials: int = 1
    epsilons: int = 1
    workers: int = 1
    sparse: bool = False

    def words(self, folder: Path) -> list[str]:
        """The arguments of ``dperm run``."""
        data = ["dataset=synthetic_logistic", f"dataset.n={self.records}", "dataset.n_test=0",
                f"dataset.p={self.columns}"]  # fmt: skip
        if self.sparse:
            data = ["dataset=svmlight", f"dataset.path={write_sparse(self, folder)}",
                    f"dataset.n_features={self.columns}", "dataset.test_fraction=0",
                    'dataset.labels={"1": 1, "-1": -1}']  # fmt: skip
        epsilons = ",".join(f"{1 + i / 4:g}" for i in range(self.epsilons))
        return [
            "-m", *data, "mechanism=noisy_gd", f"mechanism.steps={STEPS}", f"epsilon={epsilons}",
            f"trials={self.trials}", f"workers={self.workers}", "format=json",
            f"out={folder / 'out'}",
        ]  # fmt: skip


def write_sparse(size: Size, folder: Path) -> Path:
    """A file of rows with so many equal entries at random columns, and labels of a linear rule."""
    rng, path = np.random.default_rng(0), folder / "sparse.svm"
    rule = rng.standard_normal(size.columns)
    with open(path, "w") as file:
        for _ in range(size.records):
            places = np.sort(rng.choice(size.columns, size.entries, replace=False)) + 1
            margin = rule[places - 1].sum() / np.sqrt(size.entries) + rng.standard_normal()
            label = "1" if margin > 0 else "-1"
            file.write(f"{label} {' '.join(f'{place}:1' for place in places)}\n")
    return path


def list_sizes(axis: str, entries: int) -> Iterator[Size]:
    """The runs of one axis."""
    usual = Size(entries // BOUNDED, BOUNDED, BOUNDED)
    for value in AXES[axis]:
        if axis == "columns":
            yield Size(entries // value, value, value)
        elif axis == "nonzeros":
            # a text: with fewer entries it takes no longer than the others
            yield Size(3 * entries // (100 * value), WIDE, value, sparse=True)
        elif axis == "trials":
            yield replace(usual, records=usual.records // 10, trials=value)
        elif axis == "epsilons":
            yield replace(usual, epsilons=value)
        else:
            yield replace(usual, epsilons=max(AXES["epsilons"]), workers=value)


def run_size(size: Size, folder: Path) -> Watched:
    """One ``dperm run``, in a folder and with a cache of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        own = Path(name)
        command = [sys.executable, "-m", "dperm_cli", "run", *size.words(own)]
        watched = run_watched(command, own, DPERM_CACHE_DIR=str(own / "cache"))
    if watched.code:
        sys.exit(watched.errors)
    return watched


def measure(axis: str, size: Size, folder: Path) -> tuple[str, ...]:
    """A line of the table."""
    watched = run_size(size, folder)
    rows = [json.loads(line) for line in watched.text.splitlines()]
    if any(row["status"] != "ok" or row["n"] != size.records for row in rows):
        sys.exit(watched.text)
    release = sum(row["seconds"] for row in rows) * size.trials
    work = size.records * size.entries * STEPS * size.trials * size.epsilons
    return (
        axis, f"{size.records:.3g}", f"{size.columns:.3g}", f"{size.entries:.3g}",
        str(size.trials), str(size.epsilons), str(size.workers), f"{release:.3g}",
        f"{1e9 * release / work:.3g}", f"{max(row['seconds_optimum'] for row in rows):.3g}",
        f"{watched.elapsed:.3g}", f"{watched.processor:.3g}", f"{watched.anonymous_gib:.2f}",
    )  # fmt: skip


def warm_up(axes: list[str], folder: Path) -> None:
    """Run the smallest form of each axis once: the first run compiles."""
    for axis in axes:
        run_size(replace(next(list_sizes(axis, 100_000)), records=200), folder)


def keep(lines: list[tuple[str, ...]]) -> None:
    """Write the lines of the axes that were measured, beside those that were kept of others."""
    before = read_kept(KEPT)[1:] if KEPT.exists() else []
    measured = {line[0] for line in lines}
    rows = [*lines, *(tuple(line) for line in before if line[0] not in measured)]
    rows.sort(key=lambda line: list(AXES).index(line[0]))
    write_kept(KEPT, [HEAD, *rows])
    write_page(MARKS, format_table(SHOWN, rows))
    keep_machine(MARKS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=float, default=1e7)
    parser.add_argument("--only", default=",".join(AXES), help="axes, with commas between")
    parser.add_argument("--folder", default=None, help="where files are written")
    parser.add_argument("--compiled", action="store_true", help="loops were compiled before")
    parser.add_argument("--keep", action="store_true", help="write growth.csv")
    asked = parser.parse_args()
    axes = asked.only.split(",")
    print(",".join(HEAD))
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        if not asked.compiled:
            warm_up(axes, Path(name))
        for axis in axes:
            lines = []
            for size in list_sizes(axis, int(asked.entries)):
                lines.append(measure(axis, size, Path(name)))
                print(",".join(lines[-1]), flush=True)
            if asked.keep:
                keep(lines)


if __name__ == "__main__":
    main()
