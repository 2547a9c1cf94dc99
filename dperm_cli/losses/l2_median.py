"""Euclidean (geometric) median loss: the L2 distance to a record."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.unit_rows import find_unit_rows
from dperm_cli.losses.base import norm_factor, to_dense
from dperm_cli.losses.shared.median_loss import Median
from dperm_cli.problem.cone_program import ConeProgram, ToDual, add_distances
from dperm_cli.problem.data import Bounds, Data


@dataclass(frozen=True)
class L2Median(Median):
    """l(theta; x) = |theta - x|_2, the Euclidean 1-median [BST14, Sec. 1]: 1-Lipschitz.

    >>> L2Median().subgradient(np.array([[3.0, 4.0], [0.0, 0.0]])).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    audit_place: ClassVar[int] = 13
    tasks: ClassVar[tuple[str, ...]] = ("location",)
    location_code: ClassVar[int] = 101
    distance_power: ClassVar[float] = 2.0

    def norm(self, difference: np.ndarray) -> np.ndarray:
        """|v|_2 of each row of [..., p]."""
        return np.linalg.norm(difference, axis=-1)

    def subgradient(self, difference: np.ndarray) -> np.ndarray:
        """v / |v|, 0 at 0, [..., p]."""
        return find_unit_rows(difference)

    def project_duals(self, dual: np.ndarray) -> tuple[np.ndarray, float]:
        """Rows with those longer than 1 shortened to 1, and the largest length before."""
        length = np.linalg.norm(dual, axis=-1, keepdims=True)
        return dual / np.maximum(length, 1.0), float(np.max(length, initial=0.0))

    def envelope_dual(self, theta: np.ndarray, data: Data, width: float) -> np.ndarray:
        """The gradients [n, p] of |v|, rounded off within ``width`` of 0, at v = theta - x."""
        steps = theta - to_dense(data.x)
        return steps / np.maximum(np.linalg.norm(steps, axis=1, keepdims=True), width)

    def cone_cost(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        """Add the L2 distances of theta to the rows (``PerRecord.cone_cost``)."""
        return add_distances(program, theta, to_dense(data.x))

    def mirrored_excess(self, rows: np.ndarray, to: np.ndarray) -> np.ndarray:
        """(|row - to| + |row + to|) / 2 - |row|, for each row."""
        far, near = np.linalg.norm(rows - to, axis=1), np.linalg.norm(rows + to, axis=1)
        return 0.5 * (far + near) - np.linalg.norm(rows, axis=1)

    def lipschitz_norm(self, bounds: Bounds, norm: float) -> float:
        """sup |g|_norm over subgradients g [DJW12, Def. 2]: sqrt(p), 1, 1 for norm 1, 2, inf."""
        return norm_factor(bounds.columns, norm)
