"""Newton steps over a hull of many atoms: quadratic models minimised by an active-set method.

The points and dual points are candidates; ``optimum`` computes what they certify.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from dperm_cli.problem.problem import Problem
from dperm_cli.sets.shared import hull_quadratic
from dperm_cli.sets.shared.atomic_hull import Atomic
from dperm_cli.sets.shared.hull_quadratic import Mixture
from dperm_cli.solvers import conic, dual_points

_STEPS = 60
_LARGEST_ORDER = 3000
_DAMPING = 1e-13  # of the mean curvature: a model that is flat somewhere has many minimisers

Iterates = Generator[tuple[np.ndarray, np.ndarray], float, None]


def applies(problem: Problem) -> bool:
    """Whether the set is such a hull, the loss has curvature and no l1 norm is added.

    The Hessian is held as a matrix, which its order limits, unless it is a ridge alone.
    """
    return (
        problem.constraint.mixtures is not None
        and problem.loss.hessian is not None
        and problem.lasso == 0
        and (problem.p <= _LARGEST_ORDER or _is_round(problem))
    )


def iterate(problem: Problem, here: np.ndarray, seconds: float) -> Iterates:
    """Pairs (theta [p], dual): minimise the model over the hull, search the segment, and again."""
    body = problem.constraint.mixtures
    here, mixture = body.mixture(here)
    for _ in range(_STEPS):
        gap = yield here, dual_points.make_dual_point(problem, here)
        if gap <= 0:
            return
        gradient = problem.gradient(here)
        hessian, linear = _find_model(problem, here, gradient)
        ahead, other = hull_quadratic.solve(body, hessian, linear, mixture)
        body.remember(ahead, other)
        step = conic.find_step(problem, here, ahead, float(gradient @ (ahead - here)))
        if step == 0.0:
            return
        here, mixture = (ahead, other) if step == 1.0 else _between(body, mixture, other, step)


def _is_round(problem: Problem) -> bool:
    """Whether the loss is linear: a ridge is then all the curvature."""
    return problem.loss.affine_margin == math.inf and problem.penalty.ridge > 0


def _find_model(
    problem: Problem, here: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray]:
    """H, None for I, and b of a model <v, H v> / 2 - <b, v>, up to a factor, about ``here``.

    With a linear loss and a ridge it is the objective, whose minimiser is the projection of b.
    """
    if _is_round(problem):
        return None, here - gradient / problem.penalty.ridge
    hessian = dual_points.hessian(problem, here)
    hessian[np.diag_indices(problem.p)] += _DAMPING * np.trace(hessian) / problem.p
    if not np.any(hessian):
        return None, here - gradient
    return hessian, hessian @ here - gradient


def _between(
    body: Atomic, first: Mixture, second: Mixture, step: float
) -> tuple[np.ndarray, Mixture]:
    """The mixture (1 - step) first + step second, with its point."""
    labels, place = np.unique(np.append(first.labels, second.labels), return_inverse=True)
    weights = np.zeros(len(labels))
    np.add.at(weights, place, np.append((1.0 - step) * first.weights, step * second.weights))
    found = Mixture(labels, weights / np.sum(weights))
    point = found.weights @ body.atoms.take(found.labels)
    return point, body.remember(point, found)
