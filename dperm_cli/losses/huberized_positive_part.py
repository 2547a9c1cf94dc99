"""Positive-part loss with its kink rounded off."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.huber import RoundedPart


@dataclass(frozen=True)
class HuberizedPositivePart(RoundedPart):
    """l(z; y) = f(y - z) for targets |y| <= target_bound.

    f is the rounded positive part [BST14, App. A]. With h = ``width``, the loss is quadratic for
    |y - z| <= h, at most h / 4 above the positive part, 1-Lipschitz and 1 / (2 h)-smooth in z.

    >>> rounded = HuberizedPositivePart(width=0.5)
    >>> rounded.value(np.array([-1.0, 0.0, 1.0]), 0.0).tolist(), rounded.smoothness
    ([1.0, 0.125, 0.0], 1.0)
    """

    audit_place: ClassVar[int] = 12
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    code: ClassVar[int] = 7

    def affine_argument(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(sign, offset) = (-1, y) of the argument of f."""
        return -np.ones_like(y), y

    def largest_offset(self, target: float) -> float:
        """The largest offset: the bound on the targets."""
        return target
