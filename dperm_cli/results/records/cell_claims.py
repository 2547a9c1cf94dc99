"""Claims: who computes a cell, among processes that share a study's folder.

A claim is a file under ``<out>/.work`` that its holder keeps locked. The system lets go of the lock
when the holder ends, however it ends, so that no claim outlives its process; what a killed process
leaves behind is an unlocked file, which the next one takes. Where the file system has no locks,
every claim is granted: two writers may then compute a cell twice, to the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from dperm_cli.results.records.store import report_storage_errors

try:
    import fcntl
except ImportError:  # no such locks here: as on a file system without them
    fcntl = None

WORK = ".work"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class Claims:
    """The claims on the cells of one study."""

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.folder = Path(out) / WORK / "claims"

    @contextlib.contextmanager
    def claim(self, cell: str, wait: bool = False) -> Iterator[bool]:
        """Hold the cell while the block runs; False when another process holds it.

        With ``wait`` it is had in the end. StorageError where the folder cannot be written.
        """
        with hold_lock(self.folder / cell, wait) as mine:
            yield mine

    def left(self) -> list[str]:
        """The cells whose claim nobody holds any more: what killed processes were at."""
        found = []
        for cell in self._names():
            with hold_lock(self.folder / cell) as mine:
                found += [cell] if mine else []
        return found

    def held(self) -> list[str]:
        """The cells that processes are at now; nothing is written."""
        return [cell for cell in self._names() if _is_locked(self.folder / cell)]

    def tidy(self) -> None:
        """Take away what killed processes left: claims, half-written files, empty folders."""
        self.left()
        records = self.folder.parents[1] / "records"
        with contextlib.suppress(FileNotFoundError):
            for name in [name for name in os.listdir(records) if name.endswith(".tmp")]:
                with self.claim(name[1:].partition(".")[0]) as mine, contextlib.suppress(OSError):
                    if mine:  # so that nobody is writing it
                        os.unlink(records / name)
        for folder in (self.folder, self.folder.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _names(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return sorted(os.listdir(self.folder))
        return []


@contextlib.contextmanager
def hold_ledger_lock(out: Path) -> Iterator[None]:
    """Held from reading the records to writing the ledger of them: no later one is written over."""
    with hold_lock(out / ".ledger.lock", wait=True):
        yield


@contextlib.contextmanager
def hold_lock(path: Path, wait: bool = False) -> Iterator[bool]:
    """A lock by file name: True inside the block when it is held. The file goes with the lock."""
    descriptor = _acquire(path, wait)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(descriptor)


def _acquire(path: Path, wait: bool) -> int | None:
    while True:
        with report_storage_errors(path):
            descriptor = _open_lock(path)
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return descriptor
            os.close(descriptor)
            with report_storage_errors(path):
                raise
        except BaseException:
            os.close(descriptor)
            raise
        # its last holder took the file away in between
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    for _ in range(10):
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags, 0o600)
        # another process may take the empty folder away again
        path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, flags, 0o600)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _is_locked(path: Path) -> bool:
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
