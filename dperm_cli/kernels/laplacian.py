"""The Laplacian kernel."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.kernels.base import ShiftKernel, dense, sum_over_columns
from dperm_cli.loops import kernel_rows
from dperm_cli.problem.data import Matrix


@dataclass(frozen=True, kw_only=True)
class Laplacian(ShiftKernel):
    """K(x, z) = exp(-gamma |x - z|_1): R = 1; |phi(x) - phi(z)|^2 <= 2 gamma |x - z|_1, so that
    phi has no Lipschitz constant.

    >>> Laplacian(gamma=0.5).gram(np.zeros((1, 2)), np.array([[1.0, 1.0]])).round(3).tolist()
    [[0.368]]
    >>> Laplacian(gamma=0.5).lipschitz(row_bound=1.0)
    inf
    """

    maps_alone: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        apart = sum_over_columns(lambda x, z: np.abs(x - z), dense(a), dense(b))
        return np.exp(-self.gamma * apart)

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        return kernel_rows.decay(
            kernel_rows.add_columns(dense(a), dense(b), kernel_rows.LENGTHS), self.gamma
        )

    def frequencies(self, rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
        """Independent Cauchy coordinates of scale gamma."""
        return self.gamma * rng.standard_cauchy((count, columns))
