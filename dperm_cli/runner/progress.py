"""Progress on stderr: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dperm_cli.core import progress

QUIET_SECONDS = 10.0


class Meter:
    """Cells of a study and the long step inside the current one."""

    def __init__(self, cells: int) -> None:
        self.cells, self.done, self.name = cells, 0, ""
        self._live = sys.stderr.isatty()
        self._started = self._printed = time.monotonic()

    def cell(self, done: int, name: str) -> None:
        """``done`` cells are finished and the one called ``name`` begins."""
        self.done, self.name = done, name
        self._show(f"cell {done + 1}/{self.cells} {name}")

    def step(self, label: str, done: float, total: float) -> None:
        share = f"{100.0 * done / total:.0f} %" if total else ""
        self._show(f"cell {self.done + 1}/{self.cells} {self.name}: {label} {share}")

    def note(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        print(text, file=sys.stderr)

    def close(self) -> None:
        self._clear()

    def _show(self, text: str) -> None:
        now = time.monotonic()
        if self._live:
            if now - self._printed >= 0.1:
                self._printed = now
                sys.stderr.write(f"\r\x1b[K{text[:110]}  [{now - self._started:.0f} s]")
                sys.stderr.flush()
        elif now - self._printed >= QUIET_SECONDS:
            self._printed = now
            print(f"{text}  [{now - self._started:.0f} s]", file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def meter(cells: int) -> Iterator[Meter]:
    """A meter that hears of the long steps below while the block runs."""
    shown = Meter(cells)
    try:
        with progress.listening(shown.step):
            yield shown
    finally:
        shown.close()
