"""The regulariser (ridge and lasso), which is a part of every record's loss."""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import CheckedFields, NonNegative


@dataclass(frozen=True)
class Regulariser(CheckedFields):
    """r(theta) = (ridge / 2) |theta|_2^2 + lasso |theta|_1, a part of each record's loss.

    As in [BST14, Sec. 1], the summed objective contains n r. Each record's Lipschitz constant grows
    by ``lipschitz`` and its strong convexity by ``strong_convexity``. r depends on no record, so it
    cancels from every difference between neighbouring data sets.
    """

    ridge: NonNegative = 0.0
    lasso: NonNegative = 0.0

    def times(self, n: int) -> Regulariser:
        """n r: what the sum over n records holds."""
        return Regulariser(n * self.ridge, n * self.lasso)

    def value(self, theta: np.ndarray) -> np.ndarray:
        """r at each row of [..., p]."""
        square, modulus = np.sum(theta * theta, axis=-1), np.sum(np.abs(theta), axis=-1)
        return 0.5 * self.ridge * square + self.lasso * modulus

    def subgradient(self, theta: np.ndarray) -> np.ndarray:
        """ridge theta + lasso sign(theta), 0 at the kinks, [..., p]."""
        return self.ridge * theta + self.lasso * np.sign(theta)

    def lipschitz(self, radius: float, p: int) -> float:
        """ridge radius + lasso sqrt(p): Euclidean, on |theta|_2 <= radius in R^p; it is reached."""
        return self.ridge * radius + self.lasso * math.sqrt(p)

    @property
    def strong_convexity(self) -> float:
        """ridge: the l1 norm adds nothing."""
        return self.ridge

    @property
    def vanishes(self) -> bool:
        """Whether r = 0."""
        return self.ridge == self.lasso == 0.0

    @property
    def smooth(self) -> bool:
        """Whether r has a gradient everywhere, which is then ridge-Lipschitz."""
        return self.lasso == 0.0
