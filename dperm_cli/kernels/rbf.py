"""The Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.kernels.base import Gamma, Kernel, distances
from dperm_cli.problem.data import Matrix


@dataclass(frozen=True, kw_only=True)
class Rbf(Kernel):
    """K(x, z) = exp(-gamma |x - z|^2): R = 1, and L_phi = sqrt(2 gamma)."""

    gamma: Gamma = 1.0

    shifts: ClassVar[bool] = True

    def gram(self, a: Matrix, b: Matrix) -> np.ndarray:
        return np.exp(-self.gamma * distances(a, b))

    def diagonal(self, a: Matrix) -> np.ndarray:
        return np.ones(a.shape[0])

    def bound(self, row_bound: float) -> float:
        return 1.0

    def lipschitz(self, row_bound: float) -> float:
        return math.sqrt(2.0 * self.gamma)

    def frequencies(self, rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
        """Gaussian with variance 2 gamma."""
        return math.sqrt(2.0 * self.gamma) * rng.standard_normal((count, columns))
