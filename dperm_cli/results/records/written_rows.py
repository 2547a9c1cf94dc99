"""The rows that a run has just written, for the report at its end: it need not decode them again.

A record is recognised by its checksum, which covers every byte of its file. So what another process
wrote in its place is decoded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from dperm_cli.core.memo import MIB, Memo

Rows = list[dict[str, Any]]

_MOST = 128 * MIB
_ROW, _NUMBER = 8192, 32  # bytes of a row without its point, and of each of the point's numbers
_held: ContextVar[Memo[bytes, Rows] | None] = ContextVar("written rows", default=None)


@contextlib.contextmanager
def hold_rows() -> Iterator[None]:
    """While the block runs, hold the rows of records that this thread writes."""
    before = _held.set(Memo(_MOST, measure=_measure_rows))
    try:
        yield
    finally:
        _held.reset(before)


def keep(checksum: bytes, rows: Rows) -> None:
    """Hold full rows, which nobody may change from now on, where ``hold_rows`` asks for it."""
    memo = _held.get()
    if memo is not None:
        memo.put(checksum, rows)


def find(checksum: bytes) -> Rows | None:
    """The rows of the file with this checksum, not to be changed; None where none are held."""
    memo = _held.get()
    return None if memo is None else memo.get(checksum)


def _measure_rows(rows: Rows) -> int:
    return sum(_ROW + _NUMBER * len(row["theta"] or ()) for row in rows)
