"""The confusion matrix, with what follows from it: accuracy, majority baseline, recall."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.intervals.accuracy import (
    find_interval_of_unknown_number,
    find_population_interval,
)
from dperm_cli.privacy.intervals.bounded_mean import clip_share
from dperm_cli.privacy.intervals.summed_noise import sum_noise
from dperm_cli.privacy.metrics.accuracy import describe_share
from dperm_cli.privacy.metrics.base import HeldOut, Metric, Reading, count_cells

NOTE = (
    "The accuracy divides by the public number of records, a recall by the noisy count of its "
    "class. Noise does not cancel between them: an accuracy may lie outside of the recalls."
)


@dataclass(frozen=True)
class Confusion(Metric):
    """A count for each pair (label, prediction): a replaced record leaves one cell for another.

    >>> held = HeldOut(np.array([0, 1, 1]), np.array([0, 1, 0]))
    >>> Confusion(("no", "yes")).add_up(held).tolist()
    [1, 0, 1, 1]
    """

    classes: tuple[str, ...]

    name: ClassVar[str] = "confusion"
    gives_shares: ClassVar[bool] = True
    l1: ClassVar[float] = 2.0
    l2: ClassVar[float] = math.sqrt(2.0)

    @property
    def dim(self) -> int:
        return len(self.classes) ** 2

    @property
    def terms(self) -> int:
        return len(self.classes)

    def add_up(self, held: HeldOut) -> np.ndarray:
        cells = held.labels.astype(np.int64) * len(self.classes) + held.predictions.astype(np.int64)
        return count_cells(cells, self.dim)

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        size = len(self.classes)
        counts = np.rint(sums).astype(int).reshape(size, size)
        return {
            "classes": list(self.classes),
            "note": NOTE,
            "noisy_counts_by_label_and_prediction": counts.tolist(),
            "counts_are_within": reading.noise.bound(reading.alpha),
            "accuracy": describe_share(int(np.trace(counts)), size, reading),
            "majority_baseline": self._describe_majority(counts, reading),
            "recall": {name: _describe_recall(counts, k, reading)
                       for k, name in enumerate(self.classes)},
        }  # fmt: skip

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        keys = {"accuracy": "accuracy", "majority_baseline": "share of the largest class"}
        return {
            name: (described[key]["estimate"], described[key]["interval_for_the_population"])
            for key, name in keys.items()
        }

    def _describe_majority(self, counts: np.ndarray, reading: Reading) -> dict[str, Any]:
        """The share of the largest class: of all classes' intervals the largest ends."""
        size, rows = len(self.classes), counts.sum(axis=1)
        noise, alpha = sum_noise(reading.noise, size), reading.alpha / size
        ends = [find_population_interval(int(y), reading.records, noise, alpha) for y in rows]
        return {
            "class": self.classes[int(np.argmax(rows))],
            "estimate": clip_share(int(np.max(rows)) / reading.records),
            "interval_for_the_population": tuple(max(end) for end in zip(*ends, strict=True)),
        }


def _describe_recall(counts: np.ndarray, k: int, reading: Reading) -> dict[str, Any]:
    """The share of right predictions among the records of one class, whose number is private."""
    right, total = int(counts[k, k]), int(counts[k].sum())
    others = sum_noise(reading.noise, counts.shape[1] - 1)
    interval = find_interval_of_unknown_number(
        right, total - right, reading.noise, reading.alpha, wrong_noise=others
    )
    return {
        "estimate": clip_share(right / total) if total > 0 else None,
        "interval_for_the_population": interval,
    }
