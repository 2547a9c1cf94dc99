"""How far is noisy_gd above the limit of little noise, (nu^2 / 2) tr H^-1?

    python -m benchmarks.bench_limit [--trials 60] [--steady]

With the optimum inside the set and little noise, the minimiser of the objective plus a linear term
of noise nu moves by H^-1 times that noise: its mean excess risk is (nu^2 / 2) tr H^-1, H the
Hessian of the sum at the optimum. A row for each cell with relative noise below 0.002 and the
optimum within 0.9 of the radius: the mean and the median excess risk over that limit, and the
median of that minimiser over it, which a median can be compared with. The last line also says in
how many of the cells ``mechanism=auto`` takes noisy_gd.

``--steady`` keeps the share f_t from falling below what a lower bound on the gradient has allowed.
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bench_utility import Source
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.combinators.auto import Auto
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.shared import dual_averaging
from dperm_cli.mechanisms.shared.predicted_risk import relative_noise
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView

RELATIVE_NOISE, INSIDE = 0.002, 0.9
SOURCES = [
    *(
        Source(n=n, p=p, signal=s)
        for n in (30_000, 100_000)
        for p in (2, 5, 20)
        for s in (0.5, 3.0)
    ),
    *(
        Source(n=n, p=p, loss="squared", radius=r, signal=0.5, flips=0.1)
        for n in (30_000, 100_000)
        for p in (2, 5, 20)
        for r in (1.0, 3.0)
    ),
]


_find_share: Any = dual_averaging.DualAveraging._find_share


def keep_share(self: Any) -> np.ndarray:
    """A share [trials] for ``DualAveraging`` that does not fall while the descent comes to rest.

    It is at least that of the squared mean gradient less two standard deviations, the largest of
    all steps so far after 1 / (1 - momentum).
    """
    noise2, spread = self._find_noise()
    seen2 = np.sum((self._sum / self._done) ** 2, axis=1) - noise2 - 2.0 * spread
    sure = np.maximum(seen2, 0.0) / (np.maximum(seen2, 0.0) + noise2)
    if self._done * (1.0 - self.momentum) > 1.0 + 1e-9:
        self._sure = np.maximum(getattr(self, "_sure", 0.0), sure)
        sure = self._sure
    return np.maximum(_find_share(self), sure)


def find_hessian(problem: Problem, theta: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """The Hessian of the sum [p, p], by differences of gradients."""
    moves = step * np.eye(len(theta))
    rise = problem.data_gradient(theta + moves) - problem.data_gradient(theta - moves)
    hessian = rise / (2.0 * step)
    return 0.5 * (hessian + hessian.T)


def measure(problem: Problem, budget: Budget, trials: int) -> tuple[float, float, float] | None:
    """Mean and median over the limit, and that of the exact minimiser; None outside the range."""
    mechanism, spec = NoisyGd(), problem.spec()
    plan = mechanism.plan(spec, budget)
    nu = plan.noise_scale / math.sqrt(plan.steps)
    optimum = solve(problem, relative_gap=1e-12)
    inside = np.linalg.norm(optimum.theta) <= INSIDE * problem.constraint.outer_radius
    if relative_noise(spec, nu) >= RELATIVE_NOISE or not inside:
        return None
    inverse = np.linalg.inv(find_hessian(problem, optimum.theta))
    limit = 0.5 * nu**2 * float(np.trace(inverse))
    gate = Gate([seed_sequence(0, "limit", trial) for trial in range(trials)])
    theta = mechanism.release(CentralView(problem), plan, gate).theta
    excess = problem.objective(theta) - optimum.value
    squares = generator(seed_sequence(0, "limit", "law")).chisquare(1, (20_000, len(inverse)))
    law = 0.5 * nu**2 * float(np.median(squares @ np.linalg.eigvalsh(inverse)))
    return float(np.mean(excess)) / limit, float(np.median(excess)) / limit, law / limit


def main() -> None:
    """Print a row for each cell, and how many are within 1.25."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--steady", action="store_true")
    asked = parser.parse_args()
    if asked.steady:
        with mock.patch.object(dual_averaging.DualAveraging, "_find_share", keep_share):
            print_cells(asked.trials)
    else:
        print_cells(asked.trials)


def print_cells(trials: int) -> None:
    """Print a row for each cell, and how many are within 1.25."""
    found, taken = [], 0
    print(
        "loss, n, p, signal, radius, relation, epsilon: mean, median (exact minimiser) over limit"
    )
    for source in SOURCES:
        problem = source.make()
        for relation, epsilon in itertools.product(("add_remove", "replace_one"), (1.0, 10.0)):
            budget = Budget(epsilon, source.n**-2.0, relation)
            one = measure(problem, budget, trials)
            if one is None:
                continue
            found.append(one)
            taken += Auto().plan(problem.spec(), budget).settings["chosen"] == "noisy_gd"
            told = f"{source.loss}, {source.n}, {source.p}, {source.signal:g}, {source.radius:g}"
            print(f"{told}, {relation}, {epsilon:g}: {one[0]:.2f}, {one[1]:.2f} ({one[2]:.2f})",
                  flush=True)  # fmt: skip
    means, medians, _ = np.array(found).T
    print(
        f"{len(found)} cells: mean within 1.25 in {np.sum(means <= 1.25)} (largest "
        f"{means.max():.2f}), median in {np.sum(medians <= 1.25)} (largest {medians.max():.2f}); "
        f"auto takes noisy_gd in {taken}"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
