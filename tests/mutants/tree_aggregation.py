"""DP-FTRL [Kairouz et al. 2021], a correct mechanism that the package does not ship.

The audit must not accuse it: its noise comes in several streams that are asked in turn, a record is
in one node of every level, and a node's value is made of gradients at many points. It is copied
into a package as a plug-in (``power.plant_mechanism``), and imports nothing but that package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core.errors import Unsupported
from dperm_cli.core.fields import Help, Positive, Range
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.base import Mechanism, Plan, Release
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import DisjointBatches
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.views.central import CentralView


@dataclass(frozen=True)
class TreeAggregation(Mechanism):
    """theta_t <- Project(centre - eta sum of the noisy gradients so far), sums by a binary tree.

    One pass over 2^levels batches by place. At time t the sum of the first t batch gradients is
    that of the nodes of t's binary digits. Every level is a partition of the records and one event
    ``DisjointBatches``; the levels are composed.
    """

    levels: Annotated[int, Range(0, 20), Help("of the tree")] = 2
    step_size: Annotated[Positive, Help("of every step")] = 0.05

    guarantees: ClassVar[tuple[str, ...]] = ("approx",)
    relations: ClassVar[tuple[str, ...]] = ("replace_one",)
    secure: ClassVar[bool] = False
    one_pass: ClassVar[bool] = True

    def check(self, spec: ProblemSpec, budget: Budget) -> None:
        """Gaussian noise, and a record for every leaf."""
        if budget.delta == 0.0:
            raise Unsupported("Gaussian noise needs delta > 0; use mechanism=one_pass_sgd")
        if spec.n < 2**self.levels:
            raise Unsupported(f"{2**self.levels} batches of {spec.n} records: some would be empty")

    def events(
        self, spec: ProblemSpec, scale: float, budget: Budget
    ) -> tuple[DisjointBatches, ...]:
        """A pass for every level of the tree, from the leaves up."""
        return tuple(
            DisjointBatches(
                scale, spec.lipschitz, 2 ** (self.levels - level), "gaussian",
                gap=spec.gradient_gap, partition="place",
            )
            for level in range(self.levels + 1)
        )  # fmt: skip

    def settings(
        self, spec: ProblemSpec, events: tuple[DisjointBatches, ...], budget: Budget
    ) -> dict[str, Any]:
        """The size of the tree."""
        return {"levels": self.levels, "step_size": self.step_size}

    def release(self, view: CentralView, plan: Plan, gate: Gate) -> Release:
        """One pass; a node gets its noise when its last leaf is there."""
        spec, leaves = view.spec, 2**self.levels
        small = view.parts(leaves, by_content=False)
        streams = []
        for level, event in enumerate(plan.events):
            width = 2**level
            parts = [np.concatenate(small[at : at + width]) for at in range(0, leaves, width)]
            streams.append(gate.stream(event, spec.p, parts=parts))
        centre = np.tile(spec.constraint.centre(), (gate.trials, 1))
        theta, points, noisy = centre, [], {}
        for time in range(1, leaves + 1):
            points.append(theta)
            for level, stream in enumerate(streams):
                if time % 2**level == 0:
                    node = time // 2**level - 1
                    leaf = range(node * 2**level, (node + 1) * 2**level)

                    def total(batch: np.ndarray, leaf: range = leaf) -> np.ndarray:
                        return np.asarray(
                            sum(view.batch_gradient(points[k], small[k]) for k in leaf)
                        )

                    noisy[level, node] = stream.release(total, node)
            theta = spec.constraint.project(centre - self.step_size * _prefix(noisy, time))
        return Release(theta)

    def adversary(self, budget: Budget) -> Adversary:
        """One record in a tree of one leaf: theta is minus its noisy gradient."""
        chosen = TreeAggregation(levels=0, step_size=1.0)
        scale = chosen.plan(linear_pair(budget.relation)[0].spec(), budget).noise_scale
        first, second = linear_pair(budget.relation, radius=2.0 + 20.0 * scale)
        return Adversary(first, second, chosen, kind="gaussian", floor=0.8)


def _prefix(noisy: dict[tuple[int, int], np.ndarray], time: int) -> np.ndarray:
    """The noisy sum of the first ``time`` leaves: one node for each binary digit of ``time``."""
    total, done = np.zeros(1), 0
    for level in reversed(range(time.bit_length())):
        if time >> level & 1:
            total = total + noisy[level, done >> level]
            done += 1 << level
    return np.asarray(total)
