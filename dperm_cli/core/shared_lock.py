"""A lock that many processes share, and that one has alone when there is no other.

The system lets go of a lock when its process ends, also when it is killed. So whoever has it alone
knows that all who ever shared it are gone, and may take away what they left.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks here: as on a file system without them
    fcntl = None

# What a file system without locks answers.
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_MOST_TRIES = 100  # to open a file that other processes take away


@contextlib.contextmanager
def share_lock(path: Path, tidy: Callable[[], bool]) -> Iterator[None]:
    """Share the lock of this file while the block runs; the file goes with the last who has it.

    Args:
        path: The lock's file; its folder is made where there is none, and goes when it is empty.
        tidy: Called when this process has the lock alone, before the block and after it. It takes
            away what others left, and returns whether the lock's file may go as well.

    Raises:
        OSError: The file cannot be made, or not be locked: one of ``NO_LOCKS``.
    """
    file = _open_shared(path, tidy)
    try:
        yield
    finally:
        try:
            # let go first: of several who leave at once, the last one then finds itself alone
            _lock(file, "LOCK_UN")
            if _is_alone(file, path) and tidy():
                remove_lock(path)
        finally:
            os.close(file)


def remove_lock(path: Path) -> None:
    """Take the lock's file away, and its folder where that is empty."""
    with contextlib.suppress(OSError):
        path.unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock of this file; nothing is written."""
    try:
        with open(path, "rb") as file:
            _lock(file.fileno(), "LOCK_SH", "LOCK_NB")
    except BlockingIOError:
        return True
    except OSError:  # it has gone, or the file system has no locks
        return False
    return False


def lock_alone(file: int, path: Path) -> bool | None:
    """Lock an open file for this process alone until it is closed, without waiting.

    Returns:
        False if another process holds it, or it is not what the path names any more; None where
        the file system has no locks.
    """
    try:
        return _is_alone(file, path)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise


def _open_shared(path: Path, tidy: Callable[[], bool]) -> int:
    """The open file with a shared lock on it; whoever comes alone tidies first."""
    why: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for _ in range(_MOST_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except (FileNotFoundError, FileExistsError) as error:
            why = error  # another process took the empty folder away in between
            continue
        try:
            if _is_alone(file, path):
                tidy()
            _lock(file, "LOCK_SH")
            if _has_name(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # another process took it away before it was locked
    raise why


def _is_alone(file: int, path: Path) -> bool:
    """Try to lock the file for this process alone; True if it is still what the path names."""
    try:
        _lock(file, "LOCK_EX", "LOCK_NB")
    except BlockingIOError:
        return False
    return _has_name(file, path)


def _has_name(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(file: int, *words: str) -> None:
    if fcntl is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    fcntl.flock(file, sum(getattr(fcntl, word) for word in words))
