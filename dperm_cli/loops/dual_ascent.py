"""Coordinate ascent on the dual of a ridge-regularised sum, in feature rows or by a Gram matrix.

minimise sum_i l(z_i; y_i) + (m / 2) |w|^2 with z_i = <w, x_i>; its dual is the maximum over a of
-sum_i l*(a_i) - |sum_i a_i x_i|^2 / (2 m), and w = -sum_i a_i x_i / m [Shalev-Shwartz and Zhang
2013]. One coordinate is maximised exactly at a time; losses by the codes of ``slopes``.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.slopes import HINGE, HUBERIZED_HINGE, LOGISTIC

_NEWTON = 60  # steps of the logistic coordinate, which needs a handful
_TINY = 1e-300


@compile_inline
def solve_coordinate(code, width, z, y, a, q):
    """The a' that minimises l*(a') - (a' - a) z + (q / 2) (a' - a)^2."""
    if code == HINGE:
        u = -a * y
        return -y * min(max(u + (1.0 - y * z) / q, 0.0), 1.0)
    if code == HUBERIZED_HINGE:
        u = -a * y
        return -y * min(max((1.0 + width - y * z + q * u) / (2.0 * width + q), 0.0), 1.0)
    if code == LOGISTIC:
        return -y * _logistic(y * z, -a * y, q)
    return (z - y + q * a) / (1.0 + q)


@compile_inline
def _logistic(m, u, q):
    """The root of t + m + q (1 / (1 + e^-t) - u) in t, as 1 / (1 + e^-t): Newton, bracketed."""
    low, high = -m - q * (1.0 - u), -m + q * u
    t = 0.5 * (low + high)
    for _ in range(_NEWTON):
        s = 1.0 / (1.0 + math.exp(-t)) if t >= 0.0 else math.exp(t) / (1.0 + math.exp(t))
        value = t + m + q * (s - u)
        if value > 0.0:
            high = t
        else:
            low = t
        step = value / (1.0 + q * s * (1.0 - s))
        new = t - step
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-15 * (1.0 + abs(t)):
            t = new
            break
        t = new
    return 1.0 / (1.0 + math.exp(-t)) if t >= 0.0 else math.exp(t) / (1.0 + math.exp(t))


@compile_inline
def _dot(row, w):
    """Sum of row[k] w[k] in eight chains, whatever the precision of the row."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = row.size - row.size % 8
    for k in range(0, whole, 8):
        s0 += row[k] * w[k]
        s1 += row[k + 1] * w[k + 1]
        s2 += row[k + 2] * w[k + 2]
        s3 += row[k + 3] * w[k + 3]
        s4 += row[k + 4] * w[k + 4]
        s5 += row[k + 5] * w[k + 5]
        s6 += row[k + 6] * w[k + 6]
        s7 += row[k + 7] * w[k + 7]
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for k in range(whole, row.size):
        total += row[k] * w[k]
    return total


@compile_inline
def _coordinate(code, width, z, y, a, q):
    """(a', the change by which the kept sum must be updated), which is 0 for a row of zeros."""
    if q <= _TINY:
        return solve_coordinate(code, width, 0.0, y, a, 1e-12), 0.0
    new = solve_coordinate(code, width, z, y, a, q)
    change = new - a
    return (new if change != 0.0 else a), change  # not -0 for 0


@compile_inline
def _follow(kept, factor, row):
    for k in range(kept.size):
        kept[k] += factor * row[k]


@compile_loop
def ascend_rows(x, y, code, width, modulus, square, order, a, w):
    """One pass over the records ``order``; updates a [n] and w [D] in place.

    ``x`` [n, D] may be float32, ``square`` [n] holds |x_i|^2. Returns the largest change of a
    coordinate's slope that was asked for, |a' - a|.
    """
    largest = 0.0
    for place in range(order.size):
        i = order[place]
        row = x[i]
        a[i], change = _coordinate(code, width, _dot(row, w), y[i], a[i], square[i] / modulus)
        if change != 0.0:
            _follow(w, -change / modulus, row)
            largest = max(largest, abs(change))
    return largest


@compile_loop
def ascend_gram(gram, y, code, width, modulus, order, a, z):
    """The same with z = -gram a / m [n] kept in the place of w; ``gram`` may be float32."""
    largest = 0.0
    for place in range(order.size):
        i = order[place]
        row = gram[i]
        a[i], change = _coordinate(code, width, z[i], y[i], a[i], row[i] / modulus)
        if change != 0.0:
            _follow(z, -change / modulus, row)
            largest = max(largest, abs(change))
    return largest


@compile_loop
def margins(x, theta):
    """<x_i, theta_k>, shape [k, n], for rows [n, D] of any precision; each sum has its own order,
    whatever the number of thetas."""
    out = np.empty((theta.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        row = x[i]
        for k in range(theta.shape[0]):
            out[k, i] = _dot(row, theta[k])
    return out
