"""Privacy-loss laws of steps whose loss is bounded: pure, Laplace and bounded-range.

With e = ``reach`` and ``share`` = w in [0, 1], the loss under P is a mixture of

two atoms (weight w)      e with chance e^e / (1 + e^e), -e with the rest: randomised response,
                          which dominates every e-DP step [Kairouz-Oh-Viswanath 2015];
a density (weight 1 - w)  e^{l/2} / (4 sinh(e/2)) on (-e, e): two logistic laws at distance e,
                          which dominate every step whose loss has a range of length e.

w = (1 + e^{-e}) / 2 makes two Laplace laws at distance e. Every mixture is its own mirror image.
Proofs: docs/proofs, accounting page. The quadrature variable x is the loss itself, on [0, e].
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class BoundedStep:
    """The loss law of one step; ``count`` independent copies are composed."""

    reach: float
    share: float
    count: int = 1

    form = "bounded"
    is_symmetric = True
    start = 0.0
    rate = 1.0

    @property
    def shift(self) -> float:
        return self.reach

    @property
    def entropy(self) -> float:
        """An upper bound on the mean loss: e tanh(e/2) and e coth(e/2) - 2 <= e^2/6."""
        e = self.reach
        return self.share * e * math.tanh(e / 2.0) + (1.0 - self.share) * min(e * e / 6.0, e)

    @property
    def distance(self) -> float:
        """The total variation distance of the pair."""
        e = self.reach
        return self.share * math.tanh(e / 2.0) + (1.0 - self.share) * math.tanh(e / 4.0)

    @property
    def atom(self) -> float:
        """Log of the Q-mass at loss ``reach`` (its P-mass is e^reach times that)."""
        e = self.reach
        return math.log(self.share) - e - math.log1p(math.exp(-e)) if self.share else -math.inf

    def delta(self, epsilon: float) -> float:
        """The profile of one step at 0 <= epsilon <= reach, in closed form."""
        e = self.reach
        atoms = -math.expm1(epsilon - e) / (1.0 + math.exp(-e))
        smooth = math.expm1((epsilon - e) / 2.0) ** 2 / -math.expm1(-e)
        return self.share * atoms + (1.0 - self.share) * smooth

    def loss(self, x: np.ndarray) -> np.ndarray:
        return x

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.ones_like(x)

    def inverse(self, loss: np.ndarray) -> np.ndarray:
        """The loss itself inside (0, reach); nan outside, and everywhere for atoms alone."""
        inside = (loss > 0.0) & (loss < self.reach) & (self.share < 1.0)
        return np.where(inside, loss, np.nan)

    def log_reference(self, x: np.ndarray) -> np.ndarray:
        """Log density of the loss under Q at x [k], atoms left out."""
        e = self.reach
        if self.share == 1.0:
            return np.full_like(x, -np.inf)
        log_four_sinh = math.log(2.0) + e / 2.0 + math.log(-math.expm1(-e))
        return math.log1p(-self.share) - log_four_sinh - x / 2.0

    def panel(self, tilt: float, frequency: float, digits: float) -> tuple[float, float]:
        """Where the losses that matter begin, and the equal parts to cut the rest up to e into.

        Under the tilt the density rises as e^{(tilt + 1/2) l}; what lies so far below e that its
        share is under exp(-digits) / count is left out, with its mirror image. On each part 16
        nodes see less than about two turns.
        """
        depth = (digits + math.log(self.count) + 4.0) / (tilt + 0.5)
        low = max(0.0, self.reach - depth)
        if self.share == 1.0:
            return low, 1.0
        turns = (self.reach - low) * max(frequency / 14.0, (1.0 + tilt) / 10.0)
        return low, max(turns, 8.0)


def pure(epsilon: float, count: int = 1) -> BoundedStep:
    return BoundedStep(epsilon, 1.0, count)


def laplace(distance: float, count: int = 1) -> BoundedStep:
    """Sensitivity / scale = ``distance``: Laplace noise, or any noise of Lipschitz log density."""
    return BoundedStep(distance, (1.0 + math.exp(-distance)) / 2.0, count)


def bounded_range(epsilon: float, count: int = 1) -> BoundedStep:
    return BoundedStep(epsilon, 0.0, count)


def smooth_atoms(step: BoundedStep) -> BoundedStep:
    """A Laplace law that dominates randomised response: at most a share e/4 worse.

    Its distance 2 ln((1 + e^e) / 2) makes the two profiles touch. Unlike atoms it has a smooth
    part, without which a transform does not decay.
    """
    e = step.reach
    distance = 2.0 * math.log1p(math.expm1(e) / 2.0)
    return laplace(distance * (1.0 + 1e-15), step.count)
