"""Columns of records as Arrow's arrays, made from their bytes.

``pyarrow.array`` of Python objects asks pandas first what they are, and imports it for that: half a
second of a run that has no other use for it.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def column_of(rows: Sequence[Mapping[str, Any]], field: Any) -> Any:
    """The values of the column in all rows, None where a row lacks it, as a ``pyarrow.Array``.

    Args:
        rows: plain Python objects of the column's kind, or None (``schema.coerce``).
        field: of ``schema.arrow_schema``.
    """
    import pyarrow as pa

    count = len(rows)
    values = [row.get(field.name) for row in rows]
    there = [value is not None for value in values]
    if not any(there):
        return pa.nulls(count, field.type)
    known = None if all(there) else _bits(there)
    if pa.types.is_string(field.type):
        texts = [b"" if value is None else value.encode() for value in values]
        parts = [known, _offsets(texts), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(field.type, count, parts)
    if pa.types.is_boolean(field.type):
        bits = _bits([bool(value) for value in values])
        return pa.Array.from_buffers(field.type, count, [known, bits])
    if pa.types.is_list(field.type):
        lists = [value or () for value in values]
        numbers = _numbers("d", itertools.chain.from_iterable(lists))
        child = pa.Array.from_buffers(field.type.value_type, sum(map(len, lists)), [None, numbers])
        parts = [known, _offsets(lists)]
        return pa.Array.from_buffers(field.type, count, parts, children=[child])
    kind = "q" if pa.types.is_integer(field.type) else "d"
    numbers = _numbers(kind, (0 if value is None else value for value in values))
    return pa.Array.from_buffers(field.type, count, [known, numbers])


def _numbers(kind: str, values: Iterable[float]) -> Any:
    """The bytes of numbers of a kind that the module ``array`` knows."""
    import pyarrow as pa

    return pa.py_buffer(array(kind, values))


def _bits(flags: Sequence[bool]) -> Any:
    """A bit each, the first one lowest."""
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _offsets(parts: Sequence[Any]) -> Any:
    """Where each part begins, and where the last one ends."""
    return _numbers("i", itertools.accumulate(map(len, parts), initial=0))
