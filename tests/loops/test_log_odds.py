"""The mean logistic loss of labels with known log odds: integrals by other means, and limits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dperm_cli.loops import log_odds


def find_excess(theta, best, dimension, radius=1.0):
    """The excess of one point."""
    points = np.atleast_2d(np.asarray(theta, dtype=float))
    return float(log_odds.find_excess(points, np.asarray(best, dtype=float), dimension, radius)[0])


def losses(z, star):
    """E log(1 + exp(-y z)) - log(1 + exp(-y z*)) where y = 1 has the log odds z*."""
    moved = np.logaddexp(0.0, -z) - np.logaddexp(0.0, -star)
    other = np.logaddexp(0.0, z) - np.logaddexp(0.0, star)
    return expit(star) * moved + expit(-star) * other


def integrate_on_the_circle(theta, best, radius=1.0):
    """The same mean by the trapezoid rule, which is exact for smooth functions of an angle."""
    angles = 2.0 * np.pi * np.arange(200_000) / 200_000
    rows = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return float(np.mean(losses(rows @ np.asarray(theta), rows @ np.asarray(best))))


@pytest.mark.parametrize("theta", [(0.5, -1.0), (3.0, 4.0), (0.0, 0.0), (-80.0, 3.0), (1.5, 2.1)])
@pytest.mark.parametrize("radius", [0.1, 1.0, 7.0])
def test_on_the_circle(theta, radius):
    best = (1.5, 2.0)
    expected = integrate_on_the_circle(theta, best, radius)
    assert find_excess(theta, best, 2, radius) == pytest.approx(expected, rel=1e-10, abs=1e-15)


def mean_over_angles(function, dimension, scale):
    """E function(t), t the size of a coordinate on the sphere."""
    ends = [x / max(scale, 1.0) for x in (0.5, 1.0, 4.0, 16.0, 60.0)]
    ends += [x / math.sqrt(dimension) for x in (1.0, 4.0, 12.0)]
    ends = [0.0, *sorted(x for x in ends if x < 1.5), mpmath.pi / 2]
    mass = mpmath.quad(lambda a: mpmath.cos(a) ** (dimension - 2), ends)
    total = mpmath.quad(lambda a: mpmath.cos(a) ** (dimension - 2) * function(mpmath.sin(a)), ends)
    return float(total / mass)


@pytest.mark.parametrize("dimension", [2, 3, 4, 7, 100])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 10.0, 39.0, 41.0, 1e4])
def test_means_over_a_coordinate(dimension, scale):
    """The three integrals, on both sides of where they are cut off."""
    means, sizes = np.empty((1, 2)), np.empty(1)
    log_odds._fill_means(np.array([scale]), dimension, means, sizes)
    formulas = (
        lambda t: mpmath.log1p(mpmath.exp(-scale * t)),
        lambda t: t / (1 + mpmath.exp(scale * t)),
        lambda t: t,
    )
    with mpmath.workdps(30):
        expected = [mean_over_angles(one, dimension, scale) for one in formulas]
    np.testing.assert_allclose([*means[0], sizes[0]], expected, rtol=3e-14)


@pytest.mark.parametrize("theta", [2.0, -3.0, 0.0])
def test_one_column_has_rows_of_one_size(theta):
    """On the sphere of one dimension: z = radius theta for every row, up to its sign."""
    expected = float(losses(np.array(0.5 * theta), np.array(0.5 * 1.2)))
    assert find_excess([theta], [1.2], 1, 0.5) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_rows_in_a_ball_are_coordinates_of_two_more_dimensions(p):
    """A ball's rows, by 400,000 of them: 5 standard errors of the mean difference."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400_000, p))
    length = rng.random(len(rows)) ** (1.0 / p)
    rows *= (length / np.linalg.norm(rows, axis=1))[:, None]
    best, theta = np.arange(1.0, p + 1.0), np.full(p, -1.0)
    terms = losses(rows @ theta, rows @ best)
    error = np.std(terms) / math.sqrt(len(terms))
    assert abs(find_excess(theta, best, p + 2) - np.mean(terms)) < 5.0 * error
    assert abs(find_excess(theta, best, p + 3) - np.mean(terms)) > 5.0 * error


@pytest.mark.parametrize("dimension", [1, 2, 5, 1000])
def test_is_zero_at_the_best_point_and_rises_with_the_square_of_the_distance(dimension):
    best = np.zeros(dimension)
    best[0] = 2.0
    assert find_excess(best, best, dimension) == 0.0
    steps = (1e-2, 1e-3)
    one, tenth = (find_excess(best + step * np.eye(dimension)[0], best, dimension)
                  for step in steps)  # fmt: skip
    assert one / tenth == pytest.approx(100.0, rel=0.02)
    across = np.eye(dimension)[-1]
    if dimension > 1:
        one, tenth = (find_excess(best + step * across, best, dimension) for step in steps)
        assert one / tenth == pytest.approx(100.0, rel=0.02)


def test_labels_that_are_coins_have_their_best_point_at_zero():
    none = np.zeros(3)
    assert find_excess(none, none, 3) == 0.0
    at = [find_excess(theta, none, 3) for theta in ((2.0, 0.0, 0.0), (0.0, 0.0, -2.0))]
    assert at[0] == pytest.approx(at[1], rel=1e-14)
    # E log(1 + exp(z)) over z uniform on [-2, 2], a coordinate on the sphere of three dimensions
    z = np.linspace(-2.0, 2.0, 200_001)
    expected = np.trapezoid(np.logaddexp(0.0, z), z) / 4.0 - math.log(2.0)
    assert at[0] == pytest.approx(expected, rel=1e-9)


def test_extreme_points_have_the_loss_of_a_line():
    """Far away the excess grows like E max(0, -y z); nothing overflows."""
    best = np.array([1.0, 0.0])
    for size in (1e6, 1e150):
        share = find_excess([size, size], best, 2) / size
        coarse = find_excess([1e5, 1e5], best, 2) / 1e5
        assert share == pytest.approx(coarse, rel=1e-4)


def test_a_point_does_not_depend_on_the_others():
    rng = np.random.default_rng(1)
    points, best = 3.0 * rng.standard_normal((7, 4)), rng.standard_normal(4)
    together = log_odds.find_excess(points, best, 4, 1.0)
    alone = [log_odds.find_excess(point[None], best, 4, 1.0)[0] for point in points]
    assert together.tolist() == alone
    assert log_odds.find_excess(np.asfortranarray(points), best, 4, 1.0).tolist() == alone


def test_shapes_that_do_not_fit_are_refused():
    for points, best, dimension in (
        (np.zeros(3), np.zeros(3), 3),
        (np.zeros((2, 3)), np.zeros(2), 3),
        (np.zeros((2, 3)), np.zeros(3), 2),
    ):
        with pytest.raises(ValueError, match="dimension"):
            log_odds.find_excess(points, best, dimension, 1.0)
