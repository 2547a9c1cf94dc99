"""Intersections of balls: a Gaussian restricted to them, against its density."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.samplers.shared.ball_intersections import NearBall, WithinBalls
from dperm_cli.samplers.shared.truncated_gaussian import choose_truncated_sampler
from dperm_cli.sets.shared.localized_set import Localised
from tests.samplers import Numbers, cell_p_value
from tests.samplers.test_truncated_gaussian import build

LEVEL = 1e-4


def two_balls(radius, point, reach):
    """The ball of this radius, near one of its points."""
    return Localised(build("l2_ball", radius, len(point)), np.asarray(point, dtype=float), reach)


def test_sets_that_are_balls():
    point = np.array([0.2, 0.1])
    found = Localised(two_balls(1.0, point, 0.5), point, 0.3).balls()
    assert np.array_equal(found.centres, [[0.0, 0.0], point, point])
    assert np.array_equal(found.radii, [1.0, 0.5, 0.3])
    assert build("box", 1.0, 2).balls() is None
    assert Localised(build("box", 1.0, 2), point, 0.5).balls() is None
    assert build("polytope", 1.0, 2).balls() is None


@pytest.mark.in_turn
@pytest.mark.parametrize("mean", [(0.2, 0.1), (1.5, 0.5), (-1.0, 0.4), (0.4, -3.0)])
@pytest.mark.parametrize("body", [
    two_balls(1.0, (0.6, 0.2), 0.7),
    two_balls(1.0, (0.6, 0.2), 3.0),
    Localised(build("box", 1.0, 2), np.array([0.8, 0.3]), 0.6),
    Localised(build("l1_ball", 1.0, 2), np.array([0.6, 0.2]), 0.5),
], ids=["both", "inner", "box", "l1"])  # fmt: skip
def test_restricted_gaussians(body, mean):
    """1000 draws in cells; two standard deviations in one place, one in another."""
    mean, variance = np.array(mean), 0.3
    draw, source = choose_truncated_sampler(body), Numbers(2)
    assert isinstance(draw, WithinBalls if body.balls() is not None else NearBall)
    found = np.array([draw(mean, variance, source) for _ in range(1000)])
    assert np.all(body.contains(found, 1e-9))

    def log_density(scale):
        return lambda z: -np.sum((z - mean) ** 2, axis=-1) / (2.0 * variance * scale)

    assert cell_p_value(body, found, log_density(1.0), 6, 40) > LEVEL


def test_half_the_variance_is_seen():
    body, mean, source = two_balls(1.0, (0.6, 0.2), 0.7), np.array([1.5, 0.5]), Numbers(3)
    draw = choose_truncated_sampler(body)
    found = np.array([draw(mean, 0.15, source) for _ in range(1000)])

    def log_density(z):
        return -np.sum((z - mean) ** 2, axis=-1) / 0.6

    assert cell_p_value(body, found, log_density, 6, 40) < LEVEL


@pytest.mark.parametrize("p", [8, 32])
def test_many_dimensions_where_both_balls_cut(p):
    """Moments of two ways to draw: with the second ball's tilt, and by rejection from the first."""
    point = np.zeros(p)
    point[0] = 0.95
    body, mean = two_balls(1.0, point, 1.1), np.full(p, 0.1)
    draw, one, source = (
        choose_truncated_sampler(body),
        choose_truncated_sampler(build("l2_ball", 1.0, p)),
        Numbers(4),
    )
    both = np.array([draw(mean, 0.1, source) for _ in range(1500)])
    first = np.array([one(mean, 0.1, source) for _ in range(6000)])
    first = first[body.contains(first, 1e-12)]
    assert len(first) > 200
    for statistic in (lambda z: z[:, 0], lambda z: np.sum(z * z, axis=1), lambda z: z[:, 1]):
        a, b = statistic(both), statistic(first)
        error = np.sqrt(np.var(a) / len(a) + np.var(b) / len(b))
        assert abs(np.mean(a) - np.mean(b)) < 4.5 * error


def test_a_box_and_a_ball_in_many_dimensions():
    """Two ways to draw where corner and ball both cut: tilted, and by rejection from the box."""
    p = 8
    point = np.full(p, 0.9)
    body, mean = Localised(build("box", 1.0, p), point, 0.6), np.full(p, 1.1)
    draw, one, source = (
        choose_truncated_sampler(body),
        choose_truncated_sampler(build("box", 1.0, p)),
        Numbers(5),
    )
    both = np.array([draw(mean, 0.05, source) for _ in range(800)])
    first = np.array([one(mean, 0.05, source) for _ in range(2000)])
    first = first[body.contains(first, 1e-12)]
    assert len(first) > 200
    for statistic in (lambda z: z[:, 0], lambda z: np.sum((z - point) ** 2, axis=1)):
        a, b = statistic(both), statistic(first)
        error = np.sqrt(np.var(a) / len(a) + np.var(b) / len(b))
        assert abs(np.mean(a) - np.mean(b)) < 4.5 * error
