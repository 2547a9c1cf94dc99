"""Positive-part loss rounded off around its kink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.losses.shared import huber
from dperm_cli.losses.shared.huber import KinkWidth
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.cone_rows import ConeProgram, ToDual, add_rounded_part
from dperm_cli.problem.data import Data


@dataclass(frozen=True)
class HuberizedPositivePart(Glm):
    """l(z; y) = f(y - z) for targets |y| <= target_bound, f the rounded positive part [BST14,
    App. A].

    With h = ``width``: quadratic for |y - z| <= h, at most h / 4 above the positive part,
    1-Lipschitz and 1 / (2 h)-smooth in z.
    """

    audit_place: ClassVar[int] = 12
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    code: ClassVar[int] = 7

    width: KinkWidth = 0.1

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for targets [n]."""
        return huber.value(y - z, self.width)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l'(z) = -f'(y - z), [..., n]."""
        return -huber.slope(y - z, self.width)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l''(z) = 1 / (2 h) where |y - z| < h, else 0, [..., n]."""
        return huber.curvature(y - z, self.width)

    def majoriser(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / (2 max(h, |u|)) at the argument u of f."""
        return huber.majoriser(y - z, self.width)

    def slope_bound(self, margin: float, target: float) -> float:
        """f'(target + margin), reached at y = target, z = -margin."""
        return float(huber.slope(np.asarray(target + margin), self.width))

    def span(self, margin: float, target: float) -> float:
        """f(target + margin) - f(target - margin), at y = target."""
        return huber.span(target, margin, self.width)

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 1.0 / (2.0 * self.width)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) = a y - h s (1 - s) with s = -a in [0, 1], +inf outside."""
        a = np.asarray(a)
        return huber.conjugate(-a, self.width) + a * y

    def cone_cost(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        """A rounded part of a row's margin."""
        sign, offset = -np.ones(data.n), data.y
        width = 1.0 / (2.0 * float(self.smoothness))
        return add_rounded_part(program, theta, data.x, sign, offset, width)
