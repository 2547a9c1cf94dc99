"""Products with sparse rows (CSR): margins of records, and sums of records with weights.

Several vectors are multiplied at once: those of an entry lie together in memory. Every record's
margin is added up in the order of its entries, and a sum record after record. So the bits do not
depend on the other vectors, and parts of the records are added in a fixed order, as in
``gradient_sums``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop, fma
from dperm_cli.loops.record_parts import SMALL, add_pairs, divide
from dperm_cli.loops.sgd import Rows, rows
from dperm_cli.loops.thread_count import run_in_threads

BLOCK = 64  # records


@compile_inline
def find_margins(rows, begin, z, across):
    """z[m, i] <- <x_{begin + i}, theta_m>, for CSR rows and all points at once.

    ``across`` [p, m] holds the points in its columns, so that those of an entry lie together.
    """
    columns, values, points = rows[3], rows[4], across.shape[1]
    for i in range(z.shape[1]):
        first, last = _find_entries(rows, begin + i)
        if points == 1:
            one = 0.0
            for k in range(first, last):
                entry = lanes.load_one(across, np.uint32(columns[k]))
                one = fma(lanes.load_one(values, k), entry, one)
            z[0, i] = one
            continue
        m = 0
        while m < points:
            m = _group_margins(columns, values, first, last, across, m, z, i)


@compile_inline
def _group_margins(columns, values, first, last, across, m, z, i):
    """The margins of a record at up to twelve points from m on; returns the point after them."""
    fours = min((across.shape[1] - m) // 4, 3)
    if fours == 3:
        _multiply_fours(columns, values, first, last, across, m, 3, z, i)
    elif fours == 2:
        _multiply_fours(columns, values, first, last, across, m, 2, z, i)
    else:
        _multiply_fours(columns, values, first, last, across, m, 1, z, i)
    return m + 4 * fours


@compile_inline
def _multiply_fours(columns, values, first, last, across, m, fours, z, i):
    """z[m : m + 4 fours, i] <- margins: an entry is read once for all these points."""
    a = b = c = lanes.spread(0.0)
    for k in range(first, last):
        entry = lanes.spread(lanes.load_one(values, k))
        place = np.int64(columns[k]) * across.shape[1] + m
        a = lanes.mul_add(entry, lanes.load(across, place), a)
        if fours > 1:
            b = lanes.mul_add(entry, lanes.load(across, place + 4), b)
        if fours > 2:
            c = lanes.mul_add(entry, lanes.load(across, place + 8), c)
    for lane in range(4):
        z[m + lane, i] = lanes.pick(a, lane)
        if fours > 1:
            z[m + 4 + lane, i] = lanes.pick(b, lane)
        if fours > 2:
            z[m + 8 + lane, i] = lanes.pick(c, lane)


@compile_inline
def _find_entries(rows, i):
    """Where the entries of a CSR row begin and end; unsigned, or each index would be checked."""
    return np.uint64(rows[2][i]), np.uint64(rows[2][i + 1])


@compile_inline
def add_rows(rows, begin, z, out):
    """out[:, m] += sum_i z[m, i] x_{begin + i}, record after record, for all points at once."""
    columns, values, points, weights = rows[3], rows[4], out.shape[1], np.empty(12)
    for i in range(z.shape[1]):
        first, last = _find_entries(rows, begin + i)
        if points == 1:
            weight = z[0, i]
            for k in range(first, last):
                column = np.uint32(columns[k])
                moved = fma(lanes.load_one(values, k), weight, lanes.load_one(out, column))
                lanes.store_one(out, column, moved)
            continue
        m = 0
        while m < points:
            fours = min((points - m) // 4, 3)
            for lane in range(4 * fours):
                weights[lane] = z[m + lane, i]
            if fours == 3:
                _add_fours(columns, values, first, last, weights, out, m, 3)
            elif fours == 2:
                _add_fours(columns, values, first, last, weights, out, m, 2)
            else:
                _add_fours(columns, values, first, last, weights, out, m, 1)
            m += 4 * fours


@compile_inline
def _add_fours(columns, values, first, last, weights, out, m, fours):
    """out[:, m : m + 4 fours] += a record with weights: an entry is read once for all of them."""
    a, b, c = lanes.load(weights, 0), lanes.load(weights, 4), lanes.load(weights, 8)
    for k in range(first, last):
        entry = lanes.spread(lanes.load_one(values, k))
        place = np.int64(columns[k]) * out.shape[1] + m
        lanes.store(out, place, lanes.mul_add(entry, a, lanes.load(out, place)))
        if fours > 1:
            lanes.store(out, place + 4, lanes.mul_add(entry, b, lanes.load(out, place + 4)))
        if fours > 2:
            lanes.store(out, place + 8, lanes.mul_add(entry, c, lanes.load(out, place + 8)))


@compile_loop
def multiply_block(rows, begin, end, across, out):
    """out[i] <- <x_i, v> for the records begin .. end - 1 and vectors in columns, across [p, m]."""
    if across.shape[1] == 1:
        find_margins(rows, begin, out[begin:end].T, across)
        return
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        z = np.empty((across.shape[1], stop - start))
        find_margins(rows, start, z, across)
        for i in range(stop - start):
            for m in range(out.shape[1]):
                out[start + i, m] = z[m, i]


@compile_loop
def add_block(rows, begin, end, weights, out):
    """out [p, m] += sum of the records begin .. end - 1 with their weights [n, any up to m]."""
    if out.shape[1] == 1:
        add_rows(rows, begin, weights[begin:end].T, out)
        return
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        z = np.zeros((out.shape[1], stop - start))
        for i in range(stop - start):
            for m in range(weights.shape[1]):
                z[m, i] = weights[start + i, m]
        add_rows(rows, start, z, out)


def put_in_columns(vectors: np.ndarray) -> np.ndarray:
    """Vectors [m, p] as the loops take them: in columns, one or a multiple of four."""
    across = np.zeros((vectors.shape[1], _round_up(len(vectors))))
    across[:, : len(vectors)] = vectors.T
    return across


def _round_up(count: int) -> int:
    return count if count == 1 else -(-count // 4) * 4


def multiply(x: Any, v: np.ndarray) -> np.ndarray:
    """x @ v for sparse rows x [n, p] and v [p] or [p, m]."""
    records, vectors = _wrap(x), v.reshape(len(v), -1)
    if len(vectors) != x.shape[1]:  # the loops check no bounds
        raise ValueError(f"rows {x.shape} do not fit {v.shape}")
    across = put_in_columns(vectors.T)
    out = np.empty((x.shape[0], vectors.shape[1]))
    _map_parts(
        lambda begin, end: multiply_block(records, begin, end, across, out),
        divide(*x.shape, is_sparse=True), x.nnz * across.shape[1],
    )  # fmt: skip
    return out.reshape(-1, *v.shape[1:])


def add(x: Any, weights: np.ndarray, is_part: bool = False) -> np.ndarray:
    """x.T @ weights for sparse rows x [n, p] and weights [n] or [n, m].

    Args:
        x: The rows.
        weights: Of each record.
        is_part: Whether these records are one part of others: they are not divided again.
    """
    n, p = x.shape
    records, own = _wrap(x), np.ascontiguousarray(weights, dtype=float).reshape(len(weights), -1)
    if len(own) != n:
        raise ValueError(f"rows {x.shape} do not fit {weights.shape}")
    count = _round_up(own.shape[1])

    def add_part(begin: int, end: int) -> np.ndarray:
        out = np.zeros((p, count))
        add_block(records, begin, end, own, out)
        return out

    parts = [(0, n)] if is_part else divide(n, p, is_sparse=True)
    found = add_pairs(_map_parts(add_part, parts, x.nnz * count))
    return np.ascontiguousarray(found[:, : own.shape[1]]).reshape(p, *weights.shape[1:])


def _wrap(x: Any) -> Rows:
    return rows(x, np.empty(0))


def _map_parts(work: Any, parts: list[tuple[int, int]], products: int) -> list[Any]:
    if products <= SMALL:
        return [work(*part) for part in parts]
    return run_in_threads(lambda part: work(*part), parts)
