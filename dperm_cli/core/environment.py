"""Settle what a process of dperm takes from its surroundings, before anything heavy is imported."""

from __future__ import annotations

import _thread
import errno
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

from dperm_cli.core import late_imports, memory_limits, standard_streams, system_calls
from dperm_cli.core.errors import InputError, describe_error
from dperm_cli.core.system_calls import GROUP_SIGNALS

# Libraries start threads when they are imported, and read these once.
THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "ARROW_IO_THREADS",
)  # fmt: skip
# Signals that end no process by themselves (of which SIGIO ends one on Linux alone), and those of
# a process that cannot go on, or not be caught: what it leaves is for the next run to take away.
_HARMLESS = ("SIGCHLD", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH", "SIGINFO",
             *(() if sys.platform == "linux" else ("SIGIO",)))  # fmt: skip
_FATAL = ("SIGILL", "SIGTRAP", "SIGABRT", "SIGEMT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS",
          "SIGKILL", "SIGSTOP")  # fmt: skip
# All others end a process: a terminal, a batch system, a limit or a timer asks it to.
ENDING_SIGNALS = frozenset(signal.valid_signals()) - {
    getattr(signal, name) for name in _HARMLESS + _FATAL if hasattr(signal, name)
}
# Bytes that a small run reserves, most of them for numpy, scipy, numba, pyarrow and matplotlib.
LIBRARIES = 1 << 30
INSTEAD = "raise the limit, or take less data, fewer trials or fewer workers"
_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "bad_alloc", "unable to allocate")
# New objects until garbage is looked for, and how often the older ones are looked at with them.
_SELDOM = (200_000, 10, 10)
_USUAL: list[tuple[int, int, int]] = []  # what Python had before ``settle``
_OWN: list[bool] = []  # filled once a process that was settled looks for garbage as usual
_AGAIN_SECONDS = 0.01  # until a signal that was lost is raised again

Handler = Callable[[int, FrameType | None], Any] | int


@cache
def follow_parent(parent: int) -> None:
    """Leave the signals to all to the parent, and end with it, however it ends: once will do."""
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    end_with(parent)


def end_with(parent: int) -> None:
    """End soon after the parent has ended, however it ends."""
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


class Terminated(KeyboardInterrupt):
    """A signal asked this process to end: what is finished stays."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        self.number = number
        named = number in signal.Signals.__members__.values()  # real-time signals have no names
        super().__init__(signal.Signals(number).name if named else f"signal {number}")


def settle() -> None:
    """Make a process of its own ready: its streams work, and libraries start no threads.

    One thread, whatever the environment says: sums of several have other last bits, and processes
    fight over cores. Where machine code is kept is settled with the room that compiles. Where
    addresses are limited, none are reserved for each thread.
    """
    standard_streams.settle()
    if system_calls.read_address_limit() is not None:
        system_calls.use_one_arena()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    late_imports.load_late()
    _USUAL.append(gc.get_threshold())
    gc.set_threshold(*_SELDOM)


def collect_as_usual() -> None:
    """Look for garbage as often as Python does by itself, and not at what was imported so far.

    ``settle`` has it looked for seldom: nothing that is imported is garbage, and a fifth of the
    time of a small run went into finding that out. From the first cell on there are large arrays.
    """
    if _USUAL:
        gc.freeze()
        gc.set_threshold(*_USUAL.pop())
        _OWN.append(True)


@contextmanager
def collect_seldom() -> Iterator[None]:
    """While the block runs, look for garbage as seldom as ``settle`` has it: it imports a lot.

    A process that is not dperm's own is left as it is.
    """
    before = gc.get_threshold()
    if _OWN:
        gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def raise_at_signals() -> Iterator[frozenset[int]]:
    """While the block runs, have every ending signal raise ``Terminated`` in it, once.

    A signal that is ignored stays ignored: that is how ``nohup`` works. So does one that somebody
    else handles, such as a timer of the program that calls. SIGTERM always ends.

    Yields:
        The signals that are raised; none outside of the main thread, which alone is sent them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield frozenset()
        return
    ended: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        ended.append(number)
        if len(ended) == 1:  # none is heeded while the first is handled
            raise Terminated(number)

    def tell_lost(lost: Any) -> None:
        """Python drops what is raised while it takes an object away: raise it again, afterwards."""
        if not isinstance(lost.exc_value, Terminated):
            hook(lost)
            return
        ended.clear()
        number = lost.exc_value.number
        again = threading.Timer(_AGAIN_SECONDS, _thread.interrupt_main, (number,))
        again.daemon = True
        again.start()

    before: dict[int, Handler] = {}
    hook, sys.unraisablehook = sys.unraisablehook, tell_lost
    try:
        for number in ENDING_SIGNALS:
            found = signal.getsignal(number)
            if found in (signal.SIG_DFL, signal.default_int_handler) or number == signal.SIGTERM:
                before[number] = signal.SIG_DFL if found is None else found
                signal.signal(number, end)
        yield frozenset(before)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def find_end(error: BaseException) -> KeyboardInterrupt | None:
    """The signal or Ctrl-C that an error comes of, if any: whoever is cut short may fail."""
    return next((one for one in _list_causes(error) if isinstance(one, KeyboardInterrupt)), None)


def find_shortage(error: BaseException) -> InputError | None:
    """The refusal that takes the place of an error about memory; None for any other error."""
    for seen in _list_causes(error):
        words = describe_error(seen).lower()
        coded = isinstance(seen, MemoryError) or getattr(seen, "errno", None) == errno.ENOMEM
        if coded or any(mark in words for mark in _NO_MEMORY):
            return memory_limits.current_limit().refuse_more("this command", INSTEAD)
    return None


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and each that the one before it comes of."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def check_memory() -> None:
    """InputError where the libraries alone do not fit: some of them then hang or abort."""
    limit = memory_limits.address_limit()
    if limit is not None and limit.bytes < LIBRARIES:
        raise limit.refuse(LIBRARIES, "loading libraries and compiled loops", "raise the limit")
