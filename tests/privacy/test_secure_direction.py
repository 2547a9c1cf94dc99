"""Answers of the l_2 channel on a grid: sides, rounding, mean and law."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from dperm_cli.privacy import channels, secure_direction
from dperm_cli.privacy.bit_strings import BitString
from dperm_cli.privacy.secure_noise import Uniform
from tests.privacy._secure import source

LEVEL = 1e-6


def string(whole, words, negative=0):
    return BitString(whole, Uniform(iter(words)), negative)


@pytest.mark.parametrize("sign", [1, -1])
def test_coordinates_are_the_rounded_real_numbers(sign):
    rng = np.random.default_rng(1)
    for _ in range(60):
        words = rng.integers(0, 2**64, (8, 3), dtype=np.uint64).tolist()
        signs = rng.integers(0, 2, 4).tolist()
        z = [string(int(rng.integers(0, 3)), words[j], signs[j]) for j in range(4)]
        v = [Uniform(iter(words[4 + j])) for j in range(4)]
        drawn = secure_direction.round_direction(z, v, sign)
        with mpmath.workdps(80):
            size = [mpmath.mpf(one.head(3)) / 2**192 for one in z]
            norm = mpmath.sqrt(sum(one * one for one in size))
            exactly = [
                int(mpmath.floor(sign * (-1) ** s * 2**40 * one / norm + mpmath.mpf(u) / 2**192))
                for one, s, u in zip(size, signs, [one.head(3) for one in v], strict=True)
            ]
        assert drawn == exactly


def test_a_side_is_decided_by_more_bits_where_the_first_do_not_decide():
    """z = (1 + a, 1 + b) and x = (1, -1): the sign of a - b, which begin alike."""
    x = np.array([1.0, -1.0])
    for later, ahead in (((5, 3), True), ((3, 5), False)):
        z = [string(1, [7, later[0], 0]), string(1, [7, later[1], 0])]
        assert secure_direction.is_ahead(z, x) is ahead
        assert len(z[0].fraction._digits) == 2
    tiny = [string(1, [7]), string(1, [7])]
    assert secure_direction.is_ahead(tiny, np.array([1.0, 2.0**-1070]))
    assert not secure_direction.is_ahead(tiny, np.array([-1e300, 5e-324]))
    assert secure_direction.is_ahead(tiny, np.zeros(2))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_answers_have_the_channels_mean_and_sides(dim):
    channel = channels.by_epsilon("l_2", dim, 2.0)
    coding, count = channel.coding(3.0), 12_000
    x = np.zeros(dim)
    x[0] = 1.8
    z = secure_direction.send(coding, np.tile(x, (count, 1)), source(dim))
    units = z / coding.size * 2.0**40
    assert np.allclose(units, np.rint(units), rtol=0.0, atol=1e-3)
    assert np.allclose(np.linalg.norm(z, axis=1), coding.size, rtol=1e-10)
    spread = coding.size / np.sqrt(count)
    assert np.all(np.abs(z.mean(axis=0) - x) < 6.0 * spread)
    keep = 0.5 * (1.0 + 0.6 * np.tanh(channel.gain))
    ahead = int(np.sum(z[:, 0] > 0.0))
    assert stats.binomtest(ahead, count, keep).pvalue > LEVEL
    assert stats.binomtest(ahead, count, keep - 0.05).pvalue < LEVEL
    if dim > 1:  # the square of a coordinate of a uniform direction
        mass = stats.beta(0.5, (dim - 1) / 2).cdf((z[:, -1] / coding.size) ** 2)
        assert stats.kstest(mass, "uniform").pvalue > LEVEL


def test_rounding_is_up_or_down_so_that_the_mean_stays():
    """2^40 / sqrt 2 lies .297 above a whole number of the grid: so often it is rounded up."""
    fraction = float(mpmath.mpf(2) ** 40 / mpmath.sqrt(2) % 1)
    z = [string(1, [0] * 4), string(1, [0] * 4)]
    rng, up = np.random.default_rng(2), 0
    for _ in range(3000):
        words = rng.integers(1, 2**64, (2, 4), dtype=np.uint64).tolist()
        drawn = secure_direction.round_direction(z, [Uniform(iter(w)) for w in words], 1)
        up += drawn[0] - int(2**40 / np.sqrt(2.0))
    assert stats.binomtest(up, 3000, fraction).pvalue > LEVEL


def test_vectors_that_are_too_long_or_no_numbers_are_held_to_the_bound():
    coding = channels.by_epsilon("l_2", 2, 1.0).coding(1.0)
    long = secure_direction.send(coding, np.array([[1e9, 0.0]] * 50), source(4))
    unit = secure_direction.send(coding, np.array([[1.0, 0.0]] * 50), source(4))
    assert np.array_equal(long, unit)
    zero = secure_direction.send(coding, np.zeros((50, 2)), source(4))
    nothing = secure_direction.send(coding, np.full((50, 2), np.nan), source(4))
    assert np.array_equal(zero, nothing)
