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

    def unfinished(self) -> str | None:
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

    # one method for each way in which a stream tells its tape
    def noise(self, value, scale, sensitivity, drawn):
        return self._hear(("gaussian", scale, sensitivity, drawn.shape), drawn)

    def laplace(self, value, scale, sensitivity, drawn):
        return self._hear(("laplace", scale, sensitivity, drawn.shape), drawn)

    def gamma_norm(self, value, scale, sensitivity, drawn):
        return self._hear(("gamma_norm", scale, sensitivity, drawn.shape), drawn)

    def choice(self, population, batch, sampling, drawn):
        # how many records are in a Poisson batch is drawn
        return self._hear(("choice", population, batch, sampling), drawn)

    def law(self, exponent, oscillation, drawn):
        return self._hear(("law", exponent, oscillation, drawn.shape), drawn)

    def coordinate(self, value, scale, sensitivity, drawn, new):
        return self._hear(("coordinate", scale, sensitivity, new, drawn.shape), drawn)

    def sparse(self, value, known, scale, sensitivity, drawn):
        known = np.asarray(known).tobytes()
        return self._hear(("sparse", scale, sensitivity, known, drawn.shape), drawn)

    def disjoint(self, value, scale, sensitivity, drawn, new):
        return self._hear(("disjoint", scale, sensitivity, new, drawn.shape), drawn)

    def channel(self, user, value, event, bound, drawn):
        return self._hear(("channel", user, event, float(bound), drawn.shape), drawn)
