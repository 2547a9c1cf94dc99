"""Adaptive step sizes of noisy gradient descent, computed from the released gradients.

Noise of a fixed total budget enters the mean of all T noisy gradients with standard deviation
nu = sigma / sqrt(T) per coordinate, whatever T is. What has to be chosen is therefore the total
time, the sum of the step sizes: in a direction that the loss does not curve, time tau leaves
noise of standard deviation tau nu. Everything here is a function of public facts and of values
that were already released, so it is post-processing and costs no privacy.

The time is the least of three, all of them revised at every step:
 - a share of the worst-case time D / (nu sqrt(p)), smaller the further the mean gradient stands
   out of the noise: min(LARGEST_TIME_SHARE, s^-SIGNAL_POWER) with
   s = 2 |mean gradient| / (nu sqrt(p));
 - the time after which noise costs as much as descending gains, NOISE_COST_FACTOR
   |mean gradient|^2 / (curvature nu^2), or STAY_FACTOR times the moment this was reached, if that
   is more;
 - once the boundary was reached after time b, max(BOUNDARY_FACTOR, s^BOUNDARY_POWER) b.
A step is at most the largest stable one, which is a public fact where the loss is smooth and is
measured by ``CurvatureEstimate`` where it has kinks.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.dataclass import dataclass

# Chosen once, on public data sets with losses, radii and budgets of all sizes; they have no unit
# and are the same for every problem.
LARGEST_TIME_SHARE = 0.4
SIGNAL_POWER = 0.4
NOISE_COST_FACTOR = 1.0
STAY_FACTOR = 2.5
BOUNDARY_FACTOR = 1.8
BOUNDARY_POWER = 0.25
PRIOR_MEAN = 0.12  # mean gradient expected before looking, as a share of its bound
PRIOR_DEVIATION = 0.3  # root of the standard deviation of that square, as a share of the bound
RECENCY = 2.0  # gradient k has weight ~ k^(RECENCY - 1) in the mean gradient
BOUNDARY_SHARE = 0.95  # share of the half-diameter that counts as reaching the boundary
WARMUP_SHARE = 0.1  # share of the steps over which the step size grows
SHAPE = 0.5  # afterwards it falls as (1 - t/T)^SHAPE
LEAST_TIME_SHARE = 1.0  # share of the time that is spread over the steps even when it is used up
LEAST_SHARE_AT_BOUNDARY = 0.5  # the same once the boundary was reached
CURVATURE_DECAY = 0.7  # weight of a difference of gradients, from one step to the next
NOISE_DEVIATIONS = 3.0  # standard deviations of noise that are taken off a measured curvature
STABLE_STEP_SHARE = 0.3  # of the inverse of that curvature
REGROW = 1.02  # a step
TAIL_POWER = 4.0  # weight ~ k^(TAIL_POWER - 1) of iterate k since descending stopped to gain


@dataclass(frozen=True)
class ScheduleFacts:
    """Public facts the schedule works from; gradients are sums over records.

    Attributes
    ----------
    steps, p : number of noisy gradients; dimension.
    noise : sigma, the standard deviation of the noise of one gradient, per coordinate.
    diameter : of the set.
    curvature : bound on the trace of the sum's Hessian (where the loss has kinks, what stands for
        it), so that noise of standard deviation v costs curvature v^2 / 2 at most.
    largest_step : a stable step, or inf where the loss has kinks.
    gradient_bound : bound on the norm of the gradient at the centre.
    is_ball : whether the set is a Euclidean ball, whose projection keeps directions.
    """

    steps: int
    p: int
    noise: float
    diameter: float
    curvature: float
    largest_step: float
    gradient_bound: float
    is_ball: bool

    @property
    def nu(self) -> float:
        """Standard deviation per coordinate of the mean of all noise."""
        return self.noise / math.sqrt(self.steps)

    @property
    def worst_case_time(self) -> float:
        """D / (nu sqrt(p)), the minimiser of D^2 / (2 tau) + tau p nu^2 / 2."""
        return self.diameter / (self.nu * math.sqrt(self.p))


class StepSchedule:
    """Choose each trial's next step size and average its iterates. Arrays are [trials]."""

    def __init__(self, facts: ScheduleFacts, start: np.ndarray, momentum: float) -> None:
        trials = len(start)
        self.facts, self.start, self.momentum = facts, start, momentum
        self.output = start
        self.elapsed = np.zeros(trials)
        self._done = 0
        self._mean, self._weight = np.zeros_like(start), 0.0  # the mean's variance / sigma^2
        self._signal = np.zeros(trials)
        self._reached = np.full(trials, np.inf)
        self._spent = np.full(trials, np.inf)
        self._tail = np.zeros(trials)
        u = (np.arange(facts.steps) + 0.5) / facts.steps
        self._shape = (1.0 - u) ** SHAPE
        self._left = np.cumsum(self._shape[::-1])[::-1]
        self._warm = np.minimum(1.0, u / WARMUP_SHARE)
        self._secants = None if math.isfinite(facts.largest_step) else CurvatureEstimate(trials)
        self._eta = np.zeros(trials)

    def choose_step(self, noisy: np.ndarray, query: np.ndarray | None = None) -> np.ndarray:
        """The step size for a noisy gradient taken at ``query``; both [trials, p]."""
        step, self._done = self._done, self._done + 1
        target = self._target(*self._measure(noisy))
        # the descent goes on when the target is below the time already spent: small steps
        # then average out the noise of the large ones
        least = (
            np.where(np.isinf(self._reached), LEAST_TIME_SHARE, LEAST_SHARE_AT_BOUNDARY) * target
        )
        left = np.maximum(target - self.elapsed, least * self._left[step] / self._left[0])
        eta = left * (self._shape[step] / self._left[step]) * self._warm[step]
        eta = np.minimum(eta, self.facts.largest_step / (1.0 - self.momentum))
        if self._secants is not None and query is not None:
            # the noise of a gradient moves the next query by (1 - m^2) eta
            own = (1.0 - self.momentum**2) * self._eta * self.facts.p * self.facts.noise**2
            stable = self._secants.stable_step(noisy, query, own, self.facts.noise)
            self._eta = eta = np.minimum(eta, stable / (1.0 - self.momentum))
        self.elapsed = self.elapsed + eta
        return eta

    def observe(self, theta: np.ndarray) -> None:
        """Record the iterate [trials, p] after the step and update the output.

        The output is the iterate itself; from the moment descending stops to gain inside the
        set, it is a mean of the iterates since, recent ones weighing most.
        """
        distance = np.linalg.norm(theta - self.start, axis=1)
        arrived = (distance > BOUNDARY_SHARE * self.facts.diameter / 2.0) & np.isinf(self._reached)
        self._reached = np.where(arrived, self.elapsed, self._reached)
        self._tail = self._tail + np.isfinite(self._spent)
        new = np.minimum(1.0, TAIL_POWER / np.maximum(self._tail, 1.0))
        new = np.where(np.isinf(self._reached), new, 1.0)[:, None]
        self.output = (1.0 - new) * self.output + new * theta

    def _target(self, ratio: np.ndarray, gradient2: np.ndarray) -> np.ndarray:
        """The total time, from s and the squared mean gradient."""
        f = self.facts
        share = np.minimum(LARGEST_TIME_SHARE, np.maximum(ratio, 1e-12) ** -SIGNAL_POWER)
        gain = NOISE_COST_FACTOR * gradient2 / (f.curvature * f.nu**2)
        spent = (self.elapsed >= gain) & np.isinf(self._spent)
        self._spent = np.where(spent, self.elapsed, self._spent)
        gain = np.where(np.isinf(self._spent), gain, np.maximum(gain, STAY_FACTOR * self._spent))
        after = self._reached * np.maximum(
            np.maximum(ratio, 1.0) ** BOUNDARY_POWER, BOUNDARY_FACTOR
        )
        return np.minimum(np.minimum(share * f.worst_case_time, gain), after)

    def _measure(self, noisy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s, from the largest mean gradient seen so far, and the present one, squared.

        With noise of variance v in each coordinate of the mean, its squared norm exceeds that of
        the mean gradient by p v on average, with standard deviation sqrt(2 p) v where noise
        dominates. s is made of the estimate less one standard deviation; the present one is
        the mean of what was expected and what was seen, weighted by their precisions.
        """
        f = self.facts
        new = min(1.0, RECENCY / self._done)
        self._mean = self._mean + new * (noisy - self._mean)
        self._weight = (1.0 - new) ** 2 * self._weight + new**2
        variance = self._weight * f.noise**2
        spread = math.sqrt(2.0 * f.p) * variance
        seen = np.sum(self._mean**2, axis=1) - f.p * variance
        self._signal = np.maximum(self._signal, seen - spread)
        expected, doubt = (
            (PRIOR_MEAN * f.gradient_bound) ** 2,
            (PRIOR_DEVIATION * f.gradient_bound) ** 2,
        )
        trust = doubt**2 / (spread**2 + doubt**2)
        present = (1.0 - trust) * expected + trust * np.maximum(seen, 0.0)
        return 2.0 * np.sqrt(self._signal) / (f.nu * math.sqrt(f.p)), present


class CurvatureEstimate:
    """The step that is stable along the path, from released gradients where a loss has kinks.

    Differences of successive gradients over those of their queries measure the curvature that the
    descent met. Their weights fall by CURVATURE_DECAY a step, and NOISE_DEVIATIONS standard
    deviations of their noise are taken off. The step is at most STABLE_STEP_SHARE of the inverse
    curvature. So the steps shrink at every crossing of a kink that many records share, and may grow
    again by REGROW a step. Where noise hides the curvature there is no limit.
    """

    def __init__(self, trials: int) -> None:
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self._rise, self._run, self._noise = np.zeros((3, trials))
        self._stable = np.full(trials, np.inf)

    def stable_step(
        self, noisy: np.ndarray, query: np.ndarray, own: np.ndarray, noise: float
    ) -> np.ndarray:
        """The limit [trials]; ``own`` is what a gradient's noise adds to the product of the
        differences by having moved the query itself, on average."""
        last, self._last = self._last, (noisy, query.copy())
        if last is None:
            return self._stable
        moved = query - last[1]
        length2 = np.sum(moved**2, axis=1)
        self._rise = CURVATURE_DECAY * self._rise + np.sum(moved * (noisy - last[0]), axis=1) - own
        self._run = CURVATURE_DECAY * self._run + length2
        self._noise = CURVATURE_DECAY**2 * self._noise + 2.0 * noise**2 * length2
        certain = self._rise - NOISE_DEVIATIONS * np.sqrt(self._noise)
        found = np.where(
            certain > 0, STABLE_STEP_SHARE * self._run / np.where(certain > 0, certain, 1.0), np.inf
        )
        self._stable = np.minimum(REGROW * self._stable, found)
        return self._stable
