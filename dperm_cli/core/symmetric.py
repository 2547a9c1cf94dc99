"""Symmetric matrices as vectors whose L2 norm is the Frobenius norm."""

from __future__ import annotations

import math

import numpy as np


def pack_symmetric(matrices: np.ndarray) -> np.ndarray:
    """Upper triangles [..., q (q + 1) / 2] of [..., q, q], off-diagonal entries times sqrt(2)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))


def unpack_symmetric(triangles: np.ndarray, order: int) -> np.ndarray:
    """The symmetric matrices [..., order, order] that ``pack_symmetric`` packed.

    >>> matrix = np.array([[1.0, 2.0], [2.0, 3.0]])
    >>> np.allclose(unpack_symmetric(pack_symmetric(matrix), 2), matrix)
    True
    """
    rows, columns = np.triu_indices(order)
    found = np.zeros((*triangles.shape[:-1], order, order))
    found[..., rows, columns] = triangles / np.where(rows == columns, 1.0, math.sqrt(2.0))
    found[..., columns, rows] = found[..., rows, columns]
    return found


def triangle_size(order: int) -> int:
    """q (q + 1) / 2, the length of a packed matrix of this order."""
    return order * (order + 1) // 2


def order_of(size: int) -> int:
    """The least order whose packed matrices have at least ``size`` entries.

    >>> order_of(6), order_of(7)
    (3, 4)
    """
    order = (math.isqrt(8 * size + 1) - 1) // 2
    return order if triangle_size(order) >= size else order + 1
