"""How much faster are the noisy gradient loops in the coordinates of few records?

    python benchmarks/bench_reduced.py [--repeats 3]

For each n, p: seconds of noisy_sgd (T = n^2) and noisy_gd (T = 50) with the plain loops and with
the reduced ones, and their ratio, all inside one process. Not a timed assert: it prints.
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.generated.synthetic_logistic import SyntheticLogistic
from dperm_cli.losses.logistic import Logistic
from dperm_cli.mechanisms.gradient import noisy_gd, noisy_sgd
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.views.central import CentralView

SIZES = ((40, 400), (40, 4000), (200, 4000))
TRIALS = 8
BUDGET = Budget(1.0, 1e-5, "replace_one")


def seconds(module: Any, mechanism: Any, problem: Problem, plain: bool, repeats: int) -> float:
    """The least time of a release of 8 trials, after one to compile."""
    plan, best = mechanism.plan(problem.spec(), BUDGET), np.inf
    decided = mock.patch.object(module, "few_rows", return_value=False)
    for _ in range(repeats + 1):
        gate = Gate([seed_sequence(0, "noise", trial) for trial in range(TRIALS)])
        start = time.process_time()
        if plain:
            with decided:
                mechanism.release(CentralView(problem), plan, gate)
        else:
            mechanism.release(CentralView(problem), plan, gate)
        best = min(best, time.process_time() - start) if _ else best
    return float(best)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print(f"{'loop':<10} {'n':>5} {'p':>6} {'plain s':>9} {'reduced s':>9} {'ratio':>6}")
    for n, p in SIZES:
        data = SyntheticLogistic(n=n, p=p, n_test=0).load()
        body: Any = L2Ball(1.0, p)
        loss: Any = Logistic()
        problem = Problem(data, loss, body)
        for name, module, made in (
            ("noisy_sgd", noisy_sgd, noisy_sgd.NoisySgd()),
            ("noisy_gd", noisy_gd, noisy_gd.NoisyGd(steps=50)),
        ):
            slow, fast = (seconds(module, made, problem, kind, repeats) for kind in (True, False))
            print(f"{name:<10} {n:>5} {p:>6} {slow:>9.3f} {fast:>9.3f} {slow / fast:>6.1f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
