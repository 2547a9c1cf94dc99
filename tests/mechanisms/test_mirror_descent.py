"""What is particular to mirror_descent [TTZ14]."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.bounds import ttz14
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.mirror_descent import MOST, MirrorDescent
from dperm_cli.mechanisms.shared.mirror_maps import EntropyMap, MapConstants, PowerMap, choose_map
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)


@pytest.mark.parametrize("constraint", ["l1_ball", "simplex", "polytope", "box", "lp_ball"])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_noise_is_exact(constraint, relation):
    spec = small_problem(constraint=constraint).spec()
    plan = MirrorDescent(steps=25).plan(spec, Budget(1.0, 1e-6, relation))
    moves = spec.lipschitz if relation == "add_remove" else spec.gradient_gap
    expected = moves * 5.0 / calibrate.mu(1.0, 1e-6)
    assert plan.noise_scale == pytest.approx(expected, rel=1e-5)
    assert plan.guarantee.epsilon <= 1.0


def test_power_step_is_the_minimiser_it_should_be():
    """a <h, x> + psi(x) - <grad psi(theta), x> over the ball, against a general solver."""
    rng = np.random.default_rng(0)
    for power, size in ((1.2, 0.7), (1.5, 5.0), (2.0, 1.0)):
        step = PowerMap(size, 4, power)
        theta = 0.2 * size * rng.standard_normal(4)
        theta /= max(1.0, np.linalg.norm(theta, ord=power) / size)
        h = rng.standard_normal(4)

        def psi(x, power=power):
            return np.linalg.norm(x, ord=power) ** 2 / (2 * (power - 1))

        def slope(x, power=power):
            norm = np.linalg.norm(x, ord=power)
            return np.sign(x) * np.abs(x) ** (power - 1) * norm ** (2 - power) / (power - 1)

        def cost(x, theta=theta, h=h, psi=psi, slope=slope):
            return 0.8 * h @ x + psi(x) - slope(theta) @ x

        found = step.move(theta[None], h[None], 0.8)[0]
        assert np.linalg.norm(found, ord=power) <= size * (1 + 1e-12)
        inside = {"type": "ineq", "fun": lambda x, s=size, q=power: s - np.linalg.norm(x, ord=q)}
        other = minimize(cost, 0.5 * theta + 0.01, constraints=[inside], tol=1e-14).x
        assert cost(found) <= cost(other) + 1e-7
        assert np.allclose(found, other, atol=2e-3)


def test_power_step_from_the_origin_stays_finite():
    step = PowerMap(1.0, 3, 1.05)
    moved = step.move(np.zeros((1, 3)), np.zeros((1, 3)), 1.0)
    assert moved.tolist() == [[0.0, 0.0, 0.0]]
    assert np.all(np.isfinite(step.move(np.zeros((1, 3)), 1e6 * np.ones((1, 3)), 1.0)))


def test_entropy_step_multiplies_weights():
    body = small_problem(constraint="simplex").constraint
    found = choose_map(body)
    assert isinstance(found, EntropyMap)
    np.testing.assert_allclose(found.point(found.start()), body.centre())
    h = np.array([[1.0, -2.0, 0.5]])
    weights = np.exp(-0.3 * 1.5 * h[0])
    moved = found.point(found.move(found.start()[None], h, 0.3))[0]
    np.testing.assert_allclose(moved, 1.5 * weights / weights.sum())


def test_step_sizes_minimise_the_bounds():
    facts = MapConstants(distance=2.0, second=50.0, noise=3.0, curvature=None)
    bound, size, smooth = facts.step(40)
    assert not smooth
    assert bound == pytest.approx(2.0 / (size * 40) + size * 25.0)
    assert all(bound <= 2.0 / (a * 40) + a * 25.0 for a in (0.9 * size, 1.1 * size))
    bound, size, smooth = MapConstants(2.0, 50.0, 3.0, 0.1).step(40)
    assert smooth
    assert bound == pytest.approx(2.0 / (size * 40) + size * 3.0)
    assert (
        MapConstants(2.0, 50.0, 3.0, 4.0).step(4)[1] <= 0.125
        or not MapConstants(2.0, 50.0, 3.0, 4.0).step(4)[2]
    )


def test_default_steps_are_longer_than_the_theorems_and_no_longer_than_noise_allows():
    facts = MapConstants(2.0, 50.0, 3.0, 4.0)
    assert facts.long_step(10) == pytest.approx(min(math.sqrt(2.0 / 30.0), 0.5 / 0.08))
    assert facts.long_step(10**6) == pytest.approx(math.sqrt(2.0 / 3e6))
    assert MapConstants(2.0, 50.0, 1e-9, 4.0).long_step(10) == pytest.approx(6.25)
    assert MapConstants(2.0, 53.0, 3.0, None).long_step(10) == pytest.approx(math.sqrt(4.0 / 35.0))


def test_moment_of_the_noise_in_the_dual_norm():
    rng = np.random.default_rng(0)
    for power in (1.2, 1.6, 2.0):
        dual = power / (power - 1.0)
        norms = np.linalg.norm(rng.standard_normal((50_000, 6)), ord=dual, axis=1)
        found = ttz14.power_moment(6, dual)
        mean = float(np.mean(norms**2))
        assert mean <= found * 1.01
        assert found <= 2.0 * mean


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("constraint", ["l1_ball", "simplex", "box", "lp_ball", "l2_ball"])
def test_without_noise_it_finds_the_optimum(loss, constraint):
    problem = small_problem(loss=loss, constraint=constraint, n=60)
    mechanism = MirrorDescent(steps=MOST)
    plan = mechanism.plan(problem.spec(), Budget(1e6, 1e-6))
    gate = Gate([seed_sequence(0, "test")], plan=(plan.events, "replace_one"))
    theta = mechanism.release(CentralView(problem), plan, gate).theta
    best = solve(problem).value
    floor = float(problem.objective(problem.constraint.centre())) - best
    assert problem.objective(theta)[0] - best < (0.06 if loss == "logistic" else 0.12) * floor


def test_replay_on_vertices():
    for constraint in ("l1_ball", "lp_ball"):
        problem = small_problem(constraint=constraint, n=6)
        mechanism = MirrorDescent(steps=6)
        plan = mechanism.plan(problem.spec(), BUDGET)
        other = replace_record(problem, 2, np.array([0.0, -1.0, 0.0]), -1.0)
        found = replay(mechanism, plan, problem, other)
        assert found.private, found.faults
        assert found.calls == 6
        assert found.worst > 0.1


def test_its_noise_grows_with_the_log_of_the_dimension():
    """N ln m, the noise's part of the bound squared: against p for projected descent."""
    parts = []
    for p in (10, 1000):
        spec = small_problem(constraint="l1_ball", p=p).spec()
        facts = choose_map(spec.constraint).facts(spec, 1.0)
        parts.append(facts.noise * facts.distance)
    assert parts[1] / parts[0] == pytest.approx(math.log(2000) / math.log(20))


def test_refusals():
    with pytest.raises(Unsupported, match="frank_wolfe"):
        MirrorDescent().plan(small_problem(constraint="l1_ball").spec(), Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="noisy_gd"):
        MirrorDescent().plan(small_problem(constraint="ellipsoid").spec(), BUDGET)
    wide = registry.load("constraint", "lp_ball")(1.0, 3, 3.0)
    with pytest.raises(Unsupported, match="noisy_gd"):
        choose_map(wide)
    with pytest.raises(Unsupported, match="epsilon, or the steps"):
        MirrorDescent(step_size="theory").events(small_problem().spec(), 1.0, Budget(math.inf, 0.5))
    assert (
        MirrorDescent().events(small_problem().spec(), 1.0, Budget(math.inf, 0.5))[0].count == 200
    )
    assert (
        MirrorDescent(steps=3).events(small_problem().spec(), 2.0, Budget(math.inf, 0.5))[0].count
        == 3
    )


@pytest.mark.slow  # tests/audit does the same with other seeds
@pytest.mark.stat
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_audit(relation):
    budget = Budget(1.0, 1e-5, relation)
    found = statistical_attack.attack(MirrorDescent().adversary(budget), budget, quick=True)
    assert found.faults == ()
