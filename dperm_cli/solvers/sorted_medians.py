"""Coordinate-wise medians on a ball or a box, from sorted columns: exact up to rounding.

sum_i |theta - x_i|_1 is a sum of functions of one coordinate each. With mu for the ridge and the
ball's multiplier, coordinate j minimises sum_i |t - x_ij| + (mu / 2) t^2 + b_j t, whose derivative
2 #{x_ij < t} - n + mu t + b_j crosses 0 at a record's entry or between two: a search among the
sorted entries finds it. The multiplier of a ball is found by bisection.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy import sparse

from dperm_cli.problem.problem import Problem

_MOST = 1 << 25  # entries that are sorted at once: 256 MiB
_HALVINGS = 200


def applies(problem: Problem) -> bool:
    """Whether the loss, the regulariser and the set leave the coordinates to themselves."""
    body = problem.constraint
    if problem.loss.distance_power != 1.0 or problem.penalty.lasso > 0.0:
        return False
    known = body.is_ball or body.half_side is not None
    return known and problem.data.n * problem.p <= _MOST


def iterate(problem: Problem, *_: object) -> Generator[tuple[np.ndarray, np.ndarray], float, None]:
    """The minimiser and the dual point that proves it."""
    x = problem.data.x
    x = np.asarray(x.toarray() if sparse.issparse(x) else x, dtype=float)
    columns, ridge = np.sort(x, axis=0), problem.penalty.ridge
    slant = np.broadcast_to(problem.slant, (problem.p,))
    theta, mu = _root(columns, ridge, slant), ridge
    half_side = problem.constraint.half_side
    if half_side is not None:
        theta = np.clip(theta, -half_side, half_side)
    elif np.linalg.norm(theta) > problem.constraint.radius:
        theta, mu = _on_sphere(columns, ridge, slant, problem.constraint.radius)
    yield theta, _dual(x, theta, -(mu * theta + slant))


def _root(columns: np.ndarray, mu: float, slant: np.ndarray) -> np.ndarray:
    """Each coordinate's minimiser, [p], from sorted columns [n, p]; the least one of several."""
    n, p = columns.shape
    places = np.arange(p)
    low, high = np.zeros(p, dtype=int), np.full(p, n)  # the first entry with no fall to its right
    while np.any(low < high):
        middle = np.minimum((low + high) // 2, n - 1)
        right = 2.0 * (middle + 1) - n + mu * columns[middle, places] + slant
        reached = (right >= 0.0) | (low == high)
        low, high = (
            np.where(reached, low, middle + 1),
            np.where(reached, np.minimum(high, middle), high),
        )
    entry = columns[np.minimum(low, n - 1), places]
    left = 2.0 * low - n + mu * entry + slant
    between = (left > 0.0) | (low == n)
    if mu == 0.0:
        return entry
    return np.where(between, (n - 2.0 * low - slant) / mu, entry)


def _on_sphere(
    columns: np.ndarray, ridge: float, slant: np.ndarray, radius: float
) -> tuple[np.ndarray, float]:
    """The minimiser in the ball and its mu, of which the multiplier is a part."""
    n, p = columns.shape
    low, high = ridge, ridge + (n * np.sqrt(p) + float(np.linalg.norm(slant))) / radius
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        inside = np.linalg.norm(_root(columns, middle, slant)) <= radius
        low, high = (low, middle) if inside else (middle, high)
    return _root(columns, high, slant), high


def _dual(x: np.ndarray, theta: np.ndarray, total: np.ndarray) -> np.ndarray:
    """A subgradient of each record's loss, [n, p], whose columns add up to ``total`` where entries
    that equal theta leave room for it."""
    signs = np.sign(theta - x)
    equal = x == theta
    ties = np.sum(equal, axis=0)
    share = (total - np.sum(signs, axis=0)) / np.maximum(ties, 1)
    return np.where(equal, np.clip(share, -1.0, 1.0), signs)
