"""Write the arrays of a data set from the staged columns of its records, some of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from dperm_cli.core import progress
from dperm_cli.core.files import open_atomically, storage_errors
from dperm_cli.problem.row_products import slice_rows

_RECORDS = 1 << 16  # that are copied at once
_ENTRIES = 1 << 20  # of sparse rows that are copied at once
_NARROW = 2**31  # entries, rows or columns from which on indices have 64 bits


def write_rows(path: Path, raw: np.ndarray, order: Any, begin: int, end: int) -> None:
    """Write the records ``begin .. end - 1`` of an order, or of their own, as one array.

    Args:
        path: The .npy file.
        raw: The records [n] or [n, p], in the order they were read.
        order: Their numbers [n] in the order that is wanted, or None for their own.
        begin: The first that is written.
        end: The first that is not.
    """
    wide = raw if raw.ndim == 2 else raw[:, None]
    with storage_errors(path), open_atomically(path, sync=False, private=True) as file:
        _write_header(file, raw.dtype, (end - begin, *raw.shape[1:]))
        for part in slice_rows(wide[begin:end]):
            rows = slice(begin + part.start, min(begin + part.stop, end))
            np.ascontiguousarray(raw[rows if order is None else order[rows]]).tofile(file)
            progress.report(f"writing {path.name}", min(rows.stop, end) - begin, end - begin)


def write_sparse(
    path: Path, columns: dict[str, np.ndarray], order: Any, begin: int, end: int, width: int
) -> tuple[int, int]:
    """Write sparse records as the arrays ``PATH.data.npy``, ``.indices.npy`` and ``.indptr.npy``.

    Args:
        path: What the names of the files begin with.
        columns: ``data`` and ``indices`` [entries] of the records in the order they were read, and
            how many entries each has, ``counts`` [n].
        order: As of ``write_rows``.
        begin: The first that is written.
        end: The first that is not.
        width: The number of columns.

    Returns:
        The shape of the rows.
    """
    counts, rows = columns["counts"], end - begin
    total = sum(int(counts[p if order is None else order[p]].sum(dtype=np.int64))
                for p in _slice(begin, end))  # fmt: skip
    kind = np.dtype(np.int32 if max(total, rows, width) < _NARROW else np.int64)
    shapes = {"data": (np.dtype(np.float64), total), "indices": (kind, total),
              "indptr": (kind, rows + 1)}  # fmt: skip
    with ExitStack() as stack, storage_errors(path):
        files = {}
        for name, (dtype, count) in shapes.items():
            target = path.with_name(f"{path.name}.{name}.npy")
            files[name] = stack.enter_context(open_atomically(target, sync=False, private=True))
            _write_header(files[name], dtype, (count,))
        _write_entries(files, columns, order, begin, end, kind)
    return rows, width


def _write_entries(
    files: dict[str, Any], columns: dict[str, np.ndarray], order: Any, begin: int, end: int,
    kind: np.dtype,
) -> None:  # fmt: skip
    counts, written = columns["counts"], 0
    np.zeros(1, kind).tofile(files["indptr"])
    if order is None:
        first = sum(int(counts[part].sum(dtype=np.int64)) for part in _slice(0, begin))
        ends = None
    else:
        first, ends = 0, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    for part in _slice(begin, end):
        rows = None if order is None else order[part]
        lengths = np.asarray(counts[part if rows is None else rows], dtype=np.int64)
        (written + np.cumsum(lengths)).astype(kind).tofile(files["indptr"])
        for some in _cut(lengths):
            count = int(lengths[some].sum())
            if rows is None:
                taken: Any = slice(first, first + count)
                first += count
            else:
                taken = _list_entries(ends[rows[some]], lengths[some])  # type: ignore[index]
            np.ascontiguousarray(columns["data"][taken]).tofile(files["data"])
            columns["indices"][taken].astype(kind).tofile(files["indices"])
            written += count
        progress.report("writing rows", part.stop - begin, end - begin)


def _list_entries(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of the entries of rows that begin at ``starts`` and have these lengths."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _cut(lengths: np.ndarray) -> Iterator[slice]:
    """Slices of rows that have about ``_ENTRIES`` entries together, or one row."""
    ends, start = np.cumsum(lengths), 0
    while start < len(lengths):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _ENTRIES, side="right")))
        yield slice(start, stop)
        start = stop


def _slice(begin: int, end: int) -> Iterator[slice]:
    return (slice(at, min(at + _RECORDS, end)) for at in range(begin, end, _RECORDS))


def _write_header(file: IO[bytes], dtype: np.dtype, shape: Sequence[int]) -> None:
    head: dict[str, Any] = {
        "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape),
    }  # fmt: skip
    np.lib.format.write_array_header_1_0(file, head)
