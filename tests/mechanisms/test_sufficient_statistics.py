"""Sufficient statistics: joint sensitivity, both noises, the quadratic model, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.audit import exact_loss, noise_laws
from dperm_cli.audit.statistical_attack import attack
from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.core.symmetric import pack_symmetric
from dperm_cli.losses.squared import Squared
from dperm_cli.mechanisms.perturbation import sufficient_statistics
from dperm_cli.mechanisms.perturbation.sufficient_statistics import SufficientStatistics
from dperm_cli.mechanisms.shared.moment_sensitivity import joint_sensitivity
from dperm_cli.mechanisms.shared.quadratic_model import minimise_models
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GaussianMoments, WishartDifference
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Bounds, Data
from dperm_cli.problem.problem import Problem, Regulariser, make_spec
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView

REPLACE, REMOVE = RELATIONS = ("replace_one", "add_remove")
SQUARED = Squared()
WEIGHTS = [(1.0, 0.0), (0.5, 0.0), (2.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.3, 1.5)]


def make_problem(n=400, p=3, radius=1.0, constraint=None, **penalty):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(x @ np.linspace(-0.5, 0.5, p) + 0.1 * rng.normal(size=n), -1.0, 1.0)
    data = Data.of_records("made", "regression", x, y, 1.0, 1.0, fingerprint="made")
    return Problem(data, SQUARED, constraint or make_ball(radius, p), **penalty)


def run(problem, mechanism, budget, trials=3):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(0, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, budget.relation))
    return mechanism.release(CentralView(problem), plan, gate).theta


def make_facts(p, radius=10.0, row=1.0, target=1.0):
    bounds = Bounds(row=row, target=target, radius=radius, columns=p)
    return make_spec(5000, SQUARED, make_ball(radius, p), Regulariser(), "regression", bounds)


# --- sensitivity ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "expected"),
    list(zip(WEIGHTS, (2.12132, 1.59099, 4.0, 2.12132, 2.64575, 2.08327), strict=True)),
)
def test_replacing_a_record_moves_the_moments_less_than_their_parts(weights, expected):
    cross, square = weights
    assert joint_sensitivity(REPLACE, cross=cross, square=square) == pytest.approx(
        expected, abs=6e-6
    )
    parts = math.sqrt(2.0 + 4.0 * cross**2 + square**2)
    assert joint_sensitivity(REPLACE, cross=cross, square=square) < parts


def list_moments(x, y, cross, square):
    packed = pack_symmetric(x[:, :, None] * x[:, None, :])
    return np.hstack([packed, cross * x * y[:, None], square * y[:, None] ** 2])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("row", "target"), [(1.0, 1.0), (2.0, 0.7), (0.4, 3.0)])
def test_no_pair_of_records_moves_the_moments_further_and_some_come_near(weights, row, target):
    """Random pairs, and a grid over angle and targets at the bounds."""
    rng = np.random.default_rng(1)
    sides = []
    for _ in range(2):
        x = rng.normal(size=(20_000, 2))
        length = row * rng.choice([1.0, 1.0, 0.5, 0.9], size=(20_000, 1))
        x *= length / np.linalg.norm(x, axis=1, keepdims=True)
        sides.append((x, target * rng.choice([-1.0, -0.5, 0.3, 1.0], size=20_000)))
    angles, share = (
        grid.ravel()
        for grid in np.meshgrid(np.linspace(0.0, math.pi, 361), np.linspace(0.0, 1.0, 161))
    )
    turned = row * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    flat = np.tile([row, 0.0], (len(angles), 1))
    pairs = [sides, [(flat, np.full(len(angles), target)), (turned, -target * share)]]
    moved = [
        np.linalg.norm(np.subtract(*(list_moments(*side, *weights) for side in pair)), axis=1)
        for pair in pairs
    ]
    claimed = joint_sensitivity(REPLACE, row, target, *weights)
    assert max(map(np.max, moved)) <= claimed * (1.0 + 1e-12)
    assert np.max(moved[1]) >= claimed * (1.0 - 1e-3)
    alone = np.linalg.norm(list_moments(*sides[0], *weights), axis=1)
    assert np.max(alone) == pytest.approx(joint_sensitivity(REMOVE, row, target, *weights))


# --- the plan -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "removed", "replaced"),
    [
        (1.0, 1e-6, 5.97460, 8.96190),
        (0.1, 1e-9, 71.00741, 106.51111),
        (10.0, 1e-6, 0.76521, 1.14782),
    ],
)
def test_gaussian_noise_is_that_of_the_joint_sensitivity(epsilon, delta, removed, replaced):
    for relation, expected in ((REMOVE, removed), (REPLACE, replaced)):
        budget = Budget(epsilon, delta, relation)
        plan = SufficientStatistics("gaussian").plan(make_facts(5), budget)
        assert plan.noise_scale == pytest.approx(expected, abs=6e-6)
        assert plan.guarantee.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert type(plan.events[0]) is GaussianMoments


@pytest.mark.parametrize("relation", RELATIONS)
def test_pure_noise_is_that_of_the_nuclear_norm(relation):
    plan = SufficientStatistics().plan(make_facts(5), Budget(0.5, 0.0, relation))
    assert type(plan.events[0]) is WishartDifference
    assert plan.noise_scale == pytest.approx(3.0 * (2.0 if relation == REPLACE else 1.0))
    assert (plan.guarantee.kind, plan.guarantee.epsilon) == ("pure", pytest.approx(0.5))


def test_auto_takes_the_noise_of_less_variance_from_public_facts():
    """In few columns the pure noise is the smaller one, in many the Gaussian."""
    few, many = (
        SufficientStatistics().plan(make_facts(p), Budget(1.0, 1e-6)).settings["noise"]
        for p in (3, 60)
    )
    assert (few, many) == ("wishart", "gaussian")


def test_the_scale_follows_neither_rows_nor_targets():
    one, other = (
        SufficientStatistics().plan(make_facts(4, row=row, target=target), Budget(1.0, 0.0))
        for row, target in ((1.0, 1.0), (30.0, 0.01))
    )
    assert one.noise_scale == other.noise_scale
    assert other.settings["edge"] == pytest.approx(900.0 * one.settings["edge"])


@pytest.mark.parametrize("loss", ["logistic", "absolute", "hinge", "linear"])
def test_other_losses_are_refused(loss):
    problem = make_problem()
    form = registry.load("loss", loss)()
    spec = Problem(problem.data, form, problem.constraint).spec()
    with pytest.raises(Unsupported, match=f"quadratic loss, and loss={loss} is none"):
        SufficientStatistics().plan(spec, Budget(1.0, 1e-6))


def test_what_it_cannot_do_is_said_in_one_line():
    with pytest.raises(Unsupported, match=r"mechanism\.noise=wishart"):
        SufficientStatistics("gaussian").plan(make_facts(4), Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="at most 1000"):
        SufficientStatistics().plan(make_facts(1001), Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="row_bound"):
        SufficientStatistics().plan(make_facts(3, row=1e-120), Budget(1.0, 0.0))


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_shift_of_two_by_two_matrices_tells_more_than_its_nuclear_norm(relation):
    """By quadrature, for rank-one shifts and for one record in another's place."""
    event = WishartDifference(scale=2.5, record_norm=1.5)
    claim = event.ratio(relation)
    assert exact_loss.noise_loss(event, claim, 0.0, relation) == pytest.approx(1.0, abs=1e-6)
    half = WishartDifference(scale=1.25, record_norm=1.5)
    assert exact_loss.noise_loss(half, claim, 0.0, relation) > 1.9


def test_the_gate_draws_the_difference_of_two_wishart_matrices():
    event = WishartDifference(scale=2.5, record_norm=1.5)
    for dim in (1, 3, 10):
        assert noise_laws.find_faults(event, dim, REPLACE) == []


def test_another_scale_is_found(monkeypatch):
    from dperm_cli.loops import exponential_noise

    drawn = exponential_noise.wishart_differences
    monkeypatch.setattr(exponential_noise, "wishart_differences", lambda *a: 0.9 * drawn(*a))
    found = noise_laws.find_faults(WishartDifference(scale=2.5, record_norm=1.5), 3, REPLACE)
    assert any("as large as its event says" in fault for fault in found)


def test_a_matrix_has_a_whole_triangle():
    event = WishartDifference(scale=1.0, record_norm=1.0)
    stream = Gate([seed_sequence(0, "test")], plan=((event,), REPLACE)).stream(event, 4)
    with pytest.raises(ValueError, match="no triangle"):
        stream.add(np.zeros((1, 4)), 0)
    assert [event.fit_size(dim) for dim in (1, 2, 3, 4)] == [1, 3, 3, 6]


@pytest.mark.parametrize("noise", ["gaussian", "wishart"])
def test_off_diagonal_noise_is_smaller_by_sqrt_two(noise):
    """Standard deviations of the noise on X'X, in units of those of its diagonal."""
    problem, mechanism = make_problem(n=1, p=2), SufficientStatistics(noise)
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-6))
    gate = Gate([seed_sequence(0, "test", t) for t in range(4000)], plan=(plan.events, REPLACE))
    gram, cross = sufficient_statistics._release_moments(CentralView(problem), plan.events[0], gate)
    size = np.std(gram, axis=0)
    assert size[0, 1] / size[0, 0] == pytest.approx(math.sqrt(0.5), rel=0.05)
    expected = 1.0 if noise == "gaussian" else math.sqrt(0.5 / 0.5)
    assert np.std(cross[:, 0]) / size[0, 0] == pytest.approx(expected, rel=0.05)


# --- the model ------------------------------------------------------------------------------------


def test_without_noise_to_speak_of_it_is_least_squares():
    problem = make_problem(n=5000)
    for budget in (Budget(1e5, 1e-6), Budget(1e5, 0.0)):
        theta = run(problem, SufficientStatistics(), budget)
        x, y = problem.data.x, problem.data.y
        np.testing.assert_allclose(
            theta, np.tile(np.linalg.lstsq(x, y, rcond=None)[0], (3, 1)), atol=1e-3
        )


def test_a_record_that_is_not_there_counts_for_nothing():
    """A row of zeros stands for it, whatever its label is."""
    problem = make_problem(n=20)
    data = problem.data.with_record(3, np.zeros(3), -1.0)
    other = problem.data.with_record(3, np.zeros(3), 0.5)
    sums = [
        CentralView(Problem(each, SQUARED, problem.constraint)).moment_sum()
        for each in (data, other)
    ]
    np.testing.assert_array_equal(*sums)


@pytest.mark.parametrize("penalty", [{}, {"ridge": 0.3}, {"ridge": 0.1, "lasso": 0.05}])
@pytest.mark.parametrize("shape", ["l2_ball", "l1_ball", "box", "simplex"])
def test_the_model_is_minimised_over_the_set_with_its_regulariser(shape, penalty):
    """No point of the set nearby or at random is better."""
    constraint = registry.load("constraint", shape)(0.4, 3)
    spec = make_problem(constraint=constraint, **penalty).spec()
    rng = np.random.default_rng(2)
    basis = np.linalg.qr(rng.normal(size=(2, 3, 3)))[0]
    values, b = rng.uniform(1.0, 50.0, (2, 3)), 20.0 * rng.normal(size=(2, 3))
    found = minimise_models(values, basis, b, spec)
    assert np.all(constraint.contains(found))
    tried = rng.normal(size=(300, 3)) * np.geomspace(1e-3, 1.0, 300)[:, None]
    for at, matrix, slope in zip(found, (basis * values[:, None]) @ basis.mT, b, strict=True):

        def value(theta, matrix=matrix, slope=slope):
            bent = 0.5 * np.einsum("...i,ij,...j->...", theta, matrix, theta)
            return bent - theta @ slope + spec.penalty.value(theta)

        points = constraint.project(np.vstack([at + tried, tried]))
        assert float(value(at)) <= float(np.min(value(points))) + 1e-4


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_attack_finds_most_of_what_gaussian_noise_claims(relation):
    budget = Budget(5.0, 1e-5, relation)
    found = attack(SufficientStatistics().adversary(budget), budget, quick=True)
    assert not found.faults
    assert found.tightness >= 0.85
    assert found.is_control_caught


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_attack_finds_no_more_than_pure_noise_claims(relation):
    budget = Budget(5.0, 0.0, relation)
    found = attack(SufficientStatistics().adversary(budget), budget, quick=True)
    assert not found.faults
    assert found.tightness >= (0.45 if relation == REPLACE else 0.65)


def test_its_noise_does_not_depend_on_the_radius():
    """At a radius of 50 its risk is that at 10, where a gradient's noise is five times larger."""
    risks = []
    for radius in (10.0, 50.0):
        problem = make_problem(n=4000, radius=radius)
        theta = run(problem, SufficientStatistics("gaussian"), Budget(2.0, 1e-6), trials=20)
        optimum = np.linalg.lstsq(problem.data.x, problem.data.y, rcond=None)[0]
        risks.append(np.median(problem.objective(theta)) - problem.objective(optimum))
    assert risks[1] == pytest.approx(risks[0], rel=1e-6)
    assert risks[0] < 0.05 * float(problem.objective(np.zeros(3)) - problem.objective(optimum))
