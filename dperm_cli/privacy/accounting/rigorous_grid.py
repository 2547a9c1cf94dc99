"""delta(epsilon) of a short composition on a grid of losses, in ball arithmetic.

Each loss law is replaced by one on multiples of h that is worse at every epsilon: the mass between
two grid points moves to both, so that its P-mass and its Q-mass are kept. All masses are
differences of normal tails. The laws are multiplied out as polynomials. Losses below the window are
raised to its lower end, those above it count as infinite: both only raise delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from flint import arb, arb_poly

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.rigorous_balls import Ball, compute_normal, make_ball
from dperm_cli.privacy.accounting.rigorous_losses import SampledLaw
from dperm_cli.privacy.accounting.rigorous_profiles import (
    add_from_the_end,
    compute_listed_delta,
)
from dperm_cli.privacy.accounting.saddle_point import Saddle

# Steps up to which a grid is used; half of its points.
MOST_STEPS = 200
_HALF = 6000
# Logarithm of the chance of losses above the window, as a share of delta.
_LOG_ABOVE = 16.0


class LossTails(Protocol):
    """The chances of large losses under P and under Q."""

    def compute(self, loss: Ball) -> tuple[Ball, Ball]:
        """P(loss above it) and Q(loss above it)."""
        ...


@dataclass(frozen=True)
class GaussianTails:
    """Of a Gaussian release: the loss is N(mu2/2, mu2) under P and N(-mu2/2, mu2) under Q."""

    mu: Ball

    def compute(self, loss: Ball) -> tuple[Ball, Ball]:
        ratio = loss / self.mu
        return compute_normal(self.mu / 2 - ratio), compute_normal(-self.mu / 2 - ratio)


@dataclass(frozen=True)
class SampledTails:
    """Of a Gaussian release over a random batch, from the x at which the loss is reached."""

    law: SampledLaw

    def compute(self, loss: Ball) -> tuple[Ball, Ball]:
        form, q, s = self.law.form, self.law.rate, self.law.shift
        if form == "fixed" and loss < 0:
            # the mirror image: what is below the loss is above its negative, P and Q exchanged
            above_p, above_q = self.compute(-loss)
            return 1 - above_q, 1 - above_p
        if form == "poisson":
            half = (loss / 2).sinh() * (1 - q) / (q * (-s * s / 2).exp())
            x = (loss / 2 + half.asinh()) / s
            return self._mix(-x, -1), self._mix(-x, 1)
        level = ((-loss if form == "add" else loss).expm1() + q) / q
        if not level > 0:
            # beyond the least loss, or the largest; where that is not sure, anything from 0 to 1
            chance = arb(0 if form == "add" else 1) if level <= 0 else arb(0).union(arb(1))
            return chance, chance
        x = level.log() / s + s / 2
        if form == "add":
            return compute_normal(x), self._mix(x, 1)
        return self._mix(-x, -1), compute_normal(-x)

    def _mix(self, x: Ball, side: int) -> Ball:
        moved = compute_normal(x - side * self.law.shift)
        return (1 - self.law.rate) * compute_normal(x) + self.law.rate * moved


@dataclass(frozen=True)
class GridBound:
    """Chances under P of the losses first h, (first + 1) h, ...; what is missing is infinite."""

    step: Ball
    first: int
    chances: tuple[Ball, ...]
    method = "grid"

    @cached_property
    def _tails(self) -> tuple[list[Ball], list[Ball]]:
        under_q = [
            chance * (-(self.first + k) * self.step).exp() for k, chance in enumerate(self.chances)
        ]
        return add_from_the_end(self.chances), add_from_the_end(under_q)

    @cached_property
    def _infinite(self) -> Ball:
        return (1 - self._tails[0][0]).nonnegative_part()

    def delta(self, epsilon: Ball) -> Ball:
        near = float((epsilon / self.step).mid()) - self.first
        listed = compute_listed_delta(
            *self._tails, lambda k: (self.first + k) * self.step, near, epsilon
        )
        return listed + self._infinite


def make_grid(steps: Sequence[tuple[LossTails, int]], saddle: Saddle) -> GridBound:
    """The composition of some steps on a grid.

    Args:
        steps: The tails of each law, and how many steps have it.
        saddle: Of the same composition, in float64: it says how wide the window has to be.
    """
    room = saddle.log_m - saddle.log_delta + _LOG_ABOVE
    step = make_ball(max(room / saddle.tilt, saddle.epsilon * 1.5) / _HALF)
    whole: arb_poly | None = None
    for tails, count in steps:
        powered = _raise_to_power(_list_chances(tails, step), count)
        whole = powered if whole is None else _keep_window(whole * powered)
    assert whole is not None
    chances = tuple(whole[k] for k in range(2 * _HALF + 1))
    return GridBound(step, -_HALF, chances)


def _list_chances(tails: LossTails, step: Ball) -> arb_poly:
    """The chances on the grid of one step: coefficient k is that of the loss (k - _HALF) step."""
    places = [tails.compute(k * step) for k in range(-_HALF, _HALF + 1)]
    chances = [arb(0)] * (2 * _HALF + 1)
    chances[0] = 1 - places[0][0]
    shrunk = -(-step).expm1()
    for k in range(2 * _HALF):
        p, q = (places[k][i] - places[k + 1][i] for i in range(2))
        upper = (p - q * ((k - _HALF) * step).exp()) / shrunk
        chances[k + 1] = chances[k + 1] + upper
        chances[k] = chances[k] + p - upper
    return arb_poly(chances)


def _raise_to_power(law: arb_poly, count: int) -> arb_poly:
    """The law of a sum of ``count`` losses, on the same window."""
    found, square = None, law
    while count:
        if count & 1:
            found = square if found is None else _keep_window(found * square)
        count >>= 1
        if count:
            square = _keep_window(square * square)
    assert found is not None
    return found


def _keep_window(law: arb_poly) -> arb_poly:
    """A sum of two losses on the window of one: raised to its lower end, or infinite above."""
    chances = law.coeffs()
    below = sum(chances[:_HALF], arb(0))
    kept = chances[_HALF : 3 * _HALF + 1]
    kept[0] = kept[0] + below
    return arb_poly(kept)


def is_short(counts: Sequence[int]) -> bool:
    """Whether so many steps are few enough for a grid."""
    return math.fsum(counts) <= MOST_STEPS
