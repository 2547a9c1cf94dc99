"""How fast is one pass over the records? Ratios of times, all measured inside this one run.

    python -m benchmarks.bench_passes [--keep]

A pass is the sum of all gradients of the logistic loss at some points. The plain pass is two
products of whole arrays with numpy or scipy, as it was before passes were compiled. Targets are
those that the project set itself. ``kept_passes.csv`` holds the ratios that were measured once:
exit code 1 where one is smaller by more than a third. ``--keep`` writes that file anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.kept_ratios import judge
from dperm_cli.loops import gradient_sums
from dperm_cli.loops.thread_count import cores, use_threads
from dperm_cli.losses.logistic import Logistic

KEPT = Path(__file__).parent / "kept_passes.csv"
REPEATS = 3
# name, records, columns, points, share of entries that are not zero, target
DENSE = (
    ("4e6 x 10, 1 point", 4_000_000, 10, 1, None, 3.0),
    ("1e6 x 10, 10 points", 1_000_000, 10, 10, None, 3.0),
    ("5e5 x 54, 5 points", 500_000, 54, 5, None, 3.0),
    ("2e5 x 2000 sparse, 5 points", 200_000, 2000, 5, 0.005, 1.0),
    ("2e5 x 2000 sparse, 1 point", 200_000, 2000, 1, 0.005, 1.0),
)


def best_time(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """The shortest of a few calls, after one that warms up."""
    work()
    found = []
    for _ in range(REPEATS):
        began = clock()
        work()
        found.append(clock() - began)
    return min(found)


def draw(n: int, p: int, points: int, share: float | None) -> tuple:
    """Rows, labels and points."""
    rng = np.random.default_rng(0)
    y = np.sign(rng.standard_normal(n))
    theta = rng.standard_normal((points, p))
    if share is not None:
        return sparse.random_array((n, p), density=share, format="csr", rng=rng), y, theta
    return rng.standard_normal((n, p)) / np.sqrt(p), y, theta


def plain_pass(x, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The same sum by products of whole arrays."""
    return np.asarray(x.T @ Logistic().slope((x @ theta.T).T, y).T).T


def time_compiled(rows: tuple, threads: int, clock: Callable[[], float]) -> float:
    """The shortest time of a compiled pass by so many threads."""
    with use_threads(threads):
        return best_time(lambda: compiled_pass(*rows), clock)


def compiled_pass(x, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return gradient_sums.sum_gradients(gradient_sums.wrap_rows(x, y), theta, Logistic.code, 0.0)


def measure() -> Iterator[tuple[str, float, float]]:
    """(name, ratio, target) of everything."""
    for name, n, p, points, share, target in DENSE:
        rows = draw(n, p, points, share)
        mine = time_compiled(rows, 1, time.process_time)
        plain = best_time(partial(plain_pass, *rows), time.process_time)
        yield f"plain / compiled, {name}", plain / mine, target
        if cores() > 1 and (share is not None or points == 1):
            one, two = (time_compiled(rows, count, time.perf_counter) for count in (1, 2))
            yield f"one / two threads, {name}", one / two, 1.7
        if share is None:
            single = (rows[0].astype(np.float32), *rows[1:])
            half = time_compiled(single, 1, time.process_time)
            yield f"plain / float32, {name}", plain / half, 3.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="write kept_passes.csv anew")
    asked = parser.parse_args()
    return judge(measure(), KEPT, asked.keep)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
