"""Newton's method with two noises: sensitivities, the model's minimisers, defaults."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.audit.exact_loss import noise_loss
from dperm_cli.audit.random_neighbours import search
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.core.symmetric import pack_symmetric, unpack_symmetric
from dperm_cli.mechanisms.gradient import newton
from dperm_cli.mechanisms.gradient.newton import Newton
from dperm_cli.privacy.accounting import calibrate, ledger_totals
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, GaussianMatrix
from dperm_cli.privacy.gate import Gate, range_delta
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import trust_region
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)
SMOOTH = ("logistic", "squared", "huberized_hinge", "huberized_positive_part")


def released(mechanism, problem, budget=BUDGET, trials=3):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(3, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, budget.relation))
    return mechanism.release(CentralView(problem), plan, gate).theta


def random_pair(rng, p, relation):
    """(H, H') without strength: sums of a few matrices, one of norm <= 1 exchanged or gone."""
    common = rng.standard_normal((p, rng.integers(0, 4)))
    common = common @ common.T * 10.0 ** rng.uniform(-3, 2)
    ends = []
    for gone in (False, relation == "add_remove"):
        v = rng.standard_normal((p, rng.integers(1, p + 1)))
        a = v @ v.T
        ends.append(common + (0.0 if gone else rng.uniform(0.5, 1.0)) * a / np.linalg.norm(a, 2))
    return ends


def direction(matrix, strength, slope, at, radius):
    model = newton.Spectral(matrix[None], strength)
    if radius is None:
        return trust_region.minimise_unconstrained(model.values, model.basis, slope[None])[0]
    return trust_region.minimise_in_ball(model.values, model.basis, slope[None], at[None], radius)[
        0
    ]


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_a_direction_moves_by_no_more_than_its_sensitivity(relation, ball):
    """Random search over matrices and slopes, in units of the longest length: 600 of them."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(600):
        p, strength = int(rng.integers(1, 5)), 10.0 ** rng.uniform(0.0, 1.5)
        event = Gaussian(1.0, 1.0 / (strength + 1.0), gap=1.0 / strength)
        slope = rng.standard_normal(p) * 10.0 ** rng.uniform(-2, 3)
        at = rng.standard_normal(p)
        at *= rng.uniform(0.0, 1.0) / np.linalg.norm(at)
        ends = [
            direction(m, strength, slope, at, 1.0 if ball else None)
            for m in random_pair(rng, p, relation)
        ]
        longest = np.linalg.norm(slope) / strength
        longest = min(longest, 2.0) if ball else longest
        moved = np.linalg.norm(ends[0] - ends[1]) / longest
        worst = max(worst, moved / event.sensitivity(relation))
    assert 0.5 < worst <= 1.0 + 1e-9


def test_the_bounds_on_a_direction_are_reached():
    """add/remove: H = 0, the slope along the record. Replace-one: strength large."""
    slope, at = np.array([3.0, 0.0]), np.zeros(2)
    one, none = np.diag([1.0, 0.0]), np.zeros((2, 2))
    for strength in (1.0, 7.0):
        moved = direction(one, strength, slope, at, None) - direction(
            none, strength, slope, at, None
        )
        share = np.linalg.norm(moved) / (3.0 / strength)
        assert share == pytest.approx(1.0 / (strength + 1.0))


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
def test_a_record_adds_a_matrix_within_its_norms(loss, relation):
    """Positive, of spectral norm <= smoothness and Frobenius norm <= sqrt(rank) of it."""
    problem = small_problem(loss, n=1, radius=4.0)
    spec, rng = problem.spec(), np.random.default_rng(1)
    event = GaussianMatrix(1.0, spec.smoothness * math.sqrt(newton.rank(spec)))
    sums = []
    for _ in range(60):
        row = rng.standard_normal((1, problem.data.p))
        data = dataclasses.replace(problem.data, x=row / np.linalg.norm(row))
        theta = 4.0 * rng.uniform(-1, 1, problem.p)
        found = problem.loss.majorant(theta, data)
        values = np.linalg.eigvalsh(found)
        assert values[0] >= -1e-12
        assert values[-1] <= spec.smoothness * (1.0 + 1e-12)
        sums.append(pack_symmetric(found[None])[0])
    gap = math.sqrt(2.0) * event.record_norm
    norms = [np.linalg.norm(a) for a in sums]
    moves = [np.linalg.norm(a - b) for a in sums for b in sums]
    assert max(norms) <= event.record_norm * (1.0 + 1e-12)
    assert max(moves) <= gap * (1.0 + 1e-12)
    assert relation == "add_remove" or max(moves) > 0.5 * gap or loss.startswith("huber")


@pytest.mark.parametrize("loss", SMOOTH)
def test_majorants_lie_above_the_loss(loss):
    form, rng = registry.load("loss", loss)(), np.random.default_rng(2)
    z, t = rng.uniform(-6, 6, 4000), rng.uniform(-9, 9, 4000)
    y = rng.choice([-1.0, 1.0], 4000)
    weight = form.majoriser(z, y)
    above = form.value(z, y) + form.slope(z, y) * t + weight * t * t / 2
    assert np.all(form.value(z + t, y) <= above + 1e-12)
    assert np.all((weight >= 0) & (weight <= form.smoothness))


def test_the_multinomial_majorant_lies_above_the_loss():
    problem, rng = small_problem("multinomial", radius=3.0), np.random.default_rng(3)
    bend = problem.loss.majorant(np.zeros(problem.p), problem.data)
    for _ in range(100):
        at, u = rng.standard_normal((2, problem.p))
        rise = problem.objective(at + u) - problem.objective(at) - problem.data_gradient(at) @ u
        assert rise <= u @ bend @ u / 2 + 1e-9


def test_packing_keeps_the_frobenius_norm():
    a = np.random.default_rng(4).standard_normal((3, 5, 5))
    a = a + np.swapaxes(a, 1, 2)
    np.testing.assert_allclose(
        np.linalg.norm(pack_symmetric(a), axis=1), np.linalg.norm(a, axis=(1, 2))
    )
    np.testing.assert_allclose(unpack_symmetric(pack_symmetric(a), 5), a)


def test_minimisers_over_a_ball_satisfy_their_conditions():
    """y = at + u: in the ball, and -(slope + M u) is a nonnegative multiple of y on its edge."""
    rng, edges = np.random.default_rng(5), 0
    for _ in range(200):
        p = int(rng.integers(1, 6))
        m = rng.standard_normal((p, p))
        m = m @ m.T + 10.0 ** rng.uniform(-3, 1) * np.eye(p)
        at = rng.standard_normal(p)
        at *= rng.uniform() / np.linalg.norm(at)
        slope = rng.standard_normal(p) * 10.0 ** rng.uniform(-2, 2)
        u = direction(m, 0.0, slope, at, 1.0)
        y, force = at + u, -(slope + m @ u)
        assert np.linalg.norm(y) <= 1.0 + 1e-10
        multiplier = max(float(force @ y), 0.0)
        edges += multiplier > 1e-6
        size = np.linalg.norm(slope) + np.linalg.norm(m, 2)
        np.testing.assert_allclose(force, multiplier * y, atol=1e-8 * size)
        ball = registry.load("constraint", "l2_ball")(1.0, p)
        model = newton.Spectral(m[None], 0.0)
        other = trust_region.minimise_in_set(
            model.values, model.basis, slope[None], at[None], ball
        )[0]
        value = [slope @ v + v @ m @ v / 2 for v in (u, other)]
        assert value[0] <= value[1] + 1e-9 * size
    assert edges > 50


@pytest.mark.parametrize("curvature", ["matrix", "direction"])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_both_noises_together_are_the_budget(curvature, relation):
    """mu1^2 + mu2^2 = mu(epsilon, delta)^2, the second of them the share."""
    spec, budget = small_problem(n=500, p=6).spec(), Budget(1.0, 1e-6, relation)
    plan = Newton(curvature=curvature, share=0.3).plan(spec, budget)
    squares = [e.count * (e.sensitivity(relation) / e.scale) ** 2 for e in plan.events]
    whole = calibrate.mu(1.0, 1e-6) ** 2
    assert sum(squares) == pytest.approx(whole, rel=1e-4)
    assert squares[1] == pytest.approx(0.3 * whole, rel=1e-4)
    if curvature == "direction":
        noise = plan.events[1].scale * math.sqrt(6)
        assert noise <= newton.RELATIVE * (1.0 + 1e-3)
        assert plan.settings["strength"] >= spec.smoothness
    for event in plan.events:
        assert ledger_totals.rebuild_event(ledger_totals.to_dict(event)) == event
        assert noise_loss(event, 1.0, 1e-6, relation) <= 1.0


@pytest.mark.parametrize("constraint", ["l2_ball", "l1_ball", "box"])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_replay_of_noisy_directions(relation, constraint):
    """The default's own replay is in the contract suite; this is the paper's form."""
    if constraint == "l2_ball":
        found = search((Newton(curvature="direction"),), Budget(1.0, 1e-5, relation), 24)
        assert found.private, found.faults
        assert found.worst > 0.3
        return
    from dperm_cli.audit.replay import replace_record, replay

    problem = small_problem("squared", constraint, n=6, radius=0.7)
    mechanism = Newton(curvature="direction", steps=8)
    plan = mechanism.plan(problem.spec(), Budget(100.0, 1e-5, relation))
    for index in range(6):
        gone = relation == "add_remove"
        row = np.zeros(3) if gone else -problem.data.x[index]
        verdict = replay(mechanism, plan, problem, replace_record(problem, index, row, 1.0), index)
        assert verdict.private, verdict.faults


def test_the_range_of_a_matrix_counts_all_its_entries():
    one = Gaussian(1.0, 0.5)
    assert range_delta([GaussianMatrix(1.0, 0.5)], "add_remove", 10) == range_delta(
        [one], "add_remove", 55
    )


def test_a_ridge_counts_as_strength():
    problem = small_problem(ridge=5.0)
    plan = Newton(strength=1.0).plan(problem.spec(), Budget(10.0, 1e-5))
    assert plan.settings["strength"] == problem.spec().penalty.ridge


@pytest.mark.parametrize("curvature", ["matrix", "direction"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "huberized_hinge"])
def test_many_records_are_fitted(curvature, loss):
    problem = small_problem(loss, n=20_000, radius=1.5)
    best = solve(problem).value
    floor = problem.objective(np.zeros(3)) - best
    theta = released(Newton(curvature=curvature), problem, trials=20)
    # noise on a direction does not vanish where the set's boundary holds the gradient up
    share = 0.02 if curvature == "matrix" else 0.1
    assert np.median(problem.objective(theta) - best) < share * floor


def test_unsupported_says_why():
    with pytest.raises(Unsupported, match="delta > 0"):
        Newton().plan(small_problem().spec(), Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="huberized"):
        Newton().plan(small_problem("hinge").spec(), BUDGET)
    with pytest.raises(Unsupported, match="lasso"):
        Newton().plan(dataclasses.replace(small_problem(), lasso=0.1).spec(), BUDGET)
    with pytest.raises(Unsupported, match="at most 500"):
        Newton().plan(small_problem(n=3, p=501).spec(), BUDGET)


def test_inside_huberized_it_takes_a_hinge():
    outer = registry.load("mechanism", "huberized")(inner="newton", width=0.5)
    problem = small_problem("hinge", n=2000)
    best = solve(problem).value
    theta = released(outer, problem)
    assert np.all(problem.objective(theta) - best < 0.5 * (problem.objective(np.zeros(3)) - best))


@pytest.mark.parametrize(("epsilon", "worst"), [(0.1, 0.75), (1.0, 0.23), (10.0, 0.06)])
def test_defaults_beat_the_floor_on_real_data(epsilon, worst):
    """Median of 20 trials, as a share of the floor's excess risk."""
    data = registry.load("dataset", "breast_cancer")().load()
    ball = registry.load("constraint", "l2_ball")(10.0, data.p)
    problem = Problem(data, registry.load("loss", "logistic")(), ball)
    best = solve(problem).value
    budget = Budget(epsilon, data.n**-2.0, "add_remove")
    excess = problem.objective(released(Newton(), problem, budget, 20)) - best
    assert np.median(excess) < worst * (problem.objective(np.zeros(data.p)) - best)
