"""DP-FTRL as a plug-in of dperm: follow the regularised leader, with sums from a noisy binary tree.

    dperm check dp_ftrl.py
    dperm run --plugin dp_ftrl.py mechanism=dp_ftrl,one_pass_sgd -m epsilon=1,10
    dperm audit --plugin dp_ftrl.py mechanism=dp_ftrl

Source: P. Kairouz, B. McMahan, S. Song, O. Thakkar, A. Thakurta, Z. Xu, "Practical and Private
(Deep) Learning without Sampling or Shuffling", ICML 2021.

Privacy. The records are cut into 2^levels batches by their place. A node of the tree is the sum of
the gradients of the batches below it, each at the point that was known when the batch came. On one
level every record is in one node, which it moves by at most its gradient (by the distance of two
gradients, where it is replaced): a level is one pass over disjoint batches with Gaussian noise. The
levels + 1 passes are composed. Batches by place have no proof where records are added or removed,
so the relation is replace_one alone.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from dperm_cli import (
    Adversary,
    Auto,
    DisjointBatches,
    Help,
    Mechanism,
    Range,
    Release,
    Unsupported,
    linear_pair,
)

__version__ = "1.0"


@dataclass(frozen=True)
class DpFtrl(Mechanism):
    """theta_t <- Project(centre - step (noisy sum of all gradients so far)), one pass."""

    levels: Annotated[int | Auto, Range(0, 20), Help("of the tree: 2^levels batches")] = "auto"
    step_size: Annotated[float, Range(above=0), Help("1 = as the theory has it")] = 1.0

    guarantees = ("approx",)
    relations = ("replace_one",)
    one_pass = True

    def check(self, spec, budget):
        """Gaussian noise, and a record for every batch."""
        if budget.delta == 0.0:
            raise Unsupported("dp_ftrl adds Gaussian noise and needs delta > 0")
        if spec.n < 2 ** self._count_levels(spec):
            words = f"levels={self.levels} has more batches than the {spec.n} records"
            raise Unsupported(f"{words}; set mechanism.levels lower")

    def _count_levels(self, spec):
        """As asked for, or 6 at most, with 4 records in a batch: n is public."""
        if self.levels != "auto":
            return self.levels
        return max(0, min(6, (spec.n // 4).bit_length() - 1))

    def events(self, spec, scale, budget):
        """A pass over disjoint batches for every level, from the leaves up."""
        levels = self._count_levels(spec)
        return tuple(
            DisjointBatches(
                scale,
                spec.lipschitz,
                2 ** (levels - level),
                "gaussian",
                gap=spec.gradient_gap,
                partition="place",
            )
            for level in range(levels + 1)
        )

    def settings(self, spec, events, budget):
        """The size of the tree and of the steps."""
        return {"levels": len(events) - 1, "step_size": self.step_size}

    def release(self, view, plan, gate):
        """One pass; a node gets its noise when the last batch below it has come."""
        spec, leaves = view.spec, 2 ** (len(plan.events) - 1)
        parts = view.parts(leaves, by_content=False)
        streams = [
            gate.stream(event, spec.p, parts=_join(parts, 2**level))
            for level, event in enumerate(plan.events)
        ]
        centre = np.tile(spec.constraint.centre(), (gate.trials, 1))
        noise = plan.noise_scale * np.sqrt(spec.p * len(plan.events))
        total = spec.n * spec.lipschitz_total / np.sqrt(leaves) + noise
        length = self.step_size * spec.constraint.diameter / total
        theta, points, nodes, mean = centre, [], {}, np.zeros_like(centre)
        for time in range(1, leaves + 1):
            mean += theta / leaves
            points.append(theta)
            for level, stream in enumerate(streams):
                if time % 2**level == 0:
                    node = time // 2**level - 1
                    below = range(node * 2**level, time)
                    nodes[level, node] = stream.release(_sum_over(view, points, parts, below), node)
            pull = _prefix(nodes, time) + time / leaves * spec.penalty.subgradient(theta)
            theta = spec.constraint.project(centre - length * pull)
        return Release(mean if leaves > 1 else theta)

    def adversary(self, budget):
        """One record in a tree of one leaf: theta is minus its noisy gradient, up to a factor."""
        first, second = linear_pair(budget.relation)
        one_leaf = replace(self, levels=0, step_size=1e-6)  # so small that the set plays no part
        return Adversary(first, second, one_leaf, kind="gaussian", floor=0.8)


def _join(parts, width):
    """The batches of a level: those of ``width`` leaves in a row together."""
    return [np.concatenate(parts[at : at + width]) for at in range(0, len(parts), width)]


def _sum_over(view, points, parts, below):
    """The gradients of the batches ``below``, each at the point that it was asked at."""
    return lambda batch: np.asarray(sum(view.batch_gradient(points[k], parts[k]) for k in below))


def _prefix(nodes, time):
    """The noisy sum of the first ``time`` batches: a node for each binary digit of ``time``."""
    total, done = 0.0, 0
    for level in reversed(range(time.bit_length())):
        if time >> level & 1:
            total = total + nodes[level, done >> level]
            done += 1 << level
    return np.asarray(total)
