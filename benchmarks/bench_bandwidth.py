"""A pass over the records beside the bandwidth of the memory, plain numpy and the disk.

    python -m benchmarks.bench_bandwidth [--entries 5e7] [--disk 2] [--keep]

A pass is the sum of all gradients of the logistic loss at one point, or at several. Bandwidth is
that of one sum over an array of the same type and size, or of one copy of it, which reads and
writes; the larger counts. The plain pass is X theta, slopes, X' slopes by numpy (scipy for sparse
rows), on the same arrays in their own precision. All of it takes the same number of threads, in
seconds on the clock. The disk reads a file that the memory no longer holds, in order. ``--keep``
writes ``bandwidth.csv`` and the tables in docs/scale.md that follow from it and from ``scale.csv``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks import bench_scale
from benchmarks.bench_passes import compiled_pass, plain_pass
from benchmarks.watched_runs import (
    format_table,
    keep_machine,
    read_kept,
    write_kept,
    write_page,
)
from dperm_cli.loops.thread_count import cores, use_threads

KEPT = Path(__file__).parent / "bandwidth.csv"
HEAD = (
    "case", "gigabytes", "threads", "gb_per_second_pass", "gb_per_second_sum",
    "gb_per_second_copy", "pass_over_bandwidth", "gb_per_second_numpy", "pass_over_numpy",
)  # fmt: skip
SHOWN = (
    "records", "GB", "threads", "pass (GB/s)", "sum (GB/s)", "copy (GB/s)", "pass / bandwidth",
    "numpy (GB/s)", "pass / numpy",
)  # fmt: skip
MARKS, BEYOND = "bandwidth", "beyond"
REPEATS = 7
DISK = "a file on the disk"
PIECE = 1 << 24  # bytes read at once
# name, columns, nonzeros of a row (None: all), points, type
CASES = (
    ("50 columns, single", 50, None, 1, np.float32),
    ("50 columns, double", 50, None, 1, np.float64),
    ("50 columns, double, 10 points", 50, None, 10, np.float64),
    ("5000 columns, double", 5000, None, 1, np.float64),
    ("1000 columns, 30 nonzeros a row", 1000, 30, 1, np.float64),
)
LARGER = (1e9, 1e10)  # records that have not been run
BEYOND_SHOWN = (
    "records", "GB", "store (h)", "100 steps, rows in memory (h)",
    "100 steps, rows on the disk (h)", "own memory (GiB)",
)  # fmt: skip


def time_in_turn(works: Sequence[Callable[[], object]]) -> list[float]:
    """The shortest of a few calls of each, in seconds on the clock.

    They take turns, so that what else the machine does disturbs all alike; the first turn warms up.
    """
    found: list[list[float]] = [[] for _ in works]
    for _ in range(1 + REPEATS):
        for work, times in zip(works, found, strict=True):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
    return [min(times[1:]) for times in found]


def draw(entries: int, p: int, nonzeros: int | None, points: int, kind: type) -> tuple:
    """Rows of that type, labels and points; a tenth of the entries where rows are sparse."""
    rng = np.random.default_rng(0)
    n = entries // p if nonzeros is None else entries // (10 * nonzeros)
    y, theta = np.sign(rng.standard_normal(n)), rng.standard_normal((points, p))
    if nonzeros is not None:
        places = np.sort(rng.integers(0, p, (n, nonzeros), dtype=np.int32), axis=1)
        begins = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)
        values = rng.standard_normal(n * nonzeros)
        return sparse.csr_array((values, places.ravel(), begins), shape=(n, p)), y, theta
    x = rng.standard_normal((n, p), dtype=np.float32).astype(kind, copy=False)
    x /= kind(np.sqrt(p))
    return x, y, theta


def split_evenly(values: np.ndarray, threads: int) -> list[np.ndarray]:
    """Parts of an array, one for each thread."""
    return np.array_split(values.ravel(), threads)


def measure_case(entries: int, case: tuple, threads: int) -> tuple[str, ...]:
    """A line of the table: a pass, the memory and plain numpy with so many threads."""
    name, p, nonzeros, points, kind = case
    x, y, theta = draw(entries, p, nonzeros, points, kind)
    values = x if nonzeros is None else x.data
    size = (values.nbytes if nonzeros is None else values.nbytes + x.indices.nbytes) / 1e9
    own = theta.astype(kind) if nonzeros is None else theta
    target = np.empty_like(values)
    parts, targets = split_evenly(values, threads), split_evenly(target, threads)
    with use_threads(threads), threadpool_limits(threads), ThreadPoolExecutor(threads) as pool:
        mine, plain, summed, copied = time_in_turn([
            partial(compiled_pass, x, y, theta),
            partial(plain_pass, x, y.astype(kind), own),
            lambda: list(pool.map(np.sum, parts)),
            lambda: list(pool.map(np.copyto, targets, parts)),
        ])  # fmt: skip
    read = values.nbytes / summed / 1e9
    moved = 2 * values.nbytes / copied / 1e9
    return (
        f"{len(y):.2g} x {name}", f"{size:.2g}", str(threads), f"{size / mine:.3g}",
        f"{read:.3g}", f"{moved:.3g}", f"{size / mine / max(read, moved):.2f}",
        f"{size / plain:.3g}", f"{plain / mine:.2f}",
    )  # fmt: skip


def measure_disk(gigabytes: float, folder: Path) -> tuple[str, ...]:
    """A line of the table: a file is written, dropped from memory and read in order."""
    path, piece = folder / "read", np.random.default_rng(0).bytes(PIECE)
    count = max(1, int(gigabytes * 1e9 / PIECE))
    with open(path, "wb", buffering=0) as file:
        for _ in range(count):
            file.write(piece)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    buffer, began = bytearray(PIECE), time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    rate = count * PIECE / (time.perf_counter() - began) / 1e9
    path.unlink()
    return (DISK, f"{count * PIECE / 1e9:.2g}", "1", "-", f"{rate:.2g}", "-", "-", "-", "-")


def measure(entries: int, gigabytes: float, folder: Path) -> Iterator[tuple[str, ...]]:
    """All lines of the table."""
    for case in CASES:
        for threads in sorted({1, cores()}):
            yield measure_case(entries, case, threads)
    yield measure_disk(gigabytes, folder)


def compute_beyond(scale: list[list[str]], disk: float) -> list[list[str]]:
    """What more records would take, by the rates of the largest run of ``scale.csv``.

    Times and bytes grow as the records do. The process's own memory grows by what a record took
    between the two largest runs.

    Args:
        scale: The lines of ``scale.csv`` below its head.
        disk: GB a second that the disk reads.
    """
    numbers = [dict(zip(bench_scale.HEAD, map(float, line), strict=True)) for line in scale[-2:]]
    before, last = numbers
    grown = last["anonymous_gib"] - before["anonymous_gib"]
    each = grown / (last["records"] - before["records"])
    lines = []
    for n in LARGER:
        times = n / last["records"]
        size, release = times * last["gigabytes"], times * last["seconds_release"]
        own = last["anonymous_gib"] + each * (n - last["records"])
        read = max(release, bench_scale.STEPS * size / disk)
        lines.append([
            f"{n:.0e}", f"{size:.3g}", f"{times * last['seconds_stored'] / 3600:.2g}",
            f"{release / 3600:.2g}", f"{read / 3600:.2g}", f"{own:.2g}",
        ])  # fmt: skip
    return lines


def format_beyond(lines: list[list[str]]) -> str:
    """The table of what has not been run, from the lines of ``bandwidth.csv`` below its head."""
    [disk] = [float(line[4]) for line in lines if line[0] == DISK]
    return format_table(BEYOND_SHOWN, compute_beyond(read_kept(bench_scale.KEPT)[1:], disk))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=float, default=5e7)
    parser.add_argument("--disk", type=float, default=2.0, help="GB that are read")
    parser.add_argument("--folder", default=None, help="on the disk that is measured")
    parser.add_argument("--keep", action="store_true", help="write bandwidth.csv")
    asked = parser.parse_args()
    lines: list[list[str]] = []
    print(",".join(HEAD))
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        for line in measure(int(asked.entries), asked.disk, Path(name)):
            lines.append(list(line))
            print(",".join(line), flush=True)
    if asked.keep:
        write_kept(KEPT, [HEAD, *lines])
        write_page(MARKS, format_table(SHOWN, lines))
        write_page(BEYOND, format_beyond(lines))
        keep_machine(MARKS)


if __name__ == "__main__":
    main()
