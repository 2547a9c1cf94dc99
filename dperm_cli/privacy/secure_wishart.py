"""Exact differences of two Wishart matrices on a grid, from the operating system's generator.

(scale / 2) (G^T G - H^T H) has G and H of q + 1 rows of q normals. Each normal is an infinite
string of bits, of which only a beginning is drawn. Integers bound every entry from below and above.
Where both ends round to the same multiple of the grid, that is the result. Elsewhere 64 more bits
of the same strings are drawn. So the law is exact. Proof: docs/proofs/_secure_noise.md, section 2.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from dperm_cli.core.symmetric import order_of, triangle_size
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.bit_strings import BitStrings, draw_strings
from dperm_cli.privacy.secure_noise import GAUSSIAN, WORD, Source

WISHART = "wishart"
_LIMB, _LIMBS = 20, 4  # products of limbs, and sums of 2^13 of them, are exact in float64
_MOST_WHOLE = 2 ** (_LIMB * _LIMBS - WORD)  # whole parts above this do not fit the limbs
_MASK = np.uint64(2**_LIMB - 1)


def draw_wishart_differences(
    ratio: float, trials: int, dim: int, source: Source = secure_noise.system_words
) -> np.ndarray:
    """Packed matrices ratio (G^T G - H^T H) / 2, every entry rounded to an integer.

    Args:
        ratio: scale / grid step, between 2^8 and 2^45.
        trials: how many matrices.
        dim: q (q + 1) / 2, the length of a packed matrix (``core.symmetric``).
        source: where random words come from.

    Returns:
        int64 [trials, dim], with the law of the rounded real-valued noise of exactly this scale.

    Raises:
        ValueError: where no q has this ``dim``, or q is above 4,000.
    """
    mantissa, shift = secure_noise.split_ratio(ratio)
    order = order_of(max(dim, 0))
    if triangle_size(order) != dim or not 1 <= order <= 4000:
        raise ValueError(f"{dim} coordinates are no triangle of a matrix of order 1 to 4,000")
    out = np.empty((trials, dim), np.int64)
    for trial in range(trials):
        normals = draw_strings(GAUSSIAN, 2 * (order + 1) * order, source)
        out[trial] = round_difference(normals, order, mantissa, shift)
    return out


def round_difference(normals: BitStrings, order: int, mantissa: int, shift: int) -> list[int]:
    """The nearest integers to mantissa / 2^shift (G^T G - H^T H) / 2, packed.

    Args:
        normals: the entries of G, row by row, then those of H.
        order: q, the number of columns of both.
        mantissa, shift: of the ratio.
    """
    rows, columns = (place.tolist() for place in np.triu_indices(order))
    sums, sizes = _multiply_heads(normals, order)
    found: list[int] = []
    for total, error, i, j in zip(sums, sizes, rows, columns, strict=True):
        places = 1
        low, high = _round_both(total, error, i != j, mantissa, shift, places)
        while low != high:
            places += 1
            total, error = _multiply_columns(normals, order, i, j, places)
            low, high = _round_both(total, error, i != j, mantissa, shift, places)
        found.append(low)
    return found


def _round_both(
    total: int, error: int, is_off_diagonal: bool, mantissa: int, shift: int, places: int
) -> tuple[int, int]:
    """Both ends of one entry, rounded, from its sum of products in units of 2^(-128 places)."""
    low, high = total - error, total + error
    bits = 2 * WORD * places + shift + 1
    if is_off_diagonal:
        # the square root of 2 lies between root and root + 1 units of 2^-64 places
        root = isqrt(2 << (2 * WORD * places))
        low = low * (root + (low < 0))
        high = high * (root + (high > 0))
        bits += WORD * places
    half = 1 << (bits - 1)
    return (mantissa * low + half) >> bits, (mantissa * high + half) >> bits


def _multiply_columns(
    normals: BitStrings, order: int, i: int, j: int, places: int
) -> tuple[int, int]:
    """One entry of G^T G - H^T H from ``places`` words of every number, and its largest error.

    With these words a size lies in [z, z + 1], so that a product is off by z + z' + 1 at most.
    """
    total, error = 0, 0
    for row in range(2 * (order + 1)):
        first, second = normals[row * order + i], normals[row * order + j]
        a, b = first.head(places), second.head(places)
        sign = -1 if (first.negative ^ second.negative ^ (row > order)) else 1
        total += sign * a * b
        error += a + b + 1
    return total, error


def _multiply_heads(normals: BitStrings, order: int) -> tuple[list[int], list[int]]:
    """``_multiply_columns`` of all entries with one word, packed, by exact products of parts.

    A size is split into parts of 20 bits. Products of these are below 2^40, and sums over at most
    2^13 rows are exact in float64, in whatever order a library adds them up.
    """
    rows, columns = np.triu_indices(order)
    if int(normals.whole.max()) >= _MOST_WHOLE:
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        both = [_multiply_columns(normals, order, i, j, 1) for i, j in pairs]
        return [total for total, _ in both], [error for _, error in both]
    parts = _split_sizes(normals).reshape(_LIMBS, 2 * (order + 1), order)
    signs = np.where(normals.negative.reshape(-1, order) == 1, -1.0, 1.0)
    signed = parts * signs
    other = signed.copy()
    other[:, order + 1 :] *= -1.0
    levels = np.zeros((2 * _LIMBS - 1, len(rows)), np.int64)
    for a in range(_LIMBS):
        for b in range(_LIMBS):
            product = signed[a].T @ other[b]
            levels[a + b] += product[rows, columns].astype(np.int64)
    heads = _join_parts(np.sum(parts, axis=1).astype(np.int64))
    count = 2 * (order + 1)
    places = zip(rows.tolist(), columns.tolist(), strict=True)
    return _join_parts(levels), [heads[i] + heads[j] + count for i, j in places]


def _split_sizes(normals: BitStrings) -> np.ndarray:
    """The first 64 bits of all sizes with their whole parts, in parts of 20 bits, lowest first."""
    shifts = [np.uint64(_LIMB * k) for k in range(_LIMBS)]
    parts = np.array([(normals.fraction >> by) & _MASK for by in shifts], float)
    # the last part has the last 4 bits of the fraction, and the whole part above these
    parts[-1] += normals.whole * 2.0 ** (WORD - _LIMB * (_LIMBS - 1))
    return parts


def _join_parts(parts: np.ndarray) -> list[int]:
    """The integers [m] of which ``parts`` [k, m] hold the digits to the base 2^20."""
    joined = [0] * parts.shape[1]
    for digits in parts[::-1]:
        joined = [
            (one << _LIMB) + digit for one, digit in zip(joined, digits.tolist(), strict=True)
        ]
    return joined
