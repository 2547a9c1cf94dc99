"""How time and memory of one run grow with the number of records.

    python -m benchmarks.bench_scale [--most 1e7] [--columns 50] [--keep]

For each number of records it stores a logistic data set in single precision, in a temporary folder,
and runs ``noisy_gd`` with one trial on it, from mapped files, with its certified optimum. It prints
seconds of the release, nanoseconds of a record and a step, seconds of the optimum, and the largest
anonymous memory of the process (pages of mapped files are not in it: they are dropped when memory
is short). ``--keep`` writes ``scale.csv`` and its table in docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.watched_runs import (
    Watched,
    format_table,
    keep_machine,
    run_watched,
    write_kept,
    write_page,
)

KEPT = Path(__file__).parent / "scale.csv"
HEAD = (
    "records", "gigabytes", "seconds_stored", "seconds_release", "ns_per_record_and_step",
    "seconds_optimum", "relative_gap", "anonymous_gib",
)  # fmt: skip

SHOWN = ("records", "GB", "store (s)", "release (s)", "ns", "optimum (s)", "gap", "memory (GiB)")
MARKS = "scale"
STEPS = 100


def run_dperm(words: list[str], folder: Path) -> Watched:
    """What a command of dperm prints and takes; ends this program where it fails."""
    watched = run_watched([sys.executable, "-m", "dperm_cli", *words], folder)
    if watched.code:
        sys.exit(watched.errors)
    return watched


def measure(n: int, p: int, folder: Path) -> tuple[str, ...]:
    """A line of the table."""
    kept = folder / f"records{n}"
    stored = run_dperm(["data", "store", "synthetic_logistic", f"dataset.n={n}", f"dataset.p={p}",
                        "dataset.n_test=0", "precision=float32", f"to={kept}"], folder)  # fmt: skip
    ran = run_dperm(
        ["run", "dataset=stored", f"dataset.path={kept}", "mechanism=noisy_gd",
         f"mechanism.steps={STEPS}", "trials=1", "constraint.radius=5", "format=json",
         f"out={folder / f'out{n}'}"], folder,
    )  # fmt: skip
    row = json.loads(ran.text.splitlines()[0])
    for file in kept.iterdir():
        file.unlink()
    each = 1e9 * row["seconds"] / n / STEPS
    return (
        f"{n:.0e}", f"{4e-9 * n * p:.3g}", f"{stored.elapsed:.3g}", f"{row['seconds']:.3g}",
        f"{each:.3g}", f"{row['seconds_optimum']:.3g}",
        f"{row['optimum_gap'] / row['optimum']:.1e}",
        f"{ran.anonymous_gib:.2f}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=float, default=1e3)
    parser.add_argument("--most", type=float, default=1e7)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--folder", default=None, help="where records are stored")
    parser.add_argument("--keep", action="store_true", help="write scale.csv")
    asked = parser.parse_args()
    rows, n = [HEAD], int(asked.least)
    print(",".join(HEAD))
    if asked.folder:
        Path(asked.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        while n <= asked.most:
            rows.append(measure(n, asked.columns, Path(folder)))
            print(",".join(rows[-1]), flush=True)
            n *= 10
    if asked.keep:
        write_kept(KEPT, rows)
        write_page(MARKS, format_table(SHOWN, rows[1:]))
        keep_machine(MARKS)


if __name__ == "__main__":
    main()
