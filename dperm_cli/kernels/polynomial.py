"""The polynomial kernel: a power of the inner product plus an offset."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Count, Help, NonNegative, Range
from dperm_cli.kernels.base import Kernel, dense, finite, products, squares
from dperm_cli.loops import kernel_rows
from dperm_cli.problem.data import Matrix


@dataclass(frozen=True, kw_only=True)
class Polynomial(Kernel):
    """K(x, z) = (<x, z> + offset)^degree, offset >= 0.

    R = (r^2 + offset)^(degree / 2) for rows of norm at most r, and L_phi^2 = k'(r^2) + r^2 k''(r^2)
    with k(s) = (s + offset)^degree: the largest eigenvalue of the mixed derivative of K at x = z.

    >>> square = Polynomial(degree=2, offset=1.0)
    >>> square.gram(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]])).tolist(), square.monomials(2)
    ([[16.0]], 6)
    """

    degree: Annotated[Count, Range(1, 20), Help("of the polynomial")] = 3
    offset: Annotated[NonNegative, Help("added to the inner product")] = 1.0

    maps_alone: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        return (products(a, b) + self.offset) ** int(self.degree)

    def gram_alone(self, a: Matrix, b: Matrix) -> np.ndarray:
        found = kernel_rows.add_columns(dense(a), dense(b), kernel_rows.PRODUCTS)
        return kernel_rows.raise_power(found, self.offset, int(self.degree))

    def diagonal(self, a: Matrix) -> np.ndarray:
        return (squares(a) + self.offset) ** int(self.degree)

    def bound(self, row_bound: float) -> float:
        return finite((row_bound**2 + self.offset) ** (0.5 * self.degree), "polynomial")

    def lipschitz(self, row_bound: float) -> float:
        d, s = int(self.degree), row_bound**2
        first = d * (s + self.offset) ** (d - 1)
        second = d * (d - 1) * (s + self.offset) ** (d - 2) if d > 1 else 0.0
        return finite(math.sqrt(first + s * second), "polynomial")

    def monomials(self, columns: int) -> int:
        """All monomials of degree at most ``degree``; of that degree alone where offset = 0."""
        if self.offset == 0.0:
            return math.comb(columns + int(self.degree) - 1, int(self.degree))
        return math.comb(columns + int(self.degree), int(self.degree))

    def explicit(self, a: Matrix) -> np.ndarray:
        """Monomials of (x, sqrt offset) of the full degree, times roots of their coefficients."""
        rows, degree = dense(a), int(self.degree)
        if self.offset > 0.0:
            rows = np.hstack([rows, np.full((len(rows), 1), math.sqrt(self.offset))])
        chosen = itertools.combinations_with_replacement(range(rows.shape[1]), degree)
        out = np.empty((len(rows), math.comb(rows.shape[1] + degree - 1, degree)))
        for place, combination in enumerate(chosen):
            repeats = (combination.count(column) for column in set(combination))
            weight = math.factorial(degree) / math.prod(math.factorial(k) for k in repeats)
            # one column after the other, so that each row is rounded by itself
            out[:, place] = math.sqrt(weight)
            for column in combination:
                out[:, place] *= rows[:, column]
        return out
