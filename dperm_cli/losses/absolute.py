"""Absolute loss."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy.special import betainc, betaincc, poch

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.margin_loss import Glm


@dataclass(frozen=True)
class Absolute(Glm):
    """l(z; y) = |z - y| for targets |y| <= target_bound: 1-Lipschitz, not smooth.

    >>> Absolute().slope(np.array([-1.0, 0.5, 2.0]), 0.5).tolist()
    [-1.0, 0.0, 1.0]
    """

    audit_place: ClassVar[int] = 4
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    code: ClassVar[int] = 3

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for targets [n]."""
        return np.abs(z - y)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """sign(z - y), 0 at the kink, [..., n]."""
        return np.sign(z - y)

    def slope_bound(self, margin: float, target: float) -> float:
        """1."""
        return 1.0

    def span(self, margin: float, target: float) -> float:
        """min(2 margin, margin + target), at |y| = target."""
        return min(2.0 * margin, margin + target)

    def noise_excess(self, off: np.ndarray, width: float, dimension: int) -> np.ndarray:
        """The mean of z^2 / (2 width) up to z = width, of z - width / 2 beyond; z = off t."""
        size = 1.0 / (math.sqrt(math.pi) * float(poch(0.5 * dimension, 0.5)))  # E t
        if width == 0.0:
            return off * size
        if dimension == 1:
            return np.where(off <= width, off * off / (2.0 * width), off - width / 2.0)
        half, square = 0.5 * (dimension - 1), np.square(width / np.maximum(off, width))
        within = off * off / (2.0 * width * dimension) * betainc(1.5, half, square)
        beyond = off * size * (1.0 - square) ** half - 0.5 * width * betaincc(0.5, half, square)
        return within + beyond

    def pieces(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        """(sign, offset, up, down): l = up max(r, 0) + down max(-r, 0), r = sign z + offset."""
        return np.ones_like(y), -y, 1.0, 1.0
