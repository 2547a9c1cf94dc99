"""First-order methods, for problems that the interior-point method does not handle.

They need only the loss and the projection. They reach wide gaps quickly and narrow ones slowly.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import count

import numpy as np

from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import dual_points

Iterates = Generator[tuple[np.ndarray, np.ndarray], float, None]

_EVERY = 20
_FIRST_SMOOTHING = 0.1


def iterate(problem: Problem, start: np.ndarray, seconds: float) -> Iterates:
    """Pairs (theta [p], dual), one for every 20 steps; the gap reached is to be sent in.

    ``seconds`` is for the caller to keep: a step is short.
    """
    if problem.loss.envelope_dual is not None or problem.loss.smoothness is not None:
        return _accelerate_descent(problem, start)
    return _descend_subgradient(problem, start)


def _accelerate_descent(problem: Problem, start: np.ndarray) -> Iterates:
    """Projected gradient steps with momentum, restarted when the momentum points uphill.

    A loss with kinks is replaced by its Moreau envelope, whose slopes are dual feasible and
    whose width follows the gap down. So is the l1 norm where thresholding cannot deal with it.
    """
    ridge, factor = problem.penalty.ridge, problem.loss.curvature_factor(problem.data)
    l1_norm, bound = _L1Norm(problem), problem.loss.smoothness
    theta = ahead = start
    momentum, width = 1.0, _FIRST_SMOOTHING
    for step in count():
        if step % _EVERY == 0:
            gap = yield theta, dual_points.make_dual_point(problem, theta, width)
            if math.isfinite(gap):
                width = min(width, max(gap / (8.0 * problem.data.n), 1e-14))
                l1_norm.narrow(gap)
        curvature = bound or 1.0 / width
        dual = dual_points.make_dual_point(problem, ahead, width)
        gradient = dual_points.gradient(problem, dual) + problem.slant + ridge * ahead
        gradient = gradient + l1_norm.slope(ahead)
        steepest = curvature * factor + ridge + l1_norm.curvature
        moved = l1_norm.threshold(ahead - gradient / steepest, steepest)
        moved = problem.constraint.project(moved)
        if (ahead - moved) @ (moved - theta) > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - theta)
        theta, momentum = moved, following


class _L1Norm:
    """n lasso |theta|_1: thresholded where that is exact, and otherwise rounded off at its kinks.

    Rounded to half-width w it is off by n lasso p w / 2 at most, and n lasso / w curved.
    """

    def __init__(self, problem: Problem) -> None:
        weight, exact = problem.penalty.lasso, problem.constraint.thresholded
        self._thresholded, self._rounded = (weight, 0.0) if exact else (0.0, weight)
        self._width, self._p = _FIRST_SMOOTHING * problem.constraint.radius, problem.p

    @property
    def curvature(self) -> float:
        return self._rounded / self._width

    def narrow(self, gap: float) -> None:
        if self._rounded > 0:
            self._width = min(self._width, max(gap / (4.0 * self._rounded * self._p), 1e-14))

    def slope(self, theta: np.ndarray) -> np.ndarray:
        return self._rounded * np.clip(theta / self._width, -1.0, 1.0)

    def threshold(self, x: np.ndarray, curvature: float) -> np.ndarray:
        if self._thresholded == 0:
            return x
        return np.sign(x) * np.maximum(np.abs(x) - self._thresholded / curvature, 0.0)


def _descend_subgradient(problem: Problem, theta: np.ndarray) -> Iterates:
    """Projected subgradient steps of length radius / sqrt(t); points and duals are averaged."""
    constraint = problem.constraint
    weights, points, duals = 0.0, np.zeros_like(theta), 0.0
    for step in count():
        dual = dual_points.make_dual_point(problem, theta)
        share = 1.0 / math.sqrt(step + 1.0)
        weights += share
        points = points + share / weights * (theta - points)
        duals = duals + share / weights * (dual - duals)
        if step % _EVERY == 0:
            yield points, duals
        g = dual_points.gradient(problem, dual) + problem.penalty.subgradient(theta) + problem.slant
        length = np.linalg.norm(g)
        if length == 0:
            yield theta, dual
            return
        theta = constraint.project(theta - share * constraint.radius / length * g)


def steepness(problem: Problem) -> float:
    """An upper bound on the curvature of the smooth part of the objective, enlarged by a fifth."""
    bound = problem.loss.smoothness
    if bound is None:
        raise ValueError(f"{problem.loss.name} has no bounded curvature")
    return bound * problem.loss.curvature_factor(problem.data) + problem.penalty.ridge
