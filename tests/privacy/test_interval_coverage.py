"""Coverage of intervals whose law is no finite sum: simulated, with independent formulas."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.accuracy import find_population_interval
from dperm_cli.privacy.intervals.area_under_curve import find_area, find_area_interval
from dperm_cli.privacy.intervals.bounded_mean import (
    find_chernoff_end,
    find_mean_of_unknown_number,
    find_mean_on_records,
    find_population_mean,
)
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise
from dperm_cli.privacy.intervals.summed_noise import SummedNoise
from dperm_cli.privacy.metrics.absolute_error import AbsoluteError
from dperm_cli.privacy.metrics.base import FINE_STEP, HeldOut, Reading
from dperm_cli.privacy.metrics.confusion import Confusion
from dperm_cli.privacy.metrics.squared_error import SquaredError

LAPLACE, GAUSSIAN = RoundedNoise("laplace", 5.0), RoundedNoise("gaussian", 8.0)

SIMULATIONS = 2000


def draw_noise(rng, noise, size):
    drawn = rng.laplace if noise.law == "laplace" else rng.normal
    return drawn(0.0, noise.scale, size)


def draw_counts(rng, noise, size):
    return np.floor(draw_noise(rng, noise, size) + 0.5).astype(np.int64)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("terms", [2, 3, 8])
def test_sums_of_noise_have_the_law_of_plain_convolution(noise, terms):
    reach = 400
    one = noise.chance(np.arange(-reach, reach + 1))
    whole = one
    for _ in range(terms - 1):
        whole = np.convolve(whole, one)
    upwards = np.cumsum(whole[::-1])[::-1]
    middle = len(whole) // 2
    summed, at = SummedNoise(noise, terms), np.arange(-150, 151)
    assert summed.tail(at) == pytest.approx(upwards[middle + at], abs=1e-12)
    bound = summed.bound(0.05)
    assert 2 * float(summed.tail(bound + 1)) <= 0.05 < 2 * float(summed.tail(bound))
    assert float(summed.tail(10**6)) == 0.0
    assert float(summed.tail(-(10**6))) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("accuracy", [0.6, 0.98])
def test_a_sum_of_counts_has_an_exact_interval(accuracy):
    """The accuracy from a confusion matrix: its coverage as a sum over all outputs."""
    noise, records = SummedNoise(RoundedNoise("laplace", 2.0), 2), 60
    counts, outputs = np.arange(records + 1), np.arange(-80, records + 81)
    chance = (noise.tail(outputs[:, None] - counts) - noise.tail(outputs[:, None] - counts + 1)) @ (
        binom.pmf(counts, records, accuracy)
    )
    ends = [find_population_interval(int(y), records, noise) for y in outputs]
    held = np.array([low <= accuracy <= high for low, high in ends])
    assert 0.95 - 1e-9 <= float(chance[held].sum()) < 0.99


@pytest.mark.parametrize("mean", [0.02, 0.5, 0.93])
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_means_of_bounded_numbers_are_covered(noise, mean):
    """Bernoulli numbers are the hardest of their mean."""
    rng, records = np.random.default_rng(11), 400
    totals = rng.binomial(records, mean, SIMULATIONS)
    noisy = totals + draw_noise(rng, noise, SIMULATIONS)
    held = here = 0
    for exact, total in zip(totals, noisy, strict=True):
        low, high = find_population_mean(float(total), records, noise)
        held += low <= mean <= high
        low, high = find_mean_on_records(float(total), records, noise)
        here += low <= exact / records <= high
    assert held >= 0.94 * SIMULATIONS
    assert 0.935 * SIMULATIONS <= here <= 0.99 * SIMULATIONS


def test_the_end_of_chernoff_is_at_the_divergence():
    low = find_chernoff_end(0.3, 200, 3.0, -1)
    high = find_chernoff_end(0.3, 200, 3.0, 1)
    for end in (low, high):
        divergence = 0.3 * np.log(0.3 / end) + 0.7 * np.log(0.7 / (1 - end))
        assert 200 * divergence == pytest.approx(3.0)
    assert low < 0.3 < high
    assert find_chernoff_end(0.0, 200, 3.0, -1) == 0.0
    assert find_chernoff_end(1.0, 200, 3.0, -1) == pytest.approx(np.exp(-3.0 / 200))


@pytest.mark.parametrize("records", [60, 600])
def test_means_of_an_unknown_number_are_covered(records):
    rng, mean = np.random.default_rng(5), 0.2
    held = 0
    for _ in range(500):
        total = rng.binomial(records, mean) + float(draw_noise(rng, LAPLACE, 1)[0])
        count = records + int(draw_counts(rng, LAPLACE, 1)[0])
        low, high = find_mean_of_unknown_number(total, count, LAPLACE, slack=0.5)
        held += low <= mean <= high
    assert held >= 0.94 * 500
    assert find_mean_of_unknown_number(1.0, 5, LAPLACE) == (0.0, 1.0)


def test_the_area_of_a_histogram_is_the_share_of_its_pairs():
    rng = np.random.default_rng(2)
    negative, positive = rng.integers(0, 9, (2, 6))
    low, high = np.repeat(np.arange(6), negative), np.repeat(np.arange(6), positive)
    pairs = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    assert find_area(negative, positive) == pytest.approx(pairs.mean())
    assert find_area(np.zeros(6), positive) is None


def measure_area_coverage(noise, records, share, shift):
    """How often the interval holds the area of scores N(0, 1) and N(shift, 1) in 32 bins."""
    rng = np.random.default_rng(7)
    edges = np.concatenate([[-np.inf], np.linspace(-4, 4, 33)[1:-1], [np.inf]])
    none, some = np.diff(norm.cdf(edges)), np.diff(norm.cdf(edges - shift))
    area = find_area(none, some)
    chances = np.concatenate([(1 - share) * none, share * some])
    held = told = 0
    for _ in range(SIMULATIONS):
        counts = rng.multinomial(records, chances) + draw_counts(rng, noise, 64)
        low, high = find_area_interval(counts[:32], counts[32:], noise)
        held += low <= area <= high
        told += (low, high) != (0.0, 1.0)
    return held / SIMULATIONS, told / SIMULATIONS


@pytest.mark.parametrize(
    ("noise", "records", "share", "shift"),
    [(LAPLACE, 4000, 0.3, 1.0), (GAUSSIAN, 2000, 0.5, 2.0)],
)
def test_areas_are_covered(noise, records, share, shift):
    covered, told = measure_area_coverage(noise, records, share, shift)
    assert covered >= 0.94
    assert told == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [RoundedNoise("laplace", 0.2), LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("records", [1000, 20_000])
def test_areas_are_covered_elsewhere(noise, share, shift, records):
    assert measure_area_coverage(noise, records, share, shift)[0] >= 0.94


@pytest.mark.parametrize(
    ("noise", "times"),
    [
        (RoundedNoise("laplace", 6.25), 200),
        pytest.param(RoundedNoise("laplace", 6.25), SIMULATIONS, marks=pytest.mark.slow),
        pytest.param(RoundedNoise("gaussian", 12.0), SIMULATIONS, marks=pytest.mark.slow),
    ],
)
def test_figures_of_a_regression_are_covered(noise, times):
    """R2 and errors of targets of normal laws, from sums with noise."""
    rng, records, spread, left = np.random.default_rng(9), 1500, 0.3, 0.1
    reading, held = Reading(records, noise, 0.05), np.zeros(4)
    told = 0
    for _ in range(times):
        f = rng.normal(0.1, math.sqrt(spread**2 - left**2), records)
        made = HeldOut(np.clip(f + rng.normal(0, left, records), -1, 1), f)
        sums = SquaredError().add_up(made) * FINE_STEP + draw_noise(rng, noise, 3)
        found = SquaredError().describe(sums, reading)
        low, high = found["interval_for_the_population"]
        held[0] += (low is None or low <= 1 - (left / spread) ** 2) and high >= 0.889
        told += low is not None
        base = found["mean_squared_error_of_the_mean_baseline"]
        for place, value, one in ((1, left**2, found["mean_squared_error"]), (2, 0.0895, base)):
            low, high = one["interval_for_the_population"]
            held[place] += low <= value <= high
        total = AbsoluteError().add_up(made)[:1] * FINE_STEP + draw_noise(rng, noise, 1)
        found = AbsoluteError().describe(np.append(total, np.ones(32)), reading)
        low, high = found["interval_for_the_population"]
        held[3] += low <= left * math.sqrt(2 / math.pi) <= high
    assert held.min() >= 0.94 * times
    assert told >= 0.9 * times


@pytest.mark.parametrize("times", [40, pytest.param(SIMULATIONS, marks=pytest.mark.slow)])
def test_the_share_of_the_largest_class_is_covered_where_two_are_as_large(times):
    rng, records, metric = np.random.default_rng(12), 300, Confusion(("a", "b", "c"))
    reading, held = Reading(records, LAPLACE, 0.05), np.zeros(2)
    chances = np.array([0.3, 0.05, 0.05, 0.05, 0.3, 0.05, 0.05, 0.05, 0.1])
    for _ in range(times):
        sums = rng.multinomial(records, chances) + draw_counts(rng, LAPLACE, 9)
        found = metric.describe(sums, reading)
        for place, (key, value) in enumerate((("majority_baseline", 0.4), ("accuracy", 0.7))):
            low, high = found[key]["interval_for_the_population"]
            held[place] += low <= value <= high
    assert held.min() >= 0.94 * times


@pytest.mark.parametrize(
    "call",
    [
        lambda: SummedNoise(LAPLACE, 0),
        lambda: SummedNoise(RoundedNoise("laplace", 1e6), 2),
        lambda: find_population_mean(1.0, 0, LAPLACE),
        lambda: find_area_interval(np.ones(3), np.ones(3), LAPLACE, alpha=2.0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InputError):
        call()
