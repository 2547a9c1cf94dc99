"""Settle what a process of dperm takes from its surroundings, before anything heavy is imported."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from dperm_cli.core import memory_limits, standard_streams
from dperm_cli.core.errors import InputError, describe_error

# Libraries start threads when they are imported, and read these once.
THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "ARROW_IO_THREADS",
)  # fmt: skip
# Signals that ask a process to end: from a batch system, a terminal that closes, a key, a limit
# of processor time.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU)
# Those that a terminal sends to all processes of a command: workers leave them to their parent.
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
# Bytes that a small run reserves, most of them for numpy, scipy, numba, pyarrow and matplotlib.
LIBRARIES = 1 << 30
INSTEAD = "raise the limit, or take less data, fewer trials or fewer workers"
_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "bad_alloc", "unable to allocate")

Handler = Callable[[int, FrameType | None], Any] | int


class Terminated(KeyboardInterrupt):
    """A signal asked this process to end: what is finished stays."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        self.number = signal.Signals(number)
        super().__init__(self.number.name)


def settle() -> None:
    """Make a process of its own ready: its streams work, and libraries start no threads.

    One thread, whatever the environment says: sums of several have other last bits, and processes
    fight over cores. Where machine code is kept is settled with the room that compiles.
    """
    standard_streams.settle()
    os.environ.update(dict.fromkeys(THREADS, "1"))


def end_at_signals() -> dict[int, Handler]:
    """Have every ending signal raise ``Terminated``; the handlers that were there before.

    A signal that is ignored stays ignored: that is how ``nohup`` works.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        for other in before:  # none is heeded while the first is handled
            signal.signal(other, signal.SIG_IGN)
        raise Terminated(number)

    before: dict[int, Handler] = {}
    for number in ENDING_SIGNALS:
        found = signal.getsignal(number)
        if found is not signal.SIG_IGN or number == signal.SIGTERM:
            before[number] = signal.SIG_DFL if found is None else found
            signal.signal(number, end)
    return before


def find_shortage(error: BaseException) -> InputError | None:
    """The refusal that takes the place of an error about memory; None for any other error."""
    seen: BaseException | None = error
    while seen is not None:
        words = describe_error(seen).lower()
        coded = isinstance(seen, MemoryError) or getattr(seen, "errno", None) == errno.ENOMEM
        if coded or any(mark in words for mark in _NO_MEMORY):
            return memory_limits.current_limit().refuse_more("this command", INSTEAD)
        seen = seen.__cause__ or seen.__context__
    return None


def check_memory() -> None:
    """InputError where the libraries alone do not fit: some of them then hang or abort."""
    limit = memory_limits.address_limit()
    if limit is not None and limit.bytes < LIBRARIES:
        raise limit.refuse(LIBRARIES, "loading libraries and compiled loops", "raise the limit")
