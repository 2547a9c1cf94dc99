"""Mean logistic losses at known chances: the formula, to the last digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from dperm_cli.loops import log_odds
from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_loop

MARGINS = np.concatenate(
    [np.linspace(-40.0, 40.0, 4001), [-700.0, -1e-300, 0.0, 1e-12, 700.0, 1e4]]
)
ONE = np.ones(1)


def at_margins(z):
    """Rows of one column: their margin at the point 1 is the entry."""
    return np.asarray(z, dtype=float).reshape(-1, 1)


def sum_excess(rows, theta, chances, least):
    """The two sums at one point."""
    (total,), (square,) = log_odds.sum_excess(rows, theta[None], chances, least)
    return float(total), float(square)


def mean_losses(z, chances):
    return chances * np.logaddexp(0.0, -z) + (1.0 - chances) * np.logaddexp(0.0, z)


def test_chances_are_the_logistic_function():
    chances, least = log_odds.find_least(at_margins(MARGINS), ONE)
    np.testing.assert_allclose(chances, expit(MARGINS), rtol=1e-15, atol=1e-307)
    assert np.all((chances >= 0.0) & (chances <= 1.0))
    middle = np.abs(MARGINS) < 30.0
    known = mean_losses(MARGINS, chances)
    np.testing.assert_allclose(least[middle], known[middle], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("chance", [0.0, 0.25, 1.0])
def test_a_mean_loss_is_that_of_the_two_labels(chance):
    for z in MARGINS[::7]:
        found = sum_excess(at_margins([z]), ONE, np.array([chance]), np.zeros(1))[0]
        assert found == pytest.approx(mean_losses(z, chance), rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 16, 37])
@pytest.mark.parametrize("n", [1, 3, 4, 255, 256, 257, 1001])
def test_sums_are_those_of_the_rows(n, p):
    rng = np.random.default_rng([n, p])
    rows, best, theta = rng.standard_normal((n, p)), *rng.standard_normal((2, p))
    chances, least = log_odds.find_least(rows, best)
    terms = mean_losses(rows @ theta, expit(rows @ best))
    terms -= mean_losses(rows @ best, expit(rows @ best))
    total, square = sum_excess(rows, theta, chances, least)
    assert total == pytest.approx(math.fsum(terms), rel=1e-12)
    assert square == pytest.approx(math.fsum(terms**2), rel=1e-12)
    assert sum_excess(rows, best, chances, least) == (0.0, 0.0)
    assert sum_excess(np.asfortranarray(rows), theta, chances, least) == (total, square)


def test_nothing_is_less_than_at_the_log_odds():
    best = 3.0 * np.random.default_rng(3).standard_normal(1000)
    for z in best:
        chances, least = log_odds.find_least(at_margins([z]), ONE)
        for move in (-1.0, -1e-3, 1e-3, 1.0):
            assert sum_excess(at_margins([z + move]), ONE, chances, least)[0] > 0.0


def test_bits_do_not_depend_on_the_neighbours():
    rows = np.random.default_rng(1).standard_normal((1003, 3))
    best, theta = np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.2, 0.3])
    chances, least = log_odds.find_least(rows, best)
    for at in range(0, 1003, 97):
        one = slice(at, at + 1)
        assert np.array_equal(log_odds.find_least(rows[one], best), [chances[one], least[one]])
    other = rows.copy()
    other[5] = -rows[5]  # one of the rows that the second lane adds up
    moved = sum_excess(other, theta, chances, least)
    again = sum_excess(other[np.arange(1003)], theta, chances, least)
    assert moved == again != sum_excess(rows, theta, chances, least)


@compile_loop
def _dot(a, b):
    return lanes.dot(a, 0, b, 0, a.size)


def test_margins_of_short_rows_have_the_bits_of_all_others():
    rng = np.random.default_rng(2)
    for p in (1, 2, 3):
        for row, theta in zip(*rng.standard_normal((2, 50, p)), strict=True):
            known = log_odds.find_least(at_margins([_dot(row, theta)]), ONE)
            assert np.array_equal(log_odds.find_least(row.reshape(1, p), theta), known)


@pytest.mark.parametrize("point", [np.zeros(3), np.zeros((2, 1)), np.zeros(0)])
def test_shapes_have_to_fit(point):
    rows = np.zeros((5, 2))
    with pytest.raises(ValueError, match="do not fit"):
        log_odds.find_least(rows, point)
    with pytest.raises(ValueError, match="do not fit"):
        sum_excess(rows, point, np.zeros(5), np.zeros(5))
    with pytest.raises(ValueError, match="do not fit"):
        sum_excess(rows, np.zeros(2), np.zeros(5), np.zeros(4))


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 30])
def test_a_point_has_the_bits_it_has_alone(p):
    rng = np.random.default_rng(p)
    rows, points = rng.standard_normal((1000, p)), rng.standard_normal((9, p))
    chances, least = log_odds.find_least(rows, points[0])
    together = np.column_stack(log_odds.sum_excess(rows, points, chances, least))
    alone = [sum_excess(rows, theta, chances, least) for theta in points]
    assert np.array_equal(together, alone)
