"""Hinge loss rounded off around its kink."""

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
class HuberizedHinge(Glm):
    """l(z; y) = f(1 - y z) for labels y in {-1, +1}, f the rounded positive part (``huber``).

    With h = ``width``: quadratic for |1 - y z| <= h, at most h / 4 above the hinge, 1-Lipschitz and
    1 / (2 h)-smooth in z.
    """

    audit_place: ClassVar[int] = 5
    tasks: ClassVar[tuple[str, ...]] = ("binary",)
    code: ClassVar[int] = 5

    width: KinkWidth = 0.1

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for labels [n]."""
        return huber.value(1.0 - y * z, self.width)

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l'(z) = -y f'(1 - y z), [..., n]."""
        return -y * huber.slope(1.0 - y * z, self.width)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l''(z) = 1 / (2 h) where |1 - y z| < h, else 0, [..., n]."""
        return huber.curvature(1.0 - y * z, self.width)

    def majoriser(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / (2 max(h, |u|)) at the argument u of f."""
        return huber.majoriser(1.0 - y * z, self.width)

    def slope_bound(self, margin: float, target: float) -> float:
        """f'(1 + margin), reached at y z = -margin: 1 unless h > 1 + margin."""
        return float(huber.slope(np.asarray(1.0 + margin), self.width))

    def span(self, margin: float, target: float) -> float:
        """f(1 + margin) - f(1 - margin)."""
        return huber.span(1.0, margin, self.width)

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 1.0 / (2.0 * self.width)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) = -s - h s (1 - s) with s = -a y in [0, 1], +inf outside."""
        s = -np.asarray(a) * y
        return huber.conjugate(s, self.width) - s

    def cone_cost(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        """A rounded part of a row's margin."""
        sign, offset = -data.y, np.ones(data.n)
        width = 1.0 / (2.0 * float(self.smoothness))
        return add_rounded_part(program, theta, data.x, sign, offset, width)

    def most_pull(self, target: float) -> float:
        """1 + h at most."""
        return 1.0 + float(self.width)
