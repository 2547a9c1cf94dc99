"""Maps of rows that round each row by itself, in one order, whatever rows stand beside it.

A library's product of matrices may round a row by how many there are and where it stands. Under
secure noise the last bits of a mapped row must follow from its own record alone.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.jit import compile_inline, compile_loop


@compile_inline
def _shorten(row, bound):
    """Hold a row to the bound on its norm, in place."""
    square = 0.0
    for k in range(row.size):
        square += row[k] * row[k]
    norm = math.sqrt(square)
    if norm > bound:
        factor = (1.0 - 1e-15) * bound / norm
        for k in range(row.size):
            row[k] *= factor


@compile_inline
def _multiply(x, matrix, row):
    """row = x @ matrix, added up in the order of the columns of x."""
    for k in range(row.size):
        row[k] = 0.0
    for j in range(x.size):
        if x[j] != 0.0:
            for k in range(row.size):
                row[k] += x[j] * matrix[j, k]


@compile_loop
def multiply_rows(x, matrix, bound, out):
    """out[i] = x[i] @ matrix, shortened to the bound.

    Args:
        x: rows [n, p].
        matrix: [p, m].
        bound: on the norm of a row of the result.
        out: [n, m], written to.
    """
    for i in range(x.shape[0]):
        _multiply(x[i], matrix, out[i])
        _shorten(out[i], bound)


@compile_loop
def shorten_rows(rows, bound):
    """Hold each row of [n, m] to the bound on its norm, in place."""
    for i in range(rows.shape[0]):
        _shorten(rows[i], bound)


@compile_loop
def map_to_waves(x, frequencies, bound, out):
    """out[i] = (cos <w_k, x_i>, sin <w_k, x_i>) / sqrt(size), shortened to the bound.

    Args:
        x: rows [n, p].
        frequencies: w_k as columns [p, size].
        bound: on the norm of a row of the result.
        out: [n, 2 size], written to.
    """
    size = frequencies.shape[1]
    angles = np.empty(size)
    root = math.sqrt(size)
    for i in range(x.shape[0]):
        _multiply(x[i], frequencies, angles)
        for k in range(size):
            out[i, k] = math.cos(angles[k]) / root
            out[i, size + k] = math.sin(angles[k]) / root
        _shorten(out[i], bound)
