"""Squared loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.data import Bounds


@dataclass(frozen=True)
class Squared(Glm):
    """l(z; y) = (z - y)^2 / 2 for targets |y| <= target_bound: 1-smooth in z.

    Labels -1 and +1 may serve as targets, which gives the least squares classifier. The loss is
    Lipschitz only where margins are bounded; the set of parameters bounds them.

    >>> Squared().lipschitz(Bounds(row=1.0, target=1.0, radius=2.0, columns=5))
    3.0
    """

    audit_place: ClassVar[int] = 3
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    extra_tasks: ClassVar[tuple[str, ...]] = ("binary",)
    default_of: ClassVar[tuple[str, ...]] = ("regression",)
    code: ClassVar[int] = 2
    quadratic: ClassVar[bool] = True

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for targets [n]."""
        return 0.5 * np.square(z - y)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l'(z) = z - y, [..., n]."""
        return z - y

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l''(z) = 1, [..., n]."""
        return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))

    def slope_bound(self, margin: float, target: float) -> float:
        """sup |z - y| = margin + target."""
        return float(margin + target)

    def span(self, margin: float, target: float) -> float:
        """The range at |y| = target: ((margin + target)^2 - max(0, target - margin)^2) / 2.

        It is computed without this difference, which would lose digits where the margin is small.
        """
        return 2.0 * margin * target if margin <= target else 0.5 * (margin + target) ** 2

    @property
    def smoothness(self) -> float:
        """1: the second derivative."""
        return 1.0

    def gradient_gap(self, bounds: Bounds) -> float:
        """row (row radius + 2 target): x x^T - x' x'^T has norm at most row^2."""
        return bounds.row * (bounds.row * bounds.radius + 2.0 * bounds.target)

    def curvature_ratio(self, margin: float) -> float:
        """1: the second derivative is constant."""
        return 1.0

    def radial_slope_bound(self, target: float) -> float:
        """target^2 / 4, the largest -z l'(z), at z = y / 2."""
        return 0.25 * target**2

    def noise_excess(self, off: np.ndarray, width: float, dimension: int) -> np.ndarray:
        """off^2 / (2 dimension), whatever the noise."""
        return 0.5 * np.square(off) / dimension

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) = a y + a^2 / 2."""
        a = np.asarray(a)
        return a * (y + 0.5 * a)
