"""Bounds of Frank-Wolfe and mirror descent: formulas, and means over trials that stay below.

Runs fix their seeds; a mean may exceed its expectation by chance, so that 5 standard errors are
taken off it.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.bounds import all_bounds, ttz14
from dperm_cli.bounds.base import Setting, list_bounds, risk_range
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.shared.mirror_maps import choose_map
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

THEOREMS = ("frank_wolfe Thm 2", "mirror_descent Thm 2(a)", "mirror_descent Thm 2(b)")


def applying(at):
    return {b.id: b.value(at) for b in list_bounds(ttz14) if b.applies(at) is None}


def setting(mechanism, problem, budget, name):
    plan = mechanism.plan(problem.spec(), budget)
    kind = "approx" if budget.delta else "pure"
    at = Setting(problem.spec(), budget, kind, name, plan.noise_scale, plan.steps, plan.settings)
    return plan, at


RUNS = [
    ("frank_wolfe", {}, "logistic", "l1_ball", 0.0, 0.0),
    ("frank_wolfe", {"steps": "theory"}, "logistic", "l1_ball", 0.0, 0.0),
    ("frank_wolfe", {"steps": 30}, "squared", "simplex", 0.5, 0.0),
    ("frank_wolfe", {"oracle": "choice"}, "logistic", "polytope", 0.0, 1e-4),
    ("frank_wolfe", {"steps": 1}, "linear", "l1_ball", 0.0, 0.0),
    ("frank_wolfe", {"steps": 1}, "linear", "box", 0.0, 0.0),
    ("frank_wolfe", {}, "logistic", "l2_ball", 0.1, 1e-4),
    ("frank_wolfe", {"oracle": "noise", "steps": 20}, "linear", "l1_ball", 0.0, 1e-4),
    ("mirror_descent", {}, "logistic", "l1_ball", 0.0, 1e-4),
    ("mirror_descent", {}, "squared", "simplex", 0.5, 1e-4),
    ("mirror_descent", {"step_size": "theory"}, "logistic", "l1_ball", 0.0, 1e-4),
    ("mirror_descent", {"step_size": "theory"}, "squared", "simplex", 0.5, 1e-4),
    ("mirror_descent", {"step_size": "theory"}, "hinge", "lp_ball", 0.0, 1e-4),
    ("mirror_descent", {}, "hinge", "polytope", 0.0, 1e-4),
    ("mirror_descent", {"steps": 10}, "linear", "box", 0.0, 1e-4),
    ("mirror_descent", {}, "absolute", "lp_ball", 0.0, 1e-4),
    ("mirror_descent", {"steps": 200}, "logistic", "lp_ball", 0.0, 1e-4),
    ("mirror_descent", {"step_size": 0.01, "steps": 30}, "hinge", "l1_ball", 1.0, 1e-4),
]


@pytest.mark.parametrize(("name", "fields", "loss", "constraint", "ridge", "delta"), RUNS)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_mechanisms_stay_below_their_bounds(name, fields, loss, constraint, ridge, delta, epsilon):
    mechanism = registry.load("mechanism", name)(**fields)
    problem = small_problem(loss=loss, constraint=constraint, n=60, p=3, ridge=ridge)
    plan, at = setting(mechanism, problem, Budget(epsilon, delta), name)
    seeds = [seed_sequence(11, "test", name, trial) for trial in range(60)]
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
    risk = problem.objective(theta) - solve(problem).value
    found = applying(at)
    assert len(found) == 1, "an explicit bound applies"
    least = risk.mean() - 5 * risk.std() / math.sqrt(len(risk))
    (value,) = found.values()
    assert least <= value
    assert value >= 0.9 * risk.mean()
    assert all_bounds.choose_best_bounds(at)["bound_upper"] == pytest.approx(
        min(value, risk_range(at))
    )


def test_one_choice_among_linear_losses_is_nearly_as_bad_as_its_bound():
    """No curvature: E risk of the exponential law on the vertices, exactly, against ln m / c."""
    for gap in (1.0, 3.0, 6.0):
        for count in (2, 10, 1000):
            scores = np.full(count, gap)
            scores[0] = 0.0
            law = np.exp(-scores)
            law /= law.sum()
            assert float(law @ scores) <= ttz14.choice_error(count, 1.0)
    worst = max((999 * math.exp(-g)) * g / (1 + 999 * math.exp(-g)) for g in np.linspace(1, 9, 99))
    assert worst > 0.5 * ttz14.choice_error(1000, 1.0)


def test_noise_error_is_above_the_gaussian_width():
    rng = np.random.default_rng(0)
    for p in (2, 10, 100):
        g = rng.standard_normal((20_000, p))
        width = float(np.mean(np.max(np.abs(g), axis=1)))
        bound = ttz14.noise_error(p, 2 * p, 1.0, 1.0)
        assert width <= bound <= 1.6 * width
        length = float(np.mean(np.linalg.norm(g, axis=1)))
        assert length <= ttz14.noise_error(p, math.inf, 1.0, 1.0) <= 1.2 * length


def test_frank_wolfe_recursion_stays_below_its_closed_form():
    """h <- (1 - g) h + g e + g^2 Gamma / 2 with g = 2 / (t + 2), from anywhere."""
    h = 1e6
    for t in range(400):
        g = 2.0 / (t + 2.0)
        h = (1.0 - g) * h + g * 0.7 + g * g * 5.0 / 2.0
        assert h <= ttz14.frank_wolfe_risk(5.0, t + 1, 0.7) + 1e-12
    assert h >= 0.5 * ttz14.frank_wolfe_risk(5.0, 400, 0.7)


def test_formulas_agree_with_those_that_plan():
    """The planner's numbers are computed elsewhere: they must be these."""
    for constraint in ("l1_ball", "lp_ball"):
        for loss in ("logistic", "hinge"):
            problem = small_problem(loss=loss, constraint=constraint)
            mechanism = registry.load("mechanism", "mirror_descent")(steps=40, step_size="theory")
            plan, at = setting(mechanism, problem, Budget(1.0, 1e-6), "mirror_descent")
            facts = choose_map(problem.constraint).facts(problem.spec(), plan.noise_scale)
            (value,) = applying(at).values()
            assert value == pytest.approx(facts.step(40)[0])


def test_entropy_bound_has_no_dimension_but_in_its_logarithm():
    """N(0, s^2) noise on p scores: the mean regret of one step is at most s^2 a / 2, any p."""
    rng = np.random.default_rng(1)
    a, scale = 0.3, 2.0
    for p in (2, 100, 3000):
        b = scale * rng.standard_normal((2000, p))
        drop = np.log(np.mean(np.exp(-a * b), axis=1)) / a
        mean = drop.mean() - 5 * drop.std() / math.sqrt(len(drop))
        assert mean <= a * scale**2 / 2.0
    assert drop.mean() >= 0.8 * a * scale**2 / 2.0


def test_bounds_apply_to_what_they_are_about():
    problem = small_problem(constraint="l1_ball")
    mechanism = registry.load("mechanism", "mirror_descent")(output="last")
    _, at = setting(mechanism, problem, Budget(1.0, 1e-6), "mirror_descent")
    assert applying(at) == {}
    mechanism = registry.load("mechanism", "mirror_descent")(step_size="theory")
    _, at = setting(mechanism, problem, Budget(1.0, 1e-6), "mirror_descent")
    assert list(applying(at)) == [THEOREMS[1]]  # few records: noise is all
    problem = small_problem(constraint="l1_ball", n=2000)
    _, at = setting(mechanism, problem, Budget(1.0, 1e-6), "mirror_descent")
    assert list(applying(at)) == [THEOREMS[2]]
    longer = {**at.settings, "mirror_step": 50.0 * at.settings["mirror_step"]}
    assert applying(dataclasses.replace(at, settings=longer)) == {}
    assert applying(dataclasses.replace(at, mechanism="noisy_gd")) == {}
    assert [b.id for b in list_bounds(ttz14)] == list(THEOREMS)
