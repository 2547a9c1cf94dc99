"""Bounds: the formulas of the theorems, and the explicit lower bound against its own instance."""

from __future__ import annotations

import dataclasses
import math

import pytest

from dperm_cli.bounds import all_bounds
from dperm_cli.bounds.base import Setting, risk_range
from dperm_cli.bounds.bst14 import (
    noisy_gd_constant_step,
    noisy_sgd_convex,
    noisy_sgd_order,
    noisy_sgd_strongly_convex_order,
)
from dperm_cli.bounds.bst14_lower import approx_order, two_points
from dperm_cli.mechanisms.gradient.noisy_gd import theory_bound
from dperm_cli.privacy.budget import Budget
from tests.conftest import small_problem
from tests.theory.bounds_data import bare


def at(
    epsilon=0.5, delta=1e-4, relation="replace_one", kind="approx", ridge=0.0, lasso=0.0, **settings
):
    problem = small_problem(n=100, p=4, radius=1.5, ridge=ridge)
    spec = dataclasses.replace(problem, lasso=lasso).spec()
    defaults = {"learning_rate": "convex", "output": "last", "gradient_bound": 700.0}
    settings = {**defaults, **settings}
    budget = Budget(epsilon, delta, relation)
    return Setting(spec, budget, kind, "noisy_sgd", 50.0, 10_000, settings)


def test_thm_2_4_part_1():
    point = at()
    logs = math.log(100 / 1e-4) ** 1.5 * math.sqrt(math.log(1e4))
    assert noisy_sgd_order.value(point) == pytest.approx(
        point.spec.lipschitz * 3.0 * logs * math.sqrt(4) / 0.5
    )
    assert noisy_sgd_order.applies(point) is None
    assert noisy_sgd_order.applies(at(learning_rate="strongly_convex"))


def test_thm_2_4_part_2():
    point = at(ridge=0.1, learning_rate="strongly_convex")
    logs = math.log(100 / 1e-4) ** 2 * math.log(1e4)
    expected = point.spec.lipschitz_total**2 * logs * 4 / (100 * 0.1 * 0.25)
    assert noisy_sgd_strongly_convex_order.value(point) == pytest.approx(expected)
    assert noisy_sgd_strongly_convex_order.applies(point) is None


def test_explicit_constants_of_thm_2_4():
    n = 10_001
    last = 1.5 * 3.0 * 700.0 * (2 + math.log(n)) / math.sqrt(n)
    assert noisy_sgd_convex.value(at()) == pytest.approx(last)
    average = 1.5 * 3.0 * 700.0 * math.sqrt(n) / 10_000
    assert noisy_sgd_convex.value(at(output="average")) == pytest.approx(average)
    # iterates 5002 .. 10001
    suffix = 0.5 * 3.0 * 700.0 * (3 * math.sqrt(n) - 2 * math.sqrt(5001)) / 5000
    assert noisy_sgd_convex.value(at(output="suffix_average")) == pytest.approx(suffix)


def test_thm_5_3():
    point = at()
    assert approx_order.value(point) == pytest.approx(
        point.spec.lipschitz * 3.0 * min(100, 2 / 0.5)
    )
    assert approx_order.value(at(epsilon=1e-6)) == pytest.approx(point.spec.lipschitz * 3.0 * 100)
    assert approx_order.applies(at(kind="pure"))
    assert approx_order.applies(at(ridge=0.1))


def test_two_point_bound_at_one_change():
    # epsilon so large that one changed record decides: L |C| (1 - TV) / 2
    point = at(epsilon=5.0, delta=1e-4)
    tv = (math.expm1(5) + 2e-4) / (math.exp(5) + 1)
    assert two_points.value(point) == pytest.approx(point.spec.lipschitz * 3.0 * (1 - tv) / 2)


def test_two_point_bound_is_attained_by_randomised_response():
    """On its two data sets (k records up or down) an epsilon-DP choice of the end is optimal."""
    point = at(epsilon=0.5, delta=0.0)
    level = point.spec.lipschitz * point.spec.constraint.diameter
    # wrong end with probability 1 / (e^{k eps} + 1) costs k L |C|: exactly the bound's k term
    best = max(k / (math.exp(0.5 * k) + 1) for k in range(1, 101))
    assert two_points.value(point) == pytest.approx(level * best)


def test_two_point_bound_under_add_remove_counts_a_replacement_twice():
    one, other = at(epsilon=1.0), at(epsilon=0.5, relation="add_remove")
    assert two_points.value(other) <= two_points.value(one) * 1.001
    assert two_points.value(other) > 0


def test_two_point_never_exceeds_the_trivial_bound():
    for epsilon in (1e-9, 1e-3, 1.0, 50.0, 1e4):
        point = at(epsilon=epsilon)
        value = two_points.value(point)
        assert 0 <= value <= 100 * point.spec.lipschitz * 3.0


def test_constant_step_bound_and_its_best_step():
    settings = {"momentum": 0.0, "averaging": "uniform", "step_size": 1e-3}
    point = dataclasses.replace(at(), mechanism="noisy_gd", settings=settings)
    moment = (100 * point.spec.lipschitz) ** 2 + 4 * 50.0**2
    expected = 1.5**2 / (2 * 1e-3 * 10_000) + 1e-3 * moment / 2
    assert noisy_gd_constant_step.value(point) == pytest.approx(expected)
    best = {**settings, "step_size": 1.5 / math.sqrt(10_000 * moment)}
    at_best = noisy_gd_constant_step.value(dataclasses.replace(point, settings=best))
    assert at_best == pytest.approx(theory_bound(point.spec, 50.0, 10_000))
    for change in ({"momentum": 0.9}, {"averaging": "last"}, {"step_size": "auto"}):
        assert noisy_gd_constant_step.applies(
            dataclasses.replace(point, settings={**settings, **change})
        )
    assert noisy_gd_constant_step.applies(at())
    assert noisy_gd_constant_step.applies(point) is None


@pytest.mark.parametrize("fields", [{"ridge": 0.1}, {"lasso": 0.1}])
def test_lower_bounds_are_for_bare_losses(fields):
    """Their instances are linear losses: with a regulariser these have other minimisers."""
    for bound in (approx_order, two_points):
        assert bound.applies(at()) is None
        assert "regulariser" in bound.applies(at(**fields))


def test_upper_bounds_count_the_lasso():
    bare, pulled = at(), at(lasso=0.3)
    factor = (bare.spec.lipschitz + 0.3 * 2.0) / bare.spec.lipschitz
    assert noisy_sgd_order.applies(pulled) is None
    assert noisy_sgd_order.value(pulled) == pytest.approx(factor * noisy_sgd_order.value(bare))


def test_best_fills_the_record_columns():
    row = all_bounds.choose_best_bounds(at())
    assert row["bound_constant"] == "explicit"
    assert row["bound_upper"] > row["bound_lower"]
    assert row["order_upper_id"] == "BST14 Thm 2.4(1)"
    assert row["order_lower_id"] == "BST14 Thm 5.3"
    curved = all_bounds.choose_best_bounds(at(ridge=0.1, learning_rate="strongly_convex"))
    assert curved["bound_upper_id"] == "noisy_sgd Thm 2"
    none = all_bounds.choose_best_bounds(dataclasses.replace(at(), mechanism="unheard of"))
    assert "bound_upper" not in none
    assert none["bound_constant"] == "none"
    assert row["bound_factor"] == row["bound_upper"] / row["bound_lower"]
    assert "bound_factor" not in none


def test_an_explicit_upper_bound_is_at_most_the_range_of_the_objective():
    point = at(gradient_bound=1e9)
    assert noisy_sgd_convex.value(point) > risk_range(point)
    row = all_bounds.choose_best_bounds(point)
    assert (row["bound_upper"], row["bound_upper_id"]) == (risk_range(point), all_bounds.RANGE)


def test_orders_of_thm_2_4_are_for_its_number_of_steps():
    few = dataclasses.replace(at(), steps=100 * 100 - 1)
    assert "n^2 steps" in noisy_sgd_order.applies(few)
    batches = dataclasses.replace(at(batch=10), steps=1000)
    assert noisy_sgd_order.applies(batches) is None
    assert noisy_sgd_convex.applies(few) is None


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-160, 1e-9, 1e3, 1e9])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.25])
@pytest.mark.parametrize("ridge", [0.0, 1e-300, 1e-3, 1e6])
def test_extreme_numbers_give_a_bound_or_none(epsilon, delta, ridge):
    """No mechanism stops because a bound cannot be written down."""
    for mechanism in ("noisy_sgd", "objective_perturbation", "exponential"):
        for kind in ("pure", "approx"):
            for n, p in ((1, 1), (10**9, 10**7)):
                point = bare(
                    n=n, p=p, epsilon=epsilon, delta=delta, ridge=ridge, mechanism=mechanism,
                    smoothness=1.0, steps=n**2, learning_rate="convex", output="last",
                    gradient_bound=1.0, strength=1.0, added=1.0,
                    sampler={"exponent": 1e-300, "kappa": 0.0, "dist_inf": 0.0},
                )  # fmt: skip
                row = all_bounds.choose_best_bounds(dataclasses.replace(point, kind=kind))
                values = [v for v in row.values() if isinstance(v, float)]
                assert all(math.isfinite(v) and v >= 0 for v in values)
                assert row.get("bound_lower", 0.0) <= n * (2.0 + ridge / 2) * 1.001


def test_delta_zero_is_not_an_epsilon_delta_guarantee():
    point = dataclasses.replace(at(delta=0.0), kind="approx")
    assert approx_order.applies(point) == "is for delta > 0"
