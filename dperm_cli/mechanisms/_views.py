"""What a mechanism may touch of the data."""

from __future__ import annotations

import numpy as np

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
