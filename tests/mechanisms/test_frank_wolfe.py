"""What is particular to frank_wolfe [TTZ15]."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.frank_wolfe import FrankWolfe
from dperm_cli.mechanisms.shared import vertex_choice
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Exponential, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

PURE, APPROX = Budget(1.0, 0.0), Budget(1.0, 1e-6)
LISTED = ("l1_ball", "simplex", "polytope", "box")


def released(mechanism, problem, budget, trials=4, seed=0):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(seed, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, budget.relation))
    return mechanism.release(CentralView(problem), plan, gate).theta, plan


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("constraint", LISTED)
def test_pure_steps_add_up(constraint, relation):
    spec = small_problem(constraint=constraint).spec()
    plan = FrankWolfe(steps=7).plan(spec, Budget(0.8, 0.0, relation))
    (event,) = plan.events
    assert isinstance(event, Exponential)
    assert plan.guarantee.kind == "pure"
    assert 0.8 * (1 - 1e-12) <= plan.guarantee.epsilon <= 0.8
    moves = spec.lipschitz if relation == "add_remove" else spec.gradient_gap
    assert event.sensitivity(relation) == pytest.approx(moves * spec.constraint.diameter)
    assert event.exponent * event.sensitivity(relation) == pytest.approx(0.8 / 7)


def test_approximate_choices_cost_a_root_of_the_steps():
    """Between 0.9 and 1 times 2 mu / sqrt(T) a step: the limit of bounded-range steps."""
    spec = small_problem(constraint="l1_ball").spec()
    for steps in (30, 300):
        plan = FrankWolfe(oracle="choice", steps=steps).plan(spec, APPROX)
        (event,) = plan.events
        each = event.exponent * event.sensitivity("replace_one")
        limit = 2.0 * calibrate.mu(1.0, 1e-6) / math.sqrt(steps)
        assert 0.9 * limit <= each <= limit


def test_noise_oracle_is_a_gaussian_release_of_all_gradients():
    spec = small_problem().spec()
    plan = FrankWolfe(steps=16).plan(spec, APPROX)
    assert plan.settings["oracle"] == "noise"
    expected = spec.gradient_gap * 4.0 / calibrate.mu(1.0, 1e-6)
    assert plan.noise_scale == pytest.approx(expected, rel=1e-5)
    assert isinstance(plan.events[0], Gaussian)


def test_scores_move_by_no_more_than_the_event_says():
    """Over random pairs of records; the pair along an axis comes within the loss's own gap."""
    rng = np.random.default_rng(0)
    for constraint in LISTED:
        problem = small_problem(constraint=constraint, n=1)
        spec = problem.spec()
        vertices = vertex_choice.list_vertices(problem.constraint)
        limit = FrankWolfe(steps=1).plan(spec, PURE).events[0].sensitivity("replace_one")
        worst = 0.0
        for trial in range(200):
            row = rng.standard_normal(3)
            row = np.eye(3)[0] - np.eye(3)[1] if trial % 2 else row
            other = replace_record(problem, 0, row / np.linalg.norm(row), 1.0)
            first = replace_record(problem, 0, -row / np.linalg.norm(row), 1.0)
            theta = problem.constraint.project(rng.standard_normal(3))
            h = first.data_gradient(theta) - other.data_gradient(theta)
            worst = max(worst, float(np.ptp(vertices.scores(h))))
        assert 0.3 * limit < worst <= limit


@pytest.mark.parametrize("constraint", LISTED)
def test_vertices_agree_with_the_set(constraint):
    body = small_problem(constraint=constraint).constraint
    vertices = vertex_choice.list_vertices(body)
    points = vertices.take(np.arange(vertices.count))
    assert np.all(body.contains(points))
    g = np.random.default_rng(1).standard_normal((20, 3))
    np.testing.assert_allclose(vertices.scores(g), g @ points.T, atol=1e-12)
    np.testing.assert_allclose(np.max(vertices.scores(g), axis=1), body.support(g), atol=1e-9)
    weights = np.random.default_rng(2).dirichlet(np.ones(vertices.count), 5)
    np.testing.assert_allclose(vertices.mix(weights), weights @ points, atol=1e-12)
    centre = body.centre()
    assert (
        np.max(np.linalg.norm(points - centre, axis=1))
        <= vertex_choice.centre_distance(body) + 1e-9
    )


def test_choice_has_its_law():
    """chi-squared over 5 points, 40 000 draws; at 1.1 times the exponent it fails (error 1e-4)."""
    scores = np.array([3.0, 0.0, 1.0, 4.0, 1.0])
    drawn = np.random.default_rng(0).exponential(size=40_000)
    found = np.bincount(vertex_choice.choose(0.7, np.tile(scores, (40_000, 1)), drawn), minlength=5)
    for exponent, same in ((0.7, True), (0.77, False)):
        law = np.exp(-exponent * scores) / np.sum(np.exp(-exponent * scores))
        assert bool(stats.chisquare(found, 40_000 * law).pvalue > 1e-4) is same


def test_unlikely_vertices_keep_their_chance():
    """A vertex of chance e^-200 is taken above a height of 200 and not below."""
    scores = np.array([[0.0, 200.0]])
    assert vertex_choice.choose(1.0, scores, np.array([199.9]))[0] == 0
    assert vertex_choice.choose(1.0, scores, np.array([200.1]))[0] == 1


def test_heights_are_exponential():
    class Deep:
        trials = 1

        def each(self, step, number):
            return np.array([2.0**-53 if number < 3 else 0.5])

    assert vertex_choice.heights(Deep(), 0)[0] == pytest.approx((3 * 52 + 1) * math.log(2.0))
    gate = Gate([seed_sequence(3, "test", trial) for trial in range(4000)])
    found = vertex_choice.heights(gate.stream(Exponential(1.0, 1.0), 1), 0)
    assert stats.kstest(found, "expon").pvalue > 1e-4
    assert stats.kstest(1.2 * found, "expon").pvalue < 1e-4


@pytest.mark.parametrize("constraint", LISTED)
def test_release_is_a_mixture_of_its_vertices(constraint):
    """theta_T = sum of 2 (t + 1) / (T (T + 1)) v_t: with two steps, thirds of two vertices."""
    problem = small_problem(constraint=constraint)
    theta, _ = released(FrankWolfe(steps=2), problem, PURE, trials=20)
    vertices = vertex_choice.list_vertices(problem.constraint)
    points = vertices.take(np.arange(vertices.count))
    pairs = (points[:, None] / 3.0 + 2.0 * points[None, :] / 3.0).reshape(-1, 3)
    distance = np.linalg.norm(theta[:, None] - pairs[None], axis=2).min(axis=1)
    assert np.max(distance) < 1e-12


@pytest.mark.parametrize("budget", [Budget(1e5, 0.0), Budget(1e5, 1e-6)])
@pytest.mark.parametrize("constraint", LISTED)
def test_without_noise_it_is_frank_wolfe(constraint, budget):
    problem = small_problem(constraint=constraint, n=60)
    theta, _ = released(FrankWolfe(steps=300), problem, budget)
    excess = problem.objective(theta) - solve(problem).value
    assert np.all(excess < 0.01 * 60)


def test_replay_on_vertices_and_the_gate():
    problem = small_problem(constraint="l1_ball", n=6)
    for budget in (PURE, APPROX):
        mechanism = FrankWolfe(oracle="choice", steps=6)
        plan = mechanism.plan(problem.spec(), budget)
        other = replace_record(problem, 2, np.array([0.0, -1.0, 0.0]), -1.0)
        found = replay(mechanism, plan, problem, other)
        assert found.private, found.faults
        assert found.calls == 6
        wrong = (Exponential(plan.events[0].exponent, plan.events[0].record_oscillation / 3, 6),)
        gate = Gate([seed_sequence(0, "test")], plan=(wrong, "replace_one"))
        with pytest.raises(PrivacyError):
            mechanism.release(CentralView(problem), plan, gate)


def test_neighbours_trajectories_keep_their_ratio():
    """All m^T outcomes of 3 choices on an interval: no log ratio above epsilon, one nearly so."""
    mechanism = FrankWolfe(steps=3)
    budget = Budget(1.5, 0.0)
    adversary = mechanism.adversary(budget)
    plan = mechanism.plan(adversary.first.spec(), budget)
    exponent = plan.events[0].exponent
    vertices = vertex_choice.list_vertices(adversary.first.constraint)

    def log_chance(problem, path):
        theta, total = problem.constraint.centre(), 0.0
        for step, index in enumerate(path):
            scores = -exponent * vertices.scores(problem.data_gradient(theta))
            total += scores[index] - np.logaddexp.reduce(scores)
            theta = theta + 2.0 / (step + 2.0) * (vertices.take(np.array([index]))[0] - theta)
        return total

    paths = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    ratios = [log_chance(adversary.first, p) - log_chance(adversary.second, p) for p in paths]
    assert max(map(abs, ratios)) <= 1.5
    assert max(map(abs, ratios)) > 0.75


def test_steps_from_the_bound():
    """theory: T is where 2 Gamma / (T + 2) + T osc ln m / epsilon is least, but for the grid."""
    spec = small_problem(constraint="l1_ball", n=10**4).spec()
    plan = FrankWolfe(steps="theory").plan(spec, PURE)
    curvature = spec.n * spec.smoothness * 9.0
    slope = spec.gradient_gap * 3.0 * math.log(6)
    best = math.sqrt(2 * curvature / slope)
    assert plan.steps == pytest.approx(best, rel=0.3)
    assert FrankWolfe().plan(spec, PURE).steps < plan.steps


def test_many_vertices_are_never_written_out():
    problem = small_problem(constraint="l1_ball", p=5000, n=20)
    theta, plan = released(FrankWolfe(steps=3), problem, PURE, trials=2)
    assert plan.settings["vertices"] == 10_000
    assert np.all(np.count_nonzero(theta, axis=1) <= 3)
    assert np.all(problem.constraint.contains(theta))


def test_refusals():
    plain = small_problem(constraint="l1_ball").spec()
    with pytest.raises(Unsupported, match="huberized"):
        FrankWolfe().plan(small_problem(loss="hinge", constraint="l1_ball").spec(), PURE)
    with pytest.raises(Unsupported, match="vertices"):
        FrankWolfe().plan(small_problem().spec(), PURE)
    with pytest.raises(Unsupported, match="vertices"):
        FrankWolfe(oracle="choice").plan(small_problem().spec(), APPROX)
    with pytest.raises(Unsupported, match="delta > 0"):
        FrankWolfe(oracle="noise").plan(plain, PURE)
    with pytest.raises(Unsupported, match="epsilon, or the steps"):
        FrankWolfe().events(plain, 1.0, Budget(math.inf, 0.5))
    event = FrankWolfe(steps=5).events(plain, 2.0, Budget(math.inf, 0.5))[0]
    assert (event.exponent, event.count) == (0.5, 5)


@pytest.mark.stat
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-5, marks=pytest.mark.slow)])
def test_audit(delta, relation):
    budget = Budget(1.0, delta, relation)
    found = statistical_attack.attack(FrankWolfe().adversary(budget), budget, quick=True)
    assert found.faults == ()
