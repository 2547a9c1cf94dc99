"""The histogram intersection kernel, for rows of counts or frequencies."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Help, Range
from dperm_cli.kernels.base import Kernel, dense, sum_over_columns
from dperm_cli.loops import kernel_rows
from dperm_cli.problem.data import Matrix


@dataclass(frozen=True, kw_only=True)
class HistogramIntersection(Kernel):
    """K(x, z) = sum_j min(x_j, z_j) over non-negative entries (negative ones count as 0).

    With ``normalise``, K is divided by sqrt(K(x, x) K(z, z)), so that R = 1 for any rows. Without
    it, K(x, x) = |x|_1 is at most sqrt(columns) row_bound, and ``columns`` must be given. The
    feature map has no Lipschitz constant: |phi(x) - phi(z)|^2 = |x - z|_1.

    >>> bags = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    >>> HistogramIntersection().gram(bags, bags).round(3).tolist()
    [[1.0, 0.667], [0.667, 1.0]]
    """

    normalise: Annotated[bool, Help("divide by the roots of K(x, x) and K(z, z): R = 1")] = True
    columns: Annotated[int, Range(0), Help("of the data set; needed with normalise=false")] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.normalise:
            checks.integer("kernel.columns", self.columns, low=1)

    maps_alone: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        rows, others = self._bags(a), self._bags(b)
        out = sum_over_columns(np.minimum, rows, others)
        if self.normalise:
            out *= _inverse_root(rows.sum(axis=1))[:, None] * _inverse_root(others.sum(axis=1))
        return out

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        rows, others = self._bags(a), self._bags(b)
        out = kernel_rows.add_columns(rows, others, kernel_rows.SMALLER)
        if self.normalise:
            ones = np.ones((1, rows.shape[1]))
            first, second = (
                kernel_rows.add_columns(part, ones, kernel_rows.PRODUCTS)[:, 0]
                for part in (rows, others)
            )
            out *= _inverse_root(first)[:, None] * _inverse_root(second)
        return out

    def diagonal(self, a: Matrix) -> np.ndarray:
        total = self._bags(a).sum(axis=1)
        return (total > 0.0).astype(float) if self.normalise else total

    def bound(self, row_bound: float) -> float:
        return 1.0 if self.normalise else math.sqrt(math.sqrt(self.columns) * row_bound)

    def check_columns(self, columns: int) -> None:
        if not self.normalise and self.columns < columns:
            allowed = f"must be at least {columns}, the columns of the rows: R follows from it"
            raise InputError("kernel.columns", self.columns, allowed)

    def _bags(self, a: Matrix) -> np.ndarray:
        return np.maximum(dense(a), 0.0)


def _inverse_root(total: np.ndarray) -> np.ndarray:
    """1 / sqrt(total), and 0 for an empty row."""
    return np.where(total > 0.0, 1.0 / np.sqrt(np.where(total > 0.0, total, 1.0)), 0.0)
