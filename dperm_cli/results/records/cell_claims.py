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
from dperm_cli.core.shared_lock import is_locked

WORK = ".work"
CLAIMS = "claims"


class Claims:
    """The claims on the cells of one study."""

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.folder = Path(out) / WORK / CLAIMS

    @contextlib.contextmanager
    def claim(self, cell: str, wait: bool = False) -> Iterator[bool]:
        """Hold the cell while the block runs; False when another process holds it.

        With ``wait`` it is had in the end. StorageError where the folder cannot be written.
        """
        with hold_lock(self.folder / cell, wait) as mine:
            yield mine

    def list_running(self) -> list[str]:
        """The cells that processes are at now; nothing is written."""
        return [cell for cell in self._names() if self.is_held(cell)]

    def is_held(self, cell: str) -> bool:
        """Whether a process is at this cell now; nothing is written."""
        return is_locked(self.folder / cell)

    def _names(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return sorted(os.listdir(self.folder))
        return []


@contextlib.contextmanager
def hold_ledger_lock(out: Path) -> Iterator[None]:
    """Held from reading the records to writing the ledger of them: no later one is written over."""
    with hold_lock(out / ".ledger.lock", wait=True):
        yield
