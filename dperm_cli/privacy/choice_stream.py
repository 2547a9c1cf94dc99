"""The stream of exact choices from finite lists (event ``ListChoice``)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy import secure_choice
from dperm_cli.privacy.gate_protocol import NoiseSource
from dperm_cli.privacy.streams import Stream


class ChoiceStream(Stream):
    """Choices from a list by whole scores, with random words of the operating system."""

    few_outcomes = True

    def __init__(self, gate: NoiseSource, event: Any, dim: int) -> None:
        super().__init__(gate, event, dim)
        self._source, self._steps = gate.words(), gate.steps(event.count)

    def choose(self, scores: np.ndarray, unit: float, step: int) -> np.ndarray:
        """The numbers [trials] of the entries chosen.

        Args:
            scores: int64 [trials, count], or [1, count] where all trials have the same.
            unit: what one of a score stands for, in the unit of the summed loss.
            step: the number of the choice.
        """
        whole = isinstance(scores, np.ndarray) and scores.dtype == np.int64
        if not whole or scores.ndim != 2:
            raise PrivacyError("scores of a list are whole numbers: int64 [trials, count]")
        if len(scores) not in (1, self.trials):
            raise PrivacyError(f"scores of {len(scores)} trials at choices of {self.trials}")
        self._steps.mark(step)
        rate = Fraction(self.event.exponent) * Fraction(float(unit))
        rows = np.broadcast_to(scores, (self.trials, scores.shape[1]))
        drawn = [secure_choice.choose(self.event.rule, row, rate, self._source) for row in rows]
        found = np.array(drawn, np.int64)
        if self._tape is None:
            return found
        return self._take_draw(rows * float(unit), found, step, float(unit))
