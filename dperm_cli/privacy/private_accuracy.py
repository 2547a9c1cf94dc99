"""Accuracy of a released model on held-out records, by counts with noise from the gate.

``plan_accuracy`` sees public facts alone and ``release_accuracy`` draws. What follows from the
released counts is post-processing. Proofs: ``docs/proofs/_evaluation.md``.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.intervals.accuracy import (
    find_interval_of_unknown_number,
    find_interval_on_records,
    find_population_interval,
)
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise, check_level
from dperm_cli.privacy.metrics.noise_choice import check_grid, choose_noise, find_grid
from dperm_cli.privacy.secure_grid import Grid

_SHIFTS = 8  # an interval uses at most six tails


@dataclass(frozen=True)
class AccuracyPlan:
    """What an evaluation will do to held-out records, from public facts alone.

    Under ``replace_one`` the number of records is public and the right predictions are counted.
    Under ``add_remove`` right and wrong ones are, and ``records`` is a public population.

    >>> plan = plan_accuracy(1000, Budget(0.1, 0.0))
    >>> plan.event, plan.dim
    (Laplace(scale=10.0, record_norm=1.0, count=1, gap=1.0, relation='replace_one'), 1)
    """

    event: Laplace | Gaussian
    relation: str
    records: int

    @property
    def dim(self) -> int:
        """How many counts are released."""
        return 1 if self.relation == "replace_one" else 2

    @property
    def grid(self) -> Grid:
        """The grid of secure noise; whole numbers lie on it, so that no rounding is charged."""
        return find_grid(self.event, self.records)

    @property
    def noise(self) -> RoundedNoise:
        """The noise of a released count."""
        return RoundedNoise(self.event.noise_law, self.event.scale)

    def open_secure_gate(self) -> Gate:
        """A gate that holds the event of this plan and nothing else."""
        return Gate.secure(1, self.grid, ([self.event], self.relation))


@dataclass(frozen=True)
class PrivateAccuracy:
    """Released counts: ``right`` and, under ``add_remove``, ``wrong``, noise included."""

    plan: AccuracyPlan
    right: int
    wrong: int | None

    @property
    def estimate(self) -> float:
        """The share of right predictions, cut to [0, 1]; nan where no record may be left."""
        total = self.plan.records if self.wrong is None else self.right + self.wrong
        return min(1.0, max(0.0, self.right / total)) if total > 0 else math.nan

    def find_population_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Where the accuracy on the population lies, but for a chance ``alpha``.

        Args:
            alpha: chance of missing, sampling and noise together.

        Returns:
            Lower and upper end, in [0, 1].

        Raises:
            InputError: for alpha outside (0, 1) or too small for the grid of the noise.
        """
        level, noise = self._reduce_level(alpha), self.plan.noise
        if self.wrong is None:
            return find_population_interval(self.right, self.plan.records, noise, level)
        return find_interval_of_unknown_number(self.right, self.wrong, noise, level)

    def find_interval_on_records(self, alpha: float = 0.05) -> tuple[float, float]:
        """Where the accuracy on these records lies; as ``find_population_interval``.

        ``Unsupported`` under add_remove, where the number of records is private.
        """
        level = self._reduce_level(alpha)
        if self.wrong is not None:
            raise Unsupported("the accuracy on these records needs a public number of records")
        return find_interval_on_records(self.right, self.plan.records, self.plan.noise, level)

    def _reduce_level(self, alpha: float) -> float:
        """alpha less what rounding twice, to the grid and to whole numbers, can add to it."""
        check_level(alpha)
        level = alpha - _SHIFTS * self.plan.grid.step / (4.0 * self.plan.event.scale)
        if level <= 0:
            raise InputError("alpha", alpha, "more than the rounding of the noise, about 1e-4")
        return level


def plan_accuracy(records: int, budget: Budget) -> AccuracyPlan:
    """Plan an accuracy for a budget, with the noise of less variance.

    Args:
        records: held-out records, public under ``replace_one``; else their declared population.
        budget: what the evaluation may spend, of central trust.

    Returns:
        The plan; its event is certified to keep to the budget.

    Raises:
        InputError: for fewer than 1 record, or more than 2^31.
        Unsupported: for local trust, or so little noise that the grid cannot hold it.
    """
    if not 1 <= records <= 2**31:
        raise InputError("records", records, "between 1 and 2^31")
    event = choose_noise(1.0, 1.0, budget)
    plan = AccuracyPlan(event, budget.relation, int(records))
    check_grid(event, plan.grid, records)
    return plan


def release_accuracy(
    plan: AccuracyPlan, predictions: np.ndarray, labels: np.ndarray, gate: Gate
) -> PrivateAccuracy:
    """Count right predictions on held-out records, with noise from the gate.

    Args:
        plan: of ``plan_accuracy``.
        predictions: of the released model, [n].
        labels: of the held-out records, [n].
        gate: that holds the event of the plan, for one trial.

    Returns:
        The noisy counts, whole numbers.

    Raises:
        InputError: where shapes differ, or n is not the public number under ``replace_one``.
        PrivacyError: where the gate does not hold the event.
    """
    found, wanted = np.asarray(predictions), np.asarray(labels)
    if found.ndim != 1 or found.shape != wanted.shape:
        raise InputError("predictions", found.ndim, "one for each label, in one dimension")
    if plan.relation == "replace_one" and found.size != plan.records:
        raise InputError("labels", found.size, f"the plan is for {plan.records} records")
    if gate.trials != 1:
        raise InputError("trials", gate.trials, "an evaluation is released once")
    right = int(np.count_nonzero(found == wanted))
    counts = np.array([[right, found.size - right]], dtype=float)[:, : plan.dim]
    noisy = gate.stream(plan.event, plan.dim).add(counts, 0)[0]
    whole = [math.floor(value + 0.5) for value in noisy]
    return PrivateAccuracy(plan, whole[0], whole[1] if plan.dim == 2 else None)
