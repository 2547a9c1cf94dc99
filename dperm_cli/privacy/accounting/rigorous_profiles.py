"""Deltas in closed form, in ball arithmetic: upper bounds as functions of epsilon.

Each class has ``delta``: it takes the ball of an epsilon >= 0 and gives a ball. Whatever is at
least that ball is a proved delta at that epsilon. Proofs: docs/proofs, accounting page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

from flint import arb

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.rigorous_balls import Ball, compute_normal

# Equal pure steps up to which all sums of their losses are listed.
MOST_LISTED = 20_000


class DeltaBound(Protocol):
    """An upper bound on delta as a function of epsilon."""

    @property
    def method(self) -> str:
        """How it is computed, in words."""
        ...

    def delta(self, epsilon: Ball) -> Ball:
        """A ball that holds the bound at an epsilon >= 0."""
        ...


@dataclass(frozen=True)
class GaussianBound:
    """The profile of mu-GDP: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""

    mu: Ball
    method = "closed form"

    def delta(self, epsilon: Ball) -> Ball:
        if self.mu == 0:
            return arb(0)
        return compute_gaussian_delta(epsilon, self.mu)


@dataclass(frozen=True)
class PureSumBound:
    """Epsilons of pure steps added up: nothing is left above their sum."""

    total: Ball
    method = "sum"

    def delta(self, epsilon: Ball) -> Ball:
        return arb(0) if epsilon >= self.total else arb(1)


@dataclass(frozen=True)
class SingleStepBound:
    """One step of bounded loss: a mixture of randomised response and of two logistic laws.

    ``reach`` bounds the loss; ``share`` is the weight of randomised response.
    """

    reach: Ball
    share: Ball
    method = "closed form"

    def delta(self, epsilon: Ball) -> Ball:
        e = self.reach
        if epsilon >= e:
            return arb(0)
        atoms = -(epsilon - e).expm1() / (1 + (-e).exp())
        smooth = ((epsilon - e) / 2).expm1() ** 2 / -(-e).expm1()
        return (self.share * atoms + (1 - self.share) * smooth).nonnegative_part()


@dataclass(frozen=True)
class EqualPureStepsBound:
    """``count`` steps of randomised response with the same ``reach``.

    The loss is (2j - count) reach with a binomial chance. delta adds up what those above epsilon
    have more under P than under e^epsilon Q.
    """

    reach: Ball
    count: int
    method = "closed form"

    @cached_property
    def _tails(self) -> tuple[list[Ball], list[Ball]]:
        """Chances of j or more large losses under P and under Q, for j = 0, .., count + 1."""
        growth, k = self.reach.exp(), self.count
        chance = (1 + growth) ** -k  # of j = 0 under P
        under_p, under_q = [], []
        for j in range(k + 1):
            under_p.append(chance)
            under_q.append(chance * ((k - 2 * j) * self.reach).exp())
            chance = chance * growth * (k - j) / (j + 1)
        return add_from_the_end(under_p), add_from_the_end(under_q)

    def delta(self, epsilon: Ball) -> Ball:
        k, near = self.count, float(((epsilon / self.reach + self.count) / 2).mid())
        return compute_listed_delta(*self._tails, lambda j: (2 * j - k) * self.reach, near, epsilon)


@dataclass(frozen=True)
class SingleSampledBound:
    """One Gaussian release over a random batch, by the test that its likelihood ratio makes.

    ``form`` is that of ``subsampled_laws``; ``rate`` and ``shift`` as there.
    """

    form: str
    rate: Ball
    shift: Ball
    method = "closed form"

    def delta(self, epsilon: Ball) -> Ball:
        q, s, growth = self.rate, self.shift, epsilon.exp()
        # the level of q e^(s x - s^2 / 2) where the ratio of the two densities is e^epsilon
        if self.form == "add":
            level = (1 / growth - 1 + q) / q
            if not level > 0:
                return arb(0) if level <= 0 else arb(1)
            x = level.log() / s + s / 2
            return (compute_normal(x) - growth * self._mix(x, 1)).nonnegative_part()
        if self.form == "poisson":
            half = (epsilon / 2).sinh() * (1 - q) / (q * (-s * s / 2).exp())
            x = (epsilon / 2 + half.asinh()) / s
            return (self._mix(-x, -1) - growth * self._mix(-x, 1)).nonnegative_part()
        x = ((epsilon.expm1() + q) / q).log() / s + s / 2
        return (self._mix(-x, -1) - growth * compute_normal(-x)).nonnegative_part()

    def _mix(self, x: Ball, side: int) -> Ball:
        """Of (1 - q) N(0) + q N(shift) the chance below x; for ``side`` -1 with the shift -s."""
        moved = compute_normal(x - side * self.shift)
        return (1 - self.rate) * compute_normal(x) + self.rate * moved


@dataclass(frozen=True)
class MomentBound:
    """Renyi's bound at one tilt: M(tilt) e^(-tilt epsilon) max_u (1 - e^-u) e^(-tilt u)."""

    tilt: Ball
    log_m: Ball
    method = "moments"

    def delta(self, epsilon: Ball) -> Ball:
        t = self.tilt
        factor = -(1 + t).log() - t * (1 + 1 / t).log()
        return (self.log_m + factor - t * epsilon).exp()


@dataclass(frozen=True)
class WorstBound:
    """The largest of several bounds, as of removing a record and of adding one."""

    bounds: tuple[DeltaBound, ...]

    @property
    def method(self) -> str:
        """Of the first one."""
        return self.bounds[0].method

    def delta(self, epsilon: Ball) -> Ball:
        return take_largest([bound.delta(epsilon) for bound in self.bounds])


def compute_gaussian_delta(epsilon: Ball, mu: Ball) -> Ball:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) for mu > 0."""
    ratio = epsilon / mu
    below = compute_normal(mu / 2 - ratio)
    return (below - epsilon.exp() * compute_normal(-mu / 2 - ratio)).nonnegative_part()


def take_largest(balls: Sequence[Ball]) -> Ball:
    """A ball that holds the largest of some numbers."""
    worst = balls[0]
    for other in balls[1:]:
        worst = worst.max(other)
    return worst


def find_mu_of_pure(epsilon: Ball, find: Callable[[Callable[[Ball], bool], float], float]) -> Ball:
    """A mu at which every epsilon-DP step is mu-GDP: Phi(mu/2) >= e^epsilon / (1 + e^epsilon).

    Args:
        epsilon: Of the step.
        find: Searches for the least mu, from a guess.
    """
    from dperm_cli.privacy.accounting import gaussian_profile
    from dperm_cli.privacy.accounting.rigorous_balls import make_ball

    aim = 1 / (1 + (-epsilon).exp())
    guess = gaussian_profile.mu_of_pure(float(epsilon.mid()))
    return make_ball(find(lambda mu: bool(compute_normal(mu / 2) >= aim), guess))


def compute_listed_delta(
    under_p: Sequence[Ball],
    under_q: Sequence[Ball],
    find_loss: Callable[[int], Ball],
    near: float,
    epsilon: Ball,
) -> Ball:
    """E (1 - e^(epsilon - loss))_+ of a listed law whose losses rise.

    Args:
        under_p: Chances of the losses from number j on, for each j; 0 at the end.
        under_q: The same under Q.
        find_loss: The loss of a number.
        near: The number at which the loss is epsilon, about. A wrong one gives 1.
        epsilon: At least 0.
    """
    last = len(under_p) - 1
    first = min(max(math.floor(near) + 1, 1), last)
    # which losses are above epsilon is proved, but for those that may be equal to it
    if first >= 2 and not find_loss(first - 2) < epsilon:
        return arb(1)
    if first + 1 < last and not find_loss(first + 1) > epsilon:
        return arb(1)
    growth = epsilon.exp()
    starts = range(first - 1, min(first + 1, last) + 1)
    worst = take_largest([under_p[j] - growth * under_q[j] for j in starts])
    return worst.nonnegative_part()


def add_from_the_end(values: Sequence[Ball]) -> list[Ball]:
    """Sums of all values from each place on, and 0 behind the last."""
    total, sums = arb(0), [arb(0)]
    for value in reversed(values):
        total = total + value
        sums.append(total)
    return sums[::-1]
