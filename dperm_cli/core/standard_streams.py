"""Standard input, output and error of a process whose caller may have closed them or gone away.

No command stops because its output cannot be written: the first error of stdout is kept, and shown
on stderr when the command has ended. Text that stderr does not take is dropped.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import sys
from typing import Any

_OUTPUT, _ERROR = 1, 2


class _Output(io.RawIOBase):
    """A descriptor to write to, which keeps its first error and then takes everything.

    Attributes:
        fault: The first error, if there was one.
        raises: Whether it is raised at once, for output that is not worth making unread.
    """

    def __init__(self, number: int) -> None:
        self._number, self._closed = number, False
        self.fault: OSError | None = None
        self.raises = False

    def close_for_good(self) -> None:
        """From now on every write is an error: nothing is there to write to."""
        self._closed = True

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return not self._closed and os.isatty(self._number)

    def write(self, data: Any, /) -> int:
        if self.fault is None:
            try:
                return self._write_some(data)
            except OSError as error:
                self.fault = error
        if self.raises:
            raise self.fault
        return memoryview(data).nbytes

    def _write_some(self, data: Any) -> int:
        if self._closed:
            raise OSError(errno.EBADF, "it is closed")
        while True:
            try:
                return os.write(self._number, data)
            except BlockingIOError:  # a pipe that somebody else made non-blocking
                select.select([], [self._number], [])


_output, _error = _Output(_OUTPUT), _Output(_ERROR)


def settle() -> None:
    """Have all three streams work as long as the process lives, also where they are closed.

    Text that a stream's encoding lacks is shown as an escape. Call it before anything is opened: a
    file may take the number of a closed stream, and what is printed goes into that file.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            _occupy(number)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = _wrap(_output, sys.stdout)
    sys.stderr = _wrap(_error, sys.stderr)


def raise_at_once() -> None:
    """Let printing raise its errors from now on: the output is all that the command is for."""
    _output.raises = True


def find_fault() -> OSError | None:
    """Why not everything could be printed on standard output, if so."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    return _output.fault


def _occupy(number: int) -> None:
    """Put the null device where a closed stream was; child processes have it too."""
    with contextlib.suppress(OSError):
        os.fstat(number)
        return  # something else has the number by now
    opened = os.open(os.devnull, os.O_RDWR)
    os.dup2(opened, number)
    if opened == number:
        os.set_inheritable(number, True)
    else:
        os.close(opened)


def _wrap(raw: _Output, before: Any) -> io.TextIOWrapper:
    """A text stream that writes to ``raw`` as the one before it did; None for a closed one."""
    encoding, errors = "utf-8", "strict"
    if before is None:
        raw.close_for_good()
    else:
        before.flush()
        encoding, errors = before.encoding, before.errors
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace" if errors == "strict" else errors,
        line_buffering=raw.fileno() == _ERROR or raw.isatty(),
    )
