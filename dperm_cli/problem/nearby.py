"""Points within a certified distance of the minimisers of strongly convex objectives.

Let F = f + h over C be m-strongly convex, f smooth and h an l1 norm.

 - Residual: theta in C with an element of norm at most g in grad f + subgradient of h + normal cone
   of C there is within g / m of the minimiser. theta+ = prox(theta - grad f(theta) / tau) has the
   element e = tau (theta - theta+) + grad f(theta+) - grad f(theta).
 - Where C has no projection in closed form (and h = 0), w = e - grad f(theta+) is only nearly
   normal: with eta = support(w) - <w, theta+> the distance d obeys m d^2 <= |e| d + eta.
 - Gap: a point of certified gap t is within sqrt(2 t / m).

The last is used where h > 0 and its proximal step over C has no closed form, where the projection
itself is the outcome of many iterations (``intersection``), and for a start.
 - Bracket: in one dimension the subgradient grows with theta, and its sign says on which side of
   theta the minimiser is.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from dperm_cli.core import progress
from dperm_cli.problem import _first_order, _inner_minimum
from dperm_cli.problem.optimum import solve
from dperm_cli.problem.problem import Problem, ProblemSpec

# Sets whose projection is exact but for rounding; those of the second line with a lasso as well
_EXACT = ("l2_ball", "l1_ball", "box", "simplex")
_EXACT_L1 = ("l2_ball", "l1_ball", "box")
_EPS = float(np.finfo(float).eps)
_NEAREST = 1e-8  # of the diameter: a distance that is as good as none
_LEAST_GAP = 1e-9  # of n * lipschitz * diameter
_LEAST_ETA = 1e4 * _EPS  # of the same
_START = 1e-4  # of the diameter, for a start
_CONDITION = 1e5  # up to which the first-order steps need no head start
_CHECK = 10  # steps from one look at the residual to the next
_HALVINGS = 100
_SECONDS = 120.0
_MOST_STEPS = 200_000


def reachable(spec: ProblemSpec, modulus: float) -> float:
    """A distance from the minimiser that arithmetic can certify; public facts only."""
    slopes = spec.n * spec.lipschitz_total + modulus * spec.constraint.diameter
    diameter = spec.constraint.diameter
    rounding = 64.0 * _EPS * (math.sqrt(max(spec.n, spec.p)) + 16.0) * slopes / modulus
    if _closed(spec):
        return max(_NEAREST * diameter, rounding)
    if not _gap_only(spec):
        return rounding + math.sqrt(_LEAST_ETA * slopes * diameter / modulus)
    if getattr(spec.constraint, "by_gap", False):  # an active-set method leaves next to no gap
        return math.sqrt(2.0 * _LEAST_ETA * slopes * diameter / modulus)
    return math.sqrt(2.0 * _LEAST_GAP * slopes * diameter / modulus)


def locate(
    problem: Problem, tilts: np.ndarray, modulus: float, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the objective with each linear term [trials, p] in turn.

    Returns points of the set [trials, p] and bounds [trials] on how far they are from the
    minimisers; where a bound exceeds ``distance`` the point is the best that could be had.
    ``modulus`` is the strong convexity of the objective.
    """
    spec = problem.spec()
    if spec.p == 1 and _closed(spec):
        return _bisect(problem, tilts, modulus, distance)
    if _gap_only(spec):
        return _by_gap(problem, tilts, modulus, distance)
    descent = _Descent(problem, tilts, modulus)
    starts = np.tile(spec.constraint.centre(), (len(tilts), 1))
    if not _closed(spec) or descent.condition > _CONDITION:
        starts = _by_gap(problem, tilts, modulus, _START * spec.constraint.diameter)[0]
    return descent.run(starts, distance)


def _closed(spec: ProblemSpec) -> bool:
    """Whether the proximal step of the regulariser over the set has a closed form."""
    return spec.constraint.name in (_EXACT_L1 if spec.lasso > 0 else _EXACT)


def _gap_only(spec: ProblemSpec) -> bool:
    """Whether steps of first order would not get nearer than a certified gap."""
    iterative = spec.constraint.name == "intersection" or getattr(spec.constraint, "by_gap", False)
    return not _closed(spec) and (spec.lasso > 0 or iterative)


def _by_gap(
    problem: Problem, tilts: np.ndarray, modulus: float, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    gap, points, bounds = 0.5 * modulus * distance**2, [], []
    for trial, tilt in enumerate(tilts):
        progress.report(f"minimisers to a gap of {gap:.2g}", trial, len(tilts))
        found = solve(replace(problem, tilt=tilt), relative_gap=0.0, gap=gap, seconds=_SECONDS)
        points.append(found.theta)
        bounds.append(math.sqrt(2.0 * found.gap / modulus))
    return np.array(points), np.array(bounds)


def _bisect(
    problem: Problem, tilts: np.ndarray, modulus: float, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """In one dimension: halve a bracket of each minimiser, whatever the curvature."""
    radius = problem.constraint.radius
    ends = problem.constraint.project(np.array([[-2.0 * radius], [2.0 * radius]]))
    low, high = (np.tile(end, (len(tilts), 1)) for end in ends)
    rounding = _rounding(problem, tilts, _first_order.steepness(problem) * radius)[:, None]
    for _ in range(_HALVINGS):
        if np.all(high - low <= 2.0 * distance):
            break
        theta = 0.5 * (low + high)
        slope = problem.data_gradient(theta) + problem.penalty.subgradient(theta) + tilts
        # where the sign is lost in rounding, the slope itself says that the minimiser is near
        lost, near = np.abs(slope) <= rounding, 2.0 * rounding / modulus
        low, high = (
            np.where(lost, np.maximum(low, theta - near), np.where(slope < 0.0, theta, low)),
            np.where(lost, np.minimum(high, theta + near), np.where(slope > 0.0, theta, high)),
        )
        if np.all(lost | (high - low <= 2.0 * distance)):
            break
    return 0.5 * (low + high), 0.5 * (high - low)[:, 0]


def _rounding(problem: Problem, tilts: np.ndarray, more: float) -> np.ndarray:
    """What rounding may do to a sum of gradients and ``more``, [trials]."""
    spec = problem.spec()
    size = np.linalg.norm(tilts, axis=1) + spec.n * spec.lipschitz_total
    return 4.0 * _EPS * (math.sqrt(max(spec.n, spec.p)) * size + more)


class _Descent:
    """Accelerated proximal steps, all linear terms at once, each restarted on its own."""

    def __init__(self, problem: Problem, tilts: np.ndarray, modulus: float) -> None:
        self._problem, self._tilts, self._modulus = problem, tilts, modulus
        self._closed = _closed(problem.spec())
        self._steep = _first_order.steepness(problem)
        root = math.sqrt(min(modulus / self._steep, 1.0))
        self._momentum = (1.0 - root) / (1.0 + root)

    @property
    def condition(self) -> float:
        return self._steep / self._modulus

    def run(self, start: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
        best, bound = start.copy(), np.full(len(start), np.inf)
        left = np.arange(len(start))  # trials that are not there yet; others are left alone
        theta = ahead = start
        end = time.monotonic() + _SECONDS
        for step in range(_MOST_STEPS):
            slope = self._slope(ahead, left)
            moved = self._step(ahead, slope)
            if step % _CHECK == 0:
                near = self._distance(ahead, moved, slope, left)
                better = near < bound[left]
                best[left[better]], bound[left[better]] = moved[better], near[better]
                keep = near > distance
                left, theta, ahead, moved = left[keep], theta[keep], ahead[keep], moved[keep]
                # not how far it is: that follows from the records
                progress.report(f"minimisers to a distance of {distance:.2g}", 0.0, 0.0)
                if not left.size or time.monotonic() > end:
                    break
            uphill = np.sum((ahead - moved) * (moved - theta), axis=1) > 0
            push = np.where(uphill, 0.0, self._momentum)[:, None]
            theta, ahead = moved, moved + push * (moved - theta)
        return best, bound

    def _slope(self, theta: np.ndarray, trials: np.ndarray) -> np.ndarray:
        """Gradients of the smooth part, at points of the set or beside it."""
        smooth = self._problem.data_gradient(theta) + self._problem.penalty.ridge * theta
        return smooth + self._tilts[trials]

    def _step(self, theta: np.ndarray, slope: np.ndarray) -> np.ndarray:
        point = theta - slope / self._steep
        cut = self._problem.penalty.lasso / self._steep
        if cut > 0:
            point = np.sign(point) * np.maximum(np.abs(point) - cut, 0.0)
        return self._problem.constraint.project(point)

    def _distance(
        self, theta: np.ndarray, moved: np.ndarray, slope: np.ndarray, trials: np.ndarray
    ) -> np.ndarray:
        """Bounds [trials] on the distances of ``moved`` to the minimisers.

        Allowances for the rounding of gradients, of the projection and of the support function
        are added.
        """
        normal = self._steep * (theta - moved) - slope
        residual = np.linalg.norm(normal + self._slope(moved, trials), axis=1)
        radius = self._problem.spec().constraint.radius
        residual = residual + _rounding(self._problem, self._tilts[trials], self._steep * radius)
        if self._closed:
            return residual / self._modulus
        eta = [self._slack(w, point) for w, point in zip(normal, moved, strict=True)]
        square = residual**2 + 4.0 * self._modulus * np.array(eta)
        return (residual + np.sqrt(square)) / (2.0 * self._modulus)

    def _slack(self, w: np.ndarray, point: np.ndarray) -> float:
        """support(w) - <w, point>, not less than it is."""
        constraint = self._problem.constraint
        rounding = 16.0 * _EPS * math.sqrt(len(w)) * float(np.linalg.norm(w)) * constraint.radius
        return max(_inner_minimum.support(constraint, w, point) - float(w @ point), 0.0) + rounding
