"""Losses made of the positive part u_+ = max(u, 0), rounded off on [-h, h] [BST14, App. A].

f(u) = 0 below -h, (u + h)^2 / (4 h) on [-h, h], u above h. f is convex, once continuously
differentiable, and between u_+ and u_+ + h / 4.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, Positive
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.cone_program import ConeProgram, ToDual, add_rounded_part
from dperm_cli.problem.data import Data

KinkWidth = Annotated[Positive, Help("half-width h of the rounding: at most h / 4 is added")]


@dataclass(frozen=True)
class RoundedPart(Glm):
    """l(z; y) = f(u) with u = sign z + offset, where sign is +1 or -1 and h is ``width``.

    A subclass defines ``affine_argument(y)`` = (sign, offset), and ``largest_offset(target)`` over
    |y| <= target. The loss is 1-Lipschitz and 1 / (2 h)-smooth in z.
    """

    width: KinkWidth = 0.1

    affine_argument: ClassVar[Any]
    largest_offset: ClassVar[Any]

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f(u) at margins [..., n] for labels or targets [n]."""
        u, h = self._argument(z, y), self.width
        bent = np.clip(u + h, 0.0, 2.0 * h)
        return np.where(u > h, u, bent * bent / (4.0 * h))

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The derivative in z, sign f'(u), [..., n]."""
        return self.affine_argument(y)[0] * self._part_slope(self._argument(z, y))

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """f''(u): 1 / (2 h) inside (-h, h), and 0 elsewhere and at the ends."""
        inside = np.abs(self._argument(z, y)) < self.width
        return np.where(inside, 1.0 / (2.0 * self.width), 0.0)

    def majoriser(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / (2 max(h, |u|)), the curvature of a parabola above the loss that touches it at z.

        It is one because f(u) - u / 2 is even, and its slope over u falls with |u|.
        """
        return 0.5 / np.maximum(self.width, np.abs(self._argument(z, y)))

    def slope_bound(self, margin: float, target: float) -> float:
        """f' at the largest u: 1 unless this is below h."""
        return float(self._part_slope(np.asarray(self.largest_offset(target) + margin)))

    def span(self, margin: float, target: float) -> float:
        """The range of the loss: f(middle + margin) - f(middle - margin).

        ``middle`` is the largest offset. The difference is not computed as it stands: it would lose
        all digits where the margin is small compared with ``middle``.
        """
        middle, h = self.largest_offset(target), self.width
        low, high = middle - margin, middle + margin
        if low >= h:
            return 2.0 * margin
        if high <= h:
            bent = max(high + h, 0.0)
            return margin * (middle + h) / h if low >= -h else bent * bent / (4.0 * h)
        # high is above h, so less than half of 2 margin is subtracted: no digits are lost
        return high if low <= -h else 2.0 * margin - (h - low) ** 2 / (4.0 * h)

    @property
    def smoothness(self) -> float:
        """1 / (2 h)."""
        return 1.0 / (2.0 * self.width)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) = -h s (1 - s) - s offset with s = sign a in [0, 1], +inf outside."""
        sign, offset = self.affine_argument(y)
        s = sign * np.asarray(a)
        inside = (s >= 0) & (s <= 1)
        held = np.where(inside, s, 0.0)
        return np.where(inside, -self.width * held * (1.0 - held), np.inf) - s * offset

    def cone_cost(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        """Add the sum of the rounded parts to a cone program (``PerRecord.cone_cost``)."""
        sign, offset = self.affine_argument(data.y)
        width = 1.0 / (2.0 * float(self.smoothness))
        return add_rounded_part(program, theta, data.x, sign, offset, width)

    def _argument(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """u = sign z + offset."""
        sign, offset = self.affine_argument(y)
        return sign * z + offset

    def _part_slope(self, u: np.ndarray) -> np.ndarray:
        """f'(u) = (u + h) / (2 h), clipped to [0, 1]."""
        return np.clip((u + self.width) / (2.0 * self.width), 0.0, 1.0)
