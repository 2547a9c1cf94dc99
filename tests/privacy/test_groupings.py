"""Of the bounds that hold for a perturbed objective and what pays for its solver, the least."""

from __future__ import annotations

import pytest

from dperm_cli.mechanisms.perturbation.approximate_minima_perturbation import (
    ApproximateMinimaPerturbation,
)
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.accounting.perturbed_minimisers import find_joint_bound, groupings
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian
from tests.conftest import small_problem


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.019, 0.25), (0.5, 1e-6), (1.0, 0.2)])
def test_a_published_split_keeps_to_its_budget_wherever_the_joint_bound_is_wide(
    epsilon, delta, relation
):
    """At (0.019, 0.25) the joint bound alone gives more than the split's own sum."""
    spec, budget = small_problem().spec(), Budget(epsilon, delta, relation)
    plan = ApproximateMinimaPerturbation(noise="gaussian").plan(spec, budget)
    assert plan.guarantee.within(budget)
    together = find_joint_bound(plan.events, relation)
    assert together is not None
    assert plan.guarantee.epsilon <= together.epsilon(delta)
    spent = delta_of(plan.events, epsilon=plan.guarantee.epsilon, relation=relation)
    assert spent <= delta * (1.0 + 1e-6)


def test_the_joint_bound_is_wide_somewhere():
    spec, budget = small_problem().spec(), Budget(0.019, 0.25, "add_remove")
    plan = ApproximateMinimaPerturbation(noise="gaussian").plan(spec, budget)
    together = find_joint_bound(plan.events, "add_remove")
    assert together is not None
    assert together.epsilon(0.25) > 2.0 * plan.guarantee.epsilon


def test_other_events_are_composed_in_one_way():
    events = (Gaussian(2.0, 1.0), GammaNorm(3.0, 1.0))
    assert [list(way) for way in groupings(events, "replace_one")] == [list(events)]
    assert account(events, delta=1e-5, relation="replace_one").epsilon < float("inf")
