"""The schedule of noisy_gd on smooth losses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.shared.dual_averaging import DualAveraging
from dperm_cli.mechanisms.shared.step_schedule import ScheduleFacts
from tests.conftest import small_problem
from tests.mechanisms.test_noisy_gd import released

FACTS = ScheduleFacts(
    steps=200,
    p=10,
    noise=1.0,
    diameter=4.0,
    curvature=50.0,
    largest_step=0.1,
    gradient_bound=1.0,
    is_ball=True,
)


def inside(theta):
    """The projection on the ball of radius 2."""
    return theta / np.maximum(1.0, np.linalg.norm(theta, axis=1, keepdims=True) / 2.0)


def run(facts, find_gradient, trials=50, momentum=0.9):
    """Descend on gradients with the noise that the facts name."""
    made = DualAveraging(facts, np.zeros((trials, facts.p)), momentum, inside)
    rng = np.random.default_rng(4)
    for _ in range(facts.steps):
        noise = facts.noise * rng.standard_normal(made.point.shape)
        assert np.all(np.linalg.norm(made.move(find_gradient(made.point) + noise), axis=1) < 2.001)
    return made


def test_noise_alone_moves_little():
    """The worst-case time would carry noise of its own size over half the diameter and more."""
    facts = dataclasses.replace(FACTS, noise=30.0)
    made = run(facts, np.zeros_like)
    assert np.median(np.linalg.norm(made.output, axis=1)) < 0.05 * 2.0


def test_a_clear_gradient_reaches_the_boundary():
    slope = np.eye(1, 10) * 3.0
    made = run(FACTS, lambda theta: np.broadcast_to(slope, theta.shape))
    away = np.linalg.norm(made.output + 2.0 * np.eye(1, 10), axis=1)
    assert np.median(away) < 0.4


@pytest.mark.parametrize("steps", [100, 200, 400])
def test_inside_the_set_the_mean_of_the_noise_is_all_that_is_left(steps):
    """A quadratic: |theta - optimum|^2 is p nu^2 / curvature^2, within a factor of 1.6."""
    facts = dataclasses.replace(FACTS, steps=steps, noise=0.02 * math.sqrt(steps), largest_step=1.0)
    optimum = np.full(10, 0.3)
    made = run(facts, lambda theta: theta - optimum, trials=200)
    found = np.mean(np.sum((made.output - optimum) ** 2, axis=1))
    assert found < 1.6 * 10 * facts.nu**2


def test_the_expected_gradient_counts_by_its_worth():
    """Less with more noise, and nothing where many gradients say better."""
    shares = [
        DualAveraging(dataclasses.replace(FACTS, noise=noise), np.zeros((1, 10)), 0.9, inside)
        for noise in (1e-3, 10.0, 100.0, 1000.0)
    ]
    found = [made.least_share for made in shares]
    assert found[0] < 1e-6
    assert found[1] > found[2] > found[3] > 0.0


@pytest.mark.parametrize("unit", [1e-90, 1e-45, 1e30, 1e77, 1e100])
def test_numbers_of_any_size_count_alike(unit):
    """The fourth power of a gradient of 1e77 is no number: a run with wide rows failed."""

    def weigh(facts):
        return DualAveraging(facts, np.zeros((1, 10)), 0.9, inside)._weigh_expectation(20)

    facts = dataclasses.replace(FACTS, noise=2.0)
    wide = dataclasses.replace(
        facts, noise=2.0 * unit, gradient_bound=unit, curvature=50.0 * unit, largest_step=0.1 / unit
    )
    assert weigh(wide) == pytest.approx(weigh(facts), rel=1e-9)


def test_the_time_is_the_mean_of_the_worst_case_and_the_crossing_time():
    """Gradient 3 crosses half of D in D / 6; the points follow it for no longer than that."""
    slope = np.eye(1, 10) * 3.0
    facts = dataclasses.replace(FACTS, largest_step=10.0, noise=1e-3)
    made = run(facts, lambda theta: np.broadcast_to(slope, theta.shape), trials=2)
    time = made.step_size * facts.steps * made._share
    # in the first steps momentum holds a share of the gradient back: the largest mean is below 3
    assert np.all(time >= math.sqrt(facts.worst_case_time * facts.diameter / 6.0))
    assert np.all(time < 1.05 * math.sqrt(facts.worst_case_time * facts.diameter / 6.0))


def test_noise_alone_is_no_gradient_to_cross_by():
    facts = dataclasses.replace(FACTS, noise=30.0)
    made = run(facts, np.zeros_like)
    assert np.median(made._seen2) < made._find_noise()[1] * facts.steps


def test_where_the_set_stops_the_iterates_the_last_one_is_taken():
    """A steep slope and little curvature: the last iterate's noise is averaged already."""
    slope = np.eye(1, 10) * 3.0
    flat = dataclasses.replace(FACTS, curvature=1.0)
    made = run(flat, lambda theta: slope + 0.1 * theta)
    assert np.array_equal(made.output, made.point)
    # in one sharp valley at the boundary the last iterate would swing
    sharp = dataclasses.replace(FACTS, curvature=5e3)
    assert not np.any(run(sharp, lambda theta: slope + 0.1 * theta)._is_damped())


def test_the_last_iterate_is_taken_while_the_means_move_by_more_than_the_iterates_scatter():
    """A narrow and a flat direction without noise: only the flat one is still on its way."""
    facts = dataclasses.replace(FACTS, noise=1e-4, largest_step=0.01)
    bend = np.array([1.0, *[0.02] * 9])
    made = run(facts, lambda theta: bend * (theta - 0.3), trials=2)
    assert np.all(made._still_moves())
    assert np.array_equal(made.output, made.point)
    steep = dataclasses.replace(FACTS, noise=0.02 * math.sqrt(200), largest_step=1.0)
    settled = run(steep, lambda theta: theta - 0.3, trials=200)
    assert np.mean(settled._still_moves()) < 0.2


def test_in_one_column_the_direction_of_a_move_is_no_evidence():
    """Two moves are either the same way or not, and the last digits decided between them."""
    made = run(dataclasses.replace(FACTS, p=1), lambda theta: theta - 0.3, trials=1000)
    made._square = np.zeros(1000)
    made._thirds = np.cumsum(np.random.default_rng(5).random((3, 1000, 1)), axis=0)
    assert not np.any(made._still_moves())


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_few_steps_are_enough(steps):
    theta = released(NoisyGd(steps=steps), small_problem())
    assert theta.shape == (3, 3)
    assert np.all(np.isfinite(theta))
    assert np.all(np.linalg.norm(theta, axis=1) <= 1.0 + 1e-9)


def test_a_lasso_keeps_the_other_schedule():
    """Its kinks ask for steps that shrink."""
    plain = small_problem()
    both = [released(NoisyGd(), dataclasses.replace(plain, lasso=lasso)) for lasso in (0.0, 1e-12)]
    assert np.max(np.abs(both[0] - both[1])) > 1e-6
