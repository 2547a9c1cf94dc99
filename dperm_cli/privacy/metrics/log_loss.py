"""The mean logarithmic loss of the model's probabilities, clipped at a public bound."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.bounded_mean import (
    clip_share,
    find_mean_on_records,
    find_population_mean,
)
from dperm_cli.privacy.metrics.base import FINE_STEP, HeldOut, Metric, Reading, sum_of_steps

CLIP = 4.0  # nats: probabilities below e^-4 = .018 count as that


@dataclass(frozen=True)
class LogLoss(Metric):
    """The sum of min(-ln(chance of the own label), 4) / 4: one record moves it by 1 at most."""

    name: ClassVar[str] = "log_loss"
    step: ClassVar[float] = FINE_STEP
    dim: ClassVar[int] = 1
    l1: ClassVar[float] = 1.0
    l2: ClassVar[float] = 1.0

    def add_up(self, held: HeldOut) -> np.ndarray:
        if held.chances is None:
            raise InputError("metrics", self.name, "needs a loss with probabilities")
        # one number at a time: a vector's logarithm may follow its neighbours
        losses = [-math.log(c) / CLIP if c > 0.0 else 1.0 for c in held.chances.tolist()]
        return np.array([sum_of_steps(np.clip(losses, 0.0, 1.0))])

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        facts = float(sums[0]), reading.records, reading.noise, reading.alpha, FINE_STEP
        return {
            "clipped_at": CLIP,
            "estimate": CLIP * clip_share(float(sums[0]) / reading.records),
            "interval_for_the_population": widen(find_population_mean(*facts), CLIP),
            "interval_for_these_records": widen(find_mean_on_records(*facts), CLIP),
        }

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        return {"log loss": (described["estimate"], described["interval_for_the_population"])}


def widen(interval: tuple[float, float], factor: float) -> tuple[float, float]:
    """An interval of a mean of contributions that were rounded to the fine step, in its unit."""
    half = 0.5 * FINE_STEP
    return factor * max(0.0, interval[0] - half), factor * min(1.0, interval[1] + half)
