"""The channel of the cube."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.loops import local_channels as loops
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.channels.base import Channel, shorten_rows

_MOST = 16  # dimensions up to which the 2^d answers are listed


@dataclass(frozen=True)
class LInf(Channel):
    """Independent signs M s_j with E[M s_j] = x_j, for |x|_inf <= 1 [DJW12, Prop. 1].

    M = coth g, local epsilon 2 d g = d ln((M + 1) / (M - 1)), information d [g tanh g - ln cosh g]
    = d ln 2 - d h(1/2 + 1/(2M)) nats.

    >>> LInf(dim=3, gain=0.5).epsilon
    3.0
    """

    shape: ClassVar[str] = "l_inf"
    norm: ClassVar[float] = math.inf
    code: ClassVar[int] = loops.L_INF

    @classmethod
    def signs(cls, dim: int) -> int:
        return dim

    def outputs(self) -> np.ndarray:
        """The corners of the cube of half-width M."""
        if self.dim > _MOST:
            raise ValueError(f"2^{self.dim} answers; they are listed up to {_MOST} dimensions")
        return self.multiplier * np.array(list(itertools.product((-1.0, 1.0), repeat=self.dim)))

    def law(self, x: np.ndarray) -> np.ndarray:
        up = (self.outputs() > 0.0)[None, :, :]
        plus, minus = self._signs(x)
        return np.prod(np.where(up, plus[:, None, :], minus[:, None, :]), axis=2)

    def distance(self, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        up, down = np.log(self._signs(x)) - np.log(self._signs(other))
        most = np.sum(np.maximum(up, down), axis=1)
        least = np.sum(np.minimum(up, down), axis=1)
        return np.maximum(most, -least)

    def _signs(self, x: np.ndarray) -> np.ndarray:
        """The chances of +M and of -M in each coordinate, [2, k, dim]."""
        x = shorten_rows(x, self.norm)
        far = sign_bit.wrong_sign_chance(np.abs(x), self.gain)
        return np.stack([np.where(x < 0.0, far, 1.0 - far), np.where(x < 0.0, 1.0 - far, far)])
