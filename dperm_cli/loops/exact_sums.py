"""Sums of records' contributions as integers: softmax gradients, distances, second moments.

Each record gives a vector that follows from the record and public facts alone, by operations in a
fixed order. The vector is shortened to its bound and rounded to integers. Integer addition is
exact, so that a sum does not depend on the order of the records, and one record moves it by its own
vector alone. ``exact_noise.gradient_sum`` does the same for losses of one margin.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.loops.exact_noise import clip_weight, round_nearest
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.short_vectors import SHORT_SQUARE, scale_to_peak

L1_DISTANCE, L2_DISTANCE = 100, 101
_ROOT2 = math.sqrt(2.0)


@compile_inline
def _softmax_slopes(margins, label):
    """Turn margins [k] into the softmax less 1 at the label; its label entry closes the sum."""
    top, own = 0.0, margins[label]
    for k in range(margins.size):
        margins[k] -= own
        if k != label and margins[k] > top:
            top = margins[k]
    total = math.exp(-top)
    for k in range(margins.size):
        if k != label:
            margins[k] = math.exp(margins[k] - top)
            total += margins[k]
    missed = 0.0
    for k in range(margins.size):
        if k != label:
            margins[k] /= total
            missed += margins[k]
    margins[label] = -missed


@compile_loop
def softmax_sum(rows, theta, classes, bound, per_unit, out):
    """out [m, p * classes] int64 <- sum over records of rounded softmax gradients.

    Row m of theta [m, p * classes] holds the weights of column j in class k at j * classes + k. A
    record gives round(per_unit * g), g shortened to norm ``bound``; per_unit * bound must stay
    below 2^50, n times it below 2^62.
    """
    has_csr, x, indptr, columns, values, y = rows
    slopes = np.empty(classes)
    out[:] = 0
    for m in range(theta.shape[0]):
        for i in range(y.size):
            slopes[:] = 0.0
            square = 0.0
            first = indptr[i] if has_csr else 0
            last = indptr[i + 1] if has_csr else x.shape[1]
            for j in range(first, last):
                value = values[j] if has_csr else x[i, j]
                column = columns[j] if has_csr else j
                square += value * value
                for k in range(classes):
                    slopes[k] += value * theta[m, column * classes + k]
            _softmax_slopes(slopes, min(max(int(y[i]), 0), classes - 1))
            steep = 0.0
            for k in range(classes):
                steep += slopes[k] * slopes[k]
            weight = per_unit * clip_weight(1.0, square * steep, bound)
            # not where a slope or a length is no finite number
            if not weight > 0.0:
                continue
            for j in range(first, last):
                value = values[j] if has_csr else x[i, j]
                column = columns[j] if has_csr else j
                for k in range(classes):
                    out[m, column * classes + k] += round_nearest(weight * slopes[k] * value)


@compile_loop
def distance_sum(x, theta, code, bound, per_unit, out):
    """out [m, p] int64 <- sum over rows of x [n, p] of rounded subgradients of |theta - x|.

    ``code`` says in which norm: ``L1_DISTANCE`` or ``L2_DISTANCE``. Otherwise as ``softmax_sum``.
    """
    p = theta.shape[1]
    slopes = np.empty(p)
    out[:] = 0
    for m in range(theta.shape[0]):
        for i in range(x.shape[0]):
            square = 0.0
            for j in range(p):
                slopes[j] = theta[m, j] - x[i, j]
                if code == L1_DISTANCE:
                    slopes[j] = np.sign(slopes[j])
                square += slopes[j] * slopes[j]
            unit = 1.0
            if code == L2_DISTANCE:
                if square < SHORT_SQUARE:
                    square = scale_to_peak(slopes)
                if not square > 0.0:
                    continue
                unit, square = 1.0 / math.sqrt(square), 1.0
            weight = per_unit * clip_weight(unit, square / (unit * unit), bound)
            if not weight > 0.0:
                continue
            for j in range(p):
                out[m, j] += round_nearest(weight * slopes[j])


@compile_loop
def moment_sum(rows, p, weights, targets, row_bound, target_bound, share, per_unit, out):
    """out [q + p + 1] int64 <- sum over records of rounded moments, q = p (p + 1) / 2.

    These are (w svec(u u^T), t u, 0), or with ``share`` > 0 (w svec(u u^T), sqrt(2) s t u, s^2
    t^2), s = ``share``: the last column of the packed matrix of (u, s t).

    u is the row over ``row_bound``, shortened to length 1, w its weight, held to [0, 1], and t its
    target over ``target_bound``, held to [-1, 1]. svec is the upper triangle, off-diagonal entries
    times sqrt(2). Per_unit must stay below 2^49, n times it below 2^61.
    """
    has_csr, x, indptr, columns, values, y = rows
    size = p * (p + 1) // 2
    out[:] = 0
    for i in range(y.size):
        first = indptr[i] if has_csr else 0
        last = indptr[i + 1] if has_csr else p
        square = 0.0
        for j in range(first, last):
            value = (values[j] if has_csr else x[i, j]) / row_bound
            square += value * value
        # a row without a finite length, and one of zeros, counts for nothing
        if not (0.0 < square < np.inf):
            continue
        scale = 1.0 / max(1.0, math.sqrt(square))
        target = 0.0
        if target_bound > 0.0:
            target = min(1.0, max(-1.0, targets[i] / target_bound))
        if not abs(target) <= 1.0:
            target = 0.0
        if share > 0.0:
            own = share * target
            out[size + p] += round_nearest(per_unit * (own * own))
            target = _ROOT2 * own
        weight = min(1.0, max(0.0, weights[i]))
        if not weight <= 1.0:
            weight = 0.0
        for j in range(first, last):
            a = columns[j] if has_csr else j
            left = (values[j] if has_csr else x[i, j]) / row_bound * scale
            # where row a of the triangle begins, less a
            start = a * p - a * (a - 1) // 2 - a
            out[start + a] += round_nearest(per_unit * (weight * (left * left)))
            out[size + a] += round_nearest(per_unit * (left * target))
            for k in range(j + 1, last):
                b = columns[k] if has_csr else k
                right = (values[k] if has_csr else x[i, k]) / row_bound * scale
                out[start + b] += round_nearest(per_unit * (weight * (_ROOT2 * (left * right))))
