"""The unprotected minimiser: certified, labelled, and refused wherever protection is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.baseline.non_private import NonPrivate
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.runner.cells import run_cell
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-5)


def test_is_the_minimiser_up_to_its_gap():
    problem = small_problem(loss="hinge", radius=30.0)
    plan = NonPrivate().plan(problem.spec(), BUDGET)
    gate = Gate([seed_sequence(0, "test", trial) for trial in range(3)])
    theta = NonPrivate().release(CentralView(problem), plan, gate).theta
    spec = problem.spec()
    assert theta.shape == (3, 3)
    assert np.all(theta == theta[0])
    room = 1e-9 * spec.n * spec.lipschitz_total * spec.constraint.diameter
    assert float(problem.objective(theta[0])) - solve(problem).value <= 2.0 * room


def test_promises_nothing_whatever_the_budget():
    for budget in (BUDGET, Budget(1e9, 0.999)):
        plan = NonPrivate().plan(small_problem().spec(), budget)
        assert plan.guarantee.kind == "none"
        assert not plan.guarantee.within(budget)


def test_passes_the_check_by_its_label_alone():
    plan = NonPrivate().plan(small_problem().spec(), BUDGET)
    guarantee = run_cell.check(plan, BUDGET, "none", unprotected=True)
    assert guarantee.kind == "none"
    with pytest.raises(PrivacyError):
        run_cell.check(plan, BUDGET, "approx", unprotected=False)
    assert not NoisyGd().is_unprotected


@pytest.mark.parametrize("gap", [0, -1, 2, float("nan"), "small"])
def test_gap_is_checked(gap):
    with pytest.raises(InputError) as caught:
        NonPrivate(gap=gap)
    assert caught.value.key == "mechanism.gap"
