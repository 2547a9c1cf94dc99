"""A histogram of scores by label, of which the area under the curve and calibration are made."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.metrics.base import HeldOut, Metric, count_cells

BINS = 32  # of equal width, from the least score that a row can have to the largest


class ScoreHistogram(Metric):
    """Counts by label and bin of the score: a replaced record leaves one cell for another.

    Metrics of these counts share them, so that they are released and charged once.
    """

    sums: ClassVar[str] = "scores"
    dim: ClassVar[int] = 2 * BINS
    l1: ClassVar[float] = 2.0
    l2: ClassVar[float] = math.sqrt(2.0)

    def add_up(self, held: HeldOut) -> np.ndarray:
        if held.scores is None:
            raise InputError("metrics", self.name, "needs one score for each record")
        bins = np.clip(np.floor((held.scores + 1.0) * (BINS / 2)), 0, BINS - 1)
        return count_cells(held.labels * BINS + bins, self.dim)


def split_labels(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The counts of the negative and of the positive class, whole numbers [bins] each."""
    negative, positive = np.rint(np.asarray(sums)).astype(np.int64).reshape(2, BINS)
    return negative, positive
