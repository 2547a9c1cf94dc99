"""Confidence intervals of an accuracy: the specification's numbers, and coverage by exact sums."""

import math
from bisect import bisect_left

import numpy as np
import pytest
from scipy.stats import binom

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.accuracy import (
    find_interval_of_unknown_number,
    find_interval_on_records,
    find_population_interval,
)
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise


@pytest.mark.parametrize("noise", [RoundedNoise("laplace", 2.5), RoundedNoise("gaussian", 3.0)])
def test_chances_add_up_to_tails(noise):
    values = np.arange(-200, 201)
    chances = noise.chance(values)
    assert chances.sum() == pytest.approx(1.0, abs=1e-14)
    assert chances == pytest.approx(chances[::-1])
    upwards = np.cumsum(chances[::-1])[::-1]
    assert noise.tail(values) == pytest.approx(upwards, abs=1e-14)


def test_rounded_laplace_has_the_stated_chances():
    noise = RoundedNoise("laplace", 2.0)
    assert float(noise.chance(0)) == pytest.approx(1 - math.exp(-1 / 4))
    assert float(noise.chance(5)) == pytest.approx(math.sinh(1 / 4) * math.exp(-5 / 2))


@pytest.mark.parametrize(
    ("noise", "n_test", "y", "ends"),
    [
        (RoundedNoise("laplace", 10.0), 1000, 850, (0.81211, 0.88564)),
        (RoundedNoise("laplace", 1.0), 200, 170, (0.79078, 0.89831)),
        (RoundedNoise("gaussian", 4.22479), 1000, 850, (0.82480, 0.87304)),
    ],
)
def test_intervals_are_those_of_the_specification(noise, n_test, y, ends):
    assert find_population_interval(y, n_test, noise) == pytest.approx(ends, abs=5.1e-6)


def measure_coverage(n_test, accuracy, noise, reach):
    """The chance that the interval holds the accuracy: a sum over outputs within ``reach``.

    Both ends grow with the output, so that the outputs that hold it are found by halving.
    """

    def count_outputs(is_below):
        return bisect_left(range(-reach, n_test + reach + 1), True, key=is_below) - reach

    def find_ends(y):
        return find_population_interval(y, n_test, noise)

    first = count_outputs(lambda y: find_ends(y)[1] >= accuracy)
    beyond = count_outputs(lambda y: find_ends(y)[0] > accuracy)
    counts = np.arange(n_test + 1)
    outputs = np.arange(first, beyond)
    return float(
        noise.chance(outputs[:, None] - counts).sum(0) @ binom.pmf(counts, n_test, accuracy)
    )


@pytest.mark.parametrize(
    ("n_test", "accuracy", "scale", "reach", "expected"),
    [(200, 0.7, 10.0, 100, 0.95217), (200, 0.98, 2.0, 40, 0.96129)],
)
def test_coverage_is_exact(n_test, accuracy, scale, reach, expected):
    covered = measure_coverage(n_test, accuracy, RoundedNoise("laplace", scale), reach)
    assert covered == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 1.0])
def test_intervals_cover_at_the_ends_of_the_range(accuracy):
    noise = RoundedNoise("gaussian", 3.0)
    assert measure_coverage(12, accuracy, noise, 30) >= 0.95 - 1e-12


def test_any_output_has_an_interval():
    noise = RoundedNoise("laplace", 1.0)
    assert find_population_interval(-50, 20, noise)[0] == 0.0
    assert find_population_interval(90, 20, noise)[1] == 1.0
    assert find_population_interval(1_000, 20, noise)[0] <= 1.0


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_the_bound_on_noise_is_the_least_one(law, alpha):
    noise = RoundedNoise(law, 7.0)
    bound = noise.bound(alpha)
    assert 2 * float(noise.tail(bound + 1)) <= alpha < 2 * float(noise.tail(bound))


def test_intervals_on_these_records_count_noise_alone():
    noise = RoundedNoise("laplace", 10.0)
    low, high = find_interval_on_records(850, 1000, noise)
    wide_low, wide_high = find_population_interval(850, 1000, noise)
    assert wide_low < low < 0.85 < high < wide_high
    missed = 2 * float(noise.tail(31))
    assert missed == pytest.approx(math.exp(-30.5 / 10.0))
    assert missed <= 0.05


def test_intervals_of_an_unknown_number_cover():
    generator = np.random.Generator(np.random.Philox(3))
    noise, accuracy, n_test, trials = RoundedNoise("laplace", 4.0), 0.8, 300, 100
    right = generator.binomial(n_test, accuracy, trials)
    drawn = np.rint(generator.laplace(0.0, 4.0, (2, trials))).astype(int)
    held = 0
    for y, first, second in zip(right, *drawn, strict=True):
        low, high = find_interval_of_unknown_number(y + first, n_test - y + second, noise)
        held += low <= accuracy <= high
    assert held >= 0.94 * trials
    assert find_interval_of_unknown_number(3, 2, noise) == (0.0, 1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: RoundedNoise("cauchy", 1.0),
        lambda: RoundedNoise("laplace", 0.0),
        lambda: find_population_interval(1, 0, RoundedNoise("laplace", 1.0)),
        lambda: find_interval_on_records(1, 5, RoundedNoise("laplace", 1.0), alpha=1.0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InputError):
        call()
