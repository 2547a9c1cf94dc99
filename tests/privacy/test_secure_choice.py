"""Exact choices from a list: the law to 60 bits, chances that floating point calls 0, privacy."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dperm_cli.privacy import secure_choice, secure_noise
from dperm_cli.privacy.secure_choice import EXPONENTIAL, PERMUTE_AND_FLIP, choose
from dperm_cli.privacy.secure_noise import Uniform
from tests.privacy._secure import source

LEVEL = 1e-6
SCORES, QUARTER = (0, 3, 5, 5, 9), Fraction(1, 4)


def exponential_law(scores, rate):
    weights = [math.exp(-float(rate) * (k - min(scores))) for k in scores]
    return np.array(weights) / sum(weights)


def flip_law(scores, rate):
    """Over all sets of other entries that show heads; the first of them is any, all alike."""
    heads = [math.exp(-float(rate) * (k - min(scores))) for k in scores]
    found = np.zeros(len(scores))
    for shown in itertools.product((0, 1), repeat=len(scores)):
        if any(shown):
            chance = math.prod(h if s else 1 - h for h, s in zip(heads, shown, strict=True))
            found += chance * np.array(shown) / sum(shown)
    return found


def invert(scores, rate, word, later=()):
    above = np.array(scores) - min(scores)
    return secure_choice._invert(above, rate, Uniform(iter([word, *later])))


# --- the law --------------------------------------------------------------------------------------


def test_shares_of_the_exponential_rule_are_exact():
    """The word at which the choice changes, by bisection: the sum of shares to 2^-62."""
    expected = [0.46495, 0.21963, 0.13321, 0.13321, 0.04901]
    assert np.allclose(exponential_law(SCORES, QUARTER), expected, atol=5e-6)
    with mpmath.workdps(40):
        weights = [mpmath.exp(-mpmath.mpf(k) / 4) for k in SCORES]
        sums = [sum(weights[: j + 1]) / sum(weights) for j in range(4)]
    for j, end in enumerate(sums):
        low, high = 0, 2**64 - 1
        while high - low > 1:
            middle = (low + high) // 2
            below = invert(SCORES, QUARTER, middle, [0] * 8) <= j
            low, high = (middle, high) if below else (low, middle)
        with mpmath.workdps(40):
            assert abs(mpmath.mpf(high) / 2**64 - end) < 2.0**-62


def test_a_list_in_blocks_has_the_same_shares():
    scores, rate = np.arange(5000) % 97, Fraction(1, 50)
    ends = np.cumsum(exponential_law(scores.tolist(), rate))
    for j in (0, 1022, 1023, 1024, 2049, 4998):
        for side in (-1e-9, 1e-9):
            word = int((ends[j] + side) * 2.0**64)
            assert invert(scores, rate, word) == (j if side < 0 else j + 1)


@pytest.mark.parametrize(
    ("rule", "law"), [(EXPONENTIAL, exponential_law), (PERMUTE_AND_FLIP, flip_law)]
)
def test_draws_have_the_law_and_another_rate_is_seen(rule, law):
    words, count = source(5), 15_000
    drawn = [choose(rule, np.array(SCORES), QUARTER, words) for _ in range(count)]
    counts = np.bincount(drawn, minlength=5)
    assert stats.chisquare(counts, count * law(SCORES, QUARTER)).pvalue > LEVEL
    assert stats.chisquare(counts, count * law(SCORES, Fraction(5, 16))).pvalue < LEVEL


def test_permute_and_flip_loses_less():
    scores = range(5)
    mean = [float(law(scores, 1) @ np.arange(5)) for law in (flip_law, exponential_law)]
    assert np.allclose(mean, [0.38078, 0.54806], atol=5e-6)


def test_other_equal_scores_and_a_rate_of_zero_are_uniform():
    for rule in secure_choice.RULES:
        words = source(1)
        for scores, rate in (([7] * 4, QUARTER), ([0, 9, 2, 5], Fraction(0))):
            drawn = [choose(rule, np.array(scores), rate, words) for _ in range(2000)]
            assert stats.chisquare(np.bincount(drawn, minlength=4)).pvalue > LEVEL


# --- more bits where 64 do not decide -------------------------------------------------------------


def test_a_chance_of_e_to_the_minus_800_is_no_chance_of_zero():
    """It is 2^-1154.16: a uniform number that begins with 1153 zeros takes it or not."""
    scores, rate = [800, 0], Fraction(1)
    assert np.exp(-800.0) == 0.0
    assert invert(scores, rate, 1) == 1
    assert invert(scores, rate, 0, [1]) == 1
    zeros = [0] * 17
    assert invert(scores, rate, 0, [*zeros, 2**62, 0]) == 1  # 2^-1154
    assert invert(scores, rate, 0, [*zeros, 2**61, 0]) == 0  # 2^-1155
    assert not secure_choice._is_below(Uniform(iter([0, *zeros, 2**62, 0])), Fraction(800))
    assert secure_choice._is_below(Uniform(iter([0, *zeros, 2**61, 0])), Fraction(800))


def test_entries_after_the_last_likely_one_can_be_chosen():
    """At the upper end all bits are ones: 1 - 2^-1216 is above 1 - e^-800."""
    scores, rate = [0, 800], Fraction(1)
    assert invert(scores, rate, 2**64 - 1, [0]) == 0
    assert invert(scores, rate, 2**64 - 1, [2**64 - 1] * 18) == 1


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(800)])
@pytest.mark.parametrize("bits", [128, 1300])
def test_exponentials_are_enclosed(exponent, bits):
    low, high = secure_choice.enclose_exponential(exponent, bits)
    with mpmath.workdps(800):
        exactly = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * 2**bits
        assert low <= exactly <= high
    assert high - low <= 3


def test_floating_point_and_integers_agree():
    """Wherever 64 bits decide in floating point, integers decide the same."""
    rng = np.random.default_rng(3)
    for _ in range(150):
        scores = rng.integers(0, 60, 12)
        rate, word = Fraction(int(rng.integers(1, 90)), 64), int(rng.integers(0, 2**63))
        above = scores - scores.min()
        exactly = secure_choice._invert_exactly(above, rate, Uniform(iter([word, 0, 0])))
        assert invert(scores, rate, word, [0, 0]) == exactly


def test_errors_of_weights_are_within_their_bound():
    above = np.arange(0, 900, 7)
    rate = Fraction(355, 452)
    weights, error = secure_choice.find_weights(above, rate)
    assert error < 1e-11
    with mpmath.workdps(60):
        for one, weight in zip(above.tolist(), weights.tolist(), strict=True):
            exactly = mpmath.exp(-one * mpmath.mpf(355) / 452)
            assert abs(weight - exactly) <= error * exactly + mpmath.mpf(2) ** -1022


def test_few_draws_need_more_than_64_bits():
    """An error bound that is far too large would still be exact, but slow."""
    asked = []

    def counted(count):
        asked.append(count)
        return secure_noise.system_words(count)

    scores = np.arange(20_000) % 1999
    for _ in range(30):
        choose(EXPONENTIAL, scores, Fraction(1, 100), counted)
    assert asked == [1] * 30


# --- privacy, by enumeration ----------------------------------------------------------------------


@pytest.mark.parametrize(("law", "least"), [(exponential_law, 0.85), (flip_law, 0.8)])
def test_neighbouring_scores_within_a_range_cost_rate_times_range(law, least):
    """All moves by 0 .. 3 of lists of three: the largest log ratio is at most 3 rate."""
    worst, rate = 0.0, Fraction(1, 3)
    for scores in itertools.product(range(4), repeat=3):
        here = law(scores, rate)
        for moves in itertools.product(range(4), repeat=3):
            there = law([k + m for k, m in zip(scores, moves, strict=True)], rate)
            worst = max(worst, float(np.max(np.abs(np.log(here / there)))))
    assert least < worst / (3 * float(rate)) <= 1.0 + 1e-12


def test_log_ratios_of_permute_and_flip_are_no_bounded_range():
    """They lie within [-epsilon, epsilon], and not in an interval of length epsilon."""
    ratios = np.log(flip_law((0, 0, 4), QUARTER) / flip_law((4, 0, 0), QUARTER))
    assert np.max(ratios) - np.min(ratios) > 1.2 * 4 * 0.25
    ratios = np.log(exponential_law((0, 0, 4), QUARTER) / exponential_law((4, 0, 4), QUARTER))
    assert np.max(ratios) - np.min(ratios) <= 1.0 + 1e-12
