"""What the workers of a sweep have begun and not ended, and how much memory they take.

A worker adds a line to a cell's file when it begins the cell, and takes the file away when the
cell has ended. So the file of a cell that nobody is at has a line for each worker that died at it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dperm_cli.core.files import storage_errors
from dperm_cli.core.system_calls import read_peak

_WATCH_SECONDS = 0.2
_GROWTH = 1.02  # a peak is written anew when it has grown by this


class Attempts:
    """The attempts at cells in the folder of one sweep, which all of its workers reach."""

    def __init__(self, spool: Path) -> None:
        self._spool, self._begun, self._memory = spool, spool / "begun", spool / "memory"
        self._at_work = spool / "at_work"

    @contextlib.contextmanager
    def note(self, cell: str) -> Iterator[None]:
        """Keep in mind that this process is at the cell while the block runs."""
        path = self._begun / cell
        with storage_errors(path):
            self._begun.mkdir(exist_ok=True)
            with open(path, "a") as file:
                file.write(f"{_name_process()}\n")
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def note_work(self) -> Iterator[None]:
        """Tell that this process is at a chunk of cells, data included, while the block runs."""
        path = self._at_work / _name_process()
        with storage_errors(path):
            self._at_work.mkdir(exist_ok=True)
            path.touch()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()

    def is_anyone_at_work(self) -> bool:
        """Whether a process is at a chunk now, or died at one."""
        with contextlib.suppress(OSError):
            return bool(os.listdir(self._at_work))
        return False

    def count(self, cell: str) -> int:
        """How many attempts at the cell have not ended."""
        return len(self._list_processes(cell))

    def list_cells(self) -> list[str]:
        """The cells with attempts that have not ended."""
        with contextlib.suppress(OSError):
            return sorted(os.listdir(self._begun))
        return []

    def read_peak(self, cell: str) -> int | None:
        """The most memory, in bytes, of a worker that was at the cell; None if it is not known."""
        peaks = []
        for process in self._list_processes(cell):
            with contextlib.suppress(OSError, ValueError):
                peaks.append(int((self._memory / process).read_text()))
        return max(peaks, default=None)

    def watch_memory(self) -> None:
        """Write down the most memory that this process takes, for as long as the sweep lasts."""
        _watch(self._spool, self._memory)

    def _list_processes(self, cell: str) -> list[str]:
        with contextlib.suppress(OSError):
            return (self._begun / cell).read_text().split()
        return []


def read_peak_memory() -> int | None:
    """The most memory, in bytes, that this process has taken so far."""
    with contextlib.suppress(OSError, ValueError):
        # of this program alone: the other number has that of the process it was copied from in it
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return read_peak()


@cache
def _watch(spool: Path, folder: Path) -> None:
    """Once for each sweep of a process; the first peak is written before this returns.

    Where the system starts no more threads, the first peak is all that is known.
    """
    written = _write_peak(folder, 0.0)
    if written is not None:
        watch = threading.Thread(target=_write_peaks, args=(spool, folder, written), daemon=True)
        with contextlib.suppress(RuntimeError):
            watch.start()


def _write_peaks(spool: Path, folder: Path, written: float) -> None:
    while spool.is_dir():
        time.sleep(_WATCH_SECONDS)
        written = _write_peak(folder, written) or written


def _write_peak(folder: Path, written: float) -> float | None:
    """Write the peak where it grew; returns the last one written, None where none is known."""
    peak = read_peak_memory()
    if peak is None or peak <= _GROWTH * written:
        return None if peak is None else written
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        (folder / _name_process()).write_text(str(peak))
        return float(peak)
    return written


def _name_process() -> str:
    import socket  # by need

    return f"{socket.gethostname()}-{os.getpid()}".replace(os.sep, "_")
