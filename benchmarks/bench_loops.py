"""How fast are the compiled loops? Ratios of CPU times, all measured inside this one run.

    python -m benchmarks.bench_loops [--repeats 5] [--keep]

1. The block Gaussian against numpy's fastest generator.
2. One step of one chain of the n^2-step loop (logistic, L2 ball, one record a step, eight chains on
   one thread) against a straightforward numpy loop; and the Gaussians that whole steps use up a
   second, as a part of those that the block alone makes.
3. The time of all chains on one thread against that of the busiest of two.
4. Time and memory of T = n^2 = 1e8 steps at n = 1e4, p = 10, from a part of them.

Targets are those that the project set itself. ``kept_loops.csv`` holds the ratios that were
measured once: exit code 1 where one is smaller by more than a third. ``--keep`` writes that file
anew.
"""

from __future__ import annotations

import argparse
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.kept_ratios import judge
from dperm_cli.loops import gaussian_noise, projections, sgd, slopes
from dperm_cli.loops.sealed_noise import SealedBatches
from dperm_cli.loops.thread_count import cores

KEPT = Path(__file__).parent / "kept_loops.csv"
CHAINS = 8
NORMALS = 2048
# dimension, target against numpy's loop, target of the block's Gaussians that whole steps use up:
# that is 45 % of what C++ can do where the block reaches 75 % of it
STEPS = ((2, 100.0, 0.2), (10, 100.0, 0.6), (100, 20.0, 0.6), (1000, 5.0, 0.6))
BLOCK = 3.0  # target of the block against numpy's fastest
TEAMS = ((2, 1.2), (5, 1.5), (20, 1.7))  # chains on two threads, and the target


def cpu_seconds(works: list[Callable[[], object]], repeats: int) -> list[float]:
    """The fastest of ``repeats`` calls of each, in turns, after one that warms up."""
    for work in works:
        work()
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for at, work in enumerate(works):
            began = time.process_time()
            work()
            best[at] = min(best[at], time.process_time() - began)
    return best


def numpy_blocks() -> dict[str, Callable[[], None]]:
    """500 blocks of numpy's generators, of the same size as ours."""
    out, works = np.empty(NORMALS), {}
    for name in ("SFC64", "PCG64", "Philox", "MT19937"):
        rng = np.random.Generator(getattr(np.random, name)(1))

        def work(rng: np.random.Generator = rng) -> None:
            for _ in range(500):
                rng.standard_normal(out=out)

        works[name] = work
    return works


def compiled_blocks(p: int) -> tuple[Callable[[], None], int]:
    """100 compiled blocks of eight streams of dimension p, and how many normals those are."""
    pairs = (p + 1) // 2
    steps = gaussian_noise.block_steps(p, 10**9)
    offset, pair = gaussian_noise.pattern(steps, pairs)
    size = offset.size
    left, right = np.empty((CHAINS, size)), np.empty((CHAINS, size))
    no_records = np.empty((0, 0), np.int64)
    keys = stream_keys()[0]
    noise = SealedBatches(keys, keys, 1.0, 1, 2)
    rule = sgd.start(np.eye(2), np.ones(2), np.zeros((CHAINS, 2)), noise, **rule_at(1.0)).rule

    def work() -> None:
        for block in range(100):
            sgd._draw_block(
                keys, keys, rule, np.uint64(block), offset, pair, size, steps,
                left, right, no_records,
            )  # fmt: skip

    return work, 100 * CHAINS * steps * p


def stream_keys(chains: int = CHAINS) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 2**64, (2, chains, 2), dtype=np.uint64)


def rule_at(eta0: float) -> dict:
    return dict(
        loss_code=slopes.LOGISTIC, set_code=projections.L2_BALL, size=1.0,
        eta_kind=sgd.INV_SQRT, eta0=eta0,
    )  # fmt: skip


def records(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, np.sign(x[:, 0] + 0.1 * rng.standard_normal(n))


def naive(x: np.ndarray, y: np.ndarray, steps: int, eta0: float, scale: float) -> np.ndarray:
    """Alg. 1 as one would write it in numpy."""
    rng = np.random.default_rng(1)
    n, p = x.shape
    theta = np.zeros(p)
    for t in range(1, steps + 1):
        i = rng.integers(n)
        slope = -y[i] / (1 + np.exp(y[i] * (x[i] @ theta)))
        g = n * slope * x[i] + scale * rng.standard_normal(p)
        theta = theta - eta0 / np.sqrt(t) * g
        norm = np.linalg.norm(theta)
        if norm > 1.0:
            theta *= 1.0 / norm
    return theta


def run_compiled(x: np.ndarray, y: np.ndarray, steps: int, chains: int, threads: int) -> None:
    n, p = x.shape
    noise = SealedBatches(*stream_keys(chains), 10.0 * n, steps, n)
    eta0 = 1.0 / (n * np.sqrt(1 + 100.0 * p))
    state = sgd.start(x, y, np.zeros((chains, p)), noise, **rule_at(eta0))
    sgd.advance(state, steps, threads=threads)


def busiest_seconds(chains: int, threads: int, repeats: int) -> float:
    """CPU seconds of the thread with the most work; it tells also where other programs run."""
    x, y = records(10_000, 10)
    plain, best = sgd._advance_group, float("inf")
    for _ in range(repeats + 1):
        spent: dict[int, float] = {}

        def timed(*args: Any, spent: dict[int, float] = spent) -> None:
            began, thread = time.thread_time(), threading.get_ident()
            plain(*args)
            spent[thread] = spent.get(thread, 0.0) + time.thread_time() - began

        with mock.patch.object(sgd, "_advance_group", timed):
            run_compiled(x, y, 1_000_000 // chains, chains, threads)
        best = min(best, max(spent.values()))
    return best


def measure_blocks(repeats: int) -> Iterator[tuple[str, float, float]]:
    """(name, ratio, target) of the block."""
    generators = numpy_blocks()
    for p in (2, 10, 1000):
        work, normals = compiled_blocks(p)
        ours, *theirs = cpu_seconds([work, *generators.values()], repeats)
        rate = 500 * NORMALS / min(theirs)
        yield f"block / numpy's fastest, p={p}", normals / ours / rate, BLOCK


def measure_steps(
    p: int, against_naive: float, share: float, repeats: int
) -> Iterator[tuple[str, float, float]]:
    """(name, ratio, target) of the steps in p dimensions."""
    x, y = records(10_000 if p <= 100 else 2_000, p)
    few, steps = 1000, 1_000_000 // (10 + p)
    eta0 = 1.0 / (len(x) * np.sqrt(1 + 100.0 * p))
    block, normals = compiled_blocks(p)
    works = [
        lambda: naive(x, y, few, eta0, 10.0 * len(x)),
        lambda: run_compiled(x, y, steps, CHAINS, 1),
        block,
    ]
    slow, fast, alone = cpu_seconds(works, repeats)
    seconds = fast / (steps * CHAINS)
    yield f"numpy's loop / steps, p={p}", slow / few / seconds, against_naive
    yield f"Gaussians of steps / of the block, p={p}", p / seconds / (normals / alone), share
    if p == 10:
        print(f"n=1e4, p=10, T=1e8: {1e8 * seconds:.0f} s of one core per trial")


def measure_teams(repeats: int) -> Iterator[tuple[str, float, float]]:
    """(name, ratio, target) of two threads."""
    for chains, target in TEAMS:
        one, two = (busiest_seconds(chains, threads, repeats) for threads in (1, 2))
        yield f"one / busiest of two threads, {chains} chains", one / two, target


def measure(repeats: int) -> Iterator[tuple[str, float, float]]:
    """(name, ratio, target) of everything."""
    yield from measure_blocks(repeats)
    for p, against_naive, share in STEPS:
        yield from measure_steps(p, against_naive, share, repeats)
    if cores() > 1:
        yield from measure_teams(repeats)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write kept_loops.csv anew")
    asked = parser.parse_args()
    found = judge(measure(asked.repeats), KEPT, asked.keep)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak /= 2**30 if sys.platform == "darwin" else 2**20
    print(f"peak {peak:.2f} GiB")
    return found


if __name__ == "__main__":
    sys.exit(main())
