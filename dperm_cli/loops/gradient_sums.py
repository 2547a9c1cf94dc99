"""Sums over records of gradients and of losses, for losses of one margin, by blocks of records.

The records are divided into parts, and a part into blocks that stay in cache. Every record's
margin, slope and loss are computed in an order that the record alone fixes. A part is summed record
by record, and the parts in pairs, in a fixed order. The division depends on the numbers of records
and of columns alone. So a sum has the same bits for any number of threads, and whatever other
points it is computed at.

Rows may be single precision numbers. They are turned into doubles as they are read, and everything
is computed in doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.loops import sparse_rows
from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.exact_scores import value
from dperm_cli.loops.jit import compile_inline, compile_loop, fma
from dperm_cli.loops.record_parts import SMALL, add_pairs, divide
from dperm_cli.loops.sgd import Rows, rows, unlock
from dperm_cli.loops.slopes import LOGISTIC, slopes
from dperm_cli.loops.thread_count import run_in_threads

_BLOCK_ENTRIES, _LEAST_BLOCK, _MOST_BLOCK = 2048, 4, 256
_NARROW = 16  # columns from which ``lanes.dot`` adds in another order


@compile_inline
def _dense_margins(x, begin, z, theta, m):
    """z[i] <- <x_{begin + i}, theta_m>, for rows that are stored whole."""
    p = theta.shape[1]
    for i in range(z.size):
        z[i] = lanes.dot(x, (begin + i) * p, theta, m * p, p)


@compile_inline
def _two_dense_margins(x, begin, z, theta, m):
    """z[0] and z[1] [2 or more, records]: the margins at theta_m and at theta_{m + 1}."""
    p = theta.shape[1]
    for i in range(z.shape[1]):
        z[0, i], z[1, i] = lanes.two_dots(x, (begin + i) * p, theta, m * p, (m + 1) * p, p)


@compile_inline
def _narrow_margins(x, begin, z, across):
    """z[lane, i] <- <x_{begin + i}, theta_lane> for four points at once, across [p, 4].

    For p < 16. The sums are added up in the order of ``lanes.dot``: the bits are the same.
    """
    p = across.shape[0]
    whole = p - p % 4
    for i in range(z.shape[1]):
        at = (begin + i) * p
        s0 = s1 = s2 = s3 = lanes.spread(0.0)
        for k in range(0, whole, 4):
            place = 4 * k
            s0 = lanes.mul_add(
                lanes.spread(lanes.load_one(x, at + k)), lanes.load(across, place), s0
            )
            s1 = lanes.mul_add(
                lanes.spread(lanes.load_one(x, at + k + 1)), lanes.load(across, place + 4), s1
            )
            s2 = lanes.mul_add(
                lanes.spread(lanes.load_one(x, at + k + 2)), lanes.load(across, place + 8), s2
            )
            s3 = lanes.mul_add(
                lanes.spread(lanes.load_one(x, at + k + 3)), lanes.load(across, place + 12), s3
            )
        total = lanes.add(lanes.add(s0, s2), lanes.add(s1, s3))
        for k in range(whole, p):
            total = lanes.mul_add(
                lanes.spread(lanes.load_one(x, at + k)), lanes.load(across, 4 * k), total
            )
        for lane in range(4):
            z[lane, i] = lanes.pick(total, lane)


@compile_inline
def _add_dense_rows(x, begin, weights, out, m):
    """out[m] += sum_i weights[i] x_{begin + i}, record after record."""
    p, count = out.shape[1], weights.size
    # four records at a time: a sum is read and written once for them
    fours, to = count - count % 4, m * p
    whole = p - p % 4
    for i in range(0, fours, 4):
        a = (begin + i) * p
        b, c, d = a + p, a + 2 * p, a + 3 * p
        w0, w1 = lanes.spread(weights[i]), lanes.spread(weights[i + 1])
        w2, w3 = lanes.spread(weights[i + 2]), lanes.spread(weights[i + 3])
        for k in range(0, whole, 4):
            total = lanes.load(out, to + k)
            total = lanes.mul_add(lanes.load(x, a + k), w0, total)
            total = lanes.mul_add(lanes.load(x, b + k), w1, total)
            total = lanes.mul_add(lanes.load(x, c + k), w2, total)
            lanes.store(out, to + k, lanes.mul_add(lanes.load(x, d + k), w3, total))
        for k in range(whole, p):
            one = lanes.load_one(out, to + k)
            one = fma(lanes.load_one(x, a + k), weights[i], one)
            one = fma(lanes.load_one(x, b + k), weights[i + 1], one)
            one = fma(lanes.load_one(x, c + k), weights[i + 2], one)
            one = fma(lanes.load_one(x, d + k), weights[i + 3], one)
            lanes.store_one(out, to + k, one)
    for i in range(fours, count):
        a, weight = (begin + i) * p, lanes.spread(weights[i])
        for k in range(0, whole, 4):
            total = lanes.mul_add(lanes.load(x, a + k), weight, lanes.load(out, to + k))
            lanes.store(out, to + k, total)
        for k in range(whole, p):
            one = fma(lanes.load_one(x, a + k), weights[i], lanes.load_one(out, to + k))
            lanes.store_one(out, to + k, one)


@compile_inline
def _add_dense_rows_twice(x, begin, weights, out, m):
    """The same for out[m] and out[m + 1] with weights[0] and weights[1]: rows are read once."""
    p, count = out.shape[1], weights.shape[1]
    fours, to, on = count - count % 4, m * p, (m + 1) * p
    whole = p - p % 4
    for i in range(0, fours, 4):
        a = (begin + i) * p
        b, c, d = a + p, a + 2 * p, a + 3 * p
        v0, v1 = lanes.spread(weights[0, i]), lanes.spread(weights[0, i + 1])
        v2, v3 = lanes.spread(weights[0, i + 2]), lanes.spread(weights[0, i + 3])
        w0, w1 = lanes.spread(weights[1, i]), lanes.spread(weights[1, i + 1])
        w2, w3 = lanes.spread(weights[1, i + 2]), lanes.spread(weights[1, i + 3])
        for k in range(0, whole, 4):
            row = lanes.load(x, a + k)
            one = lanes.mul_add(row, v0, lanes.load(out, to + k))
            two = lanes.mul_add(row, w0, lanes.load(out, on + k))
            row = lanes.load(x, b + k)
            one, two = lanes.mul_add(row, v1, one), lanes.mul_add(row, w1, two)
            row = lanes.load(x, c + k)
            one, two = lanes.mul_add(row, v2, one), lanes.mul_add(row, w2, two)
            row = lanes.load(x, d + k)
            lanes.store(out, to + k, lanes.mul_add(row, v3, one))
            lanes.store(out, on + k, lanes.mul_add(row, w3, two))
        for k in range(whole, p):
            one, two = lanes.load_one(out, to + k), lanes.load_one(out, on + k)
            for record in range(4):
                entry = lanes.load_one(x, a + record * p + k)
                one = fma(entry, weights[0, i + record], one)
                two = fma(entry, weights[1, i + record], two)
            lanes.store_one(out, to + k, one)
            lanes.store_one(out, on + k, two)
    if fours < count:
        _add_dense_rows(x, begin + fours, weights[0, fours:], out, m)
        _add_dense_rows(x, begin + fours, weights[1, fours:], out, m + 1)


@compile_inline
def _group_points(theta):
    """How many fours of points ``_narrow_margins`` takes, and these [fours, p, 4]."""
    p = theta.shape[1]
    fours = theta.shape[0] // 4 if p < _NARROW else 0
    groups = np.empty((fours, p, 4))
    for four in range(fours):
        for k in range(p):
            for lane in range(4):
                groups[four, k, lane] = theta[4 * four + lane, k]
    return fours, groups


@compile_loop
def add_dense_gradients(rows, begin, end, theta, code, width, out):
    """out [m, p] += sum over the records begin .. end - 1 of slope(<x, theta>; y) x."""
    x, y = rows[1], rows[5]
    block = min(max(_BLOCK_ENTRIES // theta.shape[1], _LEAST_BLOCK), _MOST_BLOCK)
    fours, groups = _group_points(theta)
    pairs = theta.shape[0] - theta.shape[0] % 2
    for start in range(begin, end, block):
        stop = min(start + block, end)
        z = np.empty((4, stop - start))
        for four in range(fours):
            _narrow_margins(x, start, z, groups[four])
            for lane in range(4):
                slopes(code, z[lane], y[start:stop], width)
            _add_dense_rows_twice(x, start, z[:2], out, 4 * four)
            _add_dense_rows_twice(x, start, z[2:], out, 4 * four + 2)
        for m in range(4 * fours, pairs, 2):
            _two_dense_margins(x, start, z[:2], theta, m)
            slopes(code, z[0], y[start:stop], width)
            slopes(code, z[1], y[start:stop], width)
            _add_dense_rows_twice(x, start, z[:2], out, m)
        if pairs < theta.shape[0]:
            _dense_margins(x, start, z[0], theta, pairs)
            slopes(code, z[0], y[start:stop], width)
            _add_dense_rows(x, start, z[0], out, pairs)


@compile_loop
def add_sparse_gradients(rows, begin, end, across, code, width, out):
    """The same for CSR rows, with points and sums in columns: across and out [p, m]."""
    y = rows[5]
    for start in range(begin, end, sparse_rows.BLOCK):
        stop = min(start + sparse_rows.BLOCK, end)
        z = np.empty((across.shape[1], stop - start))
        sparse_rows.find_margins(rows, start, z, across)
        for m in range(z.shape[0]):
            slopes(code, z[m], y[start:stop], width)
        sparse_rows.add_rows(rows, start, z, out)


@compile_inline
def _sum_values(code, z, y, width):
    """The sum of the losses at margins z."""
    if code == LOGISTIC:  # a loop of its own: it vectorises
        for i in range(z.size):
            z[i] = value(LOGISTIC, z[i], y[i], width)
    else:
        for i in range(z.size):
            z[i] = value(code, z[i], y[i], width)
    total = 0.0
    for i in range(z.size):
        total += z[i]
    return total


@compile_loop
def add_dense_losses(rows, begin, end, theta, code, width, out):
    """out [m] += sum over the records begin .. end - 1 of the loss at theta [m, p]."""
    x, y = rows[1], rows[5]
    block = min(max(_BLOCK_ENTRIES // theta.shape[1], _LEAST_BLOCK), _MOST_BLOCK)
    fours, groups = _group_points(theta)
    pairs = theta.shape[0] - theta.shape[0] % 2
    for start in range(begin, end, block):
        stop = min(start + block, end)
        z = np.empty((4, stop - start))
        for four in range(fours):
            _narrow_margins(x, start, z, groups[four])
            for lane in range(4):
                out[4 * four + lane] += _sum_values(code, z[lane], y[start:stop], width)
        for m in range(4 * fours, pairs, 2):
            _two_dense_margins(x, start, z, theta, m)
            out[m] += _sum_values(code, z[0], y[start:stop], width)
            out[m + 1] += _sum_values(code, z[1], y[start:stop], width)
        if pairs < theta.shape[0]:
            _dense_margins(x, start, z[0], theta, pairs)
            out[pairs] += _sum_values(code, z[0], y[start:stop], width)


@compile_loop
def add_sparse_losses(rows, begin, end, across, code, width, out):
    """The same for CSR rows, with points in columns: across [p, m]."""
    y = rows[5]
    for start in range(begin, end, sparse_rows.BLOCK):
        stop = min(start + sparse_rows.BLOCK, end)
        z = np.empty((across.shape[1], stop - start))
        sparse_rows.find_margins(rows, start, z, across)
        for m in range(z.shape[0]):
            out[m] += _sum_values(code, z[m], y[start:stop], width)


def wrap_rows(x: Any, y: np.ndarray) -> Rows:
    """The records as compiled loops take them; single precision rows stay what they are.

    Args:
        x: Rows [n, p], dense or sparse.
        y: Labels or targets [n].
    """
    if not (isinstance(x, np.ndarray) and x.dtype == np.float32 and x.flags.c_contiguous):
        return rows(x, y)
    empty = rows(x[:0], y)
    return Rows(False, unlock(x), *empty[2:])


def sum_gradients(
    records: Rows, theta: np.ndarray, code: int, width: float, is_part: bool = False
) -> np.ndarray:
    """The sum over all records of slope(<x, theta>; y) x at each row of ``theta``.

    Args:
        records: Rows [n, p], and their labels or targets.
        theta: Points [m, p].
        code: Of the loss (``loops.slopes``).
        width: Half-width of a huberized loss; the others ignore it.
        is_part: Whether these records are one part of others: they are not divided again.

    Returns:
        The sums [m, p].
    """
    points = _arrange(records, theta)
    add = add_sparse_gradients if records.has_csr else add_dense_gradients
    found = _sum_parts(add, records, points, code, width, points.shape, is_part)
    return np.ascontiguousarray(found.T)[: len(theta)] if records.has_csr else found


def sum_losses(
    records: Rows, theta: np.ndarray, code: int, width: float, is_part: bool = False
) -> np.ndarray:
    """The sum over all records of their loss at each row of ``theta`` [m, p]: [m]."""
    points = _arrange(records, theta)
    add = add_sparse_losses if records.has_csr else add_dense_losses
    shape = (points.shape[1] if records.has_csr else len(theta),)
    return _sum_parts(add, records, points, code, width, shape, is_part)[: len(theta)]


def _arrange(records: Rows, theta: np.ndarray) -> np.ndarray:
    """Points [m, p] as the loops take them: for CSR rows in columns, one or a multiple of four."""
    n = len(records.indptr) - 1 if records.has_csr else len(records.x)
    if (n, records.x.shape[1]) != (records.y.size, theta.shape[1]):  # the loops check no bounds
        raise ValueError(f"records {(n, records.x.shape[1])} do not fit {theta.shape}")
    if not records.has_csr:
        return np.ascontiguousarray(theta, dtype=float)
    return sparse_rows.put_in_columns(theta)


def _sum_parts(
    add: Any, records: Rows, points: np.ndarray, code: int, width: float, shape: tuple[int, ...],
    is_part: bool,
) -> np.ndarray:  # fmt: skip
    stored = records.values.size if records.has_csr else records.x.size
    columns, count = points.shape if records.has_csr else points.shape[::-1]

    def sum_part(part: tuple[int, int]) -> np.ndarray:
        out = np.zeros(shape)
        add(records, part[0], part[1], points, code, width, out)
        return out

    n = records.y.size
    parts = [(0, n)] if is_part else divide(n, columns, is_sparse=bool(records.has_csr))
    is_small = stored * count <= SMALL
    found = [sum_part(part) for part in parts] if is_small else run_in_threads(sum_part, parts)
    return add_pairs(found)
