"""Progress of long steps, on stderr, from anywhere below the runner.

A long step calls ``report(label, done, total)``. The runner decides what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, float, float], None]
_listeners: list[Listener] = []


def report(label: str, done: float, total: float) -> None:
    """Tell whoever listens that ``done`` of ``total`` units of a step are finished."""
    for listener in _listeners:
        listener(label, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Have ``listener`` told of all progress inside the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
