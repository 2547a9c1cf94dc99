"""The calibration table: how often records of like probability are of the positive class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.intervals.accuracy import find_interval_of_unknown_number
from dperm_cli.privacy.intervals.bounded_mean import clip_share
from dperm_cli.privacy.intervals.summed_noise import sum_noise
from dperm_cli.privacy.metrics.base import Reading, is_idle
from dperm_cli.privacy.metrics.score_histogram import BINS, ScoreHistogram, split_labels

ROWS = 8


@dataclass(frozen=True)
class Calibration(ScoreHistogram):
    """Eight rows of equal width in the score: the model's probabilities there, and the shares."""

    name: ClassVar[str] = "calibration"
    terms: ClassVar[int] = BINS // ROWS

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        noise = sum_noise(reading.noise, self.terms)
        negative, positive = (part.reshape(ROWS, -1).sum(axis=1) for part in split_labels(sums))
        rows = []
        for k in range(ROWS):
            yes, no = int(positive[k]), int(negative[k])
            ends = 2.0 * k / ROWS - 1.0, 2.0 * (k + 1) / ROWS - 1.0
            chance = reading.chance_of_score
            rows.append({
                "probability_from_to": None if chance is None else [chance(end) for end in ends],
                "noisy_count": yes + no,
                "share_of_positives": clip_share(yes / (yes + no)) if yes + no > 0 else None,
                "interval_for_the_population": find_interval_of_unknown_number(
                    yes, no, noise, reading.alpha
                ),
            })  # fmt: skip
        return {"rows": rows}

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        """How many rows' probabilities are clear of the interval of their share."""
        rows = described["rows"]
        if any(row["probability_from_to"] is None for row in rows):
            return {}
        off = sum(row["interval_for_the_population"][0] > row["probability_from_to"][1]
                  or row["interval_for_the_population"][1] < row["probability_from_to"][0]
                  for row in rows)  # fmt: skip
        idle = sum(is_idle(row["interval_for_the_population"]) for row in rows)
        return {
            f"rows of {ROWS} that are off calibration": (off, None),
            f"rows of {ROWS} whose interval says nothing": (idle, None),
        }
