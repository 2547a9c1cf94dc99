"""Progress on stderr: a live line on a terminal or in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

from dperm_cli.core import progress

QUIET_SECONDS = 10.0
# Cells to have seen before the time left is guessed.
_SEEN = 3
_WIDTH = 110  # of a live line
_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def show_progress(shown: bool) -> Iterator[None]:
    """Show progress in the block, or none."""
    token = _silent.set(not shown)
    try:
        yield
    finally:
        _silent.reset(token)


def tell(text: str) -> None:
    """A line on stderr, where progress is shown."""
    if not _silent.get():
        print(text, file=sys.stderr, flush=True)


def _is_notebook() -> bool:
    """Whether stderr goes to a cell of a notebook, where a line can be rewritten as well."""
    return type(sys.stderr).__module__.partition(".")[0] == "ipykernel"


class Meter:
    """Cells of a study and the long step inside the current one."""

    def __init__(self, cells: int) -> None:
        self.cells, self.done, self.name = cells, 0, ""
        self._silent = _silent.get()
        terminal = sys.stderr.isatty()
        self._live = terminal or _is_notebook()
        # a notebook knows no code that clears a line
        self._wipe = "\r\x1b[K" if terminal else f"\r{' ' * (_WIDTH + 12)}\r"
        self._started = self._printed = time.monotonic()

    @classmethod
    @contextmanager
    def open(cls, *what: Any) -> Iterator[Self]:
        """A meter of this, which hears of the long steps below while the block runs."""
        shown = cls(*what)
        try:
            with progress.listen(shown.step):
                yield shown
        finally:
            shown.clear()

    def cell(self, done: int, name: str) -> None:
        """``done`` cells are finished and the one called ``name`` begins."""
        self.done, self.name = done, name
        self._show(self.head())

    def step(self, label: str, done: float, total: float) -> None:
        share = f" {100.0 * done / total:.0f} %" if total else ""
        # on a terminal a step that begins is shown at once: compiling may come before its next word
        self._show(f"{self.head()}: {label}{share}", at_once=bool(total) and not done)

    def head(self) -> str:
        """What a step belongs to."""
        return f"cell {self.done + 1}/{self.cells} {self.name}"

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        tell(text)

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started

    def _show(self, text: str, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._silent:
            return
        if self._live:
            if at_once or now - self._printed >= 0.1:
                self._printed = now
                sys.stderr.write(f"{self._wipe}{text[-_WIDTH:]}  [{now - self._started:.0f} s]")
                sys.stderr.flush()
        elif now - self._printed >= QUIET_SECONDS:
            self._printed = now
            print(f"{text}  [{now - self._started:.0f} s]", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the live line away."""
        if self._live and not self._silent:
            sys.stderr.write(self._wipe)
            sys.stderr.flush()


@dataclass
class Tally:
    """How the cells of a sweep ended so far; every cell counts once."""

    total: int
    done: int = 0
    looked_up: int = 0
    unsupported: int = 0
    failures: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed_count(self) -> int:
        return len(self.failures)

    @property
    def run_count(self) -> int:
        return self.done + self.unsupported + self.failed_count

    @property
    def remaining_count(self) -> int:
        return self.total - self.run_count - self.looked_up

    def add(self, outcome: Any) -> None:
        if outcome.looked_up:
            self.looked_up += 1
        elif outcome.status == "failed":
            self.failures.append(outcome)
        elif outcome.status == "unsupported":
            self.unsupported += 1
        else:
            self.done += 1

    def counts(self) -> str:
        return (
            f"{self.done} done, {self.looked_up} looked up, {self.failed_count} failed, "
            f"{self.unsupported} unsupported, {self.remaining_count} remaining"
        )


class SweepMeter(Meter):
    """Counts of a sweep, the time it will take, and what runs now where that is known."""

    def __init__(self, cells: int) -> None:
        super().__init__(cells)
        self.tally = Tally(cells)

    def head(self) -> str:
        now = f": {self.name}" if self.name else ""
        return f"{self.tally.counts()}{self._estimate_left()}{now}"

    def show_cell(self, name: str) -> None:
        """The cell of this name runs now, in this process."""
        self.name = name
        self._show(self.head())

    def finish_cell(self, outcome: Any, name: str) -> None:
        """Count a cell, and say at once when it is the first that failed."""
        self.tally.add(outcome)
        self.tally.seconds = self.elapsed_seconds
        if outcome.status == "failed" and self.tally.failed_count == 1:
            self.note(f"failed: {name}: {outcome.reason}")
        self._show(self.head())

    def _estimate_left(self) -> str:
        ran, remaining = self.tally.run_count, self.tally.remaining_count
        if ran < _SEEN or not remaining:
            return ""
        return f", about {duration(remaining * self.elapsed_seconds / ran)} left"


def duration(seconds: float) -> str:
    """A time in words of one unit or two."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class StepMeter(Meter):
    """The long steps of one thing that has no cells."""

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self.name = name

    def head(self) -> str:
        return self.name


open_meter, open_step_meter = Meter.open, StepMeter.open
