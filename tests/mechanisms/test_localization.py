"""What is particular to localization [BST14, Alg. 4, App. B]."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.combinators.high_probability import HighProbability
from dperm_cli.mechanisms.combinators.localization import Localization, failure
from dperm_cli.mechanisms.shared import noisy_minimiser
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

APPROX = Budget(1.0, 1e-6)
QUICK = {"name": "noisy_gd", "steps": 5}


def vector_spec(n=1000):
    return bare_spec(n, 1.0, L2Ball(10.0, 10), regulariser=Regulariser(0.1))


def test_budget_is_split_by_mu():
    """mu^2 = mu1^2 + mu2^2: .167375 each at (1, 1e-6), where halves would give .119785."""
    plan = Localization().plan(vector_spec(), APPROX)
    first, second = plan.events
    mus = [e.sensitivity("replace_one") / e.scale * np.sqrt(e.count) for e in (first, second)]
    assert mus == pytest.approx([0.167375, 0.167375], rel=5e-6)
    assert calibrate.mu(0.5, 5e-7) == pytest.approx(0.119785, rel=1e-5)
    assert 0.999 < plan.guarantee.epsilon <= 1.0


def test_radius_is_the_exact_quantile():
    """n = 1000, p = 10: 41.74 scales of a Gamma norm, against 207 in the paper."""
    plan = Localization(inner="output_perturbation").plan(vector_spec(), Budget(1.0, 0.0))
    first, second = plan.events
    assert isinstance(first, GammaNorm)
    # the minimiser's own error is a thousandth of the noise at most
    assert plan.settings["radius"] / first.scale == pytest.approx(41.74, rel=1e-3)
    assert first.scale == pytest.approx(second.scale, rel=1e-2)
    plan = Localization().plan(vector_spec(), APPROX)
    exact = stats.chi(10).isf(1e-9)
    assert plan.settings["radius"] / plan.events[0].scale == pytest.approx(exact, rel=1e-3)
    assert failure(1000) == pytest.approx(1e-9)
    assert failure(2) == 1e-3


@pytest.mark.parametrize("constraint", ["l2_ball", "box", "simplex"])
def test_released_points_are_near_the_first_stage(constraint):
    """Within r of each trial's own centre: the trial's first stage, from the same seed."""
    problem = small_problem(loss="logistic", constraint=constraint, n=400, ridge=0.5)
    mechanism = Localization(inner=QUICK)
    plan = mechanism.plan(problem.spec(), Budget(2.0, 1e-5))
    reach = plan.settings["radius"]
    assert reach < problem.constraint.diameter
    seeds = [seed_sequence(0, "test", trial) for trial in range(4)]
    allowed = (plan.events, "replace_one")
    out = mechanism.release(CentralView(problem), plan, Gate(seeds, plan=allowed))
    assert out.info == {"radius": reach}
    gap = plan.settings["minimiser_gap"]
    first = plan.events[0]
    centres = noisy_minimiser.release_minimiser(CentralView(problem), first, gap, Gate(seeds))
    distance = np.linalg.norm(out.theta - centres, axis=1)
    assert np.all(distance <= reach * (1.0 + 1e-9))
    assert np.all(problem.constraint.contains(out.theta))


@pytest.mark.parametrize(
    ("inner", "delta"),
    [
        ("exponential", 0.0),
        pytest.param("regularized_exponential", 1e-5, marks=pytest.mark.slow),
    ],
)
def test_laws_are_drawn_on_the_set_that_was_released(inner, delta):
    """The plan knows the size of C_0 only; its place comes out of the first stage."""
    problem = small_problem(loss="logistic", constraint="l2_ball", n=20000, ridge=0.2)
    mechanism = Localization(inner=inner)
    plan = mechanism.plan(problem.spec(), Budget(2.0, delta))
    seeds = [seed_sequence(0, "test", trial) for trial in range(4)]
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
    gap, first = plan.settings["minimiser_gap"], plan.events[0]
    centres = noisy_minimiser.release_minimiser(CentralView(problem), first, gap, Gate(seeds))
    reach = plan.settings["radius"]
    # far enough from the middle of C for the two sets to be told apart
    assert np.all(np.linalg.norm(centres, axis=1) > 3.0 * reach)
    assert np.all(np.linalg.norm(theta - centres, axis=1) <= reach * (1.0 + 1e-9))


@pytest.mark.parametrize("inner", [QUICK, {"name": "noisy_sgd", "steps": 5}, "output_perturbation"])
def test_replay_holds_through_the_combinator(inner):
    mechanism, problem = Localization(inner=inner), small_problem(loss="hinge", n=6, ridge=1.0)
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-5))
    for seed, index in enumerate((0, 3)):
        other = replace_record(problem, index, np.array([0.0, -1.0, 0.0]), -1.0)
        found = replay(mechanism, plan, problem, other, seed)
        assert found.private, found.faults
        assert found.worst > 0.05


def test_trials_stand_alone():
    problem = small_problem(ridge=1.0)
    mechanism = Localization(inner=QUICK)
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-5))

    def released(trials):
        seeds = [seed_sequence(0, "test", trial) for trial in range(trials)]
        return mechanism.release(CentralView(problem), plan, Gate(seeds)).theta

    np.testing.assert_array_equal(released(3)[:2], released(2))


def test_combinators_nest_and_narrow_what_they_promise():
    pure = Localization(inner={"name": "high_probability", "inner": "output_perturbation"})
    assert isinstance(pure.inner, HighProbability)
    assert pure.guarantees == ("pure", "approx")
    assert Localization(inner="noisy_gd").guarantees == ("approx",)
    assert Localization.guarantees == ("pure", "approx")
    problem = small_problem(n=30, ridge=1.0)
    plan = pure.plan(problem.spec(), Budget(1.0, 0.0))
    assert plan.guarantee.epsilon == pytest.approx(1.0)
    seeds = [seed_sequence(0, "test", trial) for trial in range(2)]
    gate = Gate(seeds, plan=(plan.events, "replace_one"))
    theta = pure.release(CentralView(problem), plan, gate).theta
    assert np.all(problem.constraint.contains(theta))


@pytest.mark.parametrize(
    ("inner", "key"),
    [
        ({"name": "noisy_gd", "steps": -1}, "mechanism.inner.steps"),
        ({"name": "noisy_gd", "stepz": 1}, "mechanism.inner.stepz"),
        ({"steps": 1}, "mechanism.inner"),
        ("nobody", "mechanism.inner"),
        (3, "mechanism.inner"),
    ],
)
def test_bad_inner_mechanisms_name_the_key(inner, key):
    with pytest.raises(InputError) as caught:
        Localization(inner=inner)
    assert caught.value.key == key


def test_refusals():
    with pytest.raises(Unsupported, match="set ridge"):
        Localization().plan(small_problem().spec(), APPROX)
    with pytest.raises(Unsupported, match="epsilon instead"):
        Localization().events(vector_spec(), 1.0, Budget(math.inf, 0.5))


@pytest.mark.stat
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-5, marks=pytest.mark.slow)])
def test_audit(relation, delta):
    """Both stages are seen: tightness 0.80 for two Gaussians; half the noise is noticed."""
    budget = Budget(1.0, delta, relation)
    found = statistical_attack.attack(Localization().adversary(budget), budget)
    assert found.faults == ()
    assert found.is_control_caught


@pytest.mark.parametrize(("loss", "p"), [("linear", 8), ("linear", 32), ("absolute", 4)])
def test_the_paper_s_own_inner_mechanism(loss, p):
    """[BST14, Alg. 4]: the exponential mechanism on C_0, exactly or by a chain."""
    problem = small_problem(loss=loss, n=600, p=p, radius=1.0, ridge=2.0)
    mechanism = Localization(inner="exponential")
    plan = mechanism.plan(problem.spec(), Budget(1.0, 0.0))
    assert plan.settings["radius"] < problem.constraint.radius
    assert plan.settings["inner"]["sampler"]["exact"] == (loss == "linear")
    assert plan.guarantee.kind == "pure"
    assert 0.999 < plan.guarantee.epsilon <= 1.0
    seeds = [seed_sequence(0, "test", trial) for trial in range(3)]

    def centres():
        gate = Gate(seeds, plan=(plan.events, "replace_one"))
        gap = plan.settings["minimiser_gap"]
        view = CentralView(problem)
        return noisy_minimiser.release_minimiser(view, plan.events[0], gap, gate)

    gate = Gate(seeds, plan=(plan.events, "replace_one"))
    theta = mechanism.release(CentralView(problem), plan, gate).theta
    assert np.all(problem.constraint.contains(theta))
    distance = np.linalg.norm(theta - centres(), axis=1)
    assert np.all(distance <= plan.settings["radius"] * (1.0 + 1e-9))
    assert np.all(distance > 0)


@pytest.mark.parametrize("constraint", ["box", "l1_ball", "simplex"])
def test_the_exponential_mechanism_near_a_point_of_other_sets(constraint):
    problem = small_problem(
        loss="logistic", constraint=constraint, n=200, p=4, radius=1.0, ridge=2.0
    )
    mechanism = Localization(inner="exponential")
    plan = mechanism.plan(problem.spec(), Budget(1.0, 0.0))
    seeds = [seed_sequence(0, "test", trial) for trial in range(2)]
    gate = Gate(seeds, plan=(plan.events, "replace_one"))
    theta = mechanism.release(CentralView(problem), plan, gate).theta
    assert np.all(problem.constraint.contains(theta))
