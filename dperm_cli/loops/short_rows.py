"""Steps of several chains on short dense rows, four chains to a vector.

A row of ten numbers fills vectors badly: its sums go across lanes, its ends are done one by one.
Here a vector holds one coordinate of four chains, so that nothing crosses lanes. Every chain's
operations are those of ``sgd``, in the same order: the results have the same bytes.

Arrays named ``*_lanes`` are [p, width] for a width that is a multiple of four; spare lanes at
the end repeat the last chain.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.learning_rates import learning_rate
from dperm_cli.loops.projections import shrinkage
from dperm_cli.loops.slopes import slopes

LONGEST = 15  # ``vector_lanes.dot`` adds up longer rows in another order


@compile_inline
def spread_out(rows, width):
    """The transpose [p, width] of rows [chains, p], with spare lanes."""
    chains, p = rows.shape
    out = np.empty((p, width))
    for k in range(p):
        for c in range(width):
            out[k, c] = rows[min(c, chains - 1), k]
    return out


@compile_inline
def collect(found, rows):
    """Write the first lanes of ``found`` [p, width] back to rows [chains, p]."""
    for c in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            rows[c, k] = found[k, c]


@compile_inline
def _sum_lanes(s0, s1, s2, s3):
    """The four partial sums of a row, added up as ``vector_lanes.dot`` does."""
    zero = lanes.spread(0.0)  # it adds three sums of nothing to each
    even = lanes.add(lanes.add(s0, zero), lanes.add(s2, zero))
    return lanes.add(even, lanes.add(lanes.add(s1, zero), lanes.add(s3, zero)))


@compile_inline
def _fetch(x, at, k, rows_lanes, place):
    """Coordinate k of the records that start at the offsets ``at`` [4], kept for the move."""
    row = lanes.gather(x, at[0] + k, at[1] + k, at[2] + k, at[3] + k)
    lanes.store(rows_lanes, place, row)
    return row


@compile_inline
def _margins(x, at, theta_lanes, rows_lanes, c):
    """<x_i, theta> of four chains from lane c on."""
    p, width = theta_lanes.shape
    s0 = s1 = s2 = s3 = lanes.spread(0.0)
    whole = p - p % 4
    for k in range(0, whole, 4):
        m = k * width + c
        s0 = lanes.mul_add(_fetch(x, at, k, rows_lanes, m), lanes.load(theta_lanes, m), s0)
        m += width
        s1 = lanes.mul_add(_fetch(x, at, k + 1, rows_lanes, m), lanes.load(theta_lanes, m), s1)
        m += width
        s2 = lanes.mul_add(_fetch(x, at, k + 2, rows_lanes, m), lanes.load(theta_lanes, m), s2)
        m += width
        s3 = lanes.mul_add(_fetch(x, at, k + 3, rows_lanes, m), lanes.load(theta_lanes, m), s3)
    total = _sum_lanes(s0, s1, s2, s3)
    for k in range(whole, p):
        m = k * width + c
        row = _fetch(x, at, k, rows_lanes, m)
        total = lanes.mul_add(row, lanes.load(theta_lanes, m), total)
    return total


@compile_inline
def _squares(theta_lanes, c):
    """|theta|^2 of four chains from lane c on."""
    p, width = theta_lanes.shape
    s0 = s1 = s2 = s3 = lanes.spread(0.0)
    whole = p - p % 4
    for k in range(0, whole, 4):
        m = k * width + c
        t0, t1 = lanes.load(theta_lanes, m), lanes.load(theta_lanes, m + width)
        t2, t3 = lanes.load(theta_lanes, m + 2 * width), lanes.load(theta_lanes, m + 3 * width)
        s0, s1 = lanes.mul_add(t0, t0, s0), lanes.mul_add(t1, t1, s1)
        s2, s3 = lanes.mul_add(t2, t2, s2), lanes.mul_add(t3, t3, s3)
    total = _sum_lanes(s0, s1, s2, s3)
    for k in range(whole, p):
        t = lanes.load(theta_lanes, k * width + c)
        total = lanes.mul_add(t, t, total)
    return total


@compile_inline
def _move_coordinates(rule, eta, weights, theta_lanes, rows_lanes, c, first, last, noise, at):
    """Coordinates first .. last - 1 of four chains move; their noise starts at offsets ``at``."""
    width = theta_lanes.shape[1]
    factor, decay = lanes.spread(rule.factor), lanes.spread(rule.decay)
    scale, rate = lanes.spread(rule.noise_scale), lanes.spread(eta)
    for k in range(first, last):
        m, j = k * width + c, k - first
        old = lanes.load(theta_lanes, m)
        drawn = lanes.gather(noise, at[0] + j, at[1] + j, at[2] + j, at[3] + j)
        g = lanes.mul(weights, lanes.load(rows_lanes, m))
        value = lanes.add(lanes.mul(factor, g), lanes.mul(decay, old))
        noisy = lanes.add(value, lanes.mul(scale, drawn))
        lanes.store(theta_lanes, m, lanes.sub(old, lanes.mul(rate, noisy)))


@compile_inline
def _take_step(rule, eta, x, y, theta_lanes, rows_lanes, chosen, s, left, right, weight, label):
    """One step of every chain on the Euclidean ball, along the records chosen[:, s].

    ``rows_lanes`` [p, width], ``weight`` and ``label`` [width] are scratch.
    """
    p, width = theta_lanes.shape
    last, pairs, ahead = chosen.shape[0] - 1, (p + 1) // 2, min(s + 1, chosen.shape[1] - 1)
    for c in range(0, width, 4):
        c0, c1, c2, c3 = c, min(c + 1, last), min(c + 2, last), min(c + 3, last)
        i0, i1, i2, i3 = chosen[c0, s], chosen[c1, s], chosen[c2, s], chosen[c3, s]
        z = _margins(x, (i0 * p, i1 * p, i2 * p, i3 * p), theta_lanes, rows_lanes, c)
        lanes.store(weight, c, z)
        lanes.store(label, c, lanes.gather(y, i0, i1, i2, i3))
    for c in range(last + 1):
        lanes.prefetch(y, chosen[c, ahead])
        lanes.prefetch(x, chosen[c, ahead] * p)
        lanes.prefetch(x, chosen[c, ahead] * p + p - 1)
    slopes(rule.loss_code, weight, label, rule.loss_width)
    for c in range(0, width, 4):
        size, m, weights = left.shape[1], s * pairs, lanes.load(weight, c)
        c1, c2, c3 = min(c + 1, last), min(c + 2, last), min(c + 3, last)
        at = (c * size + m, c1 * size + m, c2 * size + m, c3 * size + m)
        _move_coordinates(rule, eta, weights, theta_lanes, rows_lanes, c, 0, pairs, left, at)
        _move_coordinates(rule, eta, weights, theta_lanes, rows_lanes, c, pairs, p, right, at)
        lanes.store(weight, c, _squares(theta_lanes, c))
    for c in range(width):
        weight[c] = shrinkage(weight[c], rule.size)
    for c in range(0, width, 4):
        factors = lanes.load(weight, c)
        for m in range(c, p * width, width):
            lanes.store(theta_lanes, m, lanes.mul(factors, lanes.load(theta_lanes, m)))


@compile_loop(inline="always")  # compiled once, inside the loop that calls it
def take_steps(
    x, y, rule, start, count, theta_lanes, total_lanes, left, right, chosen,
    rows_lanes, weight, label,
):  # fmt: skip
    """Steps start .. start + count - 1 of every chain; parameters as in ``_take_step``."""
    for s in range(count):
        eta = learning_rate(rule.eta_kind, rule.eta0, float(start + s + 1))
        _take_step(
            rule, eta, x, y, theta_lanes, rows_lanes, chosen, s, left, right, weight, label
        )  # fmt: skip
        if start + s >= rule.averaged_from:
            for k in range(theta_lanes.shape[0]):
                for c in range(theta_lanes.shape[1]):
                    total_lanes[k, c] += theta_lanes[k, c]
