"""Names of records: a keyed hash of each record's own numbers, made once when it is read.

A name decides which batch a record belongs to (``batch_of``). It is made of the record as it was
parsed, before any arithmetic: the last bits of what is computed later (scaling, features,
projections) may depend on other rows, and a name must not. The key is public. A name is as private
as its record, since whoever guesses the record can compute it.

What is hashed, all little-endian: up to ``WIDE`` columns, the values of all columns in order as
float64. With more columns, for each value that is not zero its column number (from 0, a 64-bit
integer) and the value as float64. The label or target comes last, as float64. A negative zero is
hashed as zero, and every nan as the same nan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

KEY = b"dperm-record-1"
NO_RECORD = np.uint64(0)  # the name of rows of zeros that fill up the data: these are no records
WIDE = 1024  # columns beyond which zeros are left out
_BYTES = 1 << 23  # of rows that are copied at once
_ENTRY = np.dtype([("column", "<u8"), ("value", "<f8")])
_KEYED = hashlib.blake2b(key=KEY, digest_size=8)


def name_records(x: Any, y: np.ndarray) -> np.ndarray:
    """The name of each record.

    Args:
        x: rows [n, p] as they were parsed, dense or CSR; the name does not depend on which.
        y: their labels or targets [n]; zeros where there are none.

    Returns:
        Names [n], uint64.
    """
    n, columns = x.shape
    y = np.asarray(y, dtype=float)
    if sparse.issparse(x):
        x = _canonical(x)
        filled = int(np.max(np.diff(x.indptr), initial=0))
    else:
        filled = columns
    width = columns if columns <= WIDE else 2 * filled
    step = max(1, _BYTES // (8 * (width + 1)))
    digests: list[bytes] = []  # of many records each: one object a record would outweigh it
    for start in range(0, n, step):
        part = slice(start, start + step)
        pieces = _all_values if columns <= WIDE else _entries
        digests.append(b"".join(map(_digest, pieces(x[part], y[part]))))
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def batch_of(names: np.ndarray, batches: int) -> np.ndarray:
    """The batch [n], 0 .. batches - 1, of each name: name * batches / 2^64, rounded down."""
    if not 0 < batches < 2**32:
        raise ValueError(f"{batches} batches: must be from 1 to 2^32 - 1")
    count, half = np.uint64(batches), np.uint64(32)
    low = (names & np.uint64(2**32 - 1)) * count
    return (((names >> half) * count + (low >> half)) >> half).astype(np.int64)


def _digest(record: memoryview) -> bytes:
    keyed = _KEYED.copy()
    keyed.update(record)
    return keyed.digest()


def _all_values(x: Any, y: np.ndarray) -> Iterator[memoryview]:
    """The bytes of each record: all its values and its label."""
    values = np.empty((x.shape[0], x.shape[1] + 1), dtype="<f8")
    values[:, :-1] = x.toarray() if sparse.issparse(x) else x
    values[:, -1] = y
    _unify(values)
    size, content = 8 * values.shape[1], memoryview(values.tobytes())
    for start in range(0, len(content), size):
        yield content[start : start + size]


def _entries(x: Any, y: np.ndarray) -> Iterator[memoryview]:
    """The bytes of each record: the columns and values that are not zero, and its label."""
    x = sparse.csr_array(x, copy=True)
    x.eliminate_zeros()
    entries = np.empty(x.nnz, dtype=_ENTRY)
    entries["column"], entries["value"] = x.indices, x.data
    _unify(entries["value"])
    labels = np.array(y, dtype="<f8")
    _unify(labels)
    body, tail = entries.tobytes(), labels.tobytes()
    for i in range(x.shape[0]):
        inside = body[_ENTRY.itemsize * x.indptr[i] : _ENTRY.itemsize * x.indptr[i + 1]]
        yield memoryview(inside + tail[8 * i : 8 * i + 8])


def _unify(values: np.ndarray) -> None:
    """Replace negative zeros by zero and every nan by the same nan, in place."""
    values += 0.0
    missing = np.isnan(values)
    if missing.any():
        values[missing] = np.nan


def _canonical(x: Any) -> Any:
    """CSR rows with each column once and in order; a copy where they are not so yet."""
    x = sparse.csr_array(x)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x
