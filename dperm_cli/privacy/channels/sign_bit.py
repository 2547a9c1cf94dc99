"""Release one sign privately (randomised response); all channels are built from this.

A sign is kept with probability e^g / (e^g + e^-g) and flipped otherwise. g is called the ``gain``;
the local epsilon is 2 g, in nats. All functions of g are written so that no digits are lost for
small or large g.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dperm_cli.core.errors import Unsupported

LEAST = 1e-9  # smaller gains would be lost in 64 random bits
_SMALL = 1.0
_WORD = 1 << 64
_ROUNDING = 4e-16
_HALVINGS = 200


def mean(gain: float, corners: float = 1.0) -> float:
    """sinh g / (cosh g + corners - 1): the mean of the answer along the corner that was sent.

    The answer is one of 2 ``corners`` corners.
    """
    fall = math.exp(-gain)
    return -math.expm1(-2.0 * gain) / (1.0 + fall * fall + 2.0 * (corners - 1.0) * fall)


def information(gain: float, corners: float = 1.0) -> float:
    """g mean(g) - ln((cosh g + corners - 1) / corners), nats: [DJW12, Prop. 2] rearranged.

    The Kullback-Leibler divergence of a corner's law from the uniform one on 2 ``corners``.
    """
    if gain <= 5.0 + math.log(corners):
        return gain * mean(gain, corners) - math.log1p(2.0 * math.sinh(gain / 2.0) ** 2 / corners)
    fall = math.exp(-gain)
    short = 2.0 * fall * (fall + corners - 1.0) / (1.0 + fall * fall + 2.0 * (corners - 1.0) * fall)
    rest = math.log1p(fall * fall + 2.0 * (corners - 1.0) * fall)
    return math.log(2.0 * corners) - gain * short - rest


def wrong_sign_chance(length: np.ndarray, gain: float) -> np.ndarray:
    """The probability of the answer whose sign is not that of x, for |x| = ``length`` <= 1."""
    turns = math.exp(-2.0 * gain) / (1.0 + math.exp(-2.0 * gain))
    return 0.5 * (1.0 - length) + length * turns


def flip_chance(gain: float) -> int:
    """The chance e^-g / (e^g + e^-g) times 2^64, rounded up: from 1 to 2^63."""
    if gain < _SMALL:
        kept = int(2.0**63 * math.tanh(gain) * (1.0 - _ROUNDING))
        return (1 << 63) - kept
    fall = math.exp(-2.0 * gain)
    return max(1, math.ceil(2.0**64 * fall / (1.0 + fall) * (1.0 + _ROUNDING)))


def corner(gain: float, dim: int) -> tuple[int, int, int]:
    """The probabilities, times 2^64, of the same corner, the opposite one, and all others together.

    They add up to 2^64. For no answer do the probabilities under two inputs differ by more than a
    factor e^(2 g).
    """
    if dim == 1:
        back = flip_chance(gain)
        return _WORD - back, back, 0
    fall = math.exp(-gain)
    same = 1.0 / (1.0 + fall * fall + 2.0 * (dim - 1.0) * fall)
    back = max(1, int(2.0**64 * same * fall * fall * (1.0 + _ROUNDING)) + 1)
    # rounded down: times 2 dim - 2, a rounding up would be taken off the corner's own chance
    each = max(1, int(2.0**64 * same * fall * (1.0 - 4.0 * _ROUNDING)))
    kept = min(_WORD - back - each * (2 * dim - 2), int(2.0**64 * same * (1.0 - _ROUNDING)))
    return kept, back, _WORD - kept - back


def find_gain(rising: Callable[[float], float], target: float, most: float) -> float:
    """The largest gain, found by bisection, at which a rising function is at most ``target``.

    Raises:
        Unsupported: the gain would be below ``LEAST``.
    """
    low, high = LEAST, most
    if rising(low) > target:
        raise too_little()
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high) if low < 1.0 else 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if rising(middle) <= target else (low, middle)
    return low


def too_little() -> Unsupported:
    return Unsupported(
        "so little may be told that an answer would be noise to all of its 64 random bits; take "
        "fewer answers, a larger epsilon or more information"
    )
