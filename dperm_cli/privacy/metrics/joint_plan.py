"""One plan for several metrics: their sums are one vector, released once by one event.

``plan_metrics`` sees public facts alone, ``release_metrics`` draws, and what is said of the noisy
sums is post-processing. Proofs: ``docs/proofs/_evaluation.md``, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise
from dperm_cli.privacy.intervals.summed_noise import MOST_SCALE
from dperm_cli.privacy.metrics.base import HeldOut, Metric, Reading
from dperm_cli.privacy.metrics.noise_choice import check_grid, choose_noise, find_grid
from dperm_cli.privacy.secure_grid import Grid

_SHIFTS = 8  # tails in an interval, at most, for each draw of noise


@dataclass(frozen=True)
class MetricsPlan:
    """What an evaluation will do to held-out records, from public facts alone.

    Attributes:
        metrics: in the order of the vector; those of the same sums share them.
        event: one release of all sums.
        records: held-out records, public.

    >>> from dperm_cli.privacy.metrics.confusion import Confusion
    >>> from dperm_cli.privacy.metrics.log_loss import LogLoss
    >>> metrics = Confusion(("no", "yes")), LogLoss()
    >>> plan = plan_metrics(metrics, 1000, Budget(0.5, 0.0))
    >>> plan.event.scale, plan.dim
    (6.0, 5)
    """

    metrics: tuple[Metric, ...]
    event: Laplace | Gaussian
    records: int

    @property
    def relation(self) -> str:
        """Records are replaced: their number is public."""
        return "replace_one"

    @property
    def dim(self) -> int:
        """How many sums are released."""
        return sum(metric.dim for metric in list_blocks(self.metrics))

    @property
    def grid(self) -> Grid:
        """The grid of secure noise; every sum lies on it, so that no rounding is charged."""
        return find_grid(self.event, self.records, min(block.step for block in self.metrics))

    @property
    def noise(self) -> RoundedNoise:
        """The noise of a released count."""
        return RoundedNoise(self.event.noise_law, self.event.scale)

    def open_secure_gate(self) -> Gate:
        """A gate that holds the event of this plan and nothing else."""
        return Gate.secure(1, self.grid, ([self.event], self.relation))

    def read(self, alpha: float, **facts: Any) -> Reading:
        """The facts that sums are read with; alpha less what rounding the noise twice can add.

        Raises:
            InputError: alpha is below what rounding can add.
        """
        terms = max(metric.terms for metric in self.metrics)
        level = alpha - _SHIFTS * terms * self.grid.step / (4.0 * self.event.scale)
        if not 0.0 < level < 1.0:
            raise InputError("alpha", alpha, "below 1, and above the rounding of the noise")
        return Reading(self.records, self.noise, level, **facts)


@dataclass(frozen=True, eq=False)
class PrivateMetrics:
    """Released sums of each block, noise included: counts as whole numbers."""

    plan: MetricsPlan
    sums: dict[str, np.ndarray]

    def describe(self, alpha: float = 0.05, **facts: Any) -> dict[str, dict[str, Any]]:
        """What each metric says, by its name.

        Args:
            alpha: chance that one interval misses, each for itself.
            facts: further public facts of a ``Reading``.
        """
        reading = self.plan.read(alpha, **facts)
        return {
            metric.name: metric.describe(self.sums[metric.sums], reading)
            for metric in self.plan.metrics
        }


def plan_metrics(
    metrics: Sequence[Metric], records: int, budget: Budget, *, mu: float = 0.0
) -> MetricsPlan:
    """Plan the release of all metrics for a budget.

    Args:
        metrics: different ones, at least one.
        records: held-out records, a public number.
        budget: what the evaluation may spend, of central trust, under replace_one.
        mu: where above 0, Gaussian noise with which neighbours are as hard to tell apart as
            N(0, 1) and N(mu, 1), in place of ``budget``.

    Raises:
        InputError: for no metric, or fewer than 1 record or more than 2^30.
        Unsupported: for add_remove and local trust, and noise that no grid can hold.
    """
    if not metrics or len({metric.name for metric in metrics}) < len(metrics):
        raise InputError("metrics", [metric.name for metric in metrics], "different ones, or one")
    if not 1 <= records <= 2**30:
        raise InputError("records", records, "between 1 and 2^30")
    if budget.relation != "replace_one":
        raise Unsupported("metrics need a public number of held-out records: replace_one")
    blocks = list_blocks(metrics)
    l1 = math.fsum(block.l1 for block in blocks)
    l2 = math.sqrt(math.fsum(block.l2**2 for block in blocks)) * (1.0 + 2.0**-50)
    event = (Gaussian(l2 / mu * (1.0 + 2.0**-50), l2, gap=l2, relation=budget.relation) if mu > 0.0
             else choose_noise(l1, l2, budget))  # fmt: skip
    plan = MetricsPlan(tuple(metrics), event, int(records))
    check_grid(event, plan.grid, records)
    if any(metric.terms > 1 for metric in metrics) and event.scale > MOST_SCALE:
        raise Unsupported(f"noise of scale {event.scale:.3g} leaves nothing to be read")
    return plan


def release_metrics(plan: MetricsPlan, held: HeldOut, gate: Gate) -> PrivateMetrics:
    """Add up what the metrics need of held-out records, with noise from the gate.

    Args:
        plan: of ``plan_metrics``.
        held: the held-out records, with the predictions of the released model.
        gate: that holds the event of the plan, for one trial.

    Raises:
        InputError: their number is not that of the plan, or a metric lacks what it needs.
        PrivacyError: the gate does not hold the event.
    """
    if held.records != plan.records:
        raise InputError("labels", held.records, f"the plan is for {plan.records} records")
    if gate.trials != 1:
        raise InputError("trials", gate.trials, "an evaluation is released once")
    blocks = list_blocks(plan.metrics)
    exact = np.concatenate([block.add_up(held) * block.step for block in blocks])
    noisy = gate.stream(plan.event, plan.dim).add(exact[None], 0)[0]
    parts = np.split(noisy, np.cumsum([block.dim for block in blocks])[:-1])
    return PrivateMetrics(
        plan,
        {block.sums: np.floor(part + 0.5) if block.step == 1.0 else np.array(part)
         for block, part in zip(blocks, parts, strict=True)},
    )  # fmt: skip


def list_blocks(metrics: Sequence[Metric]) -> list[Metric]:
    """One metric for each block of sums, in order."""
    return list({metric.sums: metric for metric in reversed(metrics)}.values())[::-1]
