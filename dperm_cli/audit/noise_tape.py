"""A tape that gives a second run the noisy values of a first one.

The audit runs a mechanism on two neighbouring data sets. Everything that may leave a run must be
computed from public facts and from the values that passed through the gate. So if the second run
gets the first run's values, all its other results must be equal to those of the first run.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class SameNoise:
    """Records what a run draws; after ``rewind``, gives the same values to the next run.

    ``fault`` says where the second run first asked for something else: another kind of noise,
    other public numbers, another shape, or one draw more. From there on it gets its own draws.
    """

    def __init__(self) -> None:
        self._drawn: list[tuple[tuple[Any, ...], np.ndarray]] = []
        self._place: int | None = None  # None on the first run
        self.fault: str | None = None

    def rewind(self) -> None:
        """End the first run: from here on, give back what was recorded."""
        self._place = 0

    @property
    def calls(self) -> int:
        """How many draws were recorded."""
        return len(self._drawn)

    def find_fault(self) -> str | None:
        """What is wrong after the second run: its first fault, or draws it did not ask for."""
        if self.fault is None and self._place is not None and self._place < len(self._drawn):
            return f"{self._place} draws where the first run made {len(self._drawn)}"
        return self.fault

    def _take_draw(self, public: tuple[Any, ...], drawn: np.ndarray) -> np.ndarray:
        """Record a draw, or give back the recorded one if ``public`` is as in the first run."""
        drawn = np.array(drawn)
        if self._place is None:
            self._drawn.append((public, drawn))
            return drawn
        self._place += 1
        if self._place > len(self._drawn):
            self.fault = self.fault or f"a draw more than the {len(self._drawn)} of the first run"
            return drawn
        before, kept = self._drawn[self._place - 1]
        if before == public:
            return kept.copy()
        self.fault = self.fault or f"draw {self._place}: {public} where the first had {before}"
        return drawn

    def take_draw(self, stream: Any, value: Any, drawn: np.ndarray, public: tuple) -> np.ndarray:
        """Called by every stream with what it drew; returns the value that the stream uses."""
        # the size of a Poisson batch is random, so its shape is not compared
        shape = None if value is None else np.shape(drawn)
        return self._take_draw((stream.number, stream.event, public, shape), drawn)
