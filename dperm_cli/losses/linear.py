"""Linear loss."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.problem.cone_program import ConeProgram, ToDual
from dperm_cli.problem.data import Data, Minorant
from dperm_cli.problem.row_products import add_rows


@dataclass(frozen=True)
class Linear(Glm):
    """l(z; y) = -y z, that is -<y x, theta>: the loss of the lower bounds [BST14, Sec. 5].

    >>> Linear().value(np.array([-5.0, 2.0]), 1.0).tolist()
    [5.0, -2.0]
    >>> Linear().slope(np.array([-5.0, 2.0]), 1.0).tolist()
    [-1.0, -1.0]
    """

    audit_place: ClassVar[int] = 10
    tasks: ClassVar[tuple[str, ...]] = ("binary", "regression")
    code: ClassVar[int] = 4
    quadratic: ClassVar[bool] = True
    affine_margin: ClassVar[float] = math.inf

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss at margins [..., n] for labels or targets [n]."""
        return -y * z

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-y, [..., n]."""
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y))) - y

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """0, [..., n]."""
        return np.zeros(np.broadcast_shapes(np.shape(z), np.shape(y)))

    def slope_bound(self, margin: float, target: float) -> float:
        """target."""
        return float(target)

    def span(self, margin: float, target: float) -> float:
        """2 margin target."""
        return 2.0 * margin * target

    @property
    def smoothness(self) -> float:
        """0."""
        return 0.0

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l*(a) = 0 at a = -y, +inf elsewhere."""
        return np.where(np.asarray(a) == -np.asarray(y), 0.0, np.inf)

    def cone_cost(self, program: ConeProgram, data: Data, theta: np.ndarray) -> ToDual:
        """Its slopes, which are the dual point."""
        slopes = self.slope(np.zeros(data.n), data.y)
        program.linear(theta, add_rows(data.x, slopes))
        return lambda multipliers: slopes

    def minorant(self, dual: np.ndarray, data: Data) -> Minorant:
        """The loss itself, whatever the dual point [n]: it is affine."""
        slope = add_rows(data.x, -data.y)
        return Minorant(slope, 0.0, data.row_bound * math.fsum(np.abs(data.y)), 0.0)
