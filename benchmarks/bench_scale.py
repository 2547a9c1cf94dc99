"""How time and memory of one run grow with the number of records.

    python benchmarks/bench_scale.py [--most 1e7] [--columns 50] [--steps 100] [--keep]

For each number of records it stores a logistic data set in single precision, in a temporary folder,
and runs ``noisy_gd`` with one trial on it, from mapped files, with its certified optimum. It prints
seconds of the release, nanoseconds of a record and a step, seconds of the optimum, and the largest
anonymous memory of the process (pages of mapped files are not in it: they are dropped when memory
is short). ``--keep`` writes ``scale.csv`` and its table in docs/scale.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEPT = Path(__file__).parent / "scale.csv"
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- scale -->\n", "<!-- end of scale -->"
HEAD = (
    "records", "gigabytes", "seconds_stored", "seconds_release", "ns_per_record_and_step",
    "seconds_optimum", "relative_gap", "anonymous_gib",
)  # fmt: skip


SHOWN = ("records", "GB", "store (s)", "release (s)", "ns", "optimum (s)", "gap", "memory (GiB)")


def format_table(lines: list[list[str]]) -> str:
    """The table of docs/scale.md, from the lines of ``scale.csv`` below its head."""
    table = [SHOWN, ["---"] * len(SHOWN), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in table)


def write_page(lines: list[list[str]]) -> None:
    """Put the table between its marks in docs/scale.md."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{format_table(lines)}\n{END}{rest.split(END)[1]}")


def run_watched(words: list[str], folder: Path) -> tuple[str, float]:
    """What a command prints, and its largest anonymous memory in GiB."""
    with open(folder / "out", "w+") as out, open(folder / "err", "w+") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "dperm_cli", *words], stdout=out, stderr=err
        )
        most = 0
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
                found = re.search(r"RssAnon:\s+(\d+) kB", status)
                most = max(most, int(found[1]) if found else 0)
            except OSError:
                pass
            time.sleep(0.02)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            sys.exit(err.read())
        return out.read(), most / 2**20


def measure(n: int, p: int, steps: int, folder: Path) -> tuple[str, ...]:
    """A line of the table."""
    kept = folder / f"records{n}"
    began = time.perf_counter()
    run_watched(["data", "store", "synthetic_logistic", f"dataset.n={n}", f"dataset.p={p}",
                 "dataset.n_test=0", "precision=float32", f"to={kept}"], folder)  # fmt: skip
    stored = time.perf_counter() - began
    text, memory = run_watched(
        ["run", "dataset=stored", f"dataset.path={kept}", "mechanism=noisy_gd",
         f"mechanism.steps={steps}", "trials=1", "constraint.radius=5", "format=json",
         f"out={folder / f'out{n}'}"], folder,
    )  # fmt: skip
    row = json.loads(text.splitlines()[0])
    for file in kept.iterdir():
        file.unlink()
    each = 1e9 * row["seconds"] / n / steps
    return (
        f"{n:.0e}", f"{4e-9 * n * p:.3g}", f"{stored:.3g}", f"{row['seconds']:.3g}", f"{each:.3g}",
        f"{row['seconds_optimum']:.3g}", f"{row['optimum_gap'] / row['optimum']:.1e}",
        f"{memory:.2f}",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=float, default=1e3)
    parser.add_argument("--most", type=float, default=1e7)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--folder", default=None, help="where records are stored")
    parser.add_argument("--keep", action="store_true", help="write scale.csv")
    asked = parser.parse_args()
    rows, n = [HEAD], int(asked.least)
    print(",".join(HEAD))
    if asked.folder:
        Path(asked.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        while n <= asked.most:
            rows.append(measure(n, asked.columns, asked.steps, Path(folder)))
            print(",".join(rows[-1]), flush=True)
            n *= 10
    if asked.keep:
        with open(KEPT, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        write_page([list(row) for row in rows[1:]])


if __name__ == "__main__":
    main()
