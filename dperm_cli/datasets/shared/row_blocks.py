"""Put records together from blocks, in memory that grows with what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core.memory_limits import current_limit

INSTEAD = "take fewer columns or records, or set limits.memory to what there really is"
BLOCK_CELLS = 1 << 21  # of dense rows that are worked on at once: 16 MiB
_BLOCK_ENTRIES = 1 << 18  # of sparse rows: each step makes new ones of them, of 12 bytes an entry


def row_slices(x: Any) -> Iterator[slice]:
    """Slices of the rows of x [n, p], of ``BLOCK_CELLS`` cells each, or of one row."""
    step = max(1, BLOCK_CELLS // max(1, x.shape[1]))
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def map_rows(x: np.ndarray, change: Callable[[np.ndarray], Any], in_place: bool) -> np.ndarray:
    """The rows of x [n, p] as ``change`` gives them, block by block; where they are if asked."""
    found = x if in_place else np.empty(x.shape)
    for part in row_slices(x):
        found[part] = change(x[part])
    return found


def map_sparse(x: Any, change: Callable[[Any], Any]) -> Any:
    """Sparse rows as ``change`` gives them, block by block: it is given copies."""
    step = max(1, _BLOCK_ENTRIES * x.shape[0] // max(1, x.nnz))
    if step >= x.shape[0]:
        return change(x.copy())
    blocks = (change(x[start : start + step]) for start in range(0, x.shape[0], step))
    found = stack_blocks(((rows, np.empty(rows.shape[0])) for rows in blocks), "sparse rows")
    assert found is not None
    return found[0]


def permute_rows(x: np.ndarray, order: np.ndarray) -> None:
    """Make x [n, p] the rows x[order], in place, some columns at a time."""
    step = max(1, BLOCK_CELLS // max(1, len(x)))
    for start in range(0, x.shape[1], step):
        x[:, start : start + step] = x[order, start : start + step]


def stack_blocks(
    blocks: Iterable[tuple[Any, np.ndarray]], name: str
) -> tuple[Any, np.ndarray] | None:
    """(rows [n, p], targets [n]) of blocks of both, all dense or all CSR; None of no blocks.

    Dense rows take 8 bytes a cell and an eighth more, CSR rows 12 bytes an entry.

    Args:
        blocks: pairs of rows and targets.
        name: of the file, for the error line.

    Raises:
        InputError: they need more memory than is allowed; nothing more is read.
    """
    rest = iter(blocks)
    first, second = next(rest, None), next(rest, None)
    if first is None or second is None:
        return first
    parts = [_GrowingArray(part, name) for part in _parts_of(*first)]
    width = first[0].shape[1]
    x, y = second
    while True:
        for grown, part in zip(parts, _parts_of(x, y), strict=True):
            grown.add(part)
        found = next(rest, None)
        if found is None:
            break
        x, y = found
    y, *rows = (grown.finish() for grown in parts)
    if len(rows) == 1:
        return rows[0], y
    values, columns, counts = rows
    ends = np.concatenate([[0], np.cumsum(counts)])
    if len(values) <= np.iinfo(columns.dtype).max:
        ends = ends.astype(columns.dtype)  # of one type, or scipy copies both
    return sparse.csr_array((values, columns, ends), shape=(len(y), width)), y


def _parts_of(x: Any, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Targets, and the arrays that rows are put together from."""
    if sparse.issparse(x):
        return y, x.data, x.indices, np.diff(x.indptr)
    return y, x


class _GrowingArray:
    """An array that grows along its first axis, where it is."""

    def __init__(self, first: np.ndarray, name: str) -> None:
        self._held, self._used, self._name = np.array(first, order="C"), len(first), name

    def add(self, part: np.ndarray) -> None:
        end = self._used + len(part)
        if end > len(self._held):
            rows = end + end // 8
            row_bytes = self._held.itemsize * int(np.prod(self._held.shape[1:]))
            more = row_bytes * (rows - len(self._held))
            current_limit().check(more, f"reading {self._name}", INSTEAD)
            self._resize(rows)
        self._held[self._used : end] = part
        self._used = end

    def finish(self) -> np.ndarray:
        self._resize(self._used)
        return self._held

    def _resize(self, rows: int) -> None:
        # no view of it has left this object
        self._held.resize((rows, *self._held.shape[1:]), refcheck=False)
