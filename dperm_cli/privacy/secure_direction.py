"""Exact answers of the l_2 channel on a grid, from the operating system's generator.

A direction Z / |Z| is uniform; its side is that of the device's vector x or the other one; each
coordinate is rounded to a grid up or down at random, so that the mean stays. Z and the rounding are
strings of bits that are drawn as far as they are needed (``privacy.bit_strings``), and the sign of
<Z, x> is decided in integers. Proof: docs/proofs/_channels.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from dperm_cli.loops import local_channels
from dperm_cli.loops.local_channels import Coding
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.bit_strings import BitString, draw_strings
from dperm_cli.privacy.secure_noise import GAUSSIAN, WORD, Source, Uniform

GRID_BITS = 40  # a direction's coordinates are multiples of 2^-40


def send(
    coding: Coding, value: np.ndarray, source: Source = secure_noise.system_words
) -> np.ndarray:
    """Answers [trials, dim] to vectors ``value`` [trials, dim].

    Each is ``coding.size`` times a vector of multiples of 2^-40 whose mean is a random unit vector.
    """
    trials, dim = value.shape
    axes = draw_strings(GAUSSIAN, trials * dim, source)
    out = np.empty((trials, dim))
    for trial in range(trials):
        vector = np.array(value[trial], dtype=float)
        chance = int(local_channels.shorten(coding, vector))
        z = axes[trial * dim : (trial + 1) * dim]
        keep = int(source(1)[0]) >= chance
        sign = 1 if keep == is_ahead(z, vector) else -1
        parts = secure_noise.read_words(source(dim), source)
        rounding = [Uniform(parts) for _ in range(dim)]
        out[trial] = round_direction(z, rounding, sign)
    return out * 2.0**-GRID_BITS * coding.size


def is_ahead(z: Sequence[BitString], vector: np.ndarray) -> bool:
    """Whether <z, vector> > 0, from as many bits as decide it; True for a vector of zeros."""
    exact = [Fraction(float(one)) for one in vector]
    shift = max(one.denominator for one in exact)
    whole = [int(one * shift) * (-1 if s.negative else 1) for one, s in zip(exact, z, strict=True)]
    if not any(whole):
        return True
    places = 1
    while True:
        # every size lies between its head and its head and one
        middle = sum(one * s.head(places) for one, s in zip(whole, z, strict=True))
        low = middle + sum(one for one in whole if one < 0)
        high = middle + sum(one for one in whole if one > 0)
        if low >= 0 or high <= 0:
            return low >= 0
        places += 1


def round_direction(z: Sequence[BitString], rounding: Sequence[Uniform], sign: int) -> list[int]:
    """floor(sign 2^40 z_j / |z| + V_j) for every coordinate, V the uniform numbers ``rounding``."""
    places = 1
    while True:
        bits = WORD * places
        heads = [one.head(places) for one in z]
        shortest = isqrt(sum(head * head for head in heads))
        longest = isqrt(sum((head + 1) * (head + 1) for head in heads)) + 1
        if shortest:
            ends = [
                _bound(head, longest, shortest, v.head(places), bits, -1 if s.negative else 1, sign)
                for head, v, s in zip(heads, rounding, z, strict=True)
            ]
            if all(low == high for low, high in ends):
                return [low for low, _ in ends]
        places += 1


def _bound(
    head: int, longest: int, shortest: int, v: int, bits: int, own: int, sign: int
) -> tuple[int, int]:
    """Both ends of one coordinate, rounded down, from heads of ``bits`` bits."""
    least = (head << (GRID_BITS + bits)) // longest
    most = ((head + 1) << (GRID_BITS + bits)) // shortest + 1
    if own * sign < 0:
        least, most = -most, -least
    return (least + v) >> bits, (most + v + 1) >> bits
