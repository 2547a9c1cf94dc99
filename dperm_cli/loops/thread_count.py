"""How many threads a loop of this process may use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any

from dperm_cli.core import processors

_asked: ContextVar[int | None] = ContextVar("threads", default=None)


@cache
def cores() -> int:
    """Cores this process may use: those that it is bound to, within the limit of its container."""
    return processors.count()


def count_threads() -> int:
    """Threads that a loop may use: what ``use_threads`` says, and all cores without it."""
    return _asked.get() or cores()


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Let the loops in the block use so many threads; None for all cores.

    No result depends on it.

    >>> with use_threads(3):
    ...     count_threads()
    3
    """
    before = _asked.set(count)
    try:
        yield
    finally:
        _asked.reset(before)


def split_evenly(count: int, parts: int) -> list[slice]:
    """So many runs of 0 .. count - 1, as even as can be.

    >>> split_evenly(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(a, b) for a, b in pairwise(count * part // parts for part in range(parts + 1))]


def run_in_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """``work`` of every item, in the order of the items, by as many threads as there may be.

    The calling thread takes its share, and what is run here starts no further threads.
    """
    items = list(items)
    threads = min(len(items), count_threads())
    if threads < 2:
        return [work(item) for item in items]
    found: list[Any] = [None] * len(items)
    waiting = deque(range(len(items)))

    def run_waiting() -> None:
        with use_threads(1):
            while waiting:
                try:
                    number = waiting.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    found[number] = work(items[number])
                except BaseException:
                    waiting.clear()  # the others stop
                    raise

    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(run_waiting) for _ in range(threads - 1)]
        run_waiting()
        for helper in helpers:
            helper.result()
    return found
