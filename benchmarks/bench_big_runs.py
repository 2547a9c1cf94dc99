"""What a big run costs beside another commit: processor time and memory, in turns.

    python -m benchmarks.bench_big_runs --against FOLDER [--keep]

``noisy_gd`` with 100 steps and ten trials on covtype (DPERM_DATA_DIR, or fetched before) and on
4e6 generated records of 10 columns, by the checkout of another commit in FOLDER and by this one,
whose records are in memory or mapped. Every figure is the median of two runs after one that reads
the records and finds the optimum. ``--keep`` writes ``big_runs.csv`` and the table in
docs/scale.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.watched_runs import (
    format_table,
    keep_machine,
    run_watched,
    write_kept,
    write_page,
)

MARKS = "big runs"
KEPT = Path(__file__).parent / "big_runs.csv"
HEAD = ("records", "storage", "seconds_before", "seconds", "faster", "mib_before", "mib", "smaller")
SHOWN = (
    "records", "data_storage", "before (s)", "now (s)", "times less", "before (MiB)", "now (MiB)",
    "times less",
)  # fmt: skip
TURNS = 2
MECHANISM = ("mechanism=noisy_gd", "mechanism.steps=100")
RECORDS = {
    "covtype": ("dataset=covtype",),
    "4e6 x 10": ("dataset=synthetic_logistic", "dataset.n=4000000", "dataset.p=10"),
}
STORAGES = {"memory": (), "mapped": ("data_storage=mapped",)}


def measure(words: Sequence[str], checkout: Path, folder: Path, cache: Path) -> tuple[float, float]:
    """Seconds of processor time of a run, and the most MiB that it held for itself."""
    watched = run_watched(
        # -P: the package of this folder comes first else
        [sys.executable, "-P", "-m", "dperm_cli", "run", *words, "force=true"], folder,
        PYTHONPATH=str(checkout), PYTHONDONTWRITEBYTECODE="",
        DPERM_CACHE_DIR=str(cache),
    )  # fmt: skip
    if watched.code != 0:
        raise SystemExit(f"{checkout}: {' '.join(words)} failed: {watched.errors.strip()}")
    return watched.processor, 1024 * watched.anonymous_gib


def format_figure(value: float) -> str:
    """Three digits or more, without an exponent."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def compare(checkout: Path, name: str, folder: Path) -> list[tuple[str, ...]]:
    """The lines of some records, one for each place where they may be."""
    here, words = Path(__file__).parents[1], [*RECORDS[name], *MECHANISM]
    runs = {"before": (checkout, words)}
    runs |= {storage: (here, [*words, *more]) for storage, more in STORAGES.items()}
    found: dict[str, list[tuple[float, float]]] = {run: [] for run in runs}
    for _ in range(1 + TURNS):
        for run, (files, asked) in runs.items():
            cache = folder / ("cache here" if files == here else "cache before")
            out = f"out={folder / run / name.replace(' ', '')}"
            found[run].append(measure([*asked, out], files, folder, cache))
    middle = {
        run: [statistics.median(values) for values in zip(*figures[1:], strict=True)]
        for run, figures in found.items()
    }
    lines = []
    for storage in STORAGES:
        pairs = list(zip(middle["before"], middle[storage], strict=True))
        figures = [value for before, now in pairs for value in (before, now, before / now)]
        lines.append((name, storage, *map(format_figure, figures)))
    return lines


def main() -> None:
    """Print each line; keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="FOLDER", required=True, help="another commit's files")
    parser.add_argument("--keep", action="store_true", help="write big_runs.csv")
    asked, lines = parser.parse_args(), []
    checkout = Path(asked.against).resolve()
    if not (checkout / "dperm_cli").is_dir():  # Python would take the installed package then
        parser.error(f"--against {asked.against}: holds no dperm_cli; check out a commit there")
    with tempfile.TemporaryDirectory() as folder:
        for name in RECORDS:
            lines += compare(checkout, name, Path(folder))
            print(format_table(SHOWN, lines), flush=True)
    if asked.keep:
        write_kept(KEPT, [HEAD, *lines])
        write_page(MARKS, format_table(SHOWN, lines))
        keep_machine(MARKS)


if __name__ == "__main__":
    main()
