"""The law of a sum of independent draws of rounded noise: of several released counts together."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.signal import fftconvolve

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise, check_level

_LOST = 1e-17  # chance of each draw beyond what is summed up
MOST_SCALE = 2.0**16  # of noise whose sums are tabulated


@dataclass(frozen=True)
class SummedNoise:
    """N_1 + ... + N_k, independent draws of one rounded noise.

    The chances are tabulated: they are off by less than 1e-12 together.

    Args:
        noise: law of one draw, of a scale of at most 2^16.
        terms: k.

    >>> one = RoundedNoise("laplace", 2.0)
    >>> abs(float(SummedNoise(one, 1).tail(3)) - float(one.tail(3))) < 1e-12
    True
    >>> SummedNoise(one, 2).bound(0.05)
    8
    """

    noise: RoundedNoise
    terms: int

    def __post_init__(self) -> None:
        if self.terms < 1:
            raise InputError("terms", self.terms, "at least 1")
        if self.noise.scale > MOST_SCALE:
            raise InputError("scale", self.noise.scale, "at most 2^16 for a sum of noises")

    @cached_property
    def _tails(self) -> np.ndarray:
        """P(N >= k) for k = -reach .. reach + 1, where the last is 0."""
        reach = self.noise.bound(_LOST)
        whole = np.array([1.0])
        square = np.asarray(self.noise.chance(np.arange(-reach, reach + 1)))
        left = self.terms
        while left:
            if left & 1:
                whole = _cut(fftconvolve(whole, square))
            left >>= 1
            if left:
                square = _cut(fftconvolve(square, square))
        return np.append(np.minimum(np.cumsum(whole[::-1])[::-1], 1.0), 0.0)

    def tail(self, at_least: np.ndarray | int) -> np.ndarray:
        """P(N >= k) for whole numbers k."""
        found = self._tails
        middle = (len(found) - 2) // 2
        place = np.clip(np.asarray(at_least) + middle, 0, len(found) - 1)
        return found[place]

    def bound(self, alpha: float) -> int:
        """The least k >= 0 with P(|N| > k) <= alpha."""
        check_level(alpha)
        middle = (len(self._tails) - 2) // 2
        beyond = 2.0 * self._tails[middle + 1 :]
        return int(np.flatnonzero(beyond <= alpha)[0])


def sum_noise(noise: RoundedNoise, terms: int) -> RoundedNoise | SummedNoise:
    """The noise of a sum of ``terms`` released counts; a single one keeps its closed form."""
    return noise if terms == 1 else SummedNoise(noise, terms)


def _cut(chances: np.ndarray) -> np.ndarray:
    """Symmetric chances without ends that hold less than 1e-14 together."""
    found = np.maximum(0.5 * (chances + chances[::-1]), 0.0)
    first = int(np.searchsorted(np.cumsum(found), 0.5e-14))
    return found[first : len(found) - first]
