"""First-order iterations, for sizes, sets and losses that the interior-point method leaves out.

They need nothing but the loss and the projection, and reach wide gaps quickly and narrow ones
slowly.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import count
from typing import Any

import numpy as np

from dperm_cli.problem.problem import Problem

Iterates = Generator[tuple[np.ndarray, np.ndarray], float, None]

_EVERY = 20
_FIRST_SMOOTHING = 0.1


def iterate(problem: Problem) -> Iterates:
    """Pairs (theta [p], dual [n]), one for every 20 steps; the gap reached is to be sent in."""
    if hasattr(problem.loss, "pieces") or problem.loss.smoothness is not None:
        return _accelerated(problem)
    return _subgradient(problem)


def _accelerated(problem: Problem) -> Iterates:
    """Projected gradient steps with momentum, restarted when the momentum points uphill.

    A piecewise linear loss is replaced by its Moreau envelope, whose slopes are dual feasible and
    whose width follows the gap down.
    """
    x: Any = problem.data.x
    ridge, spread = problem.data.n * problem.ridge, _largest_eigenvalue(x)
    theta = ahead = problem.constraint.centre()
    momentum, width = 1.0, _FIRST_SMOOTHING
    for step in count():
        if step % _EVERY == 0:
            gap = yield theta, _slope(problem, x @ theta, width)
            if math.isfinite(gap):
                width = min(width, max(gap / (8.0 * problem.data.n), 1e-14))
        curvature = problem.loss.smoothness or 1.0 / width
        gradient = x.T @ _slope(problem, x @ ahead, width) + ridge * ahead
        moved = problem.constraint.project(ahead - gradient / (curvature * spread + ridge))
        if (ahead - moved) @ (moved - theta) > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - theta)
        theta, momentum = moved, following


def _subgradient(problem: Problem) -> Iterates:
    """Projected subgradient steps of length radius / sqrt(t); points and slopes are averaged."""
    data, constraint = problem.data, problem.constraint
    x: Any = data.x
    theta, weights = constraint.centre(), 0.0
    points, slopes = np.zeros(data.p), np.zeros(data.n)
    for step in count():
        slope = problem.loss.slope(x @ theta, data.y)
        share = 1.0 / math.sqrt(step + 1.0)
        weights += share
        points += share / weights * (theta - points)
        slopes += share / weights * (slope - slopes)
        if step % _EVERY == 0:
            yield points.copy(), slopes.copy()
        g = x.T @ slope + data.n * problem.ridge * theta
        length = np.linalg.norm(g)
        if length == 0:
            yield theta, slope
            return
        theta = constraint.project(theta - share * constraint.radius / length * g)


def _slope(problem: Problem, z: np.ndarray, width: float) -> np.ndarray:
    """The loss's slope, or its Moreau envelope's where the loss has kinks."""
    y = problem.data.y
    loss: Any = problem.loss
    if loss.smoothness is not None:
        return loss.slope(z, y)
    sign, offset, up, down = loss.pieces(y)
    return sign * np.clip((sign * z + offset) / width, -down, up)


def _largest_eigenvalue(x: Any) -> float:
    """Of X^T X, by power iteration, with a margin of a fifth; at most the Frobenius bound."""
    squares = x.multiply(x).sum() if hasattr(x, "multiply") else np.sum(np.square(x))
    v = np.random.Generator(np.random.Philox(0)).standard_normal(x.shape[1])
    value = 0.0
    for _ in range(30):
        v = x.T @ (x @ v)
        value = float(np.linalg.norm(v))
        if value == 0:
            break
        v /= value
    return max(min(1.2 * value, float(squares)), np.finfo(float).tiny)
