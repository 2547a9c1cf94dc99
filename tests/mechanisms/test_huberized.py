"""What is particular to huberized [BST14, App. A]."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.combinators.huberized import Huberized
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-5)
QUICK = {"name": "noisy_gd", "steps": 5}


def released(mechanism, problem):
    plan = mechanism.plan(problem.spec(), BUDGET)
    gate = Gate([seed_sequence(0, "test")], plan=(plan.events, "replace_one"))
    return mechanism.release(CentralView(problem), plan, gate).theta


@pytest.mark.parametrize("loss", registry.list_offering("loss", "round_kink"))
@pytest.mark.parametrize("width", [0.05, 0.5])
def test_it_is_the_inner_mechanism_on_the_rounded_loss(loss, width):
    problem = small_problem(loss=loss, n=20)
    rounded = registry.load("loss", f"huberized_{loss}")(width=width)
    by_hand = Problem(problem.data, rounded, problem.constraint)
    mechanism, inner = Huberized(QUICK, width), NoisyGd(steps=5)
    np.testing.assert_array_equal(released(mechanism, problem), released(inner, by_hand))
    plan = mechanism.plan(problem.spec(), BUDGET)
    assert plan.events == inner.plan(by_hand.spec(), BUDGET).events
    assert plan.settings["loss"] == f"huberized_{loss}"
    assert mechanism.events(problem.spec(), 2.0, Budget(math.inf, 0.5)) == inner.events(
        by_hand.spec(), 2.0, Budget(math.inf, 0.5)
    )
    assert by_hand.spec().smoothness == pytest.approx(1.0 / (2.0 * width))


@pytest.mark.parametrize("loss", registry.list_offering("loss", "round_kink"))
def test_rounding_lifts_the_sum_by_a_quarter_of_the_width(loss):
    """l <= l_h <= l + h / 4, reached at the kink."""
    problem = small_problem(loss=loss, n=20)
    rounded = Huberized(width=0.3).round_loss(problem.spec())
    theta = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3)) * 3.0
    lift = rounded.values(theta, problem.data) - problem.loss.values(theta, problem.data)
    assert np.min(lift) >= -1e-15
    assert 0.06 < np.max(lift) <= 0.3 / 4.0 + 1e-15


def test_by_default_it_is_the_method_that_the_paper_compares_with():
    plan = Huberized().plan(small_problem(loss="hinge").spec(), BUDGET)
    assert plan.settings["inner"]["name"] == "objective_perturbation"
    assert plan.settings["inner"]["noise"] == "gamma"  # of three numbers the smaller one
    assert Huberized(QUICK).plan(small_problem().spec(), BUDGET).settings["inner"]["name"] == (
        "noisy_gd"
    )


def test_a_smooth_loss_stays():
    problem = small_problem(loss="logistic", n=20)
    np.testing.assert_array_equal(
        released(Huberized(QUICK), problem), released(NoisyGd(steps=5), problem)
    )
    assert Huberized().plan(problem.spec(), BUDGET).settings["width"] is None


@pytest.mark.parametrize("loss", ["absolute", "l1_median", "l2_median"])
def test_losses_without_a_rounded_form_are_refused(loss):
    with pytest.raises(Unsupported, match="no rounded form"):
        Huberized().plan(small_problem(loss=loss).spec(), BUDGET)


def test_replay():
    problem, mechanism = small_problem(loss="hinge", n=6), Huberized(QUICK)
    plan = mechanism.plan(problem.spec(), BUDGET)
    other = replace_record(problem, 2, np.array([0.0, -1.0, 0.0]), -1.0)
    found = replay(mechanism, plan, problem, other)
    assert found.private, found.faults
    assert found.worst > 0.05


def test_only_what_was_asked_for_runs_without_a_guarantee():
    """The printed constants of the inner mechanism, as [BST14, App. A] compares with them."""
    asked = {"name": "objective_perturbation", "calibration": "paper", "allow_not_private": True}
    assert Huberized(asked, 0.1).is_unprotected
    assert not Huberized({**asked, "calibration": "tight"}, 0.1).is_unprotected
    assert not Huberized(QUICK, 0.1).is_unprotected
