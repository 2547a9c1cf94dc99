"""Scale or shorten rows; every rule looks at one record at a time.

A rule of this kind commutes with replacing a record, so a mechanism's guarantee covers it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.memory_limits import current_limit
from dperm_cli.datasets.shared.row_blocks import INSTEAD, map_rows

# A dense array or a CSR array; scipy's stubs do not let a checker tell them apart.
Rows = Any

# A row that is moved is placed this far (relatively) inside the bound, so that rounding in the norm
# and in the division cannot put it outside.
ROUNDING_ROOM = 1e-13
_ENTRIES_AT_ONCE = 1 << 17


def bound_rows(
    x: Rows, rule: str, bound: float, norm: float = 2.0, *, in_place: bool = False
) -> Rows:
    """A copy of x [n, p] in which every row has norm <= bound; ``norm`` is 1, 2 or inf.

    ``unit`` gives every non-zero row the norm ``bound``; ``clip`` and ``none`` shorten only the
    rows that are longer. Zero rows stay zero. Entries must be finite, of any magnitude. Dense rows
    are changed where they are with ``in_place``.
    """
    if sparse.issparse(x):
        return _bound_block(x, rule, bound, norm)
    return map_rows(x, lambda rows: _bound_block(rows, rule, bound, norm), in_place)


def _bound_block(x: Rows, rule: str, bound: float, norm: float) -> Rows:
    peak = _row_peaks(x)
    # Two divisions rather than one by the norm: entries near 1e308 would overflow its square.
    direction = _by_rows(np.divide, x, np.where(peak > 0, peak, 1.0))
    length = row_norms(direction, norm)
    target = bound * (1.0 - ROUNDING_ROOM) / np.where(length > 0, length, 1.0)
    scaled = _by_rows(np.multiply, direction, target)
    if rule == "unit":
        return scaled
    with np.errstate(over="ignore"):
        long = peak * length > bound
    if sparse.issparse(x):
        chosen = np.repeat(long, np.diff(x.indptr))
        return _with_entries(x, np.where(chosen, scaled.data, x.data))
    return np.where(long[:, None], scaled, x)


def take_columns(x: Rows, columns: slice, bound: float) -> Rows:
    """Some columns of x [n, p], with rows longer than ``bound`` shortened to it."""
    rows = bound_rows(x[:, columns], "clip", bound)
    return rows if sparse.issparse(rows) else np.ascontiguousarray(rows)


def row_norms(x: Rows, norm: float = 2.0) -> np.ndarray:
    """The norm (1, 2 or inf) of each row of x, shape [n]."""
    if norm == math.inf:
        return _row_peaks(x)
    with np.errstate(over="ignore"):
        if norm == 1.0:
            return _row_sums(x, np.abs(x.data)) if sparse.issparse(x) else np.abs(x).sum(axis=1)
        if sparse.issparse(x):
            return np.sqrt(_row_sums(x, x.data * x.data))
        return np.sqrt(_sums_of_squares(x))


def with_constant(x: Rows) -> Rows:
    """x [n, p] with a coordinate of ones appended, [n, p + 1]."""
    ones = np.ones((x.shape[0], 1))
    if sparse.issparse(x):
        return sparse.csr_array(sparse.hstack([x, sparse.csr_array(ones)], format="csr"))
    current_limit().check(x.nbytes + ones.nbytes, "appending a constant coordinate", INSTEAD)
    return np.hstack([x, ones])


def _row_peaks(x: Rows) -> np.ndarray:
    if not sparse.issparse(x):
        return np.max(np.abs(x), axis=1, initial=0.0)
    peaks = np.zeros(x.shape[0])
    filled = np.flatnonzero(np.diff(x.indptr))
    if filled.size:
        peaks[filled] = np.maximum.reduceat(np.abs(x.data), x.indptr[filled])
    return peaks


def _sums_of_squares(x: np.ndarray) -> np.ndarray:
    """Of the rows of [n, p], added in one order on every processor, however x lies in memory.

    Even and odd columns are added apart, of each whole group of eight the last ones first:
    what ``einsum`` does without fused products, so that rows keep the bytes they have had.
    """
    n, p = x.shape
    pairs, whole = (p + 1) // 2, p // 8 * 4
    order = np.arange(pairs)
    order[:whole] = order[:whole].reshape(-1, 4)[:, ::-1].reshape(-1)
    found, step = np.empty(n), max(1, _ENTRIES_AT_ONCE // p)
    for start in range(0, n, step):
        columns = x[start : start + step].T
        squares = np.zeros((2 * pairs, columns.shape[1]))
        np.multiply(columns, columns, out=squares[:p])
        even, odd = np.add.reduce(squares.reshape(pairs, 2, -1)[order], axis=0)
        found[start : start + step] = even + odd
    return found


def _row_sums(x: Rows, values: np.ndarray) -> np.ndarray:
    sums = np.zeros(x.shape[0])
    filled = np.flatnonzero(np.diff(x.indptr))
    if filled.size:
        sums[filled] = np.add.reduceat(values, x.indptr[filled])
    return sums


def _by_rows(operation: np.ufunc, x: Rows, numbers: np.ndarray) -> Rows:
    """The operation of every entry with its row's number."""
    if sparse.issparse(x):
        return _with_entries(x, operation(x.data, np.repeat(numbers, np.diff(x.indptr))))
    return operation(x, numbers[:, None])


def _with_entries(x: Rows, data: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)
