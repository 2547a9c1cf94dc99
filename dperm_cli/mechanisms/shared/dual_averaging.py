"""Noisy gradient descent on a smooth loss with nothing to tune: dual averaging.

Noise of a fixed total budget enters the mean of all T noisy gradients with standard deviation
nu = sigma / sqrt(T) per coordinate, whatever T is. The iterate after t steps is

    theta_t = Project(centre - eta f_t z_t),    z_t = the sum of the first t noisy gradients,

so where the loss does not curve all gradients count alike, and at the boundary of the set the noise
averages out by itself. Three things are decided, from public facts or from released values, so
all of it is post-processing and costs no privacy.

 - The step eta is public: eta T is the worst-case time D / (nu sqrt(p)), and eta a stable step.
 - The share f_t says how far the gradients are trusted: g^2 / (g^2 + p sigma^2 / t) with g^2 the
   estimate of the squared mean gradient [a positive-part James-Stein factor]. It is near 0 where
   z_t may be noise alone, and at least what the gradient expected beforehand is worth.
 - The output is the projected mean of the points before projection, without the first ones, or
   the last iterate where the means of the thirds of the run still move far in one direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dperm_cli.mechanisms.shared.step_schedule import ScheduleFacts

# They have no unit and are the same for every problem; docs/proofs/noisy_gd.md says what each is
# worth.
BURN_IN_SHARE = 0.075  # of the steps: no weight in the mean; it rises to 1 over thrice as many
EXPECTED_SHARE = 0.13  # of its bound: the gradient at the centre that is expected beforehand
MOVED_SHARE = 0.15  # of the distance from the centre: a move between thirds that counts as one


class DualAveraging:
    """The iterates of every trial and their summary, each [trials, p].

    ``point`` is where the next gradient is asked for, a point of the set.
    """

    def __init__(
        self,
        facts: ScheduleFacts,
        start: np.ndarray,
        momentum: float,
        project: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self.facts, self.momentum = facts, momentum
        self._start, self._project = start, project
        self._expected2 = (EXPECTED_SHARE * facts.gradient_bound) ** 2
        self.step_size = min(
            facts.worst_case_time / facts.steps, facts.largest_step / (1.0 - momentum)
        )
        self.least_share = self._find_least_share()
        self.point = start
        self._first, self._done = int(2.0 * BURN_IN_SHARE * facts.steps), 0
        self._speed, self._sum, self._mean = np.zeros((3, *start.shape))
        self._weight = 0.0
        self._thirds, self._counts = np.zeros((3, *start.shape)), np.zeros(3)

    def move(self, noisy: np.ndarray) -> np.ndarray:
        """Count a noisy gradient [trials, p] taken at ``point`` and return the next point."""
        kept, self._done = self._done - self._first, self._done + 1
        self._speed = self.momentum * self._speed + (1.0 - self.momentum) * noisy
        self._sum = self._sum + self._speed
        share = np.maximum(self.least_share, self._find_share())[:, None]
        free = self._start - self.step_size * share * self._sum
        self.point = self._project(free)
        burn_in = max(BURN_IN_SHARE * self.facts.steps, 1e-9)
        weight = min(max(self._done - burn_in, 0.0) / (3.0 * burn_in), 1.0)
        if weight > 0.0:
            self._weight += weight
            self._mean += (weight / self._weight) * (free - self._mean)
        if kept >= 0:
            third = 3 * kept // (self.facts.steps - self._first)
            self._counts[third] += 1
            self._thirds[third] += (self.point - self._thirds[third]) / self._counts[third]
        return self.point

    @property
    def output(self) -> np.ndarray:
        """The projected mean, or the last iterate where the run still moves in one direction.

        Unrelated directions in p dimensions have a cosine of standard deviation 1 / sqrt(p).
        """
        first, then = np.diff(self._thirds, axis=0)
        lengths = np.sqrt(np.sum(first**2, axis=1) * np.sum(then**2, axis=1))
        away2 = np.sum((self._thirds[-1] - self._start) ** 2, axis=1)
        least = np.maximum(lengths / math.sqrt(self.facts.p), MOVED_SHARE**2 * away2)
        moves = np.sum(first * then, axis=1) > least
        mean = self._project(np.asarray(self._mean))
        return np.where(moves[:, None], self.point, mean)

    def _find_share(self) -> np.ndarray:
        """g^2 / (g^2 + p v) [trials], v = sigma^2 / t; g^2 as far as its estimate counts."""
        noise2 = self.facts.p * self.facts.noise**2 / self._done
        seen = np.sum((self._sum / self._done) ** 2, axis=1) - noise2
        found = (1.0 - self._weigh_expectation(self._done)) * np.maximum(seen, 0.0)
        return found / (found + noise2)

    def _find_least_share(self) -> float:
        """The share of the time that the gradient expected beforehand, g, is worth.

        A time tau gains tau g^2 at first and costs curvature tau^2 nu^2 / 2 by noise.
        """
        facts = self.facts
        gain = self._weigh_expectation(facts.steps) * self._expected2
        cost = facts.curvature * facts.nu**2 * self.step_size * facts.steps
        return min(1.0, gain / cost)

    def _weigh_expectation(self, steps: int) -> float:
        """Weight of the expectation beside an estimate from ``steps`` gradients, by precision.

        The squared mean less the noise's own share p v has standard deviation sqrt(2 p) v where
        noise dominates, v = sigma^2 / steps.
        """
        spread = math.sqrt(2.0 * self.facts.p) * self.facts.noise**2 / steps
        return spread**2 / (spread**2 + self._expected2**2)
