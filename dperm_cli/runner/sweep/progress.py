"""Progress on stderr: a bar on a terminal, a live line in a notebook, else a line now and then.

The bar is drawn by rich, which is imported when there is something to draw, and never elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Self

from dperm_cli.core import progress, terminal
from dperm_cli.core.dataclass import dataclass

QUIET_SECONDS = 10.0
# Cells to have seen before the time left is guessed.
_SEEN = 3
_WIDTH = 110  # of a live line
_START_SECONDS = 0.3  # before a terminal gets a bar: short work has none
_BAR = 24  # letters
_WIPE = f"\r{' ' * (_WIDTH + 12)}\r"  # a notebook knows no code that clears a line
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


class _Bar:
    """A line of a terminal: what runs, a bar, a count and the pace. It is gone at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        words = TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1),
                           markup=False)  # fmt: skip
        count, pace = (
            TextColumn(f"{{task.fields[{name}]}}", table_column=Column(no_wrap=True), markup=False)
            for name in ("count", "pace")
        )
        self._shown = Progress(
            words, BarColumn(_BAR), count, pace, console=Console(file=sys.stderr), transient=True,
            auto_refresh=False, redirect_stdout=False, redirect_stderr=False, expand=True,
        )  # fmt: skip
        self._task = self._shown.add_task("", total=1.0, count="", pace="")
        self._shown.start()

    def show(self, text: str, share: float | None, count: str, pace: str) -> None:
        """Draw it; without a share the bar moves to and fro."""
        total = None if share is None else 1.0
        self._shown.update(self._task, description=text, completed=share or 0.0, total=total,
                           count=count, pace=pace)  # fmt: skip
        self._shown.refresh()

    def note(self, text: str) -> None:
        """A line above the bar, which stays."""
        self._shown.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        self._shown.stop()


class Meter:
    """Cells of a study and the long step inside the current one."""

    def __init__(self, cells: int) -> None:
        self.cells, self.done, self.name = cells, 0, ""
        self._silent = _silent.get()
        self._share: float | None = None
        self._on_terminal = terminal.is_terminal(sys.stderr)
        self._bar: _Bar | None = None
        self._live = _is_notebook()
        self._has_line = False
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
        self._show()

    def step(self, label: str, done: float, total: float) -> None:
        share = f" {100.0 * done / total:.0f} %" if total else ""
        self._share = done / total if total else None
        # on a terminal a step that begins is shown at once: compiling may come before its next word
        self._show(f"{label}{share}", at_once=bool(total) and not done)

    def head(self) -> str:
        """What a step belongs to."""
        return f"cell {self.done + 1}/{self.cells} {self.name}"

    def measure(self) -> tuple[float | None, str, str]:
        """Of a bar: the share that is done, the count, and the pace with the time left."""
        share = self.done / self.cells if self.cells > 1 else self._share
        count = f"{self.done}/{self.cells}" if self.cells > 1 else ""
        return share, count, _say_pace(self.done, self.cells - self.done, self.elapsed_seconds)

    def note(self, text: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.note(text)
            return
        self.clear()
        tell(text)

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started

    def _show(self, step: str = "", at_once: bool = False) -> None:
        now = time.monotonic()
        if self._silent:
            return
        since, head = now - self._printed, self.head()
        text = f"{head}: {step}" if step else head
        if self._on_terminal:
            least = 0.1 if self._bar else _START_SECONDS
            if at_once or since >= least:
                self._printed = now
                self._bar = self._bar or _Bar()
                words = ": ".join(word for word in (self.name, step) if word)
                self._bar.show(words, *self.measure())
        elif self._live:
            if at_once or since >= 0.1:
                self._printed, self._has_line = now, True
                sys.stderr.write(_WIPE + self._make_line(step))
                sys.stderr.flush()
        elif since >= QUIET_SECONDS:
            self._printed = now
            print(f"{text}  [{now - self._started:.0f} s]", file=sys.stderr, flush=True)

    def _make_line(self, step: str) -> str:
        """What a notebook shows: the count, what runs now as far as it has room, and the pace."""
        _, count, pace = self.measure()
        words = ": ".join(word for word in (self.name, step) if word)
        room = _WIDTH - len(count) - len(pace) - 6
        return f"{count}  {words[:room]}  [{pace}]".lstrip()

    def clear(self) -> None:
        """Take the bar or the live line away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._has_line:
            self._has_line = False
            sys.stderr.write(_WIPE)
            sys.stderr.flush()


def _say_pace(done: int, left: int, seconds: float) -> str:
    """How fast it goes and how long it will take, or how long it has taken so far."""
    if not done or seconds <= 0.0:
        return f"{seconds:.0f} s"
    rate = done / seconds
    pace = f"{rate:.3g} cells/s" if rate >= 1.0 else f"{1.0 / rate:.3g} s/cell"
    return f"{pace}, {duration(left / rate)} left"


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
        self._share = None
        self._show()

    def finish_cell(self, outcome: Any, name: str) -> None:
        """Count a cell, and say at once when it is the first that failed."""
        self.tally.add(outcome)
        self.tally.seconds = self.elapsed_seconds
        if outcome.status == "failed" and self.tally.failed_count == 1:
            self.note(f"failed: {name}: {outcome.reason}")
        self._show()

    def measure(self) -> tuple[float | None, str, str]:
        ended = self.tally.total - self.tally.remaining_count
        pace = _say_pace(self.tally.run_count, self.tally.remaining_count, self.elapsed_seconds)
        if self.cells == 1:
            return self._share, "", pace
        failed = f", {self.tally.failed_count} failed" if self.tally.failed_count else ""
        return ended / self.cells, f"{ended}/{self.cells}{failed}", pace

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
