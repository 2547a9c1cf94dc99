"""Barrier terms of losses for the primal-dual interior-point iteration (``set_barriers``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.problem.set_barriers import Arrays, Block


class SmoothLoss(Block):
    """A twice differentiable loss: no inequalities of its own."""

    def __init__(self, loss: Any, y: np.ndarray, mu: float) -> None:
        self._loss, self._y = loss, y
        self.slacks, self.duals, self.d_slacks, self.d_duals = [], [], [], []
        self._z = self._dz = np.zeros_like(y)

    def weights(self, z: np.ndarray) -> np.ndarray:
        return self._loss.curvature(z, self._y)

    def coefficients(self, z: np.ndarray, targets: Arrays) -> np.ndarray:
        return self._loss.slope(z, self._y)

    def update_directions(self, z: np.ndarray, dz: np.ndarray, targets: Arrays) -> None:
        self._z, self._dz = z, dz

    def value(self, step: float) -> float:
        return float(np.sum(self._loss.value(self._z + step * self._dz, self._y)))

    def value_slope(self) -> float:
        return float(self._loss.slope(self._z, self._y) @ self._dz)

    def dual(self, z: np.ndarray) -> np.ndarray:
        return self._loss.slope(z, self._y)


class NoLoss(Block):
    """The loss that is zero."""

    def __init__(self) -> None:
        self.slacks, self.duals, self.d_slacks, self.d_duals = [], [], [], []

    def weights(self, z: np.ndarray) -> Any:
        return 0.0

    def coefficients(self, z: np.ndarray, targets: Arrays) -> Any:
        return 0.0

    def update_directions(self, z: np.ndarray, dz: np.ndarray, targets: Arrays) -> None:
        """Nothing moves."""

    def value(self, step: float) -> float:
        return 0.0

    def value_slope(self) -> float:
        return 0.0


class Moduli:
    """weight |z| as a loss of two linear pieces."""

    def __init__(self, weight: float) -> None:
        self._weight = weight

    def pieces(self, y: np.ndarray) -> tuple[float, np.ndarray, float, float]:
        return 1.0, np.zeros_like(y), self._weight, self._weight


class PiecewiseLinearLoss(Block):
    """up * max(r, 0) + down * max(-r, 0) with r = sign z + offset.

    r = above - below with both >= 0; their multipliers are up - a and down + a, where a is the
    slope in r: the record's dual variable, strictly feasible throughout.
    """

    def __init__(self, loss: Any, y: np.ndarray, mu: float) -> None:
        self._sign, self._offset, self._up, self._down = loss.pieces(y)
        spread, r = self._up + self._down, self._offset
        root = np.sqrt(np.square(spread * r) + 4.0 * mu**2)
        self.slacks = [(2.0 * mu + root + s * spread * r) / (2.0 * spread) for s in (1.0, -1.0)]
        self.duals = [mu / w for w in self.slacks]

    def weights(self, z: np.ndarray) -> np.ndarray:
        (w1, w2), (q1, q2) = self.slacks, self.duals
        return 1.0 / (w1 / q1 + w2 / q2)

    def coefficients(self, z: np.ndarray, targets: Arrays) -> np.ndarray:
        shift = self._residual(z) - targets[0] / self.duals[0] + targets[1] / self.duals[1]
        return self._sign * (self._slope() + self.weights(z) * shift)

    def update_directions(self, z: np.ndarray, dz: np.ndarray, targets: Arrays) -> None:
        (w1, w2), (q1, q2), (m1, m2) = self.slacks, self.duals, targets
        da = self._sign * dz + self._residual(z) - m1 / q1 + m2 / q2
        da *= self.weights(z)
        self.d_slacks = [(m1 + w1 * da) / q1 - w1, (m2 - w2 * da) / q2 - w2]
        self.d_duals = [-da, da]

    def value(self, step: float) -> float:
        above, below = (w + step * dw for w, dw in zip(self.slacks, self.d_slacks, strict=True))
        return float(self._up * np.sum(above) + self._down * np.sum(below))

    def value_slope(self) -> float:
        above, below = self.d_slacks
        return float(self._up * np.sum(above) + self._down * np.sum(below))

    def dual(self, z: np.ndarray) -> np.ndarray:
        return self._sign * np.clip(self._slope(), -self._down, self._up)

    def _slope(self) -> np.ndarray:
        """up - q1 = q2 - down, from whichever multiplier is smaller."""
        q1, q2 = self.duals
        return np.where(q1 < q2, self._up - q1, q2 - self._down)

    def _residual(self, z: np.ndarray) -> np.ndarray:
        return self._sign * z + self._offset
