"""Tails of Laplace and Gaussian noise that was rounded to whole numbers.

A count is a whole number, so that count + r(Z) = r(count + Z) (``docs/proofs/_secure_noise.md``,
Lemma 1): the same law holds for noise drawn on the grid of step 1 and for a rounded release.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError

LAWS = ("laplace", "gaussian")


class CountNoise(Protocol):
    """Symmetric noise on a count, as intervals use it."""

    def tail(self, at_least: np.ndarray | int) -> np.ndarray:
        """P(N >= k) for whole numbers k."""
        ...

    def bound(self, alpha: float) -> int:
        """The least k >= 0 with P(|N| > k) <= alpha."""
        ...


@dataclass(frozen=True)
class RoundedNoise:
    """Whole-number noise r(Z), Z Laplace or Gaussian noise of a known scale.

    Args:
        law: ``laplace`` or ``gaussian``.
        scale: of Z in counts: the parameter b of Laplace noise, the standard deviation of Gaussian.

    >>> round(float(RoundedNoise("laplace", 2.0).tail(0)), 5)  # P(N >= 0)
    0.6106
    """

    law: str
    scale: float

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise InputError("law", self.law, f"one of {', '.join(LAWS)}", LAWS)
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError("scale", self.scale, "a finite number above 0")

    def tail(self, at_least: np.ndarray | int) -> np.ndarray:
        """P(N >= k) for whole numbers k: the chance that Z is at least k - 1/2."""
        edge = (np.asarray(at_least, dtype=float) - 0.5) / self.scale
        if self.law == "gaussian":
            return ndtr(-edge)
        half = 0.5 * np.exp(-np.abs(edge))
        return np.where(edge >= 0, half, 1.0 - half)

    def chance(self, value: np.ndarray | int) -> np.ndarray:
        """P(N = k) for whole numbers k."""
        size = np.abs(np.asarray(value))  # in the upper tail differences keep their digits
        return self.tail(size) - self.tail(size + 1)

    def bound(self, alpha: float) -> int:
        """The least k >= 0 with P(|N| > k) <= alpha, found by halving."""
        check_level(alpha)
        low, high = -1, 1
        while 2 * float(self.tail(high + 1)) > alpha:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            if 2 * float(self.tail(middle + 1)) > alpha:
                low = middle
            else:
                high = middle
        return high


def check_level(alpha: float) -> None:
    """Refuse a level that is no chance."""
    if not 0 < alpha < 1:
        raise InputError("alpha", alpha, "between 0 and 1")
