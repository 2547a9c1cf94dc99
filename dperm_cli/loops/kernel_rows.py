"""Kernel values of each row with public points, added up in the order of the columns.

A library's product of matrices may round a row by how many there are and where it stands. Under
secure noise the last bits of a kernel value must follow from its own record alone.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.jit import compile_inline, compile_loop

# what is added up over the columns: (x - z)^2, |x - z|, x z, or the smaller of x and z
SQUARES, LENGTHS, PRODUCTS, SMALLER = 0, 1, 2, 3


@compile_inline
def _join(x, z, code):
    if code == SQUARES:
        return (x - z) * (x - z)
    if code == LENGTHS:
        return abs(x - z)
    return x * z if code == PRODUCTS else min(x, z)


@compile_loop
def _add_columns(x, points, code, out):
    """out[i, t] = the sum over columns j of what ``code`` makes of x[i, j] and points[t, j]."""
    for i in range(x.shape[0]):
        for t in range(points.shape[0]):
            total = 0.0
            for j in range(x.shape[1]):
                total += _join(x[i, j], points[t, j], code)
            out[i, t] = total


@compile_loop
def _decay(values, gamma):
    """Replace each value v by exp(-gamma v)."""
    for i in range(values.shape[0]):
        for t in range(values.shape[1]):
            values[i, t] = math.exp(-gamma * values[i, t])


@compile_loop
def _raise_power(values, offset, degree):
    """Replace each value v by (v + offset)^degree, multiplied out from the left."""
    for i in range(values.shape[0]):
        for t in range(values.shape[1]):
            base, found = values[i, t] + offset, 1.0
            for _ in range(degree):
                found *= base
            values[i, t] = found


def add_columns(x: np.ndarray, points: np.ndarray, code: int) -> np.ndarray:
    """Sums over columns [n, T] for rows [n, p] and points [T, p].

    Args:
        x: float64 rows, one for each record.
        points: public points.
        code: ``SQUARES``, ``LENGTHS``, ``PRODUCTS`` or ``SMALLER``.
    """
    out = np.empty((len(x), len(points)))
    _add_columns(np.ascontiguousarray(x), np.ascontiguousarray(points), code, out)
    return out


def decay(values: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma v) of values [n, T], in their place."""
    _decay(values, gamma)
    return values


def raise_power(values: np.ndarray, offset: float, degree: int) -> np.ndarray:
    """(v + offset)^degree of values [n, T], in their place."""
    _raise_power(values, offset, degree)
    return values
