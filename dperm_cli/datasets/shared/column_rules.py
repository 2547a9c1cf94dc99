"""Scale columns by declared bounds (public) or by bounds fitted to the data (not private)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared.row_blocks import map_rows
from dperm_cli.datasets.shared.row_rules import Rows

# Share of the columns of a sparse matrix that bounds may fill.
MOST_FILLED = 0.1


def by_bounds(x: Rows, bounds: np.ndarray, centred: bool, *, in_place: bool = False) -> Rows:
    """Columns mapped from their declared [low, high] to [-1, 1] (centred) or [0, 1].

    ``bounds`` is [p, 2] or [2]. Values outside their bounds are clipped to them first. A sparse
    matrix stays sparse: zero must stay zero in all but a few columns, which are filled. Dense rows
    are changed where they are with ``in_place``.
    """
    low, high = np.broadcast_to(bounds, (x.shape[1], 2)).T
    if sparse.issparse(x):
        return _sparse_by_bounds(x, low, high, centred)
    return map_rows(x, lambda rows: _map_values(rows, low, high, centred), in_place)


def fitted_map(x: Rows, kind: str, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """(offset [p], divisor [p]) of ``minmax`` or ``standardise``, read off the rows of x.

    Sparse columns are only divided (by the largest magnitude, or by the root mean square), never
    shifted. Constant columns are divided by one.
    """
    if sparse.issparse(x):
        offset = np.zeros(x.shape[1])
        if kind == "minmax":
            spread = np.asarray(abs(x).max(axis=0).todense(), dtype=float).ravel()
        else:
            squares = np.asarray(x.multiply(x).sum(axis=0), dtype=float).ravel()
            spread = np.sqrt(squares / x.shape[0])
    elif kind == "minmax":
        low, high = x.min(axis=0), x.max(axis=0)
        offset, spread = ((low + high) / 2, (high - low) / 2) if centred else (low, high - low)
    else:
        offset, spread = x.mean(axis=0), x.std(axis=0)
    return offset, np.where(spread > 0, spread, 1.0)


def apply_map(x: Rows, offset: np.ndarray, divisor: np.ndarray) -> Rows:
    """(x - offset) / divisor, column by column."""
    if sparse.issparse(x):
        return sparse.csr_array((x.data / divisor[x.indices], x.indices, x.indptr), shape=x.shape)
    return (x - offset) / divisor


def _sparse_by_bounds(x, low, high, centred: bool) -> sparse.csr_array:
    """The map applied to stored entries; the few columns that move zero are filled."""
    at_zero = _map_values(np.zeros(low.size), low, high, centred)
    moved = np.flatnonzero(at_zero)
    if moved.size > MOST_FILLED * low.size:
        allowed = "on a sparse matrix the bounds must map 0 to 0 in most columns: [0, high] with "
        allowed += "centred=false, [-high, high] with centred=true (or ask for dense storage)"
        raise InputError("dataset.scaling", "bounds", allowed)
    data = _map_values(x.data, low[x.indices], high[x.indices], centred)
    scaled = sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)
    if moved.size == 0:
        return scaled
    keep = np.ones(low.size)
    keep[moved] = 0.0
    # Copies: eliminate_zeros works in place, and x may be a file mapped read-only.
    parts = (data * keep[x.indices], x.indices.copy(), x.indptr.copy())
    rest = sparse.csr_array(parts, shape=x.shape)
    rest.eliminate_zeros()
    block = _map_values(x[:, moved].toarray(), low[moved], high[moved], centred)
    indices = np.tile(moved.astype(x.indices.dtype), x.shape[0])
    indptr = np.arange(x.shape[0] + 1, dtype=x.indptr.dtype) * moved.size
    filled = sparse.csr_array((block.ravel(), indices, indptr), shape=x.shape)
    return sparse.csr_array(rest + filled)


def _map_values(values: np.ndarray, low, high, centred: bool) -> np.ndarray:
    fraction = np.clip(values, low, high)
    fraction -= low
    fraction /= high - low
    return 2.0 * fraction - 1.0 if centred else fraction
