"""The Gaussian kernel."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.kernels.base import ShiftKernel, dense, distances
from dperm_cli.loops import kernel_rows
from dperm_cli.problem.data import Matrix


@dataclass(frozen=True, kw_only=True)
class Rbf(ShiftKernel):
    """K(x, z) = exp(-gamma |x - z|^2): R = 1, and L_phi = sqrt(2 gamma).

    >>> Rbf(gamma=0.5).gram(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(3).tolist()
    [[1.0, 0.368]]
    >>> Rbf(gamma=0.5).lipschitz(row_bound=1.0)
    1.0
    """

    maps_alone: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        return np.exp(-self.gamma * distances(a, b))

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        return kernel_rows.decay(
            kernel_rows.add_columns(dense(a), dense(b), kernel_rows.SQUARES), self.gamma
        )

    def lipschitz(self, row_bound: float) -> float:
        return math.sqrt(2.0 * self.gamma)

    def frequencies(self, rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
        """Gaussian with variance 2 gamma."""
        return math.sqrt(2.0 * self.gamma) * rng.standard_normal((count, columns))
