"""Exact noise of a Gamma norm on a grid, from the operating system's generator.

A vector of density exp(-|b| / scale) is scale R Z / |Z|: R is the sum of p exponentials, Z has p
normals. Each of these 2 p numbers is an infinite string of bits, of which only a beginning is
drawn. Integers bound every coordinate from below and above. Where the two ends round to the same
multiple of the grid for all coordinates, that is the result. Elsewhere 64 more bits of the same
strings are drawn. So the law is exact. Proof: docs/proofs/_secure_noise.md, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

import numpy as np

from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.bit_strings import BitString, draw_strings
from dperm_cli.privacy.secure_noise import GAUSSIAN, LAPLACE, WORD, Source

GAMMA_NORM = "gamma_norm"


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
