"""What a big run costs beside another commit: ratios of processor time and of memory, in turns.

    python -m benchmarks.bench_big_runs --against FOLDER [--keep]

``noisy_gd`` with 100 steps and ten trials on covtype (DPERM_DATA_DIR, or fetched before) and on
4e6 generated records of 10 columns, by this commit and by the checkout of another one, in turns.
Both have read the records and found the optimum in a run before. Memory is what a process
allocates at most (RssAnon of Linux), without the pages of mapped files. Ratios are that commit's
figure over this one's: three times as much was asked against 98bf31b5. ``--keep`` writes
``big_runs.csv``.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

KEPT = Path(__file__).parent / "big_runs.csv"
COLUMNS = ("records", "storage", "seconds_before", "seconds", "mib_before", "mib")
TARGET = 3.0
TURNS = 2
MECHANISM = ["mechanism=noisy_gd", "mechanism.steps=100"]
RECORDS = {
    "covtype": ["dataset=covtype"],
    "4e6 x 10": ["dataset=synthetic_logistic", "dataset.n=4000000", "dataset.p=10"],
}
STORAGES = {"memory": [], "mapped": ["data_storage=mapped"]}


def measure(words: Sequence[str], checkout: Path, cache: Path) -> tuple[float, float]:
    """Processor seconds of a run, and the most MiB that it allocates.

    Args:
        words: What ``dperm run`` is given.
        checkout: The files of the commit that runs.
        cache: Where this commit keeps what it has read and found.
    """
    settled = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    settled |= {"PYTHONPATH": str(checkout), "DPERM_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "dperm_cli", "run", *words]
    run = subprocess.Popen(command, cwd=checkout, env=settled, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)  # fmt: skip
    most = 0.0
    while True:
        most = max(most, read_memory(run.pid))
        found, status, used = os.wait4(run.pid, os.WNOHANG)
        if found:
            if status:
                raise SystemExit(f"{' '.join(command)} failed in {checkout}")
            return used.ru_utime + used.ru_stime, most
        time.sleep(0.01)


def read_memory(pid: int) -> float:
    """MiB that a process has allocated; 0 for one that is ending."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def compare(checkout: Path, folder: Path) -> Iterator[dict[str, str]]:
    """A row for each kind of records and each place of them: medians of a few turns."""
    sides = {"before": checkout, "now": Path(__file__).parents[1]}
    for name, records in RECORDS.items():
        found: dict[str, list[tuple[float, float]]] = {}
        for turn in range(TURNS + 1):  # the first reads the records and finds the optimum
            for storage, more in STORAGES.items():
                kinds = sides if storage == "memory" else {"now": sides["now"]}
                for side, files in kinds.items():
                    out = f"out={folder / (side + storage)}"
                    words = [*records, *MECHANISM, *more, "force=true", out]
                    figures = measure(words, files, folder / f"cache_{side}")
                    if turn:
                        found.setdefault(f"{side} {storage}", []).append(figures)
        for storage in STORAGES:
            sides_found = (found["before memory"], found[f"now {storage}"])
            before, now = (
                [statistics.median(values) for values in zip(*side, strict=True)]
                for side in sides_found
            )
            figures = (before[0], now[0], before[1], now[1])
            texts = (name, storage, *(f"{value:.3g}" for value in figures))
            yield dict(zip(COLUMNS, texts, strict=True))


def main() -> None:
    """Print each pair of figures and its ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="FOLDER", required=True, help="another commit's files")
    parser.add_argument("--keep", action="store_true", help="write big_runs.csv")
    asked, rows = parser.parse_args(), []
    with tempfile.TemporaryDirectory() as folder:
        for row in compare(Path(asked.against).resolve(), Path(folder)):
            rows.append(row)
            for unit in ("seconds", "mib"):
                ratio = float(row[f"{unit}_before"]) / float(row[unit])
                name = f"{row['records']}, {row['storage']}, {unit}"
                print(f"{name:30s} {ratio:6.2f} of {TARGET:g}", flush=True)
    if asked.keep:
        with KEPT.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
