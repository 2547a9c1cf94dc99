"""The mean absolute error, beside that of the mean of the targets."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.intervals.bounded_mean import (
    clip_share,
    find_mean_on_records,
    find_population_mean,
)
from dperm_cli.privacy.metrics.base import (
    FINE_STEP,
    LARGEST_ERROR,
    HeldOut,
    Metric,
    Reading,
    count_cells,
    find_errors,
    sum_of_steps,
)
from dperm_cli.privacy.metrics.log_loss import widen

BINS = 32  # of targets in [-1, 1], for the baseline


@dataclass(frozen=True)
class AbsoluteError(Metric):
    """The sum of min(2 |y - prediction|, 1), and a histogram of the targets in 32 equal bins.

    A replaced record moves the first by 1 and two cells of the second by 1 each. The bins give the
    error of the mean of the targets, up to half the width of a bin.
    """

    name: ClassVar[str] = "mae"
    step: ClassVar[float] = FINE_STEP
    dim: ClassVar[int] = 1 + BINS
    l1: ClassVar[float] = 3.0
    l2: ClassVar[float] = math.sqrt(3.0)

    def add_up(self, held: HeldOut) -> np.ndarray:
        error = sum_of_steps(find_errors(held))
        bins = np.clip(np.floor((held.labels + 1.0) * (BINS / 2)), 0, BINS - 1)
        return np.append(error, count_cells(bins, BINS) * round(1.0 / FINE_STEP))

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        facts = float(sums[0]), reading.records, reading.noise, reading.alpha, FINE_STEP
        factor = LARGEST_ERROR * reading.unit
        return {
            "errors_cut_at": factor,
            "estimate": factor * clip_share(float(sums[0]) / reading.records),
            "interval_for_the_population": widen(find_population_mean(*facts), factor),
            "interval_for_these_records": widen(find_mean_on_records(*facts), factor),
            "mean_baseline": {
                "estimate": reading.unit * find_deviation(sums[1:]),
                "off_by_the_bins_at_most": reading.unit * 2.0 / BINS,
            },
        }

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        base = described["mean_baseline"]["estimate"]
        return {
            "mean absolute error": (
                described["estimate"], described["interval_for_the_population"],
            ),
            "mean absolute error of the mean baseline": (base, None),
        }  # fmt: skip


def find_deviation(counts: np.ndarray) -> float:
    """The mean absolute deviation from the mean of numbers in [-1, 1], from noisy counts in bins.

    Args:
        counts: of equal bins [m], noise included; those below 0 count as 0.
    """
    held = np.maximum(counts, 0.0)
    total = held.sum()
    if total <= 0.0:
        return 0.0
    middles = (2.0 * np.arange(len(held)) + 1.0) / len(held) - 1.0
    return float(np.abs(middles - held @ middles / total) @ held / total)
