"""Exact choices from a finite list by integer scores, from the operating system's generator.

Number j has the weight exp(-rate k_j): ``rate`` is a rational number and the score k_j an integer.
Weights are computed in floating point with a proved bound on their errors. A choice is made where
64 random bits decide it whatever those errors are. Elsewhere more bits of the same uniform number
are drawn, and the weights are enclosed by integers of as many bits as it takes. So the law is
exact, and no weight becomes 0. Proof: docs/proofs/_secure_selections.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.secure_noise import WORD, Source, Uniform, draw_below

EXPONENTIAL, PERMUTE_AND_FLIP = "exponential", "permute_and_flip"
RULES = (EXPONENTIAL, PERMUTE_AND_FLIP)
_UNIT = 2.0**-53
_TINY = 2.0**-1022
_VANISHES = 800.0  # e^-800 < 2^-1022: such weights are within the absolute error of 0
_BLOCK = 1024  # weights that are added one after another
_EXTRA_BITS = 64  # of weights, beyond those of the uniform number


def choose(
    rule: str, scores: np.ndarray, rate: Fraction, source: Source = secure_noise.system_words
) -> int:
    """The number of an entry of a list.

    Args:
        rule: ``exponential``: with probability proportional to exp(-rate score).
            ``permute_and_flip``: entry after entry in random order, until one of them is taken,
            each with probability exp(-rate (score - least score)) [McKenna and Sheldon 2020].
        scores: whole numbers [count], int64, at most 2^62 in size.
        rate: 0 or more, exact.
        source: where random words come from.

    Returns:
        The number, 0 to count - 1, with exactly this law.
    """
    above = np.asarray(scores, np.int64) - np.min(scores)
    if rule == PERMUTE_AND_FLIP:
        return _permute_and_flip(above, rate, source)
    return _invert(above, rate, Uniform(secure_noise.read_words(source(1), source)))


def find_weights(above: np.ndarray, rate: Fraction) -> tuple[np.ndarray, float]:
    """exp(-rate above) [count], and a bound on the relative error of each.

    Besides that error, there is one of at most 2^-1022. ``above`` are whole numbers from 0 on.
    """
    exponents = float(rate) * above.astype(float)
    worst = min(float(np.max(exponents)), _VANISHES)
    return np.exp(-exponents), 4.0 * (3.0 * worst + 8.0) * _UNIT


def _invert(above: np.ndarray, rate: Fraction, uniform: Uniform) -> int:
    """The first j such that the uniform number is below the share of the weights up to j."""
    weights, error = find_weights(above, rate)
    sums, rounded = _add_up(weights)
    error, tiny = error + rounded, len(above) * _TINY
    # sums of blocks may go down by a rounding error, which the true ones do not
    least, most = np.maximum.accumulate(sums * (1.0 - error) - tiny), sums * (1.0 + error) + tiny
    unit = 2.0**-WORD
    low = float(uniform.head(1)) * unit * (1.0 - 4.0 * _UNIT) * float(least[-1])
    high = float(uniform.head(1) + 1) * unit * (1.0 + 4.0 * _UNIT) * float(most[-1])
    # the uniform number is below 1: the last entry needs no end above
    found = int(np.searchsorted(least[:-1], high))
    if found == 0 or most[found - 1] <= low:
        return found
    return _invert_exactly(above, rate, uniform)


def _add_up(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Running sums [count], in blocks, and a bound on their relative errors."""
    blocks = -(-len(weights) // _BLOCK)
    table = np.zeros(blocks * _BLOCK)
    table[: len(weights)] = weights
    inside = np.cumsum(table.reshape(blocks, _BLOCK), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inside[:-1, -1])])
    sums = (inside + before[:, None]).ravel()[: len(weights)]
    return sums, 4.0 * (_BLOCK + blocks) * _UNIT


def _invert_exactly(above: np.ndarray, rate: Fraction, uniform: Uniform) -> int:
    """The same from integers: as many bits of the uniform number and of the weights as decide."""
    places = 1
    while True:
        enclosed = _enclose_all(above, rate, WORD * places + _EXTRA_BITS)
        totals = [sum(one[end] for one in enclosed) for end in (0, 1)]
        head, shift = uniform.head(places), WORD * places
        # the uniform number times the sum of all weights, times 2^shift
        low, high = head * totals[0], (head + 1) * totals[1]
        below = (0, 0)
        for number, (least, most) in enumerate(enclosed):
            before, below = below, (below[0] + least, below[1] + most)
            ends = number == len(enclosed) - 1 or high <= below[0] << shift
            if before[1] << shift <= low and ends:
                return number
        places += 1


def _permute_and_flip(above: np.ndarray, rate: Fraction, source: Source) -> int:
    """Coins for all entries; of those that show heads, each is as likely to come first."""
    weights, error = find_weights(above, rate)
    words = np.array(source(len(above)), np.uint64)
    share = words.astype(float) * 2.0**-WORD  # within 2^-53 of it, relatively
    heads = share * (1.0 + 4.0 * _UNIT) + 2.0**-WORD <= weights * (1.0 - error) - _TINY
    tails = share * (1.0 - 4.0 * _UNIT) >= weights * (1.0 + error) + _TINY
    later = secure_noise.read_words(np.empty(0, np.uint64), source)
    for number in np.flatnonzero(~heads & ~tails).tolist():
        coin = Uniform(later, int(words[number]))
        heads[number] = _is_below(coin, rate * int(above[number]))
    first = np.flatnonzero(heads)
    return int(first[draw_below(later, len(first))])


def _is_below(uniform: Uniform, exponent: Fraction) -> bool:
    """Whether a uniform number is below e^-exponent, from as many bits as decide it."""
    if exponent == 0:
        return True
    places = 1
    while True:
        bits = WORD * places + _EXTRA_BITS
        low, high = enclose_exponential(exponent, bits)
        head = uniform.head(places)
        if (head + 1) << _EXTRA_BITS <= low:
            return True
        if head << _EXTRA_BITS >= high:
            return False
        places += 1


def _enclose_all(above: np.ndarray, rate: Fraction, bits: int) -> list[tuple[int, int]]:
    """``enclose_exponential`` of every entry; equal ones are computed once."""
    different, places = np.unique(above, return_inverse=True)
    found = [enclose_exponential(rate * int(one), bits) for one in different.tolist()]
    return [found[place] for place in places.ravel().tolist()]


def enclose_exponential(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers low <= 2^bits e^-exponent <= high, close to each other; exponent >= 0.

    e^-y for a y = exponent / 2^s of at most 1 by its alternating series, squared s times.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    squarings = max(0, math.ceil(exponent).bit_length())
    work = bits + 2 * squarings + 32
    scaled = (exponent.numerator << work) // (exponent.denominator << squarings)
    low, high = _sum_series(scaled + 1, work, False), _sum_series(scaled, work, True)
    for _ in range(squarings):
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    return low >> (work - bits), (high >> (work - bits)) + 1


def _sum_series(y: int, bits: int, above: bool) -> int:
    """A bound on 2^bits e^(-y / 2^bits), 0 <= y <= 2^bits, from above or from below.

    Terms are bounded from both sides; a sum that ends with a negative term is below.
    """
    low = high = total = 1 << bits
    order, sign = 0, 1
    while high > 1 or sign == (-1 if above else 1):
        order, sign = order + 1, -sign
        low, high = (low * y >> bits) // order, (high * y >> bits) // order + 1
        total += sign * (high if above == (sign > 0) else low)
    return total
