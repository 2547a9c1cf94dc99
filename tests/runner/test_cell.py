"""What the runner makes of a plan before anything is released."""

from __future__ import annotations

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.privacy.accountant import account, delta_of
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Approx
from dperm_cli.privacy.noise import range_delta
from dperm_cli.runner import cell
from tests.conftest import small_problem

RELATION = "replace_one"


def planned(epsilon, delta):
    mechanism, spec = registry.load("mechanism", "noisy_gd")(), small_problem().spec()
    return cell.planned(mechanism, spec, Budget(epsilon, delta, RELATION))


def test_an_ordinary_plan_is_the_mechanisms_own():
    plan = planned(1.0, 1e-6)
    assert range_delta(plan.events, RELATION, 3) < 1e-9
    assert len(plan.events) == 1


def test_a_tiny_delta_holds_what_the_bounded_range_adds():
    """At delta = 1e-14 the range adds over a thousandth of it."""
    budget = Budget(1.0, 1e-14, RELATION)
    plan = planned(budget.epsilon, budget.delta)
    noise, held = plan.events
    added = range_delta(plan.events, RELATION, 3)
    assert isinstance(held, Approx)
    assert 1e-3 * budget.delta < added <= held.delta <= 1.5 * added
    assert delta_of([noise], epsilon=1.0, relation=RELATION) + added <= budget.delta
    guarantee, _ = cell.check(plan, budget, "approx")
    assert guarantee.within(budget)
    alone = account([noise], delta=budget.delta, relation=RELATION)
    assert alone.epsilon < guarantee.epsilon <= 1.0


def test_where_the_range_would_take_too_much_there_is_no_plan():
    with pytest.raises(Unsupported, match="bounded range"):
        planned(1.0, 1e-16)


def test_a_plan_over_the_budget_is_refused():
    with pytest.raises(PrivacyError, match="refused"):
        cell.check(planned(1.0, 1e-6), Budget(0.9, 1e-6, RELATION), "approx")
