"""Vectors over their own length, also where squares of their entries vanish in floating point."""

from __future__ import annotations

import numpy as np

SHORT = 1e-100  # below it the squares of entries lose digits, and below 1e-162 they are all lost


def find_unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Each row of [..., p] over its Euclidean length, and 0 for a row of zeros.

    The length of a row may be anything: what comes out has length 1 up to rounding, or is 0.

    Args:
        vectors: finite numbers.

    Returns:
        An array of the same shape.

    >>> find_unit_rows(np.array([[3.0, 4.0], [3e-162, 4e-162], [0.0, 0.0]])).round(3).tolist()
    [[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]]
    """
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    short = length < SHORT
    if short.any():
        peak = np.max(np.abs(vectors), axis=-1, keepdims=True, initial=0.0)
        vectors = np.where(short, vectors / np.where(peak > 0.0, peak, 1.0), vectors)
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0.0, length, 1.0)
