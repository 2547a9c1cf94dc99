"""A lower bound on a minimum over the set, which certificates of optimality need."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.brent import find_minimum
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import conic

_ZERO = 1e-7  # a coordinate up to this share of the set's radius counts as 0


def lower_bound(problem: Problem, g: np.ndarray, theta: np.ndarray) -> float:
    """Of <g, theta> + (n ridge / 2) |theta|^2 + n lasso |theta|_1 over C, tight but for rounding.

    n lasso |theta|_1 >= <u, theta> for every u in [-n lasso, n lasso]^p, so any such u leaves the
    same minimum for g + u and without the l1 norm. For any point v that is at least
    -(n ridge / 2) |v|^2 - support(-(g + u + n ridge v)), with equality at the minimiser
    v = projection of -(g + u) / (n ridge). ``theta``: a point near the minimiser.
    """
    if problem.lasso == 0:
        return _smooth_bound(problem, g, theta)
    return max(_smooth_bound(problem, g + u, theta) for u in _l1_slopes(problem, g, theta))


def _l1_slopes(problem: Problem, g: np.ndarray, theta: np.ndarray) -> list[np.ndarray]:
    """Candidates for u. Where signs may be flipped within the set the least |g + u| is the best;
    elsewhere there are the signs of ``theta``, those of the positive orthant (where the simplex
    lies) and the multipliers of a cone program."""
    most = problem.penalty.lasso
    least = np.clip(-g, -most, most)
    if problem.constraint.sign_symmetric:
        return [least]
    clear = np.abs(theta) > _ZERO * problem.constraint.radius
    found = [least, np.where(clear, most * np.sign(theta), least), np.full_like(g, most)]
    best = conic.l1_slope(problem, g)
    return found if best is None else [*found, best]


def _smooth_bound(problem: Problem, g: np.ndarray, theta: np.ndarray) -> float:
    weight = problem.penalty.ridge
    if weight == 0:
        return -support(problem.constraint, -g, theta)
    own = problem.constraint.by_gap  # projections are expensive there
    points = [theta] if own else []
    if not own or problem.loss.hessian is None:
        points.append(problem.constraint.project(-g / weight))
    return max(_at_point(problem, g, v) for v in points)


def _at_point(problem: Problem, g: np.ndarray, v: np.ndarray) -> float:
    """The bound that v gives: any v does, and one near the minimiser a good one."""
    weight = problem.penalty.ridge
    return -0.5 * weight * float(v @ v) - support(problem.constraint, -(g + weight * v), v)


def support(constraint: Any, g: np.ndarray, near: np.ndarray) -> float:
    """sup of <g, theta> over the set, never too small; ``near`` is close to a maximiser.

    Within K and a ball of radius r a maximiser is only found iteratively, which proves nothing. But
    any c >= 0 and x give sup <= (K's support at g - c x) + c r |x|, with equality for a maximiser
    x and the best c.
    """
    ball = constraint.cutting_ball
    if ball is None:
        return float(constraint.support(g))
    inner, far = constraint.inner, float(np.linalg.norm(g))
    found = min(support(inner, g, near), ball * far)
    for x in (near, constraint.lmo(-g)):
        length = float(np.linalg.norm(x))
        if length > 0 and far > 0:
            found = min(found, _split_bound(inner, ball, g, x / length))
    return found


def _split_bound(inner: Any, ball: float, g: np.ndarray, x: np.ndarray) -> float:
    """The least over c of (K's support at g - c x) + c ball, for a unit vector x."""
    far = float(np.linalg.norm(g))
    return find_minimum(
        lambda c: float(inner.support(g - c * x)) + c * ball, 0.0, far, xtol=1e-15 * far, steps=200
    ).value
