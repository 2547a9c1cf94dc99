"""What a mechanism may touch of the data."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dperm_cli.core.errors import PrivacyError
from dperm_cli.loops import exact, sgd
from dperm_cli.privacy.secure import Grid
from dperm_cli.problem.data import Matrix
from dperm_cli.problem.problem import Loss, Problem, ProblemSpec


class CentralView:
    """The trusted curator's view: sums of gradients and, for compiled loops, the records.

    It offers no loss values, no optimum and no test data.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @property
    def spec(self) -> ProblemSpec:
        """The public facts of the problem."""
        return self._problem.spec()

    @property
    def x(self) -> Matrix:
        return self._problem.data.x

    @property
    def y(self) -> np.ndarray:
        return self._problem.data.y

    @property
    def loss(self) -> Loss:
        return self._problem.loss

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """Sum over all records of the loss's subgradient at each row of [..., p], no ridge."""
        return self._problem.data_gradient(theta)

    def batch_gradient(self, theta: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Sum over the records ``batch`` (indices, [b]) of the subgradient at theta [p]."""
        return self.loss.gradient(theta, self._problem.data.take(batch))


class GridView(CentralView):
    """The view of a release on a grid: sums are exact, and order and blocking cannot enter them.

    Every record's gradient is shortened to norm ``spec.lipschitz`` and rounded to the grid, and the
    rounded ones are added as integers. So the sums of neighbouring data sets differ by one record's
    multiples of the grid and by nothing else. Needs a loss with a compiled slope.
    """

    def __init__(self, problem: Problem, grid: Grid) -> None:
        super().__init__(problem)
        self._grid, self._bound = grid, problem.spec().lipschitz
        x = problem.data.x
        if sparse.issparse(x) and not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        self._rows = sgd.rows(x, problem.data.y)

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """Sum over records of the rounded subgradients at each row of [..., p], no ridge.

        Exact multiples of the grid, at most 2^50 of its steps.
        """
        flat = np.ascontiguousarray(theta, dtype=float).reshape(-1, theta.shape[-1])
        out = np.empty(flat.shape, np.int64)
        per_unit = 1.0 / self._grid.step
        exact.gradient_sum(
            self._rows, flat, self.loss.code, self.loss.width, self._bound, per_unit, out
        )
        return (out.astype(float) * self._grid.step).reshape(theta.shape)

    @property
    def x(self) -> Matrix:
        raise PrivacyError("on a grid, records are seen through gradient_sum alone")

    @property
    def y(self) -> np.ndarray:
        raise PrivacyError("on a grid, records are seen through gradient_sum alone")

    def batch_gradient(self, theta: np.ndarray, batch: np.ndarray) -> np.ndarray:
        raise PrivacyError("on a grid, records are seen through gradient_sum alone")
