"""Exact noise of a Gamma norm on a grid, from the operating system's generator.

A vector of density exp(-|b| / scale) is scale R Z / |Z|: R is the sum of p exponentials, Z has p
normals. Each of these 2 p numbers is an infinite string of bits, of which only a beginning is
drawn. Integers bound every coordinate from below and above. Where the two ends round to the same
multiple of the grid for all coordinates, that is the result. Elsewhere 64 more bits of the same
strings are drawn. So the law is exact. Proof: docs/proofs/_secure_noise.md, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt
from typing import NamedTuple

import numpy as np

from dperm_cli.loops import exact_noise
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.secure_noise import GAUSSIAN, LAPLACE, WORD, WORDS, Source, Uniform

GAMMA_NORM = "gamma_norm"


class BitString(NamedTuple):
    """A number of size ``whole`` + ``fraction``, and 1 where it is negative."""

    whole: int
    fraction: Uniform
    negative: int

    def head(self, places: int) -> int:
        """The size times 2^(64 places), rounded down."""
        return (self.whole << (WORD * places)) + self.fraction.head(places)


def draw_gamma_norms(
    ratio: float, trials: int, dim: int, source: Source = secure_noise.system_words
) -> np.ndarray:
    """Vectors of density exp(-|b|_2 / ratio), rounded to integers.

    Args:
        ratio: scale / grid step, between 2^8 and 2^45.
        trials: how many vectors.
        dim: the number of coordinates of one.
        source: where random words come from.

    Returns:
        int64 [trials, dim], with the law of the rounded real-valued noise of exactly this scale.
    """
    mantissa, shift = secure_noise.split_ratio(ratio)
    radii = draw_strings(LAPLACE, trials * dim, source)
    axes = draw_strings(GAUSSIAN, trials * dim, source)
    drawn = [
        round_vector(radii[at : at + dim], axes[at : at + dim], mantissa, shift)
        for at in range(0, trials * dim, dim)
    ]
    return np.array(drawn, np.int64).reshape(trials, dim)


def draw_strings(kind: str, count: int, source: Source) -> list[BitString]:
    """Independent standard normals or Laplace numbers, whose bits are drawn when asked for."""
    whole, negative = np.empty(count, np.int64), np.empty(count, np.int64)
    fraction = np.empty(count, np.uint64)
    later = secure_noise.read_words(np.empty(0, np.uint64), source)
    tied: dict[int, BitString] = {}
    done, words = 0, source(WORDS[kind] * count + 64)
    while done < count:
        done, used, status = exact_noise.fill_strings(
            kind == GAUSSIAN, words, whole, fraction, negative, done
        )
        words = words[used:]
        if status == exact_noise.UNDECIDED:
            tape = secure_noise.read_words(words, source)
            tied[done] = BitString(*secure_noise.draw_string(kind, tape))
            # words that this draw has not read are its own: it may ask for them later
            done, words = done + 1, words[:0]
        elif status == exact_noise.EXHAUSTED:
            words = np.concatenate([words, source(WORDS[kind] * (count - done) + 64)])
    return [
        tied.get(place) or _open_string(k, x, sign, later)
        for place, (k, x, sign) in enumerate(
            zip(whole.tolist(), fraction.tolist(), negative.tolist(), strict=True)
        )
    ]


def round_vector(
    radii: Sequence[BitString], axes: Sequence[BitString], mantissa: int, shift: int
) -> list[int]:
    """The nearest integers to mantissa / 2^shift R Z_j / |Z|, R the sum of the sizes ``radii``."""
    places = 1
    while True:
        low, high = _bound_sizes(radii, axes, mantissa, shift, places)
        if low == high:
            return [-size if z.negative else size for size, z in zip(low, axes, strict=True)]
        places += 1


def _bound_sizes(
    radii: Sequence[BitString], axes: Sequence[BitString], mantissa: int, shift: int, places: int
) -> tuple[list[int], list[int] | None]:
    """Both ends of all sizes, rounded, from the first ``places`` words of every string.

    With these words R 2^b lies in [sum, sum + p] and |Z_j| 2^b in [z_j, z_j + 1], b = 64 places.
    The second is None where no bound above is known.
    """
    heads = [z.head(places) for z in axes]
    radius = sum(string.head(places) for string in radii)
    shortest = isqrt(sum(z * z for z in heads))
    longest = isqrt(sum((z + 1) * (z + 1) for z in heads)) + 1
    up = WORD * places + shift
    factor, whole = 2 * mantissa * radius, longest << up
    low = [(factor * z + whole) // (2 * whole) for z in heads]
    if not shortest:
        return low, None
    factor, whole = 2 * mantissa * (radius + len(radii)), shortest << up
    return low, [(factor * (z + 1) + whole) // (2 * whole) for z in heads]


def _open_string(whole: int, first: int, negative: int, later: Iterator[int]) -> BitString:
    return BitString(whole, Uniform(later, first), negative)
