"""Report the progress of long steps, from any place below the runner.

A long step calls ``report(label, done, total)``. The runner listens, and decides what to show on
stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, float, float], None]
_listeners: list[Listener] = []


def report(label: str, done: float, total: float) -> None:
    """Tell all listeners that ``done`` of ``total`` units of a step are finished."""
    for listener in _listeners:
        listener(label, done, total)


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with all progress that is reported while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
