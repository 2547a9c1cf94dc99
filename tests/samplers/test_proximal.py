"""The proximal sampler's draws, its plan and its checks; p-values at level 1e-4, once each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.samplers import proximal
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.proximal import ConditionalDraw, Proximal
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.samplers.shared.truncated_gaussian import choose_truncated_sampler
from tests.samplers import Numbers, cell_p_value, problem, target
from tests.samplers.test_truncated_gaussian import build

LEVEL = 1e-4


def law(loss, n, body, epsilon, kappa=0.0, **regulariser):
    made = problem(loss, n, body, **regulariser)
    facts = target(made, epsilon, kappa)
    return facts, Records(made.loss, made.data, facts)


def draws(facts, potential, count, seed, **fields):
    sampler, source = Proximal(**fields), Numbers(seed)
    certificate = sampler.plan(facts, 0.01)
    return np.array([sampler.draw(potential, facts, certificate, source) for _ in range(count)])


@pytest.mark.parametrize(
    ("loss", "epsilon", "body", "kappa"),
    [("logistic", 2.0, build("l2_ball", 2.0, 1), 0.0),
     ("absolute", 1.0, build("l2_ball", 1.0, 1), 0.0),
     ("logistic", 2.0, build("l2_ball", 2.0, 2), 0.0),
     ("hinge", 1.0, build("box", 1.0, 2), 0.0),
     ("logistic", 1.0, build("l1_ball", 2.0, 2), 2.0),
     pytest.param("hinge", 2.0, build("box", 1.0, 2), 0.0, marks=pytest.mark.slow),
     pytest.param("logistic", 2.0, build("l1_ball", 2.0, 2), 2.0, marks=pytest.mark.slow),
     ("linear", 2.0, build("simplex", 1.0, 3), 0.0)],
)  # fmt: skip
def test_cells(loss, epsilon, body, kappa):
    """Restarted chains of the planned length: their distance 0.01 is below what 600 draws see."""
    facts, potential = law(loss, 40, body, epsilon, kappa)
    found = draws(facts, potential, 300, seed=1)
    assert np.all(body.contains(found, 1e-9))
    cells = 4 if facts.dimension == 2 else 12
    assert cell_p_value(body, found, lambda z: -potential.value(z), cells, 40) > LEVEL


def conditional_draws(h, y, scale, count, body, facts, potential):
    step, source, guess = ConditionalDraw(potential, body, h, 0.0), Numbers(2), np.zeros(body.p)
    step.h = h * scale
    return np.array([step(y, guess, source)[0] for _ in range(count)])


@pytest.mark.parametrize(
    ("off", "count"), [(1.1, 3500), pytest.param(1.05, 14_000, marks=pytest.mark.slow)]
)
def test_one_step_is_exact_and_its_scale_is_seen(off, count):
    """x given y against its density; h off by 1.1 (1.05) in the standard deviation fails."""
    body = build("l2_ball", 1.0, 1)
    facts, potential = law("absolute", 5, body, 1.0)
    y, h = np.array([0.2]), 0.01

    def log_density(z):
        return -potential.value(z) - np.sum((z - y) ** 2, axis=-1) / (2 * h)

    right = conditional_draws(h, y, 1.0, 3000, body, facts, potential)
    assert cell_p_value(body, right, log_density, 24, 40) > LEVEL
    wrong = conditional_draws(h, y, off**2, count, body, facts, potential)
    assert cell_p_value(body, wrong, log_density, 24, 40) < LEVEL


@pytest.mark.parametrize("guess", [pytest.param(0.0, marks=pytest.mark.slow), 40.0])
def test_the_touching_point_does_not_enter_the_law(guess):
    """A bad first guess costs tries: the law of what is kept stays."""
    body = build("box", 1.0, 2)
    _facts, potential = law("logistic", 60, body, 6.0)
    y, h = np.array([0.1, -0.3]), 1.0
    step, source = ConditionalDraw(potential, body, h, 0.0), Numbers(3)
    found = np.array([step(y, guess * np.ones(2), source)[0] for _ in range(1200)])

    def log_density(z):
        return -potential.value(z) - np.sum((z - y) ** 2, axis=-1) / (2 * h)

    assert cell_p_value(body, found, log_density, 5, 40) > LEVEL


def test_bent_tangents_have_the_same_law():
    """With the regulariser's curvature in the proposal and without it."""
    body = build("l2_ball", 1.0, 3)
    facts, potential = law("logistic", 40, body, 2.0, kappa=6.0)
    assert facts.strong_convexity == 6.0
    y, found = np.array([0.5, 0.2, 0.0]), []
    for bend in (0.0, 6.0):
        step, source = ConditionalDraw(potential, body, 0.3, bend), Numbers(4)
        found.append(np.array([step(y, np.zeros(3), source)[0] for _ in range(1200)]))
    assert kstest(found[0][:, 0], found[1][:, 0]).pvalue > LEVEL
    assert kstest(*(np.linalg.norm(x, axis=1) for x in found)).pvalue > LEVEL


class Concave:
    magnitude = 1.0

    def value(self, theta):
        return -10.0 * np.sum(theta**2, axis=-1)

    def gradient(self, theta):
        return -20.0 * theta

    def both(self, theta):
        return float(self.value(theta)), self.gradient(theta)


def test_a_tangent_above_f_stops_the_run():
    step = ConditionalDraw(Concave(), build("l2_ball", 1.0, 2), 0.1, 0.0)
    with pytest.raises(ArithmeticError, match="not a private outcome"):
        step(np.array([0.1, 0.1]), np.zeros(2), Numbers(5))


def test_rounding_does_not_stop_it():
    """A linear f of large terms that cancel: the tangent is f up to rounding."""
    body = build("l2_ball", 1.0, 5)
    facts, potential = law("linear", 2000, body, 1.0)
    potential.target = replace(facts, exponent=1e4)
    potential.magnitude *= 1e4 / facts.exponent
    step, x = ConditionalDraw(potential, body, 0.5, 0.0), np.zeros(5)
    for _ in range(50):
        x, _ = step(x, np.zeros(5), Numbers(6))


def test_value_and_slope_of_one_pass():
    for loss in ("logistic", "hinge", "l2_median"):
        _, potential = law(loss, 30, build("l2_ball", 1.0, 4), 1.0, 2.0, ridge=0.1, lasso=0.2)
        theta = np.array([0.1, -0.2, 0.3, 0.0])
        value, slope = potential.both(theta)
        assert value == pytest.approx(float(potential.value(theta)), rel=1e-12)
        assert np.allclose(slope, potential.gradient(theta), rtol=1e-12)
        rows = np.stack([theta, -theta])
        assert np.allclose(potential.value(rows)[0], value)
        assert abs(value) <= potential.magnitude


def test_oscillation_covers_f():
    rng = np.random.default_rng(7)
    for loss in ("logistic", "hinge", "absolute", "linear"):
        body = build("l2_ball", 1.5, 3)
        facts, potential = law(loss, 50, body, 3.0, 1.0, ridge=0.1, lasso=0.2)
        points = body.project(3.0 * rng.standard_normal((2000, 3)))
        values = potential.value(points)
        assert np.max(values) - np.min(values) <= facts.oscillation


def test_plan_follows_from_public_facts():
    body = build("l2_ball", 1.0, 10)
    first = target(problem("logistic", 500, body, seed=1), 1.0)
    second = target(problem("logistic", 500, body, seed=2), 1.0)
    plan = Proximal().plan(first, 0.01)
    assert plan == Proximal().plan(second, 0.01)
    assert plan.dist_inf == 0.01
    assert not plan.exact
    assert plan.steps == proximal.count_needed_steps(first, plan.facts["h"], 0.01)
    assert Proximal(step_size=0.01).plan(first, 0.01).facts["h"] == 0.01


def test_large_targets_are_planned_quickly():
    """Logistic, unit ball, n = 10^4, p = 50, eps = .1: a few hundred steps at worst."""
    facts = target(problem("logistic", 10_000, build("l2_ball", 1.0, 50)), 0.098)
    plan = Proximal().plan(facts, 0.001)
    assert plan.steps <= 1100
    assert plan.facts["seconds"] < 5.0


def test_refusal_says_the_cost():
    facts = target(problem("absolute", 20_000, build("l2_ball", 1.0, 10)), 1.0)
    with pytest.raises(Unsupported, match=r"steps .* s a draw.*sampler.most_seconds=120"):
        Proximal().plan(facts, 0.01)
    with pytest.raises(Unsupported, match="point"):
        Proximal().plan(Target(problem("linear", 5, build("simplex", 1.0, 1)).spec(), 1.0), 0.01)
    for key in ("step_size", "most_seconds"):
        with pytest.raises(InputError, match=f"sampler.{key}"):
            Proximal(**{key: -1.0})


def test_start_at_the_centre_where_uniform_draws_are_out_of_reach():
    """A cross-polytope in 12 dimensions, given as any polytope."""
    body = build("polytope", 1.0, 12)
    facts = target(problem("linear", 2, body), 0.01)
    certificate = Proximal(most_seconds=1e9).plan(facts, 0.01)
    assert certificate.facts["start"] == "centre"
    h = certificate.facts["h"]
    assert certificate.steps == proximal.count_needed_steps(facts, h, 0.01, "centre")
    assert choose_truncated_sampler(body).narrow
    assert h <= (body.inner_radius * math.sqrt(body.p)) ** 2
