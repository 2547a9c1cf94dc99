"""Coordinate-wise median loss: the L1 distance to a record."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.base import norm_factor, to_dense
from dperm_cli.losses.shared.median_loss import Median
from dperm_cli.problem.cone_program import ConeProgram, ToDual, add_l1_distances
from dperm_cli.problem.data import Bounds, Data


@dataclass(frozen=True)
class L1Median(Median):
    """l(theta; x) = |theta - x|_1: the (1, inf)-loss of [DJW12, Sec. 2], sqrt(p)-Lipschitz.

    >>> at = Bounds(row=1.0, target=1.0, radius=1.0, columns=4)
    >>> [L1Median().lipschitz_norm(at, norm) for norm in (1, 2, math.inf)]
    [4.0, 2.0, 1.0]
    """

    audit_place: ClassVar[int] = 7
    tasks: ClassVar[tuple[str, ...]] = ("location",)
    default_of: ClassVar[tuple[str, ...]] = ("location",)
    location_code: ClassVar[int] = 100
    distance_power: ClassVar[float] = 1.0

    def norm(self, difference: np.ndarray) -> np.ndarray:
        """|v|_1 of each row of [..., p]."""
        return np.sum(np.abs(difference), axis=-1)

    def subgradient(self, difference: np.ndarray) -> np.ndarray:
        """sign(v), 0 at 0, [..., p]."""
        return np.sign(difference)

    def project_duals(self, dual: np.ndarray) -> tuple[np.ndarray, float]:
        """Entries clipped to [-1, 1], and the largest modulus before."""
        return np.clip(dual, -1.0, 1.0), float(np.max(np.abs(dual), initial=0.0))

    def envelope_dual(self, theta: np.ndarray, data: Data, width: float) -> np.ndarray:
        """The signs of theta - x, made linear within ``width`` of 0, [n, p]."""
        return np.clip((theta - to_dense(data.x)) / width, -1.0, 1.0)

    def cone_cost(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        """Add the L1 distances of theta to the rows (``PerRecord.cone_cost``)."""
        return add_l1_distances(program, theta, to_dense(data.x))

    def sign_mean(self, bias: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The mean loss of one coordinate over records 1 (chance (1 + bias) / 2) and -1."""
        away, back = np.abs(z - 1.0), np.abs(z + 1.0)
        return 0.5 * ((1.0 + bias) * away + (1.0 - bias) * back)

    def best_mean(self, bias: np.ndarray) -> np.ndarray:
        """The z where ``sign_mean`` is least: the likelier of 1 and -1."""
        return np.sign(bias)

    def mirrored_excess(self, rows: np.ndarray, to: np.ndarray) -> np.ndarray:
        """(|row - to| + |row + to|) / 2 - |row|, summed over coordinates, for each row."""
        moved = np.abs(rows - to) + np.abs(rows + to) - 2.0 * np.abs(rows)
        return 0.5 * np.sum(moved, axis=1)

    def cube_excess(self, half: float, off: np.ndarray) -> float:
        """off^2 / (2 h) up to the half side h, off - h / 2 beyond, in each coordinate."""
        return float(np.sum(np.where(off <= half, off * off / (2.0 * half), off - half / 2.0)))

    def lipschitz_norm(self, bounds: Bounds, norm: float) -> float:
        """sup |g|_norm over subgradients g [DJW12, Def. 2]: p, sqrt(p), 1 for norm 1, 2, inf."""
        if norm == 2:
            return math.sqrt(bounds.columns)
        return norm_factor(bounds.columns, norm) ** 2
