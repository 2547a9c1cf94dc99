"""Minimise by cone programs: the whole problem as one, or a Newton step at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Generator

import numpy as np
from scipy import sparse

from dperm_cli.problem.problem import Problem
from dperm_cli.problem.split_rows import require_whole
from dperm_cli.solvers import cone_programs, dual_points

_MOST_ENTRIES = 8_000_000
_LARGEST_ORDER = 1500
_NEWTON_STEPS = 200
_HALVINGS = 30
_DAMPINGS = (0.0, 1.0, 10.0, 100.0)

Iterates = Generator[tuple[np.ndarray, np.ndarray], float, None]


def applies(problem: Problem) -> bool:
    """Whether the conic solver can handle the set, the loss and the size of the problem."""
    if problem.constraint.add_cone_constraints is None:
        return False
    return _fits(problem) or (problem.loss.hessian is not None and problem.p <= _LARGEST_ORDER)


def iterate(problem: Problem, start: np.ndarray, seconds: float) -> Iterates:
    """Pairs (theta [p], dual) of falling gap: a few, each the result of a cone program."""
    return _whole(problem, seconds) if _fits(problem) else _newton(problem, start, seconds)


def takes_rows(problem: Problem) -> bool:
    """Whether the cone program has a part for each row, and not a model of the summed loss."""
    return applies(problem) and _fits(problem)


def _fits(problem: Problem) -> bool:
    """Whether the loss has a conic form of its own, of a size that can be had."""
    loss, data = problem.loss, problem.data
    return loss.cone_cost is not None and loss.cone_entries(data) <= _MOST_ENTRIES


def _whole(problem: Problem, seconds: float) -> Iterates:
    """Loss and set in one cone program, whose multipliers are the dual point.

    The solver's equilibration may cost digits when few records are off their kinks. If the gap is
    too wide, the program is solved once more without equilibration.
    """
    require_whole(problem.data.x)
    end = time.perf_counter() + seconds
    program, theta = _over_set(problem)
    to_dual = problem.loss.cone_cost(program, problem.data, theta)
    if problem.ridge > 0:
        program.quadratic(theta, np.full(theta.size, problem.penalty.ridge))
    if problem.tilt is not None:
        program.linear(theta, problem.tilt)
    _l1_norm(program, theta, problem.penalty.lasso, problem.constraint.radius)
    for equilibrate in (True, False):
        left = end - time.perf_counter()
        if left <= 0:
            return
        answer = program.solve(_cost_scale(problem), left, equilibrate)
        if np.all(np.isfinite(answer.point)):
            yield answer.point[theta], to_dual(answer.multipliers)


def _newton(problem: Problem, here: np.ndarray, seconds: float) -> Iterates:
    """Newton's method: minimise a quadratic model over the set, search the segment, repeat.

    The size of each cone program is that of theta, whatever the number of records. Where the solver
    loses digits, a proximal term holds the minimiser of the model closer to the point.
    """
    end, length = time.perf_counter() + seconds, problem.constraint.radius
    for _ in range(_NEWTON_STEPS):
        gap = yield here, dual_points.make_dual_point(problem, here)
        moved, hessian = None, dual_points.hessian(problem, here)
        for damping in _DAMPINGS:
            left = end - time.perf_counter()
            if moved is None and left > 0 and gap > 0:
                ahead = _model_minimiser(problem, here, hessian, damping / length, left)
                moved = None if ahead is None else _search_segment(problem, here, ahead)
        if moved is None:
            return
        here, length = moved, float(np.linalg.norm(moved - here))


def _model_minimiser(
    problem: Problem, here: np.ndarray, hessian: np.ndarray, damping: float, seconds: float
) -> np.ndarray | None:
    gradient, lasso = _smooth_gradient(problem, here), problem.penalty.lasso
    steepness = float(np.linalg.norm(gradient)) + lasso * math.sqrt(problem.p)
    if steepness == 0:
        return None
    hessian = hessian + damping * steepness * np.eye(len(here))
    program, theta = _over_set(problem)
    program.quadratic(theta, hessian)
    program.linear(theta, gradient - hessian @ here)
    _l1_norm(program, theta, lasso, problem.constraint.radius)
    ahead = program.solve(1.0 / (steepness * problem.constraint.radius), seconds).point[theta]
    return problem.constraint.project(ahead) if np.all(np.isfinite(ahead)) else None


def _search_segment(problem: Problem, here: np.ndarray, ahead: np.ndarray) -> np.ndarray | None:
    """The point that ``find_step`` takes, None where there is none."""
    moduli = float(np.sum(np.abs(ahead)) - np.sum(np.abs(here)))
    slope = float(_smooth_gradient(problem, here) @ (ahead - here))
    slope += problem.penalty.lasso * moduli
    step = find_step(problem, here, ahead, slope)
    return here + step * (ahead - here) if step > 0 else None


def find_step(problem: Problem, here: np.ndarray, ahead: np.ndarray, slope: float) -> float:
    """The first of the steps 1, 1/2, .. that descends enough; 0 where none does.

    ``slope`` is that of the objective at ``here``, along ``ahead - here``.
    """
    if not slope < 0:
        return 0.0
    start = float(problem.objective(here))
    rounding = 1e-14 * abs(start)
    for step in 0.5 ** np.arange(_HALVINGS):
        value = float(problem.objective(here + step * (ahead - here)))
        if value <= start + 0.1 * step * slope + rounding:
            return float(step)
    return 0.0


def _smooth_gradient(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """The gradient [p] of the objective without its l1 norm."""
    return problem.data_gradient(theta) + problem.penalty.ridge * theta + problem.slant


def l1_slope(problem: Problem, g: np.ndarray) -> np.ndarray | None:
    """u in [-n lasso, n lasso]^p with min <g + u, theta> + (n ridge / 2) |theta|^2 over the set
    about as large as it gets: the multipliers of that minimum with n lasso |theta|_1 for <u, .>.

    None where the set has no conic form or the solver fails.
    """
    if problem.constraint.add_cone_constraints is None:
        return None
    penalty, radius = problem.penalty, problem.constraint.radius
    program, theta = _over_set(problem)
    program.linear(theta, g)
    if penalty.ridge > 0:
        program.quadratic(theta, np.full(theta.size, penalty.ridge))
    low, high = _l1_norm(program, theta, penalty.lasso, radius)
    size = float(np.linalg.norm(g)) + penalty.lipschitz(radius, problem.p)
    multipliers = program.solve(1.0 / (size * radius)).multipliers
    u = np.clip(multipliers[low] - multipliers[high], -penalty.lasso, penalty.lasso)
    return u if np.all(np.isfinite(u)) else None


def _l1_norm(
    program: cone_programs.Program, theta: np.ndarray, weight: float, scale: float
) -> tuple[slice, slice]:
    """Add weight |v[theta]|_1 to the cost; the rows t - theta >= 0 and t + theta >= 0."""
    if weight == 0:
        return slice(0), slice(0)
    moduli, eye = program.variables(theta.size, scale), sparse.eye_array(theta.size)
    program.linear(moduli, weight)
    zeros = np.zeros(theta.size)
    low = program.add("nonnegative", [(eye, moduli), (-eye, theta)], zeros)
    return low, program.add("nonnegative", [(eye, moduli), (eye, theta)], zeros)


def _over_set(problem: Problem) -> tuple[cone_programs.Program, np.ndarray]:
    program = cone_programs.Program()
    theta = program.variables(problem.p, problem.constraint.radius)
    problem.constraint.add_cone_constraints(program, theta)
    return program, theta


def _cost_scale(problem: Problem) -> float:
    spec = problem.spec()
    return 1.0 / (problem.data.n * spec.lipschitz_total * min(1.0, problem.constraint.radius))
