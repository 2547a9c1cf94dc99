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
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.loops.blake2b import hash_messages

KEY = b"dperm-record-1"
NO_RECORD = np.uint64(0)  # the name of rows of zeros that fill up the data: these are no records
WIDE = 1024  # columns beyond which zeros are left out
_BYTES = 1 << 23  # of rows that are copied at once
_FEW = 1 << 17  # records up to which a compiled loop does not repay the time to load it


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
    names = np.empty(n, dtype=np.uint64)
    find_words = _all_values if columns <= WIDE else _entries
    for start in range(0, n, step):
        part = slice(start, start + step)
        words, ends = find_words(x[part], y[part])
        hash_all = hash_messages if n > _FEW else _hash_one_by_one
        names[part] = hash_all(KEY, words, ends)
    return names


def batch_of(names: np.ndarray, batches: int) -> np.ndarray:
    """The batch [n], 0 .. batches - 1, of each name: name * batches / 2^64, rounded down."""
    if not 0 < batches < 2**32:
        raise ValueError(f"{batches} batches: must be from 1 to 2^32 - 1")
    count, half = np.uint64(batches), np.uint64(32)
    low = (names & np.uint64(2**32 - 1)) * count
    return (((names >> half) * count + (low >> half)) >> half).astype(np.int64)


def _hash_one_by_one(key: bytes, words: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The same as ``hash_messages``, for records too few to repay a compiled loop."""
    content = memoryview(words.astype("<u8").tobytes())
    keyed, digests, start = hashlib.blake2b(key=key, digest_size=8), [], 0
    for end in (8 * ends).tolist():
        one = keyed.copy()
        one.update(content[start:end])
        digests.append(one.digest())
        start = end
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _all_values(x: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is hashed of records, as words, and where each ends: all values and the label."""
    values = np.empty((x.shape[0], x.shape[1] + 1))
    values[:, :-1] = x.toarray() if sparse.issparse(x) else x
    values[:, -1] = y
    _unify(values)
    return values.view(np.uint64).ravel(), values.shape[1] * np.arange(1, len(values) + 1)


def _entries(x: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same: the columns and values that are not zero, and the label."""
    x = sparse.csr_array(x, copy=True)
    x.eliminate_zeros()
    ends = 2 * x.indptr[1:].astype(np.int64) + np.arange(1, x.shape[0] + 1)
    words = np.empty(2 * x.nnz + x.shape[0], dtype=np.uint64)
    is_label = np.zeros(words.size, dtype=bool)
    is_label[ends - 1] = True
    entries = np.empty((x.nnz, 2), dtype=np.uint64)
    entries[:, 0], entries[:, 1] = x.indices, _find_bits(x.data)
    words[~is_label], words[is_label] = entries.ravel(), _find_bits(y)
    return words, ends


def _find_bits(values: np.ndarray) -> np.ndarray:
    """The bits of a copy of these numbers, after ``_unify``."""
    copied = np.array(values, dtype=float)
    _unify(copied)
    return copied.view(np.uint64)


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
