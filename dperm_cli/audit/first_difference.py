"""The first place where two things differ, in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse

_LONGEST = 70


def first_difference(one: Any, other: Any, path: str = "") -> str | None:
    """Where two values of any shape first differ, or None when they are equal to the last bit.

    Dataclasses, mappings, sequences, arrays (dense and sparse) and plain objects are gone through;
    a float equals another of the same bits, and nan equals nan.
    """
    return _difference(one, other, path, set())


def line_difference(one: str, other: str, what: str) -> str | None:
    """The first line in which two texts differ."""
    if one == other:
        return None
    first, second = one.splitlines(), other.splitlines()
    for number in range(max(len(first), len(second))):
        a = first[number] if number < len(first) else "(no such line)"
        b = second[number] if number < len(second) else "(no such line)"
        if a != b:
            return f"{what}, line {number + 1}: {_apart(a, b)}"
    return f"{what}: other line ends"


def _difference(one: Any, other: Any, path: str, seen: set[tuple[int, int]]) -> str | None:
    if one is other or (id(one), id(other)) in seen:
        return None
    if type(one) is not type(other):
        return f"{path}: {_format_value(one)} and {_format_value(other)}"
    if isinstance(one, (str, bytes, int, float, complex, bool, np.generic, type)) or one is None:
        if isinstance(one, str):
            return None if one == other else f"{path}: {_apart(one, other)}"
        same = one == other if isinstance(one, bytes) else repr(one) == repr(other)
        return None if same else f"{path}: {_format_value(one)} and {_format_value(other)}"
    seen.add((id(one), id(other)))
    if isinstance(one, np.ndarray) and one.dtype != object:
        return _arrays(one, other, path)
    pairs = _parts(one, other)
    if isinstance(pairs, str):
        return f"{path}: {pairs}"
    found = (_difference(a, b, f"{path}{name}", seen) for name, a, b in pairs)
    return next((difference for difference in found if difference), None)


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
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return [(f".{name}", getattr(one, name), getattr(other, name)) for name in names]
    if callable(one) and hasattr(one, "__qualname__"):
        return [(" of", one.__qualname__, other.__qualname__)]
    held = getattr(one, "__dict__", None)
    if held is None:
        return [("", repr(one), repr(other))]
    return _parts(held, other.__dict__)


def _arrays(one: np.ndarray, other: np.ndarray, path: str) -> str | None:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{path}: {one.dtype}{list(one.shape)} and {other.dtype}{list(other.shape)}"
    if one.tobytes() == other.tobytes():
        return None
    a, b = np.ravel(one), np.ravel(other)
    bits = [row.tobytes() for row in a], [row.tobytes() for row in b]
    place = next(i for i, (x, y) in enumerate(zip(*bits, strict=True)) if x != y)
    where = ", ".join(str(i) for i in np.unravel_index(place, one.shape)) if one.ndim else ""
    return f"{path}[{where}]: {a[place]!r} and {b[place]!r}"


def _apart(one: str, other: str) -> str:
    """Two lines from a little before the place where they differ."""
    place = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    start = max(0, place - _LONGEST // 2)
    lead = "..." if start else ""
    return f"{_format_value(lead + one[start:])} and {_format_value(lead + other[start:])}"


def _format_value(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
