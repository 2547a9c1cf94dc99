"""Caches in memory with a limit in bytes, for results that are slow to compute."""

from __future__ import annotations

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")

MIB, GIB = 1 << 20, 1 << 30
_ENTRY = 200  # bytes that an entry takes beside what it holds
_NO_BYTES = (bool, int, float)
_NEVER_GROW = (bool, int, float, str, bytes, np.ndarray)  # types of values
# One for all memos: it is held for moments only, and never while a value is made.
_LOCK = threading.RLock()
_EVERY: weakref.WeakSet[Memo[Any, Any]] = weakref.WeakSet()


def measure_bytes(value: Any) -> int:
    """The bytes of the arrays and texts that a value holds, in its items and fields as well.

    Whatever is held twice counts once; a view counts as the array that it looks at.
    """
    seen: set[int] = set()
    total, todo = 0, [value]
    while todo:
        one = todo.pop()
        if one is None or type(one) in _NO_BYTES:
            continue
        while isinstance(one, np.ndarray) and isinstance(one.base, np.ndarray):
            one = one.base
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes
        elif isinstance(one, (str, bytes, bytearray)):
            total += len(one)
        elif isinstance(one, Mapping):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            todo += one
        elif not isinstance(one, (type, ModuleType)):
            todo += _list_fields(one)
    return total


def _never_grows(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(type(one) in _NEVER_GROW for one in value)
    return type(value) in _NEVER_GROW


def _list_fields(value: Any) -> list[Any]:
    try:
        return list(vars(value).values())
    except TypeError:  # numbers, slots
        return []


class Memo(Generic[K, V]):
    """Values by key, of which the least recently used ones go when they no longer fit.

    The newest value always stays, though it alone be larger than the budget: whoever made it is
    about to use it. A value that grows while it is kept is measured anew whenever it is used.
    A copy of a memo, also in another process, is empty.

    Args:
        budget: Bytes that keys and values may take together.
        most: How many values are kept at most, where they hold more than memory (open files).
        measure: The bytes of a value; ``measure_bytes`` unless given.

    >>> memo = Memo(2 * MIB)
    >>> memo.recall("zeros", lambda: np.zeros(3))
    array([0., 0., 0.])
    >>> memo.recall("zeros", lambda: np.ones(3))  # is known and not made again
    array([0., 0., 0.])
    """

    def __init__(
        self, budget: int, most: int | None = None, measure: Callable[[V], int] = measure_bytes
    ) -> None:
        self.budget, self.most, self._measure = budget, most, measure
        self._values: OrderedDict[K, tuple[V, int, int]] = OrderedDict()  # value, bytes, of key
        self.held = 0
        _EVERY.add(self)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.budget, self.most, self._measure)

    def recall(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made where it is not known."""
        with _LOCK:
            if key in self._values:
                return self._use_again(key)
        return self.put(key, make())

    def get(self, key: K) -> V | None:
        """The value of a key, None where it is not known."""
        with _LOCK:
            return self._use_again(key) if key in self._values else None

    def put(self, key: K, value: V) -> V:
        """Keep a value in place of the one that the key had, and let go of what no longer fits."""
        of_key = _ENTRY + measure_bytes(key)
        with _LOCK:
            self._keep(key, value, of_key + self._measure(value), of_key)
        return value

    def _use_again(self, key: K) -> V:
        value, size, of_key = self._values[key]
        if not _never_grows(value):
            size = of_key + self._measure(value)
        self._keep(key, value, size, of_key)
        return value

    def _keep(self, key: K, value: V, size: int, of_key: int) -> None:
        self.held += size - (self._values.pop(key)[1] if key in self._values else 0)
        self._values[key] = (value, size, of_key)
        while len(self._values) > 1 and (
            self.held > self.budget or (self.most is not None and len(self) > self.most)
        ):
            self.held -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Let go of everything."""
        with _LOCK:
            self._values.clear()
            self.held = 0


def clear_memos() -> None:
    """Let go of what all memos of this process hold."""
    for memo in list(_EVERY):
        memo.clear()


def memoise(budget: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Keep a function's results by its arguments, which have to be hashable, in a memo.

    >>> @memoise(budget=MIB)
    ... def make_grid(points):
    ...     return np.linspace(0.0, 1.0, points)
    >>> make_grid(3) is make_grid(3)
    True
    """

    def wrap(function: Callable[P, V]) -> Callable[P, V]:
        memo: Memo[Any, V] = Memo(budget)

        @functools.wraps(function)
        def recall(*args: P.args, **kwargs: P.kwargs) -> V:
            key = (args, tuple(sorted(kwargs.items())))
            return memo.recall(key, lambda: function(*args, **kwargs))

        return recall

    return wrap
