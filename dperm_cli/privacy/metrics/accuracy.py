"""The share of right predictions, by one count."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.intervals.accuracy import find_interval_on_records, find_population_interval
from dperm_cli.privacy.intervals.bounded_mean import clip_share
from dperm_cli.privacy.intervals.summed_noise import sum_noise
from dperm_cli.privacy.metrics.base import HeldOut, Metric, Reading


@dataclass(frozen=True)
class Accuracy(Metric):
    """The number of right predictions: one record moves it by 1.

    >>> held = HeldOut(np.array([0, 1, 1]), np.array([0, 1, 0]))
    >>> Accuracy().add_up(held).tolist()
    [2]
    """

    name: ClassVar[str] = "accuracy"
    gives_shares: ClassVar[bool] = True
    dim: ClassVar[int] = 1
    l1: ClassVar[float] = 1.0
    l2: ClassVar[float] = 1.0

    def add_up(self, held: HeldOut) -> np.ndarray:
        return np.array([np.count_nonzero(held.labels == held.predictions)], dtype=np.int64)

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        right = int(sums[0])
        return {"noisy_count_of_right_predictions": right, **describe_share(right, 1, reading)}

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        return {"accuracy": (described["estimate"], described["interval_for_the_population"])}


def describe_share(count: int, terms: int, reading: Reading) -> dict[str, Any]:
    """A share of the records with its exact intervals.

    Args:
        count: a sum of ``terms`` released counts.
        terms: how many draws of noise it holds.
        reading: the public facts.

    Returns:
        The estimate, the interval for the population and the one for these records.
    """
    noise, records = sum_noise(reading.noise, terms), reading.records
    return {
        "estimate": clip_share(count / records),
        "interval_for_the_population": find_population_interval(
            count, records, noise, reading.alpha
        ),
        "interval_for_these_records": find_interval_on_records(
            count, records, noise, reading.alpha
        ),
    }
