"""Noisy gradient descent on a smooth loss with nothing to tune: dual averaging.

Noise of a fixed total budget enters the mean of all T noisy gradients with standard deviation
nu = sigma / sqrt(T) per coordinate, whatever T is. The iterate after t steps is

    theta_t = Project(centre - eta f_t z_t),    z_t = the sum of the first t noisy gradients,

so where the loss does not curve all gradients count alike, and at the boundary of the set the noise
averages out by itself. Four things are decided, from public facts or from released values, so
all of it is post-processing and costs no privacy.

 - The step eta is public: eta T is the worst-case time D / (nu sqrt(p)), and eta a stable step.
 - The share f_t says how far the gradients are trusted: g^2 / (g^2 + p sigma^2 / t) with g^2 the
   estimate of the squared mean gradient [a positive-part James-Stein factor]. It is near 0 where
   z_t may be noise alone, and at least what the gradient expected beforehand is worth.
 - On a ball the time eta T f_t is at most the geometric mean of the worst-case time and of the time
   in which the largest mean gradient that was seen crosses the set.
 - The output is the projected mean of the points before projection, without the first ones; or the
   last iterate, where the means of the thirds of the run still move in one direction, or where a
   ball stops the iterates and has damped their noise already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dperm_cli.mechanisms.shared.step_schedule import ScheduleFacts

# They have no unit and are the same for every problem; docs/proofs/noisy_gd.md says what each is
# worth.
BURN_IN_SHARE = 0.075  # of the steps: no weight in the mean; it rises to 1 over thrice as many
EXPECTED_SHARE = 0.13  # of its bound: the gradient at the centre that is expected beforehand
_LARGE = 1e100  # squares of larger numbers may overflow, and those of their inverse vanish


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
        self._seen2 = self._square = np.zeros(len(start))
        self._free, self._share = start, np.ones(len(start))

    def move(self, noisy: np.ndarray) -> np.ndarray:
        """Count a noisy gradient [trials, p] taken at ``point`` and return the next point."""
        kept, self._done = self._done - self._first, self._done + 1
        self._speed = self.momentum * self._speed + (1.0 - self.momentum) * noisy
        self._sum = self._sum + self._speed
        self._share = self._limit_time(np.maximum(self.least_share, self._find_share()))
        free = self._free = self._start - self.step_size * self._share[:, None] * self._sum
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
            self._square = self._square + (third == 2) * _square(self.point - self._start)
        return self.point

    @property
    def output(self) -> np.ndarray:
        """The projected mean, or the last iterate where that is better."""
        last = self._still_moves() | self._is_damped()
        mean = self._project(np.asarray(self._mean))
        return np.where(last[:, None], self.point, mean)

    def _still_moves(self) -> np.ndarray:
        """Whether the means of the thirds move in one direction [trials].

        The move has to exceed what iterates differ from the mean of their third. Unrelated
        directions in p dimensions have a cosine of standard deviation 1 / sqrt(p).
        """
        first, then = np.diff(self._thirds, axis=0)
        lengths = np.sqrt(_square(first)) * np.sqrt(_square(then))
        # in one column the cosine is 1 or -1, and says nothing: never more than 1 by rounding
        least = lengths / math.sqrt(self.facts.p) * (1.0 + 1e-9)
        same_way = np.sum(first * then, axis=1) > least
        count = max(self._counts[2], 1.0)
        scatter2 = self._square / count - _square(self._thirds[2] - self._start)
        return same_way & (_square(then) > scatter2)

    def _is_damped(self) -> np.ndarray:
        """Whether a ball stops the iterates and leaves the last no noisier than the mean [trials].

        A point that is pulled back to |q| from |f| follows a gradient for |q| / |f| of the time
        tau. The last iterate's noise then costs p tau nu^2 / 4 at most, that of the mean
        p^2 nu^2 / (2 curvature) at least. Along the faces of other sets nothing is damped.
        """
        if not self.facts.is_ball:
            return np.zeros(len(self.point), dtype=bool)
        outside = np.sqrt(_square(self._free - self._start))
        pulled = np.sqrt(_square(self.point - self._start)) / np.maximum(outside, 1e-300)
        time = self.step_size * self.facts.steps * self._share * pulled
        # a projection that changes nothing may change the last digits
        return (pulled < 1.0 - 1e-9) & (time * self.facts.curvature < 2.0 * self.facts.p)

    def _limit_time(self, share: np.ndarray) -> np.ndarray:
        """The share [trials], so that the time is at most the mean of two times.

        The gradient g crosses half the diameter D in D / (2 g), the worst-case time divided by
        s = 2 g / (nu sqrt(p)). Gradients do not count in full before 1 / (1 - momentum) steps.
        On other sets than balls many coordinates are long in coming to a corner.
        """
        facts = self.facts
        noise2, spread = self._find_noise()
        seen2 = _square(self._sum / self._done) - noise2 - spread
        self._seen2 = np.maximum(self._seen2, seen2)
        if not facts.is_ball or self._done * (1.0 - self.momentum) <= 1.0 + 1e-9:
            return share
        signal = np.maximum(2.0 * np.sqrt(self._seen2 / facts.p) / facts.nu, 1.0)
        longest = facts.worst_case_time / (self.step_size * facts.steps)
        return np.minimum(share, longest / np.sqrt(signal))

    def _find_share(self) -> np.ndarray:
        """g^2 / (g^2 + p v) [trials], v = sigma^2 / t; g^2 as far as its estimate counts."""
        noise2, _ = self._find_noise()
        seen = _square(self._sum / self._done) - noise2
        found = (1.0 - self._weigh_expectation(self._done)) * np.maximum(seen, 0.0)
        return found / (found + noise2)

    def _find_noise(self) -> tuple[float, float]:
        """The squared noise of the mean gradient so far, and the standard deviation of that."""
        variance = self.facts.noise**2 / self._done
        return self.facts.p * variance, math.sqrt(2.0 * self.facts.p) * variance

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
        largest = max(spread, self._expected2)
        unit = 1.0 if 1.0 / _LARGE < largest < _LARGE else largest
        return (spread / unit) ** 2 / ((spread / unit) ** 2 + (self._expected2 / unit) ** 2)


def _square(vectors: Any) -> np.ndarray:
    """Squared lengths [trials] of vectors [trials, p]."""
    return np.sum(vectors**2, axis=1)
