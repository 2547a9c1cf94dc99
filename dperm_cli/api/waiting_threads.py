"""Find calls that would wait for ever for each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.thread import _WorkItem  # pyright: ignore[reportPrivateUsage]
from types import FrameType


def is_waited_for(owner: int) -> bool:
    """Whether a thread waits for the end of this one, by itself or through others.

    It is seen where it waits in ``Thread.join`` or in ``Future.result``.

    Args:
        owner: The number of the thread, as ``threading.get_ident`` gives it.
    """
    own = set(_list_futures(threading.get_ident()))
    waiting, seen = [owner], set[int]()
    while waiting:
        number = waiting.pop()
        seen.add(number)
        for awaited in _list_awaited(number):
            if isinstance(awaited, Future):
                if awaited in own:
                    return True
                found = [one for one in sys._current_frames() if awaited in _list_futures(one)]
            else:
                found = [awaited.ident] if awaited.ident is not None else []
            if threading.get_ident() in found:
                return True
            waiting += [one for one in found if one not in seen]
    return False


def _list_awaited(number: int) -> Iterator[threading.Thread | Future]:
    """The threads and futures whose end a thread waits for."""
    for frame in _list_frames(number):
        made = frame.f_locals.get("self")
        if isinstance(made, threading.Thread) and frame.f_code.co_name == "join":
            yield made
        if isinstance(made, Future) and frame.f_code.co_name == "result":
            yield made


def _list_futures(number: int) -> Iterator[Future]:
    """The futures that a thread of a pool is at work on."""
    for frame in _list_frames(number):
        made = frame.f_locals.get("self")
        if isinstance(made, _WorkItem):
            yield made.future


def _list_frames(number: int) -> Iterator[FrameType]:
    frame = sys._current_frames().get(number)
    while frame is not None:
        yield frame
        frame = frame.f_back
