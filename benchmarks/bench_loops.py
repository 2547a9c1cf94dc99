"""How fast are the compiled loops? Ratios of CPU times, all measured inside this one run.

    python benchmarks/bench_loops.py [--repeats 5]

1. The block Gaussian against numpy's generators.
2. One step of one chain of the n^2-step loop (logistic, L2 ball, one record a step, eight chains on
   one thread) against a straightforward numpy loop, and the part of its time that its Gaussians
   alone would take (the roofline is 1).
3. Time and memory of T = n^2 = 1e8 steps at n = 1e4, p = 10, from a part of them.

Not a timed assert: it prints, and exits with 0.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from dperm_cli.loops import gaussian_noise, projections, sgd, slopes
from dperm_cli.loops.sealed_noise import SealedBatches

CHAINS = 8
NORMALS = 2048


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The fastest of ``repeats`` calls, after one that warms up."""
    work()
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def numpy_rates(repeats: int) -> dict[str, float]:
    """Normals per second of numpy's generators, in blocks of the same size as ours."""
    out, rates = np.empty(NORMALS), {}
    for name in ("SFC64", "PCG64", "Philox", "MT19937"):
        rng = np.random.Generator(getattr(np.random, name)(1))

        def work(rng: np.random.Generator = rng) -> None:
            for _ in range(500):
                rng.standard_normal(out=out)

        rates[name] = 500 * NORMALS / cpu_seconds(work, repeats)
    return rates


def block_rate(p: int, repeats: int) -> float:
    """Normals per second of the compiled blocks of eight streams of dimension p."""
    pairs = (p + 1) // 2
    steps = gaussian_noise.block_steps(p, 10**9)
    offset, pair = gaussian_noise.pattern(steps, pairs)
    size = offset.size
    left, right, no_records = np.empty((CHAINS, size)), np.empty((CHAINS, size)), np.empty((0, 0))
    keys = stream_keys()[0]
    noise = SealedBatches(keys, keys, 1.0, 1, 2)
    start = sgd.start(np.eye(2), np.ones(2), np.zeros((CHAINS, 2)), noise, **rule_at(1.0)).rule

    def work() -> None:
        for block in range(100):
            sgd._draw_block(
                keys, keys, start, np.uint64(block), offset, pair, size, steps,
                left, right, no_records.astype(np.int64),
            )  # fmt: skip

    return 100 * CHAINS * steps * p / cpu_seconds(work, repeats)


def stream_keys() -> np.ndarray:
    return np.random.default_rng(2).integers(0, 2**64, (2, CHAINS, 2), dtype=np.uint64)


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


def step_seconds(x: np.ndarray, y: np.ndarray, steps: int, repeats: int) -> tuple[float, float]:
    """Seconds per step of the naive loop and per step and chain of the compiled one."""
    n, p = x.shape
    scale, eta0 = 10.0 * n, 1.0 / (n * np.sqrt(1 + 100.0 * p))
    noise = SealedBatches(*stream_keys(), scale, steps, n)

    def compiled() -> None:
        state = sgd.start(x, y, np.zeros((CHAINS, p)), noise, **rule_at(eta0))
        sgd.advance(state, steps, threads=1)

    few = 3000
    slow = cpu_seconds(lambda: naive(x, y, few, eta0, scale), repeats) / few
    return slow, cpu_seconds(compiled, repeats) / (steps * CHAINS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats

    rates = numpy_rates(repeats)
    fastest = max(rates.values())
    print("normals per microsecond:", {k: round(v / 1e6) for k, v in rates.items()})
    for p in (2, 10, 1000):
        rate = block_rate(p, repeats)
        print(f"  block, p={p:<5} {rate / 1e6:6.0f}   {rate / fastest:5.2f} x numpy's fastest")

    print("loop:     p   naive us/step   ns/step/chain   ratio   of the Gaussian roofline")
    for p in (2, 10, 100, 1000):
        x, y = records(10_000 if p <= 100 else 2_000, p)
        slow, fast = step_seconds(x, y, 3_000_000 // (10 + p), repeats)
        share = p / block_rate(p, repeats) / fast
        print(f"{p:11} {1e6 * slow:15.2f} {1e9 * fast:15.1f} {slow / fast:7.0f} {share:10.2f}")
        if p == 10:
            seconds = 1e8 * fast
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak /= 2**30 if sys.platform == "darwin" else 2**20
    print(f"n=1e4, p=10, T=1e8: {seconds:.0f} s of one core per trial, peak {peak:.2f} GiB")


if __name__ == "__main__":
    main()
