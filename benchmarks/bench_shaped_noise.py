"""What would noise in the shape of the data gain? The table of docs/shaped_noise.md.

    python -m benchmarks.bench_shaped_noise [--share 0.2] [--trials 10]

A prototype, and no mechanism of dperm: a share of mu^2 releases the second moments M of the rows;
rows become (M + lambda)^(-1/2) x, cut at a multiple of the root of the effective dimension; the
rest of the budget runs an ordinary mechanism on them. The radius of its set is taken from the
optimum, which no release may do and which flatters. It prints, and exits with 0.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bench_utility import Source
from dperm_cli.core import registry
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.mechanisms.base import Mechanism
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.choose import open_view

RELATION, EPSILONS, CUTS = "add_remove", (0.1, 1.0, 10.0), (1.0, 1.5)
SHAPES = 5  # releases of the second moments for each cell
INNER = ("noisy_gd", "objective_perturbation")
SOURCES = (
    Source("breast_cancer", radius=10.0),
    *(Source(n=n, p=20, spread=1e2, flips=0.1) for n in (5000, 30_000, 200_000)),
    Source(n=5000, p=20, spread=1e4, flips=0.1),
    Source(n=30_000, p=10),
)


@dataclass(frozen=True)
class Shape:
    """The linear map of the rows and the length at which they are cut."""

    whiten: np.ndarray  # [p, p], symmetric
    effective: float

    def change_rows(self, data: Data, cut: float) -> Data:
        """The rows in the new coordinates, cut at ``cut`` times the root of the dimension."""
        bound = cut * math.sqrt(max(self.effective, 1.0))
        rows = np.asarray(data.x) @ self.whiten
        norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        rows *= np.minimum(1.0, bound / norms)
        return Data.of_records(
            data.name, data.task, rows, data.y, bound, data.target_bound, fingerprint="shaped"
        )


def release_shape(data: Data, mu: float, rng: np.random.Generator) -> Shape:
    """Second moments with the noise of a mu-GDP release under add_remove."""
    x, scale = np.asarray(data.x), data.row_bound**2 / mu
    noise = scale * rng.standard_normal((data.p, data.p))
    moments = (x.T @ x + (noise + noise.T) / math.sqrt(2.0)) / data.n
    values, vectors = np.linalg.eigh(moments)
    ridge = 2.0 * scale * math.sqrt(data.p) / data.n
    values = np.maximum(values, 0.0) + ridge
    whiten = (vectors * values**-0.5) @ vectors.T
    return Shape(whiten, float(np.sum(1.0 - ridge / values)))


def release(mechanism: Mechanism, problem: Problem, budget: Budget, key: str, trials: int):
    """The points of some trials, [trials, p]."""
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(0, "shaped", key, trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, RELATION))
    return mechanism.release(open_view(mechanism, problem), plan, gate).theta


def measure(source: Source, share: float, trials: int) -> Iterator[tuple[float, dict, dict]]:
    """Epsilon, plain risks and shaped risks per record, by mechanism (and cut)."""
    problem, ball = source.make(), registry.load("constraint", "l2_ball")
    best = solve(problem, relative_gap=1e-6)
    mechanisms = {name: registry.load("mechanism", name)() for name in INNER}
    data, theta = problem.data, np.asarray(best.theta)
    for epsilon in EPSILONS:
        budget = Budget(epsilon, 1.0 / data.n**2, RELATION)
        mu = calibrate.mu(budget.epsilon, budget.delta)
        rest = inner_mechanism.gdp_budget(math.sqrt(1.0 - share) * mu, budget)
        plain = {
            name: problem.objective(release(one, problem, budget, name, trials)) - best.value
            for name, one in mechanisms.items()
        }
        shaped: dict[str, list[float]] = {}
        for number in range(SHAPES):
            rng = generator(seed_sequence(0, "shape", str(number)))
            shape = release_shape(data, math.sqrt(share) * mu, rng)
            radius = 1.2 * float(np.linalg.norm(np.linalg.solve(shape.whiten, theta)))
            for cut in CUTS:
                changed = Problem(shape.change_rows(data, cut), problem.loss, ball(radius, data.p))
                for name, one in mechanisms.items():
                    found = release(one, changed, rest, f"{name} {number}", trials // SHAPES)
                    found = problem.constraint.project(found @ shape.whiten)
                    risks = problem.objective(found) - best.value
                    shaped.setdefault(f"{name}, cut {cut:g}", []).extend(risks)
        yield epsilon, _summarise(plain, data.n), _summarise(shaped, data.n)


def _summarise(risks: Mapping[str, Any], n: int) -> dict[str, float]:
    """The median risk per record of each."""
    return {name: float(np.median(one)) / n for name, one in risks.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--share", type=float, default=0.2, help="of mu^2, for the moments")
    parser.add_argument("--trials", type=int, default=10)
    asked = parser.parse_args()
    print("| problem | epsilon | plain, the best | shaped, the best | gain |")
    print("|---|--:|--:|--:|--:|")
    with threadpool_limits(1):
        for source in SOURCES:
            words = source.name if not source.n else f"n {source.n}, p {source.p}"
            words += f", condition number {source.spread:g}" if source.n else ""
            for epsilon, plain, shaped in measure(source, asked.share, asked.trials):
                least = min(plain.values()), min(shaped.values())
                chosen = min(shaped, key=lambda key: shaped[key])
                row = f"{words} | {epsilon:g} | {least[0]:.3g} | {least[1]:.3g} ({chosen})"
                print(f"| {row} | {least[0] / least[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
