"""The L1 ball (cross-polytope)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.cone_program import ConeProgram, add_l1_ball
from dperm_cli.problem.normal_cones import CrossNormals
from dperm_cli.problem.set_barriers import L1Barrier
from dperm_cli.sets.base import AxisHull, BallRadius, OfRadius
from dperm_cli.sets.shared.gaussian_widths import expected_norm
from dperm_cli.sets.shared.norm_ball import NormBall


@dataclass(frozen=True)
class L1Ball(OfRadius, NormBall):
    """{theta in R^p : |theta|_1 <= radius}; its vertices are +-radius e_j.

    >>> L1Ball(1.0, 3).project(np.array([3.0, 2.5, 0.1])).round(3).tolist()
    [0.75, 0.25, 0.0]
    """

    radius: BallRadius

    audit_place: ClassVar[int] = 2
    code: ClassVar[int] = 1
    sign_symmetric: ClassVar[bool] = True
    thresholded: ClassVar[bool] = True
    norm_power: ClassVar[float] = 1.0
    barrier: ClassVar[Any] = L1Barrier

    @staticmethod
    def radius_around(reach: float, p: int) -> float:
        """sqrt(p) times the reach."""
        return math.sqrt(p) * reach

    @property
    def axis_hull(self) -> AxisHull:
        return AxisHull(self.radius, signed=True)

    @property
    def inner_cube(self) -> float:
        return 1.0 / self.p * self.size

    @property
    def l1_radius(self) -> float:
        return self.radius

    normals = property(CrossNormals)

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        add_l1_ball(program, theta, self.size)

    @property
    def inner_radius(self) -> float:
        """radius / sqrt(p), the distance of a facet."""
        return self.radius / math.sqrt(self.p)

    def vertices(self) -> np.ndarray:
        """The 2 p points +-radius e_j."""
        corners = self.radius * np.eye(self.p)
        return np.vstack([corners, -corners])

    def width(self, rng: np.random.Generator | None = None, draws: int = 0) -> tuple[float, float]:
        """radius E max |g_j|, exactly."""
        return self.radius * expected_norm(self.p, math.inf), 0.0

    def norm(self, theta: np.ndarray) -> np.ndarray:
        return np.sum(np.abs(theta), axis=-1)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Soft thresholding of each row of [..., p] at the level that makes its norm radius."""
        theta = np.asarray(theta, dtype=float)
        outside = self.norm(theta) > self.radius
        if not np.any(outside):
            return theta.copy()
        return np.where(outside[..., None], self._to_sphere(theta), theta)

    def support(self, g: np.ndarray) -> np.ndarray:
        """radius |g|_inf for each row of [..., p]."""
        return self.radius * np.max(np.abs(g), axis=-1)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """The vertex -radius sign(g_j) e_j at the first largest |g_j|; the origin where g = 0."""
        g = np.asarray(g, dtype=float)
        best = np.argmax(np.abs(g), axis=-1)[..., None]
        vertex = np.zeros(g.shape)
        np.put_along_axis(vertex, best, -self.radius * np.sign(np.take_along_axis(g, best, -1)), -1)
        return vertex

    def _to_sphere(self, theta: np.ndarray) -> np.ndarray:
        """The projection of rows outside the ball.

        The threshold is within ``radius`` below the largest modulus. It is computed relative to
        that, so that no digits are lost however far outside the row is.
        """
        modulus = np.abs(theta)
        depth = np.maximum(modulus - np.max(modulus, axis=-1, keepdims=True), -self.radius)
        sorted_depth = -np.sort(-depth, axis=-1)
        count = np.arange(1, self.p + 1)
        level = (np.cumsum(sorted_depth, axis=-1) - self.radius) / count
        active = np.sum(sorted_depth > level, axis=-1, keepdims=True)
        threshold = np.take_along_axis(level, active - 1, axis=-1)
        shrunk = np.maximum(depth - threshold, 0.0)
        total = np.sum(shrunk, axis=-1, keepdims=True)
        return np.sign(theta) * shrunk * (self.radius / np.maximum(total, self.radius))
