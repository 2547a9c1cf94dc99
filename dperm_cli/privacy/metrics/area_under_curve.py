"""The area under the curve of true and false positives, from a histogram of scores."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.intervals.area_under_curve import find_area, find_area_interval
from dperm_cli.privacy.metrics.base import Reading
from dperm_cli.privacy.metrics.score_histogram import BINS, ScoreHistogram, split_labels


@dataclass(frozen=True)
class AreaUnderCurve(ScoreHistogram):
    """The chance that a positive record has the higher score, ties of a bin counted half.

    >>> from dperm_cli.privacy.metrics.base import HeldOut
    >>> labels = np.array([0, 1, 1])
    >>> held = HeldOut(labels, labels, scores=np.array([-1.0, -1.0, 1.0]))
    >>> negative, positive = split_labels(AreaUnderCurve().add_up(held))
    >>> find_area(negative, positive)
    0.75
    """

    name: ClassVar[str] = "auc"
    gives_shares: ClassVar[bool] = True

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        negative, positive = split_labels(sums)
        return {
            "bins_of_the_score": BINS,
            "estimate": find_area(negative, positive),
            "interval_for_the_population": find_area_interval(
                negative, positive, reading.noise, reading.alpha
            ),
            "method_of_the_interval": "normal approximation, of noise and sampling",
        }

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        found = described["estimate"], described["interval_for_the_population"]
        return {"area under the curve": found}
