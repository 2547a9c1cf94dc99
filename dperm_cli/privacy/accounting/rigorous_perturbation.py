"""Objective perturbation in ball arithmetic: the bounds of ``objective_perturbation``, proved.

The names are those of that module, which says what they bound: H, the edge, and the joint bound
with Gaussian releases beside. Proofs: docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import Any

from flint import arb

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import objective_perturbation
from dperm_cli.privacy.accounting.rigorous_balls import (
    Ball,
    compute_normal,
    find_least,
    make_ball,
)
from dperm_cli.privacy.accounting.rigorous_profiles import compute_gaussian_delta, take_largest

_ANGLES = 32
_CELLS = 16  # in which the range below the edge is cut


@dataclass(frozen=True)
class NoiseBound:
    """What Gaussian noise leaves beside the Jacobian, with ``second``-GDP releases beside it.

    ``ratio`` is the sensitivity over the scale of the linear term. ``shift`` is taken off epsilon
    first: the Jacobian.
    """

    ratio: Ball
    second: Ball
    relation: str
    shift: Ball
    method = "closed form"

    def delta(self, epsilon: Ball) -> Ball:
        """The bound at an epsilon; 1 below the shift."""
        e = epsilon - self.shift
        if not e >= 0:
            return arb(1)
        if self.second == 0:
            return self.bound_noise(e)
        both = (self.ratio**2 + self.second**2).sqrt()
        found = 2 * compute_gaussian_delta(e, both)
        ends, values = self._cells
        lower = arb(0)
        for end, value in zip(ends, values, strict=True):
            chance = compute_normal((end + self.second**2 / 2 - e) / self.second)
            found = found + (chance - lower) * value
            lower = chance
        return found.min(arb(1))

    def bound_noise(self, e: Ball) -> Ball:
        """What the noise alone leaves at e >= 0."""
        if self.ratio == 0:
            return arb(0)
        if e >= self.edge:
            return (2 * compute_gaussian_delta(e, self.ratio)).min(arb(1))
        if self.relation == "add_remove":
            return self.half_normal(e, self.ratio)
        angles = [arb.pi() / 4 * k / _ANGLES for k in range(_ANGLES + 1)]
        found = [
            1 - (1 - self.half_normal(e, self.ratio * low.cos()))
            * (1 - self.half_normal(e, self.ratio * high.sin()))
            for low, high in pairwise(angles)
        ]  # fmt: skip
        return take_largest(found).min(arb(1))

    def half_normal(self, e: Ball, m: Ball) -> Ball:
        """H(e; m) for e >= 0 and m > 0. Where e lies on no side of m^2 / 2 for sure, 1."""
        if e >= m * m / 2:
            return (2 * compute_gaussian_delta(e, m)).min(arb(1))
        if e < m * m / 2:
            return (1 - 2 * e.exp() * compute_normal(-m)).nonnegative_part()
        return arb(1)

    @cached_property
    def edge(self) -> Ball:
        """The e from which H is twice the Gaussian delta, and one direction the worst case."""
        if self.relation == "add_remove":
            return self.ratio**2 / 2
        return self.ratio * (1 + self.ratio**2 / 4).sqrt()

    @cached_property
    def _cells(self) -> tuple[list[Ball], list[Ball]]:
        """Upper ends of cells of (-inf, edge], and bounds on what the noise leaves in them."""
        ends = [self.edge * k / _CELLS for k in range(_CELLS + 1)]
        return ends, [arb(1), *(self.bound_noise(end) for end in ends[:-1])]


def compute_jacobian(event: Any) -> Ball:
    """What the log-Jacobian of a perturbed objective moves by: rank ln(1 + curvature / Lam)."""
    return event.rank * (make_ball(event.curvature) / make_ball(event.strength)).log1p()


def find_joint_epsilon(delta: float, ratio: Ball, second: Ball, relation: str) -> float:
    """The least e at which a perturbed objective leaves delta beside its Jacobian; inf for none.

    Args:
        delta: Of its event.
        ratio: Sensitivity over the scale of the linear term.
        second: The mu of Gaussian releases beside it.
        relation: Between neighbours.
    """
    bound = NoiseBound(ratio, second, relation, arb(0))
    aim = make_ball(delta)
    guess = objective_perturbation.joint_epsilon(
        delta, float(ratio.mid()), float(second.mid()), relation
    )
    return find_least(lambda e: bool(bound.delta(e) <= aim), guess if guess < math.inf else 1.0)
