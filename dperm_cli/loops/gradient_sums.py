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

from dperm_cli.loops import dense_rows, sparse_rows
from dperm_cli.loops.exact_scores import value
from dperm_cli.loops.jit import compile_inline, compile_loop
from dperm_cli.loops.record_parts import SMALL, add_pairs, divide
from dperm_cli.loops.sgd import Rows, rows, unlock
from dperm_cli.loops.slopes import LOGISTIC, block_slopes
from dperm_cli.loops.thread_count import run_in_threads

_BLOCK_ENTRIES, _LEAST_BLOCK, _MOST_BLOCK = 2048, 4, 256


@compile_loop
def add_dense_gradients(rows, begin, end, theta, code, width, out):
    """out [m, pad(p)] += sum over the records begin .. end - 1 of slope(<x, theta>; y) x."""
    block = _LEAST_BLOCK
    if theta.shape[1] < dense_rows.LONG:  # a multiple of 16: vector loops over a block have no rest
        block = max(min(_BLOCK_ENTRIES // theta.shape[1], _MOST_BLOCK) // 16 * 16, 16)
    fours, z = dense_rows.group_points(theta), np.empty((5, block))
    whole = end - (end - begin) % block
    for start in range(begin, whole, block):
        _add_block(rows, start, z, theta, fours, code, width, out)
    if whole < end:
        _add_block(rows, whole, np.empty((5, end - whole)), theta, fours, code, width, out)


@compile_loop(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add_block(rows, start, z, theta, fours, code, width, out):
    """The same for as many records as z [5, records] has room for.

    It is compiled as a function of its own. Written into the loop over blocks, it was up to a sixth
    slower at one point: references to arrays were counted more often, by atomic operations.
    """
    x, (points, p) = rows[1], theta.shape
    labels, scratch = rows[5][start : start + z.shape[1]], z[4]
    in_fours, in_pairs = 4 * fours.shape[0], points - points % 2
    for m in range(0, in_fours, 4):
        dense_rows.find_margins_of_four(x, start, z, fours[m // 4])
        for lane in range(4):
            block_slopes(code, z[lane], labels, width, scratch)
        dense_rows.add_rows(x, start, z, 0, p, out, m, 2)
        dense_rows.add_rows(x, start, z, 2, p, out, m + 2, 2)
    for m in range(in_fours, in_pairs, 2):
        dense_rows.find_margins_of_two(x, start, z, theta, m)
        for lane in range(2):
            block_slopes(code, z[lane], labels, width, scratch)
        dense_rows.add_rows(x, start, z, 0, p, out, m, 2)
    if in_pairs < points:
        dense_rows.find_margins(x, start, z, theta, in_pairs)
        block_slopes(code, z[0], labels, width, scratch)
        dense_rows.add_rows(x, start, z, 0, p, out, in_pairs, 1)


@compile_loop
def add_sparse_gradients(rows, begin, end, across, code, width, out):
    """The same for CSR rows, with points and sums in columns: across and out [p, m]."""
    y = rows[5]
    for start in range(begin, end, sparse_rows.BLOCK):
        stop = min(start + sparse_rows.BLOCK, end)
        z, scratch = np.empty((across.shape[1], stop - start)), np.empty(stop - start)
        sparse_rows.find_margins(rows, start, z, across)
        for m in range(z.shape[0]):
            block_slopes(code, z[m], y[start:stop], width, scratch)
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
    x, y, (points, p) = rows[1], rows[5], theta.shape
    block = min(max(_BLOCK_ENTRIES // p, _LEAST_BLOCK), _MOST_BLOCK)
    fours = dense_rows.group_points(theta)
    in_fours, in_pairs = 4 * fours.shape[0], points - points % 2
    for start in range(begin, end, block):
        stop = min(start + block, end)
        z, labels = np.empty((4, stop - start)), y[start:stop]
        for m in range(0, in_fours, 4):
            dense_rows.find_margins_of_four(x, start, z, fours[m // 4])
            for lane in range(4):
                out[m + lane] += _sum_values(code, z[lane], labels, width)
        for m in range(in_fours, in_pairs, 2):
            dense_rows.find_margins_of_two(x, start, z, theta, m)
            for lane in range(2):
                out[m + lane] += _sum_values(code, z[lane], labels, width)
        if in_pairs < points:
            dense_rows.find_margins(x, start, z, theta, in_pairs)
            out[in_pairs] += _sum_values(code, z[0], labels, width)


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
    if records.has_csr:
        found = _sum_parts(
            add_sparse_gradients, records, points, code, width, points.shape, is_part
        )
        return np.ascontiguousarray(found.T)[: len(theta)]
    shape = (len(points), dense_rows.pad(points.shape[1]))
    found = _sum_parts(add_dense_gradients, records, points, code, width, shape, is_part)
    return np.ascontiguousarray(found[:, : points.shape[1]])


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
