"""The cube [-a, a]^p (L-infinity ball)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.cone_program import ConeProgram, add_cube
from dperm_cli.problem.normal_cones import CubeNormals
from dperm_cli.problem.set_barriers import BoxBarrier
from dperm_cli.sets.base import Dimension, Radius
from dperm_cli.sets.shared.gaussian_widths import expected_norm
from dperm_cli.sets.shared.norm_ball import NormBall


@dataclass(frozen=True)
class Box(NormBall):
    """[-a, a]^p with the half-width a, which the user's key ``constraint.radius`` sets.

    ``radius`` is the Euclidean norm of a corner, as in every other set.

    >>> Box(1.0, 4).project(np.array([2.0, -3.0, 0.5, 0.0])).tolist()
    [1.0, -1.0, 0.5, 0.0]
    >>> Box(1.0, 4).radius
    2.0
    """

    audit_place: ClassVar[int] = 3
    code: ClassVar[int] = 2
    sign_symmetric: ClassVar[bool] = True
    thresholded: ClassVar[bool] = True
    norm_power: ClassVar[float] = math.inf
    barrier: ClassVar[Any] = BoxBarrier

    half_width: Radius
    p: Dimension

    @property
    def size(self) -> float:
        return self.half_width

    half_side = inner_cube = inner_radius = size  # the last is the distance of a facet

    @property
    def l1_radius(self) -> float:
        return self.half_width * self.p

    normals = property(CubeNormals)

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        add_cube(program, theta, self.size)

    @property
    def radius(self) -> float:
        """a sqrt(p)."""
        return self.half_width * float(np.sqrt(self.p))

    def width(self, rng: np.random.Generator | None = None, draws: int = 0) -> tuple[float, float]:
        """a E |g|_1 = a p sqrt(2 / pi)."""
        return self.half_width * expected_norm(self.p, 1.0), 0.0

    def norm(self, theta: np.ndarray) -> np.ndarray:
        return np.max(np.abs(theta), axis=-1)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Each coordinate of [..., p] clipped to [-a, a]."""
        return np.clip(np.asarray(theta, dtype=float), -self.half_width, self.half_width)

    def support(self, g: np.ndarray) -> np.ndarray:
        """a |g|_1 for each row of [..., p]."""
        return self.half_width * np.sum(np.abs(g), axis=-1)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """-a sign(g), with 0 in the coordinates where g is 0."""
        return -self.half_width * np.sign(g)
