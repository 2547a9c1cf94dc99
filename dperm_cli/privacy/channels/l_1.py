"""The channel of the cross-polytope."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.loops import local_channels as loops
from dperm_cli.loops.local_channels import Coding
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.channels.base import Channel, shorten_rows


@dataclass(frozen=True)
class L1(Channel):
    """One of the corners +-M e_j, for |x|_1 <= 1 [DJW12, Prop. 2].

    x is rounded to a corner with mean x: sign(x_j) e_j with chance |x_j|, and with the rest any of
    the 2 d, since |x_j| / |x|_1 (as printed) has mean x on the sphere alone. A corner stays with
    chance e^g / Z, turns round with e^-g / Z and becomes each other one with 1 / Z, where Z = 2
    cosh g + 2 d - 2. M = (cosh g + d - 1) / sinh g, g as in [DJW12, Eq. 9]; local epsilon 2 g.

    >>> L1(dim=3, gain=0.5).epsilon
    1.0
    """

    shape: ClassVar[str] = "l_1"
    norm: ClassVar[float] = 1
    code: ClassVar[int] = loops.L_1

    @classmethod
    def corners(cls, dim: int) -> int:
        return dim

    def outputs(self) -> np.ndarray:
        """M e_1, .., M e_d, -M e_1, .., -M e_d."""
        corners = self.multiplier * np.eye(self.dim)
        return np.vstack([corners, -corners])

    def law(self, x: np.ndarray) -> np.ndarray:
        x = shorten_rows(x, self.norm)
        rest = np.maximum(1.0 - np.sum(np.abs(x), axis=1, keepdims=True), 0.0)
        near = np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)], axis=1)
        near += rest / (2.0 * self.dim)
        far = np.roll(near, self.dim, axis=1)
        fall = math.exp(-self.gain)
        whole = 1.0 + fall * fall + 2.0 * (self.dim - 1.0) * fall
        return (near + fall * fall * far + fall * np.maximum(1.0 - near - far, 0.0)) / whole

    def distance(self, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.max(np.abs(np.log(self.law(x)) - np.log(self.law(other))), axis=1)

    def coding(self, bound: float = 1.0) -> Coding:
        same, back, _ = sign_bit.corner(self.gain, self.dim)
        gain = (same - back) / (1 << 64)
        last = np.uint64(same + back - 1)
        return Coding(self.code, bound, bound / gain, gain, np.uint64(back), np.uint64(same), last)
