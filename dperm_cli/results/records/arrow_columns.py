"""Columns of records as Arrow's arrays, made from their bytes.

``pyarrow.array`` of Python objects asks pandas first what they are, and imports it for that: half a
second of a run that has no other use for it.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def column_of(values: Sequence[Any], kind: Any) -> Any:
    """Values of one column as a ``pyarrow.Array``.

    Args:
        values: Plain Python objects of the column's kind, or None (``schema.coerce``).
        kind: The type of one of the fields of ``schema.arrow_schema``.
    """
    import pyarrow as pa

    count, there = len(values), [value is not None for value in values]
    if not any(there):
        return pa.nulls(count, kind)
    missing = not all(there)
    known = _bits(there) if missing else None
    children = None
    if pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
        zeroed = (0 if value is None else value for value in values) if missing else values
        parts = [_numbers("q" if pa.types.is_integer(kind) else "d", zeroed)]
    elif pa.types.is_string(kind):
        texts = [b"" if value is None else value.encode() for value in values]
        parts = [_offsets(texts), pa.py_buffer(b"".join(texts))]
    elif pa.types.is_boolean(kind):
        parts = [_bits([bool(value) for value in values])]
    else:
        lists = [value or () for value in values]
        numbers = _numbers("d", itertools.chain.from_iterable(lists))
        total = sum(map(len, lists))
        children = [pa.Array.from_buffers(kind.value_type, total, [None, numbers])]
        parts = [_offsets(lists)]
    return pa.Array.from_buffers(kind, count, [known, *parts], children=children)


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
