"""Products with rows that are stored whole: margins of records, and sums of records with weights.

Several points are done at once, so that what is read is used several times. A margin is added up in
the order of ``vector_lanes.dot``, and a sum record after record. So the bits do not depend on the
other points.

Sums have rows of a multiple of four numbers. The numbers after the last column mean nothing.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, fma

SHORT = 16  # columns from which ``lanes.dot`` adds in another order
LONG = 1024  # columns from which rows are read from end to end: parts of them lie far apart


def pad(columns: int) -> int:
    """The length of a row of sums."""
    return -(-columns // 4) * 4


@compile_inline
def group_points(theta):
    """Fours of points for ``find_margins_of_four`` [fours, p, 4]; none where rows are not short."""
    p = theta.shape[1]
    fours = np.empty((theta.shape[0] // 4 if p < SHORT else 0, p, 4))
    for four in range(fours.shape[0]):
        for k in range(p):
            for lane in range(4):
                fours[four, k, lane] = theta[4 * four + lane, k]
    return fours


@compile_inline
def find_margins(x, begin, z, theta, m):
    """z[0, i] <- <x_{begin + i}, theta_m>."""
    p = theta.shape[1]
    for i in range(z.shape[1]):
        lanes.store_one(z, i, lanes.dot(x, (begin + i) * p, theta, m * p, p))


@compile_inline
def find_margins_of_two(x, begin, z, theta, m):
    """z[0, i] and z[1, i] <- the margins at theta_m and at theta_{m + 1}."""
    p, count = theta.shape[1], z.shape[1]
    one, two = m * p, (m + 1) * p
    even = count - count % 2 if p >= SHORT else 0
    for i in range(0, even, 2):
        at = (begin + i) * p
        found = lanes.four_dots(x, at, at + p, theta, one, two, p)
        z[0, i], z[0, i + 1], z[1, i], z[1, i + 1] = found
    for i in range(even, count):
        z[0, i], z[1, i] = lanes.two_dots(x, (begin + i) * p, theta, one, two, p)


@compile_inline
def find_margins_of_four(x, begin, z, across):
    """z[lane, i] <- the margin at the point in column ``lane`` of across [p, 4], for short rows."""
    p = across.shape[0]
    whole = p - p % 4
    for i in range(z.shape[1]):
        at = (begin + i) * p
        s0 = s1 = s2 = s3 = lanes.spread(0.0)
        for k in range(0, whole, 4):
            s0 = _add_product(x, at + k, across, 4 * k, s0)
            s1 = _add_product(x, at + k + 1, across, 4 * k + 4, s1)
            s2 = _add_product(x, at + k + 2, across, 4 * k + 8, s2)
            s3 = _add_product(x, at + k + 3, across, 4 * k + 12, s3)
        total = lanes.add(lanes.add(s0, s2), lanes.add(s1, s3))  # in the order of lane_sum
        for k in range(whole, p):
            total = _add_product(x, at + k, across, 4 * k, total)
        for lane in range(4):
            z[lane, i] = lanes.pick(total, lane)


@compile_inline
def _add_product(x, at, across, place, total):
    entry = lanes.spread(lanes.load_one(x, at))
    return lanes.mul_add(entry, lanes.load(across, place), total)


@compile_inline
def add_rows(x, begin, z, lane, p, out, m, points):
    """out[m] += sum_i z[lane, i] x_{begin + i}; the same for m + 1 and lane + 1 if asked for two.

    Args:
        x: Rows [n, p].
        begin: The first record.
        z: Weights [any, records].
        lane: The row of z.
        p: How many columns.
        out: Sums [points, pad(p)].
        m: The point.
        points: One or two.
    """
    if p < SHORT or (points == 2 and p < LONG):
        _add_by_columns(x, begin, z, lane, p, out, m, points)
    else:
        _add_by_rows(x, begin, z, lane, p, out, m, points)


@compile_inline
def _add_by_rows(x, begin, z, lane, p, out, m, points):
    """Add four records at a time: they are read from end to end."""
    count, whole = z.shape[1], p - p % 4
    fours, at, other = count - count % 4, lane * count, (lane + 1) * count
    to, on = m * out.shape[1], (m + 1) * out.shape[1]
    w0 = w1 = w2 = w3 = two = lanes.spread(0.0)
    for i in range(0, fours, 4):
        a = (begin + i) * p
        b, c, d = a + p, a + 2 * p, a + 3 * p
        v0, v1 = _spread_one(z, at + i), _spread_one(z, at + i + 1)
        v2, v3 = _spread_one(z, at + i + 2), _spread_one(z, at + i + 3)
        if points == 2:
            w0, w1 = _spread_one(z, other + i), _spread_one(z, other + i + 1)
            w2, w3 = _spread_one(z, other + i + 2), _spread_one(z, other + i + 3)
        for k in range(0, whole, 4):
            row = lanes.load(x, a + k)
            one = lanes.mul_add(row, v0, lanes.load(out, to + k))
            if points == 2:
                two = lanes.mul_add(row, w0, lanes.load(out, on + k))
            row = lanes.load(x, b + k)
            one, two = lanes.mul_add(row, v1, one), lanes.mul_add(row, w1, two)
            row = lanes.load(x, c + k)
            one, two = lanes.mul_add(row, v2, one), lanes.mul_add(row, w2, two)
            row = lanes.load(x, d + k)
            lanes.store(out, to + k, lanes.mul_add(row, v3, one))
            if points == 2:
                lanes.store(out, on + k, lanes.mul_add(row, w3, two))
        for k in range(whole, p):
            first, second = lanes.load_one(x, a + k), lanes.load_one(x, b + k)
            third, fourth = lanes.load_one(x, c + k), lanes.load_one(x, d + k)
            total = fma(first, lanes.pick(v0, 0), lanes.load_one(out, to + k))
            total = fma(third, lanes.pick(v2, 0), fma(second, lanes.pick(v1, 0), total))
            lanes.store_one(out, to + k, fma(fourth, lanes.pick(v3, 0), total))
            if points == 2:
                total = fma(first, lanes.pick(w0, 0), lanes.load_one(out, on + k))
                total = fma(third, lanes.pick(w2, 0), fma(second, lanes.pick(w1, 0), total))
                lanes.store_one(out, on + k, fma(fourth, lanes.pick(w3, 0), total))
    for i in range(fours, count):
        for point in range(points):
            _add_numbers(x, (begin + i) * p, z[lane + point, i], out, m + point, p)


@compile_inline
def _spread_one(z, at):
    return lanes.spread(lanes.load_one(z, at))


@compile_inline
def _add_by_columns(x, begin, z, lane, p, out, m, points):
    """Add all records, a few columns at a time: their sums stay in registers."""
    count, k = _count_readable(x, begin, z, p), 0
    while k < p:
        left = (p - k + 3) // 4
        if left > 5:
            _add_columns(x, begin, z, lane, p, count, out, m, k, points, 6)
            k += 24
        elif left > 2:
            _add_columns(x, begin, z, lane, p, count, out, m, k, points, 3)
            k += 12
        elif left == 2:
            _add_columns(x, begin, z, lane, p, count, out, m, k, points, 2)
            k += 8
        else:
            _add_columns(x, begin, z, lane, p, count, out, m, k, points, 1)
            k += 4
    for i in range(count, z.shape[1]):
        for point in range(points):
            _add_numbers(x, (begin + i) * p, z[lane + point, i], out, m + point, p)


@compile_inline
def _add_numbers(x, at, weight, out, m, p):
    """out[m, k] += weight x[at + k] for every column of a record."""
    to = m * out.shape[1]
    for k in range(p):
        moved = fma(lanes.load_one(x, at + k), weight, lanes.load_one(out, to + k))
        lanes.store_one(out, to + k, moved)


@compile_inline
def _count_readable(x, begin, z, p):
    """How many records can be read in fours of columns without a look beyond the end of x."""
    count = z.shape[1]
    beyond = (begin + count) * p + (-p) % 4 - x.size  # of the last record's last four
    return count if beyond <= 0 else max(count - (beyond + p - 1) // p, 0)


@compile_inline
def _add_columns(x, begin, z, lane, p, count, out, m, k, points, fours):
    """Add one, two, three or six fours of columns from k on: their sums stay in registers."""
    a, b = m * out.shape[1] + k, (m + 1) * out.shape[1] + k
    first, second = lane * z.shape[1], (lane + 1) * z.shape[1]
    a0 = lanes.load(out, a)
    b0 = a1 = b1 = a2 = b2 = a3 = b3 = a4 = b4 = a5 = b5 = t = lanes.spread(0.0)
    if fours > 1:
        a1 = lanes.load(out, a + 4)
    if fours > 2:
        a2 = lanes.load(out, a + 8)
    if fours > 3:
        a3, a4, a5 = lanes.load(out, a + 12), lanes.load(out, a + 16), lanes.load(out, a + 20)
    if points > 1:
        b0 = lanes.load(out, b)
        if fours > 1:
            b1 = lanes.load(out, b + 4)
        if fours > 2:
            b2 = lanes.load(out, b + 8)
        if fours > 3:
            b3, b4, b5 = lanes.load(out, b + 12), lanes.load(out, b + 16), lanes.load(out, b + 20)
    for i in range(count):
        at, s = (begin + i) * p + k, _spread_one(z, first + i)
        if points > 1:
            t = _spread_one(z, second + i)
        row = lanes.load(x, at)
        a0, b0 = lanes.mul_add(row, s, a0), lanes.mul_add(row, t, b0)
        if fours > 1:
            row = lanes.load(x, at + 4)
            a1, b1 = lanes.mul_add(row, s, a1), lanes.mul_add(row, t, b1)
        if fours > 2:
            row = lanes.load(x, at + 8)
            a2, b2 = lanes.mul_add(row, s, a2), lanes.mul_add(row, t, b2)
        if fours > 3:
            row = lanes.load(x, at + 12)
            a3, b3 = lanes.mul_add(row, s, a3), lanes.mul_add(row, t, b3)
            row = lanes.load(x, at + 16)
            a4, b4 = lanes.mul_add(row, s, a4), lanes.mul_add(row, t, b4)
            row = lanes.load(x, at + 20)
            a5, b5 = lanes.mul_add(row, s, a5), lanes.mul_add(row, t, b5)
    _store_fours(out, a, a0, a1, a2, a3, a4, a5, fours)
    if points > 1:
        _store_fours(out, b, b0, b1, b2, b3, b4, b5, fours)


@compile_inline
def _store_fours(out, at, v0, v1, v2, v3, v4, v5, fours):
    lanes.store(out, at, v0)
    if fours > 1:
        lanes.store(out, at + 4, v1)
    if fours > 2:
        lanes.store(out, at + 8, v2)
    if fours > 3:
        lanes.store(out, at + 12, v3)
        lanes.store(out, at + 16, v4)
        lanes.store(out, at + 20, v5)
