"""A digest of records that does not depend on their order, nor on how a file spells them."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
from scipy import sparse

from dperm_cli.core.digests import hash_parts
from dperm_cli.datasets.shared.row_rules import Rows

_ENTRY = np.dtype([("column", "<i4"), ("value", "<f8")])
# Two numbers, not bytes: numpy drops the trailing zero bytes of a string.
_HASH = np.dtype([("high", ">u8"), ("low", ">u8")])
_ROWS_AT_ONCE = 1 << 16


def of_records(x: Rows, labels: np.ndarray) -> str:
    """blake2b (128 bits, hex) of the sorted digests of all records and of the shape.

    A record is its label and its non-zero entries in column order, so a mirror that recompresses,
    reorders or reformats a file has the same digest; a lost row, an added entry or a changed value
    has another.
    """
    x = sparse.csr_array(x)
    hashes = [
        _hashes(x[start : start + _ROWS_AT_ONCE], labels[start : start + _ROWS_AT_ONCE])
        for start in range(0, x.shape[0], _ROWS_AT_ONCE)
    ]
    every = np.concatenate(hashes) if hashes else np.empty(0, dtype=_HASH)
    return hash_parts(
        repr(tuple(x.shape)), every[np.lexsort((every["low"], every["high"]))].tobytes()
    )


def _hashes(x: sparse.csr_array, labels: np.ndarray) -> np.ndarray:
    """One 128-bit digest per record, [n] pairs of 64-bit numbers."""
    x.sort_indices()
    x.eliminate_zeros()
    entries = np.empty(x.nnz, dtype=_ENTRY)
    entries["column"], entries["value"] = x.indices, x.data
    body = entries.tobytes()
    # Adding zero turns -0.0 into 0.0.
    head = (np.asarray(labels, dtype="<f8") + 0.0).tobytes()
    ends = (np.asarray(x.indptr, dtype=np.int64) * _ENTRY.itemsize).tolist()
    digests = [
        hashlib.blake2b(head[8 * i : 8 * i + 8] + body[start:end], digest_size=16).digest()
        for i, (start, end) in enumerate(itertools.pairwise(ends))
    ]
    return np.frombuffer(b"".join(digests), dtype=_HASH)
