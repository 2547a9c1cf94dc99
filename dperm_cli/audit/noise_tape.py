"""A tape that hands a second run the noisy values of a first one.

Whatever else two runs on neighbouring data sets make must then be equal: everything that may leave
a run is a function of public facts and of what came through the gate.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class SameNoise:
    """Writes down what a run draws; after ``rewind``, hands the same to the next run.

    ``fault`` says where the second run first asked for something else: another kind of noise,
    other public numbers, another shape, or one draw more. From there on it gets its own draws.
    """

    def __init__(self) -> None:
        self._drawn: list[tuple[tuple[Any, ...], np.ndarray]] = []
        self._place: int | None = None  # None on the first run
        self.fault: str | None = None

    def rewind(self) -> None:
        """From here on, hand back what was written down."""
        self._place = 0

    @property
    def calls(self) -> int:
        """How many draws were written down."""
        return len(self._drawn)

    def find_fault(self) -> str | None:
        """What is wrong after the second run: its first fault, or draws it did not ask for."""
        if self.fault is None and self._place is not None and self._place < len(self._drawn):
            return f"{self._place} draws where the first run made {len(self._drawn)}"
        return self.fault

    def _hear(self, public: tuple[Any, ...], drawn: np.ndarray) -> np.ndarray:
        """The one place where draws are kept and handed back; ``public`` must be equal."""
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

    def hear(self, stream: Any, value: Any, drawn: np.ndarray, public: tuple) -> np.ndarray:
        # how many records are in a Poisson batch is drawn
        shape = None if value is None else np.shape(drawn)
        return self._hear((stream.number, stream.event, public, shape), drawn)
