"""The Euclidean ball."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.cone_program import ConeProgram, add_ball
from dperm_cli.problem.normal_cones import SphereNormals
from dperm_cli.problem.set_barriers import L2Barrier
from dperm_cli.sets.base import BallRadius, Balls, OfRadius, length, unit
from dperm_cli.sets.shared.gaussian_widths import expected_length
from dperm_cli.sets.shared.norm_ball import NormBall


@dataclass(frozen=True)
class L2Ball(OfRadius, NormBall):
    """{theta in R^p : |theta|_2 <= radius}.

    >>> L2Ball(1.0, 2).project(np.array([[3.0, 4.0], [0.1, 0.2]])).round(3).tolist()
    [[0.6, 0.8], [0.1, 0.2]]
    """

    radius: BallRadius

    audit_place: ClassVar[int] = 1
    code: ClassVar[int] = 0
    sign_symmetric: ClassVar[bool] = True
    thresholded: ClassVar[bool] = True
    is_ball: ClassVar[bool] = True
    norm_power: ClassVar[float] = 2.0
    barrier: ClassVar[Any] = L2Barrier

    normals = property(SphereNormals)

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        add_ball(program, theta, self.size)

    @staticmethod
    def radius_around(reach: float, p: int) -> float:
        """The reach itself."""
        return reach

    @property
    def inner_cube(self) -> float:
        return self.p**-0.5 * self.size

    @property
    def l1_radius(self) -> float:
        return self.size * math.sqrt(self.p)

    def balls(self) -> Balls:
        return Balls(np.zeros((1, self.p)), np.array([float(self.radius)]))

    @property
    def inner_radius(self) -> float:
        """The ball itself."""
        return self.radius

    def root(self) -> np.ndarray:
        return self.radius * np.eye(self.p)

    def width(self, rng: np.random.Generator | None = None, draws: int = 0) -> tuple[float, float]:
        """radius E |g|_2, exactly."""
        return self.radius * expected_length(self.p), 0.0

    def norm(self, theta: np.ndarray) -> np.ndarray:
        return length(theta)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """theta min(1, radius / |theta|) for each row of [..., p]."""
        theta = np.asarray(theta, dtype=float)
        norm = self.norm(theta)[..., None]
        return np.where(norm > self.radius, self.radius * unit(theta), theta)

    def support(self, g: np.ndarray) -> np.ndarray:
        """radius |g|_2 for each row of [..., p]."""
        return self.radius * length(g)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """-radius g / |g|, and the origin where g = 0."""
        g = np.asarray(g, dtype=float)
        return -self.radius * unit(g)
