"""The minimum over a set so wide that it hardly binds: Newton steps, and bounds without its radius.

The error of a Fenchel bound grows with the radius of the set: a slope that should be 0 is 1e-15 of
rounding, and the radius times that is subtracted. The bounds here follow from curvature, and hold
on the whole space.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from dperm_cli.losses.base import weighted_gram
from dperm_cli.losses.shared.margin_loss import Glm, margins
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import conic, dual_points

_EPS = float(np.finfo(float).eps)
_LARGEST_ORDER = 1500  # columns up to which Newton steps are made
_LARGEST_CURVATURE = 3000  # and up to which the least curvature of the losses is found
_NEWTON_STEPS = 100
_ZERO = 1e-7


def applies(problem: Problem) -> bool:
    """Whether Newton steps on the whole space can be made."""
    known = problem.loss.hessian is not None and problem.lasso == 0
    return known and problem.p <= _LARGEST_ORDER


def iterate(
    problem: Problem, start: np.ndarray, seconds: float
) -> Generator[tuple[np.ndarray, np.ndarray], float, None]:
    """Pairs (theta [p], dual) of Newton's method with a line search, as if there were no set."""
    here = start
    for _ in range(_NEWTON_STEPS):
        slope = problem.gradient(here)
        values, basis = np.linalg.eigh(dual_points.hessian(problem, here))
        clear = values > len(values) * _EPS * values[-1]
        step = -basis[:, clear] @ ((basis[:, clear].T @ slope) / values[clear])
        share = conic.find_step(problem, here, here + step, float(slope @ step))
        if share == 0.0:
            return
        here = here + share * step
        yield here, dual_points.make_dual_point(problem, here)


def lower_bound(problem: Problem, theta: np.ndarray) -> tuple[float, float]:
    """A lower bound on the objective over the whole space, and the rounding that is in it."""
    if problem.lasso > 0:  # coordinates that are to be 0, where the l1 norm has many slopes
        theta = np.where(np.abs(theta) <= _ZERO * np.max(np.abs(theta)), 0.0, theta)
    found = [_bound_from_zero(problem), _bound_from_curvature(problem, theta)]
    return max(found, key=lambda one: one[0])


def _bound_from_zero(problem: Problem) -> tuple[float, float]:
    """The sum of the losses' least values: Fenchel's bound with slopes of 0."""
    data = problem.data
    if not isinstance(problem.loss, Glm) or problem.loss.conjugate is None:
        return -math.inf, 0.0
    least = -problem.loss.conjugate(np.zeros(data.n), data.y)
    if problem.tilt is not None or not np.all(np.isfinite(least)):
        return -math.inf, 0.0
    rounding = 16.0 * _EPS * math.fsum(np.abs(least))
    return math.fsum(least) - rounding, rounding


def _bound_from_curvature(problem: Problem, theta: np.ndarray) -> tuple[float, float]:
    """f(theta) - |g|^2 / (2 m) for a subgradient g, m the least curvature about theta.

    A convex function that curves by m within a distance r of theta, with |g| < m r / 2, is above
    f(theta) at that distance, hence beyond it; nearer it is above the parabola. Margins change by
    at most 1 within r = 1 / (bound on rows).
    """
    loss, data, penalty = problem.loss, problem.data, problem.penalty
    if not isinstance(loss, Glm) or loss.curvature is None:
        return -math.inf, 0.0
    z, reach = margins(theta, data), math.inf
    if loss.quadratic:
        bends = loss.curvature(z, data.y)
    elif loss.curvature_ratio is not None:
        # it rises once and falls once: on an interval it is least at an end
        bends = np.minimum(loss.curvature(z - 1.0, data.y), loss.curvature(z + 1.0, data.y))
        reach = 1.0 / data.row_bound
    else:
        return -math.inf, 0.0
    units = _EPS * (math.sqrt(max(data.n, problem.p)) + 16.0)
    least = penalty.ridge
    if problem.p <= min(data.n, _LARGEST_CURVATURE):  # fewer records curve by 0 somewhere
        gram = weighted_gram(data.x, bends)
        unsure = (units + 16.0 * problem.p * _EPS) * float(np.trace(gram))
        least += max(0.0, float(np.linalg.eigvalsh(gram)[0]) - unsure)
    if not least > 0.0:
        return -math.inf, 0.0
    far, slant = float(np.linalg.norm(theta)), float(np.linalg.norm(problem.slant))
    below = loss.minorant(loss.dual(theta, data), data)
    moved = (loss.smoothness * data.n * data.row_bound**2 + penalty.ridge) * far
    steep = float(np.linalg.norm(_least_subgradient(problem, theta)))
    steep += units * (below.slopes + moved + slant)
    if not steep < 0.5 * least * reach:
        return -math.inf, 0.0
    value = float(problem.objective(theta))
    rounding = 32.0 * _EPS * abs(value) + 2.0 * units * far * (below.slopes + slant)
    return value - rounding - 0.5 * steep**2 / least, rounding


def _least_subgradient(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """The shortest subgradient of the objective: the l1 norm has many where a coordinate is 0."""
    most = problem.penalty.lasso
    slope = problem.data_gradient(theta) + problem.penalty.ridge * theta + problem.slant
    at_zero = np.sign(slope) * np.maximum(np.abs(slope) - most, 0.0)
    return np.where(theta == 0.0, at_zero, slope + most * np.sign(theta))
