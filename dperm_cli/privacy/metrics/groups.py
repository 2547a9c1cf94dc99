"""Accuracy or mean absolute error for each group of a declared column."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.accuracy import find_interval_of_unknown_number
from dperm_cli.privacy.intervals.bounded_mean import clip_share, find_mean_of_unknown_number
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


def read_groups(held: HeldOut) -> np.ndarray:
    """The groups' numbers [n]; InputError where none are told apart."""
    if held.groups is None:
        raise InputError("groups", None, "the number of a group for each record")
    return held.groups


@dataclass(frozen=True)
class GroupAccuracy(Metric):
    """Right and wrong predictions in each group: a replaced record leaves one cell for another."""

    groups: tuple[str, ...]

    name: ClassVar[str] = "accuracy_by_group"
    gives_shares: ClassVar[bool] = True
    l1: ClassVar[float] = 2.0
    l2: ClassVar[float] = math.sqrt(2.0)

    @property
    def dim(self) -> int:
        return 2 * len(self.groups)

    def add_up(self, held: HeldOut) -> np.ndarray:
        wrong = held.labels != held.predictions
        return count_cells(2 * read_groups(held) + wrong, self.dim)

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        found = {}
        for name, (right, wrong) in zip(self.groups, sums.reshape(-1, 2), strict=True):
            total = int(right + wrong)
            found[name] = {
                "noisy_number_of_records": total,
                "estimate": clip_share(float(right) / total) if total > 0 else None,
                "interval_for_the_population": find_interval_of_unknown_number(
                    int(right), int(wrong), reading.noise, reading.alpha
                ),
            }
        return found

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        return {
            f"accuracy for {name}": (one["estimate"], one["interval_for_the_population"])
            for name, one in described.items()
        }


@dataclass(frozen=True)
class GroupError(Metric):
    """The number of records of each group and their sum of min(2 |y - prediction|, 1).

    A replaced record moves a number and a sum by at most 1 in the group that it leaves, and in the
    one that it enters.
    """

    groups: tuple[str, ...]

    name: ClassVar[str] = "mae_by_group"
    step: ClassVar[float] = FINE_STEP
    l1: ClassVar[float] = 4.0
    l2: ClassVar[float] = 2.0

    @property
    def dim(self) -> int:
        return 2 * len(self.groups)

    def add_up(self, held: HeldOut) -> np.ndarray:
        groups, error = read_groups(held), find_errors(held)
        sums = [
            (
                np.count_nonzero(groups == k) * round(1.0 / FINE_STEP),
                sum_of_steps(error[groups == k]),
            )
            for k in range(len(self.groups))
        ]
        return np.array(sums, dtype=np.int64).ravel()

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        found = {}
        for name, (count, total) in zip(self.groups, sums.reshape(-1, 2).tolist(), strict=True):
            interval = find_mean_of_unknown_number(
                total, round(count), reading.noise, reading.alpha, 0.5
            )
            factor = LARGEST_ERROR * reading.unit
            found[name] = {
                "noisy_number_of_records": round(count),
                "estimate": factor * clip_share(total / count) if count >= 1.0 else None,
                "interval_for_the_population": widen(interval, factor),
            }
        return found

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        return {
            f"mean absolute error for {name}": (
                one["estimate"], one["interval_for_the_population"],
            )
            for name, one in described.items()
        }  # fmt: skip
