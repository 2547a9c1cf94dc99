"""The Laplacian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.kernels.base import Gamma, Kernel, dense
from dperm_cli.problem.data import Matrix

_BLOCK = 1 << 22  # entries of the differences held at once


@dataclass(frozen=True, kw_only=True)
class Laplacian(Kernel):
    """K(x, z) = exp(-gamma |x - z|_1): R = 1; |phi(x) - phi(z)|^2 <= 2 gamma |x - z|_1, so that
    phi has no Lipschitz constant.
    """

    gamma: Gamma = 1.0

    shifts: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        rows, others = dense(a), dense(b)
        out = np.empty((len(rows), len(others)))
        step = max(1, _BLOCK // max(1, others.size))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            out[part] = np.abs(rows[part, None, :] - others[None, :, :]).sum(axis=2)
        return np.exp(-self.gamma * out)

    def diagonal(self, a: Matrix) -> np.ndarray:
        return np.ones(a.shape[0])

    def bound(self, row_bound: float) -> float:
        return 1.0

    def lipschitz(self, row_bound: float) -> float:
        return math.inf

    def frequencies(self, rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
        """Independent Cauchy coordinates of scale gamma."""
        return self.gamma * rng.standard_cauchy((count, columns))
