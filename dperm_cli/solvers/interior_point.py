"""Primal-dual interior-point iterations for the piecewise linear and the smooth losses.

Feasible throughout; Mehrotra's predictor and corrector, with a line search on the log-barrier
function, along which the uncorrected direction always descends.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.row_products import add_rows, multiply_rows
from dperm_cli.problem.set_barriers import Arrays, Block
from dperm_cli.solvers.barriers import Moduli, NoLoss, PiecewiseLinearLoss, SmoothLoss
from dperm_cli.solvers.newton_system import NewtonSystem, Solver

_LARGEST_ORDER = 3000
_TO_BOUNDARY = 0.995
_AHEAD = 0.01
_SHORT_STEP = 0.1
_HALVINGS = 40


def applies(problem: Problem) -> bool:
    """Whether the loss, the set and the size are within the method's reach."""
    loss, data = problem.loss, problem.data
    smooth = loss.curvature is not None or loss.pieces is not None
    known = problem.constraint.barrier is not None
    return smooth and known and min(data.n, data.p) <= _LARGEST_ORDER


def iterate(problem: Problem) -> Generator[tuple[np.ndarray, np.ndarray], float, None]:
    """Pairs (theta [p], dual [n]) of falling duality gap; ends when no step can be made.

    The gap certified so far is to be sent in: the central path is not followed far ahead of it.
    """
    state = _State(problem)
    gap = yield state.theta, state.loss.dual(state.z)
    while state.advance(gap):
        gap = yield state.theta, state.loss.dual(state.z)


@dataclass
class _Direction:
    theta: np.ndarray
    z: np.ndarray


class _State:
    def __init__(self, problem: Problem) -> None:
        data = problem.data
        loss: Any = problem.loss
        self._x: Any = data.x
        self._ridge, lasso = problem.penalty.ridge, problem.penalty.lasso
        self._tilt = problem.slant
        self._system = NewtonSystem(data.x)
        self.theta, self.z = np.zeros(data.p), np.zeros(data.n)
        scale = float(np.sum(loss.value(self.z, data.y)))
        smooth = loss.curvature is not None
        barrier = problem.constraint.barrier
        in_set, in_loss = barrier.products(data.p), 0 if smooth else 2 * data.n
        in_loss += 2 * data.p if lasso > 0 else 0
        # One product for the whole set is soon outrun by the loss's many: it is given more weight.
        weight = math.sqrt(max(in_loss, 1)) if in_set == 1 else 1.0
        mu = max(scale, 1e-6 * data.n) / (weight * in_set + in_loss)
        term = SmoothLoss if smooth else PiecewiseLinearLoss
        self.loss = term(loss, data.y, mu)
        self.set = barrier(problem.constraint, weight * mu)
        self.set.weight = weight
        # the lasso is a loss with kinks whose records are the coordinates
        self.l1 = PiecewiseLinearLoss(Moduli(lasso), self.theta, mu) if lasso > 0 else NoLoss()
        self._weights = weight * in_set + in_loss
        self._blocks: tuple[Block, Block, Block] = (self.loss, self.set, self.l1)

    def advance(self, gap: float) -> bool:
        """One iteration; False when rounding allows no further step."""
        try:
            solver = self._factor()
        except np.linalg.LinAlgError:
            return False
        self._direction(solver, self._targets(0.0))
        reach = min(1.0, self._largest_step())
        mu = self._mu(0.0)
        target = mu * max((self._mu(reach) / mu) ** 3, 1e-4)
        if math.isfinite(gap):
            target = max(target, _AHEAD * gap / self._weights)
        plans = [
            (target, [block.corrected_targets(target) for block in self._blocks]),
            (target, self._targets(target)),
            (mu, self._targets(mu)),
        ]
        steps = []
        for goal, targets in plans:
            direction = self._direction(solver, targets)
            steps.append(self._search(direction, goal))
            if steps[-1] >= _SHORT_STEP:
                return self._move(direction, steps[-1])
        best = int(np.argmax(steps))
        return self._move(self._direction(solver, plans[best][1]), steps[best])

    def _factor(self) -> Solver:
        b, c, w = self.set.matrix(self.theta)
        b = b + self._ridge + self.l1.weights(self.theta)
        return self._system.factor(self.loss.weights(self.z), b, c, w)

    def _direction(self, solver: Solver, targets: list[Arrays]) -> _Direction:
        slopes = self.loss.coefficients(self.z, targets[0])
        right = self.set.right_side(self.theta, targets[1])
        right = right - add_rows(self._x, slopes) - self._ridge * self.theta - self._tilt
        right = right - self.l1.coefficients(self.theta, targets[2])
        direction = _Direction(*solver(right))
        self.loss.update_directions(self.z, direction.z, targets[0])
        self.set.update_directions(self.theta, direction.theta, targets[1])
        self.l1.update_directions(self.theta, direction.theta, targets[2])
        return direction

    def _targets(self, mu: float) -> list[Arrays]:
        return [block.targets(mu) for block in self._blocks]

    def _search(self, direction: _Direction, mu: float) -> float:
        """The first step of a halving sequence with enough descent; 0 when there is none."""
        slope = self._merit_slope(direction, mu)
        if not np.all(np.isfinite(direction.theta)) or not slope < 0:
            return 0.0
        step = min(1.0, _TO_BOUNDARY * self._largest_step())
        start = self._merit(direction, mu, 0.0)
        rounding = 1e-13 * abs(start)
        for _ in range(_HALVINGS):
            if self._merit(direction, mu, step) <= start + 1e-4 * step * slope + rounding:
                return step
            step *= 0.5
        return 0.0

    def _merit(self, direction: _Direction, mu: float, step: float) -> float:
        theta = self.theta + step * direction.theta
        barrier = sum(block.weight * block.log_barrier(step) for block in self._blocks)
        known = 0.5 * self._ridge * float(theta @ theta) + float(self._tilt @ theta)
        return self.loss.value(step) + self.l1.value(step) + known + mu * barrier

    def _merit_slope(self, direction: _Direction, mu: float) -> float:
        barrier = sum(block.weight * block.log_barrier_slope() for block in self._blocks)
        known = float((self._ridge * self.theta + self._tilt) @ direction.theta)
        return self.loss.value_slope() + self.l1.value_slope() + known + mu * barrier

    def _move(self, direction: _Direction, step: float) -> bool:
        if step <= 0:
            return False
        for block in self._blocks:
            block.move(step)
        self.theta = self.theta + step * direction.theta
        self.z = multiply_rows(self._x, self.theta)
        return True

    def _largest_step(self) -> float:
        return min(block.largest_step() for block in self._blocks)

    def _mu(self, step: float) -> float:
        """Mean product slack * multiplier after a step."""
        sums, counts = zip(*(block.complementarity(step) for block in self._blocks), strict=True)
        return sum(sums) / sum(counts)
