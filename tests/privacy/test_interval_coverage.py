"""Coverage of intervals whose law is no finite sum: simulated, with independent formulas."""

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
