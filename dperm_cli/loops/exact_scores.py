"""Sums of losses as integers, whose result does not depend on the order of the records."""

from __future__ import annotations

import numpy as np

from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.slopes import (
    ABSOLUTE,
    HINGE,
    HUBERIZED_HINGE,
    HUBERIZED_POSITIVE_PART,
    LINEAR,
    LOGISTIC,
    ROUNDER,
    SQUARED,
    exp,
    log_of_one_plus,
)


@compile_inline
def _rounded_part(u, width):
    """The positive part of u, with its kink rounded off over (-width, width)."""
    if u >= width:
        return u
    return (u + width) * (u + width) / (4.0 * width) if u > -width else 0.0


@compile_inline
def value(code, z, y, width):
    """The loss ``code`` of ``loops.slopes`` at margin z, label y."""
    if code == LOGISTIC:
        return log_of_one_plus(exp(-abs(y * z))) + max(-y * z, 0.0)
    if code == HINGE:
        return max(1.0 - y * z, 0.0)
    if code == SQUARED:
        return 0.5 * (z - y) * (z - y)
    if code == ABSOLUTE:
        return abs(z - y)
    if code == LINEAR:
        return -y * z
    if code == HUBERIZED_HINGE:
        return _rounded_part(1.0 - y * z, width)
    if code == HUBERIZED_POSITIVE_PART:
        return _rounded_part(y - z, width)
    return max(y - z, 0.0)


@compile_inline
def _units(loss, most, per_unit):
    """per_unit * loss, held to ``most`` in size and rounded; 0 for what is no number."""
    if not -most <= loss <= most:
        loss = most if loss > most else (-most if loss < -most else 0.0)
    return np.int64((per_unit * loss + ROUNDER) - ROUNDER)


@compile_loop
def score_sum(rows, theta, code, width, most, per_unit, out):
    """out [m] int64 <- sum over records of round(per_unit * loss) at theta [m, p].

    What a record adds is a function of that record and theta alone, which its place among the
    others does not enter. per_unit * most must stay below 2^50, n times it below 2^62.
    """
    has_csr, x, indptr, columns, values, y = rows
    p = theta.shape[1]
    for m in range(theta.shape[0]):
        total = np.int64(0)
        for i in range(y.size):
            z = 0.0
            if has_csr:
                for k in range(indptr[i], indptr[i + 1]):
                    z += values[k] * theta[m, columns[k]]
            else:
                z = lanes.dot(x, i * p, theta, m * p, p)
            total += _units(value(code, z, y[i], width), most, per_unit)
        out[m] = total
