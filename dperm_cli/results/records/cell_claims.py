"""Locks on cells, so that processes that share a study's folder compute each cell once.

A claim is a locked file under ``<out>/.work``. The operating system releases the lock when the
process ends, also when it is killed. The file stays and the next process can lock it. On a file
system without locks every claim is granted: a cell may then be computed twice, with equal bytes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from dperm_cli.core.files import hold_lock

try:
    import fcntl
except ImportError:  # no such locks here: as on a file system without them
    fcntl = None

WORK = ".work"


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

    def list_abandoned(self) -> list[str]:
        """The cells whose claim nobody holds any more: what killed processes were at."""
        found = []
        for cell in self._names():
            with hold_lock(self.folder / cell) as mine:
                found += [cell] if mine else []
        return found

    def list_running(self) -> list[str]:
        """The cells that processes are at now; nothing is written."""
        return [cell for cell in self._names() if _is_locked(self.folder / cell)]

    def tidy(self) -> None:
        """Take away what killed processes left: claims, half-written files, empty folders."""
        self.list_abandoned()
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


def _is_locked(path: Path) -> bool:
    if fcntl is None:
        return False
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it has gone, or the file system has no locks
        return False
    return False
