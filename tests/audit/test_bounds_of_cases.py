"""Lower bounds and constants that do not rest on the package's own arithmetic, and their power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.audit import cell_attack, composed_delta, constant_checks, objective_loss
from dperm_cli.audit.first_difference import list_differences
from dperm_cli.core import registry
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.mechanisms.shared import perturbed_objective
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace, SampledGaussian
from tests.conftest import small_problem


def bounded(loss, row_bound):
    """A small problem whose rows are as long as another bound allows."""
    problem = small_problem(loss=loss)
    data = replace(problem.data, x=row_bound * problem.data.x, row_bound=row_bound)
    return replace(problem, data=data)


STEPS = [
    ((Gaussian(20.0, 1.0, 200),), "replace_one", 0.98),
    ((SampledGaussian(30.0, 6.0, 1, 6, "fixed", 36),), "replace_one", 0.94),
    ((SampledGaussian(30.0, 3.0, 2, 6, "poisson", 18),), "add_remove", 0.98),
    ((SampledGaussian(30.0, 3.0, 2, 6, "poisson", 18),), "replace_one", 0.98),
    ((Laplace(20.0, 1.0, 10), Gaussian(30.0, 1.0, 3)), "add_remove", 0.98),
]


@pytest.mark.parametrize(("events", "relation", "share"), STEPS)
def test_what_steps_spend_is_below_the_claim_and_near_it(events, relation, share):
    claim = account(events, delta=1e-5, relation=relation).epsilon
    assert composed_delta.least_delta(events, claim, relation) <= 1e-5
    assert composed_delta.least_delta(events, share * claim, relation) > 1e-5


def test_a_claim_that_is_too_small_is_named():
    events, relation, share = STEPS[1]
    claim = account(events, delta=1e-5, relation=relation).epsilon
    assert composed_delta.find_faults(events, claim, 1e-5, relation) == []
    (words,) = composed_delta.find_faults(events, share * claim, 1e-5, relation)
    assert "steps together spend" in words
    assert composed_delta.find_faults(events, claim, 0.0, relation) == []


def test_very_many_steps_prove_nothing_rather_than_too_much():
    events = (SampledGaussian(9100.0, 455.0, 1, 455, "fixed", 455**2),)
    claim = account(events, delta=4.8e-6, relation="replace_one").epsilon
    assert composed_delta.find_faults(events, claim, 4.8e-6, "replace_one") == []


@pytest.mark.parametrize("loss", registry.names("loss"))
@pytest.mark.parametrize("row_bound", [0.3, 12.0])
def test_declared_constants_hold(loss, row_bound):
    assert constant_checks.find_faults(bounded(loss, row_bound)) == []


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("lipschitz", lambda self, bounds: 0.9 * self.slope_bound(20.0, 1.0), "lipschitz"),
        ("curvature_bound", lambda self, bounds: 0.2 * bounds.row, "smoothness"),
        ("gradient_gap", lambda self, bounds: 0.5, "gradient_gap"),
        ("variation", lambda self, bounds, constraint: 0.5, "variation"),
        ("oscillation", lambda self, bounds, constraint: 0.5, "oscillation"),
    ],
)
def test_constants_that_are_too_small_are_named(name, wrong, said, monkeypatch):
    problem = bounded("logistic", 2.0)
    monkeypatch.setattr(type(problem.loss), name, wrong)
    assert any(words.startswith(said) for words in constant_checks.find_faults(problem))


def test_rows_above_their_bound_are_named():
    problem = small_problem()
    norms = np.linalg.norm(problem.data.x, axis=1)[:, None]
    longer = replace(problem, data=replace(problem.data, x=1.01 * problem.data.x / norms))
    assert any("above the bound" in words for words in constant_checks.find_faults(longer))


def gaussian_sides(shift, trials=1000):
    rng = np.random.default_rng(4)
    return rng.standard_normal((trials, 3)), rng.standard_normal((trials, 3)) + shift


@pytest.mark.parametrize(("shift", "low", "high"), [(0.0, 0.0, 0.5), (8.0, 3.0, 5.0)])
def test_an_attack_finds_a_shift_and_nothing_else(shift, low, high):
    found = cell_attack.attack(*gaussian_sides(shift), (None, None), 0.0)
    assert low <= found.bound <= high


def test_an_attack_sees_what_only_one_data_set_can_release():
    first, second = gaussian_sides(0.0)
    second[0, 0] = np.nan
    assert cell_attack.attack(first, second, (None, None), 0.0).bound == np.inf
    assert cell_attack.attack(first[:50], second[:50], (None, None), 0.0).bound == 0.0


def perturbed(row, budget, curvature=None):
    """A plan's event for the logistic loss, maybe with another curvature than the true one."""
    problem = bounded("logistic", row)
    spec = problem.spec()
    spec = spec if curvature is None else replace(spec, smoothness=curvature)
    gamma = budget.delta == 0.0
    strength = 1.2 * spec.smoothness / np.expm1(min(0.6 * budget.epsilon, 5.0))
    return problem, perturbed_objective.design(spec, budget, gamma, strength).event


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("row", [1.0, 12.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_perturbed_objectives_are_within_their_claim(relation, row, delta):
    problem, event = perturbed(row, Budget(1.0, delta, relation))
    assert objective_loss.plan_faults((event,), problem, relation) == []


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_curvature_by_the_norm_of_a_row_is_found_at_the_plans_own(relation):
    """12 / 4 for 144 / 4: noise, claim and event agree with one another, and the loss with none."""
    problem, event = perturbed(12.0, Budget(1.0, 0.0, relation), curvature=3.0)
    (words,) = objective_loss.plan_faults((event,), problem, relation)
    assert "perturbed objective spends" in words


def test_what_two_public_things_differ_in():
    problem = small_problem(p=3)
    spec, other = problem.spec(), replace(problem.spec(), row_bound=2.0)
    assert list_differences(spec, spec) == []
    assert list_differences(spec, small_problem(p=3).spec()) == []
    assert list_differences(spec, other, "spec") == ["spec.row_bound"]
    one, two = {"a": np.ones(2), "b": 1}, {"a": np.array([1.0, 2.0]), "b": 2}
    assert list_differences(one, two) == ["['a'][1]", "['b']"]
    assert list_differences([1, 2], [1, 2, 3], "x") == ["x"]
    assert list_differences(1, 1.0, "x") == ["x"]
    assert list_differences(float("nan"), float("nan")) == []
    assert isinstance(problem.loss, Glm)
