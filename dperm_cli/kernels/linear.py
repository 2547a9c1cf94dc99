"""The linear kernel: the inner product of two rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.kernels.base import Kernel, dense, products, squares
from dperm_cli.loops import kernel_rows
from dperm_cli.problem.data import Matrix


@dataclass(frozen=True, kw_only=True)
class Linear(Kernel):
    """K(x, z) = <x, z>, the model without a feature map. R = row_bound, L_phi = 1.

    >>> Linear().gram(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])).tolist()
    [[11.0]]
    """

    maps_alone: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        return products(a, b)

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        return kernel_rows.add_columns(dense(a), dense(b), kernel_rows.PRODUCTS)

    def diagonal(self, a: Matrix) -> np.ndarray:
        return squares(a)

    def bound(self, row_bound: float) -> float:
        return row_bound

    def lipschitz(self, row_bound: float) -> float:
        return 1.0

    def monomials(self, columns: int) -> int:
        return columns

    def explicit(self, a: Matrix) -> np.ndarray:
        return dense(a)
