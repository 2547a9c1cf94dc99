"""Hinge loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.huberized_hinge import HuberizedHinge
from dperm_cli.losses.shared.margin_loss import Glm


@dataclass(frozen=True)
class Hinge(Glm):
    """l(z; y) = max(0, 1 - y z) for labels y in {-1, +1}: 1-Lipschitz, not smooth.

    >>> Hinge().value(np.array([-1.0, 0.0, 2.0]), 1.0).tolist()
    [2.0, 1.0, 0.0]
    """

    audit_place: ClassVar[int] = 2
    tasks: ClassVar[tuple[str, ...]] = ("binary",)
    code: ClassVar[int] = 1
    affine_margin: ClassVar[float] = 1.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for labels [n]."""
        return np.maximum(0.0, 1.0 - y * z)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-y where y z < 1, else 0 (so 0 at the kink), [..., n]; as ``loops.slopes`` has it."""
        return np.where(y * z < 1.0, -y, 0.0)

    def slope_bound(self, margin: float, target: float) -> float:
        """1: the point z = 0 has a slope of modulus 1 whatever the bounds."""
        return 1.0

    def span(self, margin: float, target: float) -> float:
        """min(2 margin, 1 + margin)."""
        return min(2.0 * margin, 1.0 + margin)

    def round_kink(self, width: float) -> HuberizedHinge:
        """The huberized hinge."""
        return HuberizedHinge(width)

    def radial_slope_bound(self, target: float) -> float:
        """1, at the kink."""
        return 1.0

    def fenchel_terms(
        self, z: np.ndarray, a: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """As products, of which nothing cancels."""
        u, slack = -a * y, 1.0 - y * z
        terms = (1.0 - u) * np.maximum(slack, 0.0) + u * np.maximum(-slack, 0.0)
        return terms, float(np.sum(terms))

    def sign_mean(self, bias: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The mean over labels."""
        up, down = np.maximum(1.0 - z, 0.0), np.maximum(1.0 + z, 0.0)
        return 0.5 * ((1.0 + bias) * up + (1.0 - bias) * down)

    def best_mean(self, bias: np.ndarray) -> np.ndarray:
        """The likelier label."""
        return np.sign(bias)

    def pieces(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        """(sign, offset, up, down): l = up max(r, 0) + down max(-r, 0), r = sign z + offset."""
        return -y, np.ones_like(y), 1.0, 0.0
