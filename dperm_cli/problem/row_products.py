"""Products with the rows of a data set, in doubles, without a copy of all rows.

Rows are multiplied a part at a time (``problem.split_rows``). Rows of single precision are turned
into doubles a block at a time: numpy would make a copy of all of them. Sparse rows are multiplied
by loops of our own, which use all threads (``loops.sparse_rows``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.problem.split_rows import is_dense, join_parts, sum_parts

_BLOCK_NUMBERS = 1 << 20


def multiply_rows(x: Any, v: np.ndarray) -> np.ndarray:
    """x @ v for rows x [n, p] and v [p] or [p, m].

    >>> multiply_rows(np.eye(2, dtype=np.float32), np.array([0.1, 2.0])).tolist()
    [0.1, 2.0]
    """
    if sparse.issparse(x):
        return _multiply_sparse(x, v)
    return join_parts(x, partial(_multiply_part, v=v if v.flags.forc else np.ascontiguousarray(v)))


def _multiply_part(x: Any, v: np.ndarray) -> np.ndarray:
    if sparse.issparse(x):
        return _multiply_sparse(x, v)
    if not is_single(x):
        return np.asarray(x @ v)
    out = np.empty((x.shape[0], *v.shape[1:]))
    for part in slice_rows(x):
        out[part] = x[part].astype(np.float64) @ v
    return out


def add_rows(x: Any, weights: np.ndarray) -> np.ndarray:
    """x.T @ weights, the sum of rows x [n, p] with weights [n] or [n, m]: [p] or [p, m]."""
    if sparse.issparse(x):
        return _add_sparse(x, weights)
    return sum_parts(x, _add_part, weights)


def _add_part(x: Any, weights: np.ndarray) -> np.ndarray:
    if sparse.issparse(x):
        return _add_sparse(x, weights, is_part=True)
    if not is_single(x):
        return np.asarray(x.T @ weights)
    out = np.zeros((x.shape[1], *weights.shape[1:]))
    for part in slice_rows(x):
        out += x[part].astype(np.float64).T @ weights[part]
    return out


def _multiply_sparse(x: Any, v: np.ndarray) -> np.ndarray:
    from dperm_cli.loops import sparse_rows  # by need, as all compiled loops

    return sparse_rows.multiply(x, v)


def _add_sparse(x: Any, weights: np.ndarray, is_part: bool = False) -> np.ndarray:
    from dperm_cli.loops import sparse_rows

    return sparse_rows.add(x, weights, is_part)


def is_single(x: Any) -> bool:
    """Whether rows are stored whole, in single precision."""
    return is_dense(x) and x.dtype == np.float32


def slice_rows(x: Any) -> Iterator[slice]:
    """Slices of the rows of x [n, p], of about a million numbers each."""
    step = max(1, _BLOCK_NUMBERS // max(1, x.shape[1]))
    return (slice(start, start + step) for start in range(0, x.shape[0], step))
