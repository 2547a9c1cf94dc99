"""Hinge loss with its kink rounded off."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.huber import RoundedPart


@dataclass(frozen=True)
class HuberizedHinge(RoundedPart):
    """l(z; y) = f(1 - y z) for labels y in {-1, +1}.

    f is the rounded positive part (``huber``). With h = ``width``, the loss is quadratic for
    |1 - y z| <= h, at most h / 4 above the hinge, 1-Lipschitz and 1 / (2 h)-smooth in z.

    >>> rounded = HuberizedHinge(width=0.5)
    >>> rounded.value(np.array([0.0, 1.0, 2.0]), 1.0).tolist(), rounded.smoothness
    ([1.0, 0.125, 0.0], 1.0)
    """

    audit_place: ClassVar[int] = 5
    tasks: ClassVar[tuple[str, ...]] = ("binary",)
    code: ClassVar[int] = 5

    def affine_argument(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(sign, offset) = (-y, 1) of the argument of f."""
        return -y, np.ones_like(y)

    def largest_offset(self, target: float) -> float:
        """The largest offset: 1, whatever the label."""
        return 1.0

    def radial_slope_bound(self, target: float) -> float:
        """1 + h, an upper bound on -z l'(z)."""
        return 1.0 + float(self.width)
