"""Coordinate-wise median."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.losses.base import norm_factor
from dperm_cli.losses.shared.median_loss import Median
from dperm_cli.problem.data import Bounds


@dataclass(frozen=True)
class L1Median(Median):
    """l(theta; x) = |theta - x|_1: the (1, inf)-loss of [DJW12, Sec. 2], sqrt(p)-Lipschitz."""

    name: ClassVar[str] = "l1_median"
    tasks: ClassVar[tuple[str, ...]] = ("location",)
    code: ClassVar[None] = None

    def norm(self, difference: np.ndarray) -> np.ndarray:
        """|v|_1 of each row of [..., p]."""
        return np.sum(np.abs(difference), axis=-1)

    def subgradient(self, difference: np.ndarray) -> np.ndarray:
        """sign(v), 0 at 0, [..., p]."""
        return np.sign(difference)

    def duals(self, dual: np.ndarray) -> tuple[np.ndarray, float]:
        """Clipped to [-1, 1], and the largest modulus before."""
        return np.clip(dual, -1.0, 1.0), float(np.max(np.abs(dual), initial=0.0))

    def lipschitz_norm(self, bounds: Bounds, norm: float) -> float:
        """sup |g|_norm over subgradients g [DJW12, Def. 2]: p, sqrt(p), 1 for norm 1, 2, inf."""
        if norm == 2:
            return math.sqrt(bounds.columns)
        return norm_factor(bounds.columns, norm) ** 2
