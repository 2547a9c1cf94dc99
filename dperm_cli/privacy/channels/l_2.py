"""The channel of the Euclidean ball."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from dperm_cli.core.dataclass import dataclass
from dperm_cli.loops import local_channels as loops
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.channels.base import Channel, shorten_rows

_STRAIGHT = 1e-14  # of a cosine: rounding


@dataclass(frozen=True)
class L2(Channel):
    """A uniform direction on the side of x or on the other, for |x|_2 <= 1 [DJW18].

    The side is that of x with chance (1 + |x| tanh g) / 2. Local epsilon 2 g; information g tanh g
    - ln cosh g, reached by the uniform law on the sphere; M = coth g / E |u_1|, u uniform on the
    sphere, with 1 / E |u_1| = sqrt(pi) Gamma((d + 1) / 2) / Gamma(d / 2).

    >>> L2(dim=3, gain=0.5).epsilon
    1.0
    """

    shape: ClassVar[str] = "l_2"
    norm: ClassVar[float] = 2
    code: ClassVar[int] = loops.L_2
    discrete: ClassVar[bool] = False

    @classmethod
    def least_multiplier(cls, dim: int) -> float:
        """1 / E |u_1| for u uniform on the sphere."""
        return math.exp(gammaln((dim + 1.0) / 2.0) - gammaln(dim / 2.0)) * math.sqrt(math.pi)

    def outputs(self) -> np.ndarray:
        """In one dimension -M and M."""
        if self.dim > 1:
            raise ValueError("the answers of the l_2 channel are a sphere")
        return self.multiplier * np.array([[-1.0], [1.0]])

    def law(self, x: np.ndarray) -> np.ndarray:
        if self.dim > 1:
            raise ValueError("the answers of the l_2 channel are a sphere")
        x = shorten_rows(x, self.norm)
        far = sign_bit.wrong_sign_chance(np.abs(x), self.gain)
        minus = np.where(x < 0.0, 1.0 - far, far)
        return np.concatenate([minus, 1.0 - minus], axis=1)

    def distance(self, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Some answer is near one input and far from the other, unless both lie on one ray."""
        ends = np.stack([self._sides(x), self._sides(other)])
        x, other = shorten_rows(x, 2), shorten_rows(other, 2)
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(other, axis=1)
        product = np.sum(x * other, axis=1)
        (near, far), (near_other, far_other) = ends
        same = np.maximum(np.abs(near - near_other), np.abs(far - far_other))
        across = np.maximum(np.abs(near - far_other), np.abs(far - near_other))
        if self.dim == 1:
            return np.where(product >= 0.0, same, across)
        straight = product >= lengths * (1.0 - _STRAIGHT)
        opposite = product <= -lengths * (1.0 - _STRAIGHT)
        return np.where(straight, same, np.where(opposite, across, np.maximum(same, across)))

    def _sides(self, x: np.ndarray) -> np.ndarray:
        """ln of the chances of the near and of the far side, [2, k]."""
        length = np.minimum(np.linalg.norm(np.atleast_2d(x), axis=1), 1.0)
        far = sign_bit.wrong_sign_chance(length, self.gain)
        return np.stack([np.log1p(-far), np.log(far)])
