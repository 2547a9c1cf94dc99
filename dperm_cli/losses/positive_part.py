"""Positive-part loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.huberized_positive_part import HuberizedPositivePart
from dperm_cli.losses.shared.margin_loss import Glm


@dataclass(frozen=True)
class PositivePart(Glm):
    """l(z; y) = max(0, y - z) for targets |y| <= target_bound [BST14, App. A]: 1-Lipschitz.

    >>> PositivePart().value(np.array([-1.0, 0.5, 2.0]), 0.5).tolist()
    [1.5, 0.0, 0.0]
    """

    audit_place: ClassVar[int] = 11
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    code: ClassVar[int] = 6

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for targets [n]."""
        return np.maximum(0.0, y - z)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-1 where z < y, else 0 (so 0 at the kink), [..., n]."""
        return np.where(z < y, -1.0, 0.0)

    def slope_bound(self, margin: float, target: float) -> float:
        """1."""
        return 1.0

    def span(self, margin: float, target: float) -> float:
        """min(2 margin, margin + target), at y = target."""
        return min(2.0 * margin, margin + target)

    def round_kink(self, width: float) -> HuberizedPositivePart:
        """The huberized positive part."""
        return HuberizedPositivePart(width)

    def pieces(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        """(sign, offset, up, down): l = up max(r, 0) + down max(-r, 0), r = sign z + offset."""
        return -np.ones_like(y), y, 1.0, 0.0
