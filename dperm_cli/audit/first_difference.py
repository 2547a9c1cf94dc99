"""Find the first place where two values differ, and describe it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy import sparse

_LONGEST = 70
_CACHES = ("_kept", "_cache", "_memo")  # attributes that hold what an object has computed


def first_difference(one: Any, other: Any, path: str = "") -> str | None:
    """The first place where two values of any shape differ, with what is there; else None."""
    found = (f"{where}: {words}" for where, words in _compare(one, other, path, set()))
    return next(found, None)


def list_differences(one: Any, other: Any, path: str = "") -> list[str]:
    """The places where two values of any shape differ; none when they are equal to the last bit.

    Dataclasses, mappings, sequences, arrays (dense and sparse) and plain objects are gone through;
    a float equals another of the same bits, and nan equals nan. What an object keeps of what it has
    computed is no part of it.
    """
    return [where for where, _ in _compare(one, other, path, set())]


def line_difference(one: str, other: str, what: str) -> str | None:
    """The first line in which two texts differ."""
    if one == other:
        return None
    lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="(no such line)")
    for number, (a, b) in enumerate(lines, start=1):
        if a != b:
            return f"{what}, line {number}: {_apart(a, b)}"
    return f"{what}: other line ends"


def _compare(
    one: Any, other: Any, path: str, seen: set[tuple[int, int]]
) -> Iterator[tuple[str, str]]:
    """Where two values differ, and what stands there."""
    if one is other or (id(one), id(other)) in seen:
        return
    if type(one) is not type(other):
        yield path, f"{_format_value(one)} and {_format_value(other)}"
    elif isinstance(one, str):
        if one != other:
            yield path, _apart(one, other)
    elif isinstance(one, (bytes, int, float, complex, np.generic, type)) or one is None:
        if repr(one) != repr(other):
            yield path, f"{_format_value(one)} and {_format_value(other)}"
    elif isinstance(one, np.ndarray) and one.dtype != object:
        yield from _arrays(one, other, path)
    else:
        seen.add((id(one), id(other)))
        pairs = _parts(one, other)
        if isinstance(pairs, str):
            yield path, pairs
            return
        for name, a, b in pairs:
            yield from _compare(a, b, f"{path}{name}", seen)


def _parts(one: Any, other: Any) -> list[tuple[str, Any, Any]] | str:
    """The named parts of two things of one type, or why they have not the same ones."""
    if isinstance(one, Mapping):
        if list(one) != list(other):
            return f"keys {_format_value(list(one))} and {_format_value(list(other))}"
        return [(f"[{key!r}]", one[key], other[key]) for key in one]
    if isinstance(one, Set):
        return [("", sorted(map(repr, one)), sorted(map(repr, other)))]
    if isinstance(one, (list, tuple)) or (isinstance(one, np.ndarray) and one.ndim):
        if len(one) != len(other):
            return f"{len(one)} and {len(other)} entries"
        return [(f"[{i}]", a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
    if sparse.issparse(one):
        a, b = sparse.csr_array(one), sparse.csr_array(other)
        if a.shape != b.shape:
            return f"shapes {a.shape} and {b.shape}"
        return [(f".{n}", getattr(a, n), getattr(b, n)) for n in ("indptr", "indices", "data")]
    if callable(one) and hasattr(one, "__qualname__"):
        return [(" of", one.__qualname__, other.__qualname__)]
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
    elif hasattr(one, "__dict__"):
        # one of two equal objects may have computed something that the other has not
        names = [name for name in vars(one) if name in vars(other)]
    else:
        return [("", repr(one), repr(other))]
    names = [name for name in names if not name.startswith(_CACHES)]
    return [(f".{name}", getattr(one, name), getattr(other, name)) for name in names]


def _arrays(one: np.ndarray, other: np.ndarray, path: str) -> Iterator[tuple[str, str]]:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        yield path, f"{one.dtype}{list(one.shape)} and {other.dtype}{list(other.shape)}"
        return
    if one.tobytes() == other.tobytes():
        return
    a, b = np.ravel(one), np.ravel(other)
    bits = [row.tobytes() for row in a], [row.tobytes() for row in b]
    place = next(i for i, (x, y) in enumerate(zip(*bits, strict=True)) if x != y)
    where = ", ".join(str(i) for i in np.unravel_index(place, one.shape)) if one.ndim else ""
    yield f"{path}[{where}]", f"{a[place]!r} and {b[place]!r}"


def _apart(one: str, other: str) -> str:
    """Two lines from a little before the place where they differ."""
    start = max(0, find_place(one, other) - _LONGEST // 2)
    lead = "..." if start else ""
    return f"{_format_value(lead + one[start:])} and {_format_value(lead + other[start:])}"


def find_place(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The first place where two sequences differ, or the length of the shorter one."""
    unlike = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(unlike, min(len(one), len(other)))


def _format_value(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
