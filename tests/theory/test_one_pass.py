"""Population bounds of one_pass_sgd: their formulas, and that means over fresh data stay below.

Seeds are fixed; 5 standard errors are taken off the mean.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.bounds import all_bounds, one_pass
from dperm_cli.bounds.base import Setting, list_bounds
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd, population_bound
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView

N, P, TRUTH = 300, 4, np.array([0.5, -0.3, 0.2, 0.0])


def fresh(seed, ridge):
    """Rows +-e_j, targets <x, truth> + noise: squared loss, covariance I / p."""
    rng = np.random.default_rng(seed)
    x = np.eye(P)[rng.integers(P, size=N)] * rng.choice([-1.0, 1.0], (N, 1))
    y = np.clip(x @ TRUTH + rng.uniform(-0.4, 0.4, N), -1.0, 1.0)
    data = Data.of_records("fresh", "regression", x, y, 1.0, 1.0, fingerprint=str(seed))
    ball = registry.load("constraint", "l2_ball")(1.0, P)
    return Problem(data, registry.load("loss", "squared")(), ball, ridge)


def population_excess(theta, ridge):
    """F(theta) - F(best) = |theta - best|^2 (1/p + ridge) / 2, best = truth / (1 + p ridge)."""
    away = theta - TRUTH / (1.0 + P * ridge)
    return 0.5 * (1.0 / P + ridge) * np.sum(away**2, axis=-1)


def setting(spec, plan, budget):
    return Setting(
        spec, budget, plan.guarantee.kind, "one_pass_sgd", plan.noise_scale, plan.steps,
        plan.settings,
    )  # fmt: skip


def applying(at):
    return [b for b in list_bounds(one_pass) if b.applies(at) is None]


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [1.0, pytest.param(20.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("rate", "ridge"), [("convex", 0.0), ("convex", 0.1), ("strongly_convex", 0.5)]
)
def test_the_mean_over_fresh_data_is_below_the_bound(rate, ridge, epsilon, delta):
    budget, mechanism = Budget(epsilon, delta), OnePassSgd(learning_rate=rate)
    excess = []
    for seed in range(60):
        problem = fresh(seed, ridge)
        plan = mechanism.plan(problem.spec(), budget)
        theta = mechanism.release(
            CentralView(problem), plan, Gate([seed_sequence(seed, "test")])
        ).theta
        excess.append(population_excess(theta[0], ridge))
    (bound,) = applying(setting(problem.spec(), plan, budget))
    error = np.std(excess) / math.sqrt(len(excess))
    assert np.mean(excess) - 5 * error < bound.value(setting(problem.spec(), plan, budget))
    assert plan.steps > 1


def test_bounds_are_those_the_plan_minimises():
    """Around the chosen number of batches no other one is better by more than rounding."""
    spec, budget = fresh(0, 0.0).spec(), Budget(1.0, 1e-5)
    values = {}
    for batches in range(1, N + 1):
        plan = OnePassSgd(batches=batches, learning_rate="convex").plan(spec, budget)
        at = setting(spec, plan, budget)
        (bound,) = applying(at)
        values[batches] = bound.value(at)
        facts = plan.settings["gradient_bound"]
        assert values[batches] == population_bound(spec, batches, facts, "convex")
    chosen = OnePassSgd(learning_rate="convex").plan(spec, budget).steps
    assert values[chosen] <= 1.1 * min(values.values())


def test_it_grows_as_the_root_of_the_records():
    """n times the bound is of order sqrt(n), as [BST14] remarks of the earlier method."""
    ball = registry.load("constraint", "l2_ball")(1.0, P)
    from dperm_cli.problem.problem import bare_spec

    budget, values = Budget(1.0, 1e-6), []
    for n in (10**4, 10**6):
        spec = bare_spec(n, 1.0, ball)
        at = setting(spec, OnePassSgd().plan(spec, budget), budget)
        values.append(n * applying(at)[0].value(at))
    assert values[1] / values[0] == pytest.approx(10.0, rel=0.02)


def test_nothing_is_claimed_for_other_settings():
    spec = fresh(0, 0.0).spec()
    for fields, relation in (({"output": "last"}, "replace_one"), ({}, "add_remove")):
        budget = Budget(1.0, 1e-5, relation)
        at = setting(spec, OnePassSgd(**fields).plan(spec, budget), budget)
        assert applying(at) == []
    assert all(b.quantity == "population_risk" for b in list_bounds(one_pass))
    assert set(list_bounds(one_pass)) <= set(all_bounds.ALL)
