"""What the runner makes of a plan before anything is released."""

from __future__ import annotations

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Approx
from dperm_cli.privacy.gate import range_delta
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run
from tests.conftest import small_problem

RELATION = "replace_one"


def planned(epsilon, delta):
    mechanism, spec = registry.load("mechanism", "noisy_gd")(), small_problem().spec()
    return run_cell.plan_with_reserve(mechanism, spec, Budget(epsilon, delta, RELATION))


def test_an_ordinary_plan_is_the_mechanisms_own():
    own = planned(1.0, 1e-6)
    assert range_delta(own.events, RELATION, 3) < 1e-9
    assert len(own.events) == 1


def test_a_tiny_delta_holds_what_the_bounded_range_adds():
    """At delta = 1e-14 the range adds over a thousandth of it."""
    budget = Budget(1.0, 1e-14, RELATION)
    found = planned(budget.epsilon, budget.delta)
    noise, held = found.events
    added = range_delta(found.events, RELATION, 3)
    assert isinstance(held, Approx)
    assert 1e-3 * budget.delta < added <= held.delta <= 1.5 * added
    assert delta_of([noise], epsilon=1.0, relation=RELATION) + added <= budget.delta
    guarantee = run_cell.check(found, budget, "approx")
    assert guarantee.within(budget)
    alone = account([noise], delta=budget.delta, relation=RELATION)
    assert alone.epsilon < guarantee.epsilon <= 1.0


def test_where_the_range_would_take_too_much_there_is_no_plan():
    with pytest.raises(Unsupported, match="bounded range"):
        planned(1.0, 1e-16)


def test_a_plan_over_the_budget_is_refused():
    with pytest.raises(PrivacyError, match="refused"):
        run_cell.check(planned(1.0, 1e-6), Budget(0.9, 1e-6, RELATION), "approx")


@pytest.mark.parametrize(
    "name", ["approximate_minima_perturbation", "high_probability", "localization", "newton"]
)
def test_mechanisms_of_several_events_do_not_see_what_the_range_holds(name):
    words = ["dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3", "ridge=0.1", "trials=1"]
    words += ["mechanism.noise=gaussian"] * (name == "approximate_minima_perturbation")
    words += [f"mechanism={name}", "epsilon=10", "delta=[1e-12,1e-13,1e-14,1e-15]"]
    rows = [
        run_cell.run(prepared, make_solver(), debug=True)[0]
        for prepared in run.prepare(study_plan.plan_study(parse(words)).cells)
    ]
    ran = [row for row in rows if row["status"] == "ok"]
    assert any(row["events"][-1]["event"] == "Approx" for row in ran)
