"""Problems in which no record moves the objective: there is no noise to plan, and that is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.baseline.non_private import NonPrivate
from dperm_cli.mechanisms.combinators.high_probability import HighProbability
from dperm_cli.privacy.budget import Budget
from tests.conftest import small_problem

PARAMETERS = [
    name
    for name in registry.list_protective()
    if registry.load("mechanism", name).space == "parameters"
]
BUDGETS = (Budget(1.0, 0.0), Budget(1.0, 1e-6), Budget(1.0, 1e-6, "add_remove"))


def without_influence():
    """Spec by spec: rows of nothing, targets of nothing, a set that is as good as a point."""
    rows = small_problem(ridge=0.5, n=6)
    data = rows.data.with_records(0.0 * rows.data.x, rows.data.y, row_bound=1e-200)
    yield replace(rows, data=data).spec()
    targets = small_problem(loss="linear", ridge=0.5, n=6)
    data = targets.data.with_records(targets.data.x, 0.0 * targets.data.y)
    data = replace(data, task="regression", target_bound=0.0)
    yield replace(targets, data=data).spec()
    for loss in ("logistic", "squared"):
        yield small_problem(loss=loss, radius=1e-300, ridge=0.5, n=6).spec()


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_problem_without_influence_has_no_plan(name):
    """One sentence about the problem, where calibration failed on a sensitivity of 0; or one about
    the mechanism, where it has no plan for such problems or budgets at all."""
    cls = registry.load("mechanism", name)
    told = set()
    for spec in without_influence():
        for budget in BUDGETS:
            with pytest.raises(Unsupported) as caught:
                cls().plan(spec, budget)
            told.add("one record moves the loss by at most" in str(caught.value))
    assert True in told


def test_the_minimiser_itself_needs_no_influence():
    for spec in without_influence():
        assert NonPrivate().plan(spec, Budget(1.0, 0.0)).guarantee.kind == "none"


@pytest.mark.parametrize("size", [1e-50, 1e-20])
@pytest.mark.parametrize("name", ["noisy_gd", "objective_perturbation", "output_perturbation"])
def test_little_influence_is_planned_for(name, size):
    """Noise falls with the rows, down to what pays for a minimiser that is not found exactly."""
    whole = small_problem(ridge=0.5, n=6)
    data = whole.data.with_records(size * whole.data.x, whole.data.y, row_bound=size)
    mechanism = registry.load("mechanism", name)()
    small = mechanism.plan(replace(whole, data=data).spec(), BUDGETS[1])
    usual = mechanism.plan(whole.spec(), BUDGETS[1])
    if name == "output_perturbation":
        assert small.settings["inflation"] > 1.0
        assert small.noise_scale <= 1e-3 * usual.noise_scale
    else:
        assert small.noise_scale <= 2.0 * size * usual.noise_scale
    assert small.guarantee.epsilon <= 1.0


@pytest.mark.parametrize("loss", ["squared", "huberized_hinge", "logistic"])
def test_tiny_rows_have_a_choice_of_the_right_strength(loss):
    """An oscillation of 0 was computed for rows of norm 1e-20."""
    whole, exponents = small_problem(loss=loss, n=10), []
    for size in (1e-2, 1e-20):
        data = whole.data.with_records(size * whole.data.x, whole.data.y, row_bound=size)
        spec = replace(whole, data=data).spec()
        plan = HighProbability({"name": "noisy_gd", "steps": 5}).plan(spec, BUDGETS[1])
        exponents.append(plan.events[-1].exponent)
    assert exponents[1] == pytest.approx(1e18 * exponents[0], rel=0.02)
