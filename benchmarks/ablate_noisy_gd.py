"""What is each constant of noisy_gd's dual averaging worth? The table of docs/proofs/noisy_gd.md.

    python -m benchmarks.ablate_noisy_gd [--trials 40]

Median excess risks of data sets that are shipped and of two made ones, at three epsilons, both
relations and radii 1 and 10. A row changes one constant or leaves one rule out: geometric mean and
largest ratio of its risks to those of the default, and the largest risk over that of the start.
"""

from __future__ import annotations

import argparse
import math
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bench_limit import keep_share
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient import noisy_gd
from dperm_cli.mechanisms.shared import dual_averaging
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView

EPSILONS, RADII = (0.1, 1.0, 10.0), (1.0, 10.0)
CHANGES = [
    (dual_averaging, "BURN_IN_SHARE", (0.0, 0.04, 0.15)),
    (dual_averaging, "EXPECTED_SHARE", (1e-9, 0.06, 0.26)),
    (noisy_gd, "MOMENTUM", (0.0, 0.8, 0.95)),
]
# a rule, what stands in for it, and what that means
WITHOUT = [
    ("_limit_time", lambda self, share: share, "up to the worst-case time"),
    ("_still_moves", lambda self: np.zeros(len(self.point), bool), "the mean while it moves"),
    ("_is_damped", lambda self: np.zeros(len(self.point), bool), "the mean at the boundary"),
    ("_find_share", keep_share, "no fall below a lower bound on the gradient"),
]


def make_data(n: int, p: int, power: float) -> Data:
    """Rows with the spectrum j^-power and targets that a linear rule explains in part."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, p)) * np.arange(1, p + 1) ** (-power / 2)
    x /= np.linalg.norm(x, axis=1).max()
    mean = x @ rng.standard_normal(p)
    y = np.clip(0.3 * mean / mean.std() + 0.2 * rng.standard_normal(n), -1, 1)
    return Data.of_records(f"made {n}", "regression", x, y, 1.0, 1.0, f"made {n}")


def list_problems() -> list[Problem]:
    """Every data set at both radii."""
    shipped = (("breast_cancer", "logistic"), ("diabetes", "squared"))
    sets = [(registry.load("dataset", name)().load(), loss) for name, loss in shipped]
    sets += [(make_data(300, 50, 0.0), "squared"), (make_data(4000, 5, 1.0), "squared")]
    ball = registry.load("constraint", "l2_ball")
    return [
        Problem(data, registry.load("loss", loss)(), ball(radius, data.p))
        for data, loss in sets
        for radius in RADII
    ]


def measure(problems: list[tuple[Problem, float]], trials: int) -> np.ndarray:
    """Median excess risk over that of the start, of every cell."""
    found = []
    for problem, best in problems:
        start = float(problem.objective(problem.constraint.centre()[None])[0]) - best
        for relation in ("add_remove", "replace_one"):
            for epsilon in EPSILONS:
                mechanism = noisy_gd.NoisyGd()
                budget = Budget(epsilon, problem.data.n**-2.0, relation)
                plan = mechanism.plan(problem.spec(), budget)
                gate = Gate([seed_sequence(0, "ablation", trial) for trial in range(trials)])
                theta = mechanism.release(CentralView(problem), plan, gate).theta
                found.append((np.median(problem.objective(theta)) - best) / start)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    trials = parser.parse_args().trials
    problems = [(problem, solve(problem).value) for problem in list_problems()]
    usual = measure(problems, trials)
    print(f"| constant or rule | value | mean | largest | over the start |\n{'|---' * 5}|")
    print(f"| all | as they are | 1 | 1 | {usual.max():.2f} |")
    changes = [
        (module, name, value, f"{name} {getattr(module, name):g}", f"{value:g}")
        for module, name, values in CHANGES
        for value in values
    ]
    rules = [(dual_averaging.DualAveraging, *one[:2], one[0], one[2]) for one in WITHOUT]
    for owner, name, value, what, words in (*changes, *rules):
        with mock.patch.object(owner, name, value):
            found = measure(problems, trials)
        ratio = found / usual
        mean = math.exp(float(np.mean(np.log(ratio))))
        print(
            f"| {what} | {words} | {mean:.2f} | {ratio.max():.2f} | {found.max():.2f} |", flush=True
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
