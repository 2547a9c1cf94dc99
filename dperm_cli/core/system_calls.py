"""What not every system offers, with what takes its place on Windows and elsewhere.

Other modules ask here and not in ``os``, ``resource`` or ``signal``, so that all of them can be
imported everywhere. Locks have a module of their own, ``shared_lock``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has no such numbers
    resource = None

# Signals that a terminal or a batch system sends to all processes of a command, as far as this
# system knows them.
GROUP_SIGNALS: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
_ARENA_MAX = -8  # the number of this setting in glibc's mallopt


def user_number() -> int:
    """The number of the user of this process; 0, which every file has as well, on Windows."""
    try:
        return os.getuid()
    except AttributeError:
        return 0


def open_to_read(path: str | Path) -> int:
    """Open a file for reading, without waiting for the other end of a pipe.

    Args:
        path: The file.

    Returns:
        The number of the open file, whose bytes are read as they are.

    Raises:
        OSError: It cannot be opened.
    """
    return os.open(path, _add_flags("O_RDONLY", "O_NONBLOCK", "O_BINARY"))


def open_to_lock(path: Path) -> int:
    """Open a file to lock it and take it away; no link is followed.

    Raises:
        OSError: It cannot be opened, or is a link where the system can tell.
    """
    return os.open(path, _add_flags("O_RDWR", "O_NONBLOCK", "O_NOFOLLOW"))


def open_device(path: Path) -> int:
    """Open a device or a pipe for writing; it does not become the terminal of this process.

    Raises:
        OSError: It cannot be opened.
    """
    return os.open(path, _add_flags("O_WRONLY", "O_NOCTTY", "O_BINARY"))


def open_to_sync(path: Path) -> int | None:
    """Open a file or a folder to bring it to the disk; None for a folder that cannot be opened.

    Windows syncs only what is open for writing, and opens no folder.

    Raises:
        OSError: It cannot be opened.
    """
    if sys.platform != "win32":
        return os.open(path, os.O_RDONLY)
    return None if path.is_dir() else os.open(path, os.O_RDWR)


def keep_owner(descriptor: int, owner: int, group: int) -> None:
    """Give an open file an owner and a group, -1 for the one it has.

    Raises:
        OSError: The system refuses.
    """
    with contextlib.suppress(AttributeError):
        os.fchown(descriptor, owner, group)


def keep_mode(descriptor: int, mode: int) -> None:
    """Give an open file its rights.

    Raises:
        OSError: The system refuses.
    """
    with contextlib.suppress(AttributeError):
        os.fchmod(descriptor, mode)


@contextlib.contextmanager
def block_signals(numbers: Iterable[int]) -> Iterator[None]:
    """Hold signals back in this thread while the block runs, where the system can."""
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    except AttributeError:
        yield
        return
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def read_address_limit() -> int | None:
    """Bytes that ``ulimit -v`` lets a process reserve; None without a limit."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def use_one_arena() -> None:
    """Have all threads share one arena of memory, where the C library can: each more reserves room.

    A thread's own arena reserves 64 MiB of addresses, used or not, and ``ulimit -v`` counts them.
    """
    if sys.platform == "linux":
        import ctypes  # only where there is a limit: it takes time

        with contextlib.suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def read_peak() -> int | None:
    """The most memory in bytes that this process has held; None where nobody counts it."""
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def read_machine_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _add_flags(*names: str) -> int:
    """The flags of ``os.open`` that this system has; the others mean nothing to it."""
    return sum(getattr(os, name, 0) for name in names)
