"""What is particular to noisy_gd [BST14, Note 2 after Thm 2.1]."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core import registry
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd, theory_bound, theory_step
from dperm_cli.mechanisms.shared import step_schedule
from dperm_cli.mechanisms.shared.secure_plan import bound_gradient_error, secure_plan
from dperm_cli.mechanisms.shared.step_schedule import ScheduleFacts, StepSchedule
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)
SETTINGS = [
    {},
    {"step_size": "theory"},
    {"step_size": 0.1, "momentum": 0.8, "averaging": "suffix"},
]


class Points:
    """A view that keeps every point it was asked about."""

    def __init__(self, problem: Problem) -> None:
        self.view, self.seen = CentralView(problem), []
        self.spec, self.loss = self.view.spec, self.view.loss
        self.gradient_error = self.view.gradient_error

    def gradient_sum(self, theta):
        self.seen.append(theta.copy())
        return self.view.gradient_sum(theta)


def released(mechanism, problem, trials=3, budget=BUDGET, view=None):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(3, "test", trial) for trial in range(trials)]
    return mechanism.release(view or CentralView(problem), plan, Gate(seeds)).theta


def scaled(problem, rows=1.0, n=1):
    """The same problem in other units: rows times ``rows``, set divided by it, n copies."""
    data = problem.data.with_records(
        np.tile(problem.data.x * rows, (n, 1)),
        np.tile(problem.data.y, n),
        row_bound=problem.data.row_bound * rows,
    )
    ball = registry.load("constraint", "l2_ball")(problem.constraint.radius / rows, problem.data.p)
    return Problem(data, problem.loss, ball, problem.ridge * rows**2)


@pytest.mark.parametrize(("steps", "sigma"), [(10, 26.719), (100, 84.494), (1000, 267.19)])
def test_sigma_is_the_exact_gaussian_one(steps, sigma):
    """sigma = 2 L sqrt(T) / mu(1, 1e-6) under replace_one, half of it under add_remove.

    For the hinge loss: two of its gradients can be 2 L apart.
    """
    spec = small_problem("hinge", n=1000).spec()
    plan = NoisyGd(steps=steps).plan(spec, BUDGET)
    assert plan.noise_scale / spec.lipschitz == pytest.approx(sigma, rel=2e-5)
    half = NoisyGd(steps=steps).plan(spec, dataclasses.replace(BUDGET, relation="add_remove"))
    assert half.noise_scale == pytest.approx(plan.noise_scale / 2, rel=1e-9)


@pytest.mark.parametrize("radius", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_replaced_record_moves_the_sum_by_the_gap_of_two_gradients(loss, radius):
    """sigma = G sqrt(T) / mu, G < 2 L the largest distance of two records' gradients."""
    spec = small_problem(loss, radius=radius, n=1000).spec()
    plan = NoisyGd(steps=50).plan(spec, BUDGET)
    gap = spec.gradient_gap
    assert spec.lipschitz < gap < 2.0 * spec.lipschitz
    expected = gap * math.sqrt(50.0) / calibrate.mu(1.0, 1e-6)
    assert plan.noise_scale == pytest.approx(expected, rel=1e-9)
    assert plan.guarantee.epsilon <= 1.0
    added = NoisyGd(steps=50).plan(spec, dataclasses.replace(BUDGET, relation="add_remove"))
    assert added.noise_scale == pytest.approx(expected * spec.lipschitz / gap, rel=1e-9)


def test_the_gap_survives_the_grid():
    """It grows by twice the error of a computed gradient and one diagonal: next to nothing."""
    problem = small_problem("logistic", radius=2.0, n=1000)
    spec = problem.spec()
    plan = NoisyGd().plan(spec, BUDGET)
    moved, grid = secure_plan(NoisyGd(), plan, spec, problem.loss)
    (event,) = moved.events
    error = bound_gradient_error(spec, problem.loss)
    assert event.gap == spec.gradient_gap + 2.0 * error + math.sqrt(spec.p) * grid.step
    assert event.sensitivity("replace_one") == event.gap < 1.9 * spec.lipschitz
    assert plan.noise_scale < moved.noise_scale < (1.0 + 1e-6) * plan.noise_scale


def test_plan_has_one_event_and_default_settings():
    spec = small_problem().spec()
    plan = NoisyGd().plan(spec, BUDGET)
    (event,) = plan.events
    facts = (spec.lipschitz, plan.steps, spec.gradient_gap)
    assert (event.record_norm, event.count, event.gap) == facts
    assert plan.settings == {"step_size": "auto", "averaging": "adaptive", "momentum": 0.9}
    theory = NoisyGd(step_size="theory").plan(spec, BUDGET).settings
    assert (theory["averaging"], theory["momentum"]) == ("uniform", 0.0)
    assert theory["step_size"] == theory_step(spec, plan.noise_scale, plan.steps)


@pytest.mark.parametrize("fields", [{"ridge": 0.5}, {"lasso": 0.5}])
def test_a_regulariser_adds_no_noise(fields):
    plain = small_problem()
    specs = (plain.spec(), dataclasses.replace(plain, **fields).spec())
    one, other = (NoisyGd().plan(spec, BUDGET) for spec in specs)
    assert one.events == other.events


def test_the_regulariser_s_subgradient_is_added_after_the_noise():
    """One step of length 1e-3 from a point off the kinks: the difference is n r'(theta)."""
    plain = small_problem("logistic", "simplex", radius=1.5)
    both = dataclasses.replace(plain, ridge=0.1, lasso=0.2)
    mechanism = NoisyGd(steps=1, step_size=1e-3, momentum=0.0)
    centre = plain.constraint.centre()
    project = plain.constraint.project
    seen = Points(both)
    moved = released(mechanism, both, view=seen)
    bare = released(mechanism, plain)
    assert np.all(bare > 0)  # else the projection would have acted on more than the mean
    np.testing.assert_array_equal(seen.seen[0][0], centre)
    shift = 1e-3 * 40 * (0.1 * centre + 0.2)
    np.testing.assert_allclose(moved, project(bare - shift), atol=1e-12)


def test_theory_step_counts_the_lasso():
    plain = small_problem(n=50)
    spec = dataclasses.replace(plain, lasso=0.3).spec()
    longest = 50 * (plain.spec().lipschitz + 0.3 * math.sqrt(3))
    moment = longest**2 + 3 * 5.0**2
    assert theory_step(spec, 5.0, 20) == pytest.approx(1.5 / math.sqrt(20 * moment))


def test_unsupported_says_why():
    spec = small_problem().spec()
    with pytest.raises(Unsupported, match="delta > 0"):
        NoisyGd().plan(spec, Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="no noise scale"):
        NoisyGd(calibration="paper").plan(spec, BUDGET)


def test_a_wrong_step_size_names_the_words():
    with pytest.raises(InputError, match=r"or theory.*did you mean 'theory'"):
        NoisyGd(step_size="theroy")
    with pytest.raises(InputError):
        NoisyGd(momentum=1.0)


@pytest.mark.parametrize("fields", SETTINGS)
@pytest.mark.parametrize("constraint", ["l2_ball", "l1_ball", "box"])
@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_gradients_are_taken_in_the_set_only(loss, constraint, fields):
    """Outside it the Lipschitz bound, and with it the sensitivity, would not hold."""
    problem = small_problem(loss=loss, constraint=constraint, radius=0.05, ridge=0.05)
    view = Points(problem)
    theta = released(NoisyGd(steps=40, **fields), problem, budget=Budget(50.0, 1e-6), view=view)
    points = np.concatenate(view.seen)
    assert len(points) == 120
    assert np.all(problem.constraint.contains(points))
    assert np.any(np.isclose(problem.constraint.gauge(points), 1.0))  # the boundary was met
    assert np.all(problem.constraint.contains(theta))


@pytest.mark.parametrize("lasso", [0.0, 2.0])
@pytest.mark.parametrize("fields", SETTINGS)
def test_replay_of_every_option(fields, lasso):
    """Adaptive or not, what reaches the gate moves by no more than the sensitivity."""
    problem = small_problem(loss="squared", n=5, ridge=0.1)
    problem = dataclasses.replace(problem, lasso=lasso)
    mechanism = NoisyGd(steps=30, **fields)
    plan = mechanism.plan(problem.spec(), Budget(50.0, 1e-3))
    rng = np.random.default_rng(1)
    for index in range(5):
        row = rng.standard_normal(3)
        row /= np.linalg.norm(row)
        verdict = replay(mechanism, plan, problem, replace_record(problem, index, row, -1.0), index)
        assert verdict.private, verdict.faults
        assert verdict.calls == 30
        assert verdict.worst > 0.05


def test_constant_steps_are_the_written_recursion():
    """One trial, by hand: theta <- P(query - (1-m) eta g), query <- P(theta + m (theta - old))."""
    problem = small_problem(ridge=0.2)
    mechanism = NoisyGd(steps=25, step_size=0.01, momentum=0.5)
    plan = mechanism.plan(problem.spec(), BUDGET)
    seeds = [seed_sequence(3, "test", 0)]
    noise = Gate(seeds).stream(Gaussian(plan.noise_scale, 0.5, 25), 3)
    project, theta = problem.constraint.project, np.zeros((1, 3))
    query, queries = theta, []
    for step in range(25):
        queries.append(query)
        g = noise.add(problem.data_gradient(query), step) + 40 * 0.2 * query
        old, theta = theta, project(query - 0.5 * 0.01 * g)
        query = project(theta + 0.5 * (theta - old))
    for averaging, expected in [
        ("last", theta),
        ("uniform", np.mean(queries, axis=0)),
        ("suffix", np.mean(queries[12:], axis=0)),
    ]:
        chosen = dataclasses.replace(mechanism, averaging=averaging)
        np.testing.assert_allclose(released(chosen, problem, 1), expected, rtol=1e-10)


def test_theory_step_minimises_the_bound():
    """B(eta) = r^2 / (2 eta T) + eta (n^2 L^2 + p sigma^2) / 2 is least there."""
    spec = small_problem(n=50, ridge=0.3).spec()
    steps, scale = 70, 12.0
    second = (50 * spec.lipschitz_total) ** 2 + 3 * scale**2
    etas = theory_step(spec, scale, steps) * np.linspace(0.5, 2.0, 301)
    values = spec.constraint.radius**2 / (2 * etas * steps) + etas * second / 2
    assert values.min() == pytest.approx(theory_bound(spec, scale, steps), rel=1e-9)
    assert etas[values.argmin()] == pytest.approx(theory_step(spec, scale, steps), rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute"])
def test_theory_bound_holds(loss):
    """E excess <= bound; the mean of 200 trials is below it by far more than its error."""
    problem = small_problem(loss=loss, n=200, radius=1.0)
    mechanism = NoisyGd(step_size="theory", steps=50)
    plan = mechanism.plan(problem.spec(), BUDGET)
    excess = problem.objective(released(mechanism, problem, 200)) - solve(problem).value
    error = excess.std() / math.sqrt(200)
    assert excess.mean() + 5 * error < theory_bound(problem.spec(), plan.noise_scale, 50)


@pytest.mark.parametrize("fields", [{}, {"step_size": "theory"}])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute"])
def test_units_do_not_matter(loss, fields):
    """Rows times c and the set divided by c are the same problem: theta is divided by c."""
    problem = small_problem(loss=loss, ridge=0.05)
    other = scaled(problem, rows=8.0)
    theta = released(NoisyGd(**fields), problem)
    np.testing.assert_allclose(8.0 * released(NoisyGd(**fields), other), theta, rtol=1e-7)


def test_copies_of_the_records_and_as_much_more_noise_do_not_matter():
    """n copies of the data and n times the noise: the same run, with steps n times smaller."""
    problem = small_problem()
    mechanism, other = NoisyGd(), scaled(problem, n=4)
    plan = mechanism.plan(problem.spec(), BUDGET)
    event = dataclasses.replace(plan.events[0], scale=4 * plan.noise_scale)
    louder = dataclasses.replace(plan, events=(event,), noise_scale=event.scale)
    runs = []
    for p, chosen in ((problem, plan), (other, louder)):
        seeds = [seed_sequence(3, "test", trial) for trial in range(3)]
        runs.append(mechanism.release(CentralView(p), chosen, Gate(seeds)).theta)
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute"])
@pytest.mark.parametrize("radius", [1.0, 10.0])
def test_no_worse_than_the_floor_when_noise_is_all(loss, radius):
    """At tiny epsilon the descent stays at the centre: 1 % above the floor at most, on average."""
    problem = small_problem(loss=loss, n=400, p=20, radius=radius)
    floor = float(problem.objective(np.zeros(20)))
    theta = released(NoisyGd(), problem, 50, Budget(1e-3, 1e-6))
    assert problem.objective(theta).mean() <= 1.01 * floor


@pytest.mark.parametrize(("epsilon", "worst"), [(1.0, 0.15), (10.0, 0.012)])
def test_defaults_beat_the_floor_on_real_data(epsilon, worst):
    """Median of 100 trials, as a share of the floor's excess risk: 0.092 and 0.0109."""
    data = registry.load("dataset", "breast_cancer")().load()
    ball = registry.load("constraint", "l2_ball")(10.0, data.p)
    problem = Problem(data, registry.load("loss", "logistic")(), ball)
    best = solve(problem).value
    budget = Budget(epsilon, data.n**-2.0, "add_remove")
    excess = problem.objective(released(NoisyGd(), problem, 100, budget)) - best
    assert np.median(excess) < worst * (problem.objective(np.zeros(data.p)) - best)


def facts(**changed):
    base = {"steps": 100, "p": 10, "noise": 1.0, "diameter": 2.0, "curvature": 1e-6}
    base |= {"largest_step": math.inf, "gradient_bound": 100.0, "is_ball": True}
    return ScheduleFacts(**(base | changed))


def run_pace(pace, gradient, steps=100, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        pace.choose_step(gradient + noise * rng.standard_normal(pace.start.shape))
        pace.observe(pace.start)
    return pace.elapsed


def test_without_signal_the_time_is_the_worst_case_share():
    """LARGEST D / (nu sqrt(p)) where noise is cheap, and a vanishing time where it is dear."""
    f = facts()
    assert f.nu == pytest.approx(0.1)
    assert f.worst_case_time == pytest.approx(2.0 / (0.1 * math.sqrt(10)))
    none = np.zeros((4, 10))
    time = run_pace(StepSchedule(f, none, 0.9), none)
    np.testing.assert_allclose(
        time, step_schedule.LARGEST_TIME_SHARE * f.worst_case_time, rtol=0.02
    )
    dear = run_pace(StepSchedule(facts(curvature=1e9), none, 0.9), none, noise=1.0)
    assert np.all(dear < 1e-3 * time)


def test_the_time_falls_with_the_signal_as_stated():
    gradient = np.zeros((1, 10))
    gradient[0, 0] = 50.0
    f = facts()
    ratio = 2 * 50.0 / (f.nu * math.sqrt(10))
    time = run_pace(StepSchedule(f, np.zeros((1, 10)), 0.9), gradient)
    expected = ratio**-step_schedule.SIGNAL_POWER * f.worst_case_time
    np.testing.assert_allclose(time, expected, rtol=0.02)


def test_steps_never_exceed_the_stable_one():
    pace = StepSchedule(facts(largest_step=1e-4), np.zeros((1, 10)), 0.9)
    steps = [pace.choose_step(np.ones((1, 10)))[0] for _ in range(100)]
    assert max(steps) == pytest.approx(1e-3)


def test_the_boundary_ends_the_descent_and_takes_the_iterate():
    pace = StepSchedule(facts(), np.zeros((1, 10)), 0.9)
    for _ in range(20):
        pace.choose_step(np.zeros((1, 10)))
    edge = np.zeros((1, 10))
    edge[0, 0] = 0.97
    pace.observe(edge)
    reached = pace.elapsed[0]
    for _ in range(80):
        pace.choose_step(np.zeros((1, 10)))
        pace.observe(edge)
    assert pace.elapsed[0] == pytest.approx(step_schedule.BOUNDARY_FACTOR * reached, rel=0.05)
    assert np.array_equal(pace.output, edge)


@pytest.mark.parametrize("noise", [0.0, 50.0])
def test_secants_find_the_curvature_and_leave_no_limit_where_noise_hides_it(noise):
    """Along a parabola of curvature 50 the limit is SHARE / 50; loud noise lifts or removes it."""
    rng = np.random.default_rng(0)
    secants, none = step_schedule.CurvatureEstimate(4), np.zeros(4)
    for _ in range(60):
        query = 0.1 * rng.standard_normal((4, 3))
        seen = 50.0 * query + noise * rng.standard_normal(query.shape)
        limit = secants.stable_step(seen, query, none, noise)
    if noise:
        assert np.median(limit) > 3.0 * step_schedule.STABLE_STEP_SHARE / 50.0
    else:
        np.testing.assert_allclose(limit, step_schedule.STABLE_STEP_SHARE / 50.0, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_a_kink_that_all_records_share_is_not_stepped_over(epsilon):
    """[BST14, App. A]'s first data set: far from its kink a step is worth many floors."""
    data = registry.load("dataset", "bst14_d1")().load()
    problem = Problem(
        data,
        registry.load("loss", "positive_part")(),
        registry.load("constraint", "l2_ball")(10.0, 1),
    )
    excess = problem.objective(released(NoisyGd(), problem, 10, Budget(epsilon, 1e-7)))
    assert np.median(excess) < 0.05 * problem.objective(np.zeros(1))


@pytest.mark.parametrize("loss", ["l1_median", "l2_median"])
def test_noise_on_a_location_costs_in_every_direction(loss):
    """The Hessian's trace at distance R of a record is about L p / R, not L / R."""
    problem = small_problem(loss, n=400, p=60, radius=10.0)
    floor = problem.objective(np.zeros(60))
    theta = released(NoisyGd(), problem, 20, Budget(0.1, 1e-6))
    assert np.median(problem.objective(theta)) < 1.2 * floor
