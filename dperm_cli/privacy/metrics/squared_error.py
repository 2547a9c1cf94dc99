"""The coefficient of determination R2, beside the mean of the targets, from three sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.intervals.bounded_mean import (
    Interval,
    find_mean_on_records,
    find_population_mean,
)
from dperm_cli.privacy.metrics.base import (
    FINE_STEP,
    LARGEST_ERROR,
    HeldOut,
    Metric,
    Reading,
    find_errors,
    sum_of_steps,
)

_LARGEST = LARGEST_ERROR**2


@dataclass(frozen=True)
class SquaredError(Metric):
    """Sums of y, y^2 and min(4 (y - prediction)^2, 1) for targets y in [-1, 1].

    A replaced record moves them by at most 13/4 together (9/4 the first two, at y = 1 and -1/2), in
    L2 norm by sqrt(5), and rounding to the step by one step each.
    """

    name: ClassVar[str] = "r2"
    step: ClassVar[float] = FINE_STEP
    dim: ClassVar[int] = 3
    l1: ClassVar[float] = 3.25 + 3.0 * FINE_STEP
    l2: ClassVar[float] = math.sqrt(5.0) + math.sqrt(3.0) * FINE_STEP

    def add_up(self, held: HeldOut) -> np.ndarray:
        y, rest = held.labels, find_errors(held)
        return np.array([sum_of_steps(y), sum_of_steps(y * y), sum_of_steps(rest * rest)])

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        first, second, rest = (float(value) / reading.records for value in sums)
        spread = second - first * first
        error, unit = max(0.0, _LARGEST * rest), reading.unit**2
        population = self._bound(sums, reading, find_population_mean)
        here = self._bound(sums, reading, find_mean_on_records)
        return {
            "errors_cut_at": LARGEST_ERROR * reading.unit,
            "estimate": 1.0 - error / spread if spread > 0.0 else None,
            "interval_for_the_population": population["r2"],
            "interval_for_these_records": here["r2"],
            "mean_squared_error": {
                "estimate": error * unit,
                "interval_for_the_population": _scale(population["error"], unit),
            },
            "mean_squared_error_of_the_mean_baseline": {
                "estimate": max(0.0, spread) * unit,
                "interval_for_the_population": _scale(population["spread"], unit),
            },
        }

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        found = described, described["mean_squared_error"]
        base = described["mean_squared_error_of_the_mean_baseline"]
        names = "R2", "mean squared error", "mean squared error of the mean baseline"
        return {
            name: (one["estimate"], one["interval_for_the_population"])
            for name, one in zip(names, (*found, base), strict=True)
        }

    def _bound(
        self, sums: np.ndarray, reading: Reading, find: Callable[..., Interval]
    ) -> dict[str, tuple[float | None, float]]:
        """What R2 and its parts can be where each of the three means misses with alpha / 3."""
        facts = reading.records, reading.noise, reading.alpha / 3.0, FINE_STEP
        half = 0.5 * FINE_STEP
        # a sum of (1 + y) / 2 has half the noise of a sum of y
        noise = type(reading.noise)(reading.noise.law, reading.noise.scale / 2.0)
        low, high = find(0.5 * (float(sums[0]) + reading.records), facts[0], noise, *facts[2:])
        first = 2.0 * (low - half) - 1.0, 2.0 * (high + half) - 1.0
        second, rest = ((low - half, high + half)
                        for low, high in (find(float(s), *facts) for s in sums[1:]))  # fmt: skip
        least = 0.0 if first[0] <= 0.0 <= first[1] else min(abs(first[0]), abs(first[1])) ** 2
        most = max(abs(first[0]), abs(first[1])) ** 2
        spread = max(0.0, second[0] - most), min(1.0, max(0.0, second[1] - least))
        error = max(0.0, _LARGEST * rest[0]), _LARGEST * rest[1]
        lower = 1.0 - error[1] / spread[0] if spread[0] > 0.0 else None
        upper = 1.0 - error[0] / spread[1] if spread[1] > 0.0 else 1.0
        return {"r2": (lower, upper), "error": error, "spread": spread}


def _scale(interval: tuple[float | None, float], factor: float) -> tuple[Any, float]:
    low, high = interval
    return None if low is None else factor * low, factor * high
