"""STDERM: PROJERM with a matrix of its own in every trial."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.compression.projected import Projected
from dperm_cli.mechanisms.compression.standard_projection import StandardProjection
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem import random_projection
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

PURE, APPROX = Budget(1.0, 0.0), Budget(1.0, 1e-5)


def seeds(trials):
    return [seed_sequence(0, "test", trial) for trial in range(trials)]


@pytest.mark.parametrize("constraint", ["l1_ball", "l2_ball", "simplex"])
@pytest.mark.parametrize("inner", ["objective_perturbation", {"name": "noisy_gd", "steps": 5}])
def test_each_trial_has_a_matrix_within_the_sizes_of_the_plan(constraint, inner):
    problem = small_problem(loss="squared", constraint=constraint, n=60, p=8)
    mechanism = StandardProjection(inner=inner, m=3)
    plan = mechanism.plan(problem.spec(), APPROX)
    gate = Gate(seeds(4), plan=(plan.events, "replace_one"))
    out = mechanism.release(CentralView(problem), plan, gate)
    assert np.all(problem.constraint.contains(out.theta))
    assert out.info["residual"] <= 1e-8
    made = [mechanism._of_trial(problem.spec(), plan.space, trial) for trial in range(4)]
    tables = [space.phi.table for space in made]
    assert all(not np.array_equal(tables[0], table) for table in tables[1:])
    for space in made:
        inside = space.constraint.body
        assert inside.radius <= plan.space.constraint.radius
        assert inside.diameter <= plan.space.constraint.diameter
        assert space.constraint.radius == plan.space.constraint.radius
    # each released point is the lifted image of a point of its own trial's set
    for theta, space in zip(out.theta, made, strict=True):
        v = space.phi.apply(theta[None])
        np.testing.assert_allclose(v, space.constraint.project(v), atol=1e-8)


def test_trials_stand_alone():
    problem = small_problem(loss="squared", constraint="l1_ball", n=60, p=8)
    mechanism = StandardProjection(m=3)
    plan = mechanism.plan(problem.spec(), PURE)
    three, two = (
        mechanism.release(CentralView(problem), plan, Gate(seeds(k))).theta for k in (3, 2)
    )
    np.testing.assert_array_equal(three[:2], two)


def test_the_sizes_are_the_largest_of_the_pilots():
    problem = small_problem(loss="squared", constraint="l1_ball", n=60, p=8)
    plan = StandardProjection(m=3).plan(problem.spec(), PURE)
    pilots = [random_projection.draw("gaussian", 3, 8, 0, "pilot", number) for number in range(4)]
    largest = max(float(np.max(random_projection.column_norms(phi))) for phi in pilots)
    assert plan.settings["projected_radius"] == pytest.approx(1.5 * largest)
    assert plan.settings["row_bound"] == 2.0


def test_replay_holds_through_the_combinator():
    problem = small_problem(loss="squared", constraint="l1_ball", n=6, p=8)
    mechanism = StandardProjection(m=3)
    plan = mechanism.plan(problem.spec(), PURE)
    row = np.zeros(8)
    row[2] = -1.0
    found = replay(mechanism, plan, problem, replace_record(problem, 1, row, -1.0))
    assert found.private, found.faults
    assert found.worst > 0.05


def test_samplers_are_refused_and_m_equal_to_d_is_the_inner_mechanism():
    problem = small_problem(loss="linear", constraint="l2_ball", n=60, p=8)
    with pytest.raises(Unsupported, match="mechanism=projected"):
        StandardProjection(inner="exponential", m=3).plan(problem.spec(), PURE)
    with pytest.raises(Unsupported, match=r"give mechanism\.m a number"):
        StandardProjection().events(problem.spec(), 1.0, Budget(math.inf, 0.5))
    fixed = StandardProjection(m=3, inner={"name": "objective_perturbation", "noise": "gaussian"})
    assert fixed.events(problem.spec(), 1.0, Budget(math.inf, 0.5))
    one, two = (cls(m=8).plan(problem.spec(), PURE) for cls in (StandardProjection, Projected))
    assert one.events == two.events
    theta = StandardProjection(m=8).release(CentralView(problem), one, Gate(seeds(2))).theta
    same = Projected(m=8).release(CentralView(problem), two, Gate(seeds(2))).theta
    np.testing.assert_array_equal(theta, same)


@pytest.mark.stat
@pytest.mark.parametrize(
    ("relation", "delta"),
    [
        ("replace_one", 0.0),
        ("add_remove", 0.0),
        ("replace_one", 1e-5),
        pytest.param("add_remove", 1e-5, marks=pytest.mark.slow),
    ],
)
def test_audit(relation, delta):
    """The inner mechanism's own attack, with nothing projected."""
    budget = Budget(1.0, delta, relation)
    found = statistical_attack.attack(StandardProjection().adversary(budget), budget)
    assert found.faults == ()
    assert found.is_control_caught
