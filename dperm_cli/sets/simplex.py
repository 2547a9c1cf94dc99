"""Scaled probability simplex."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.cone_program import ConeProgram, add_shares
from dperm_cli.problem.normal_cones import SimplexNormals
from dperm_cli.sets.base import AxisHull, OfRadius
from dperm_cli.sets.shared.gaussian_widths import expected_max


@dataclass(frozen=True)
class Simplex(OfRadius):
    """{theta in R^p : theta >= 0, sum of theta = radius}; its vertices are radius e_j.

    It has dimension p - 1: for p = 1 it is a point, with diameter 0.

    >>> Simplex(1.0, 3).project(np.array([0.9, 0.5, -2.0])).round(3).tolist()
    [0.7, 0.3, 0.0]
    """

    audit_place: ClassVar[int] = 4
    symmetric: ClassVar[bool] = False

    @property
    def axis_hull(self) -> AxisHull:
        return AxisHull(self.radius, signed=False)

    normals = property(SimplexNormals)

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        add_shares(program, theta, self.size)

    @property
    def diameter(self) -> float:
        """radius sqrt(2), between two vertices."""
        return self.radius * math.sqrt(2.0) if self.p > 1 else 0.0

    @property
    def inner_radius(self) -> float:
        """radius / sqrt(p (p - 1)), from the barycentre to a facet; 0 for p = 1."""
        return self.radius / math.sqrt(self.p * (self.p - 1)) if self.p > 1 else 0.0

    @property
    def outer_radius(self) -> float:
        """radius sqrt(1 - 1/p), from the barycentre to a vertex."""
        return self.radius * math.sqrt((self.p - 1) / self.p)

    def centre(self) -> np.ndarray:
        """The barycentre, [p]."""
        return np.full(self.p, self.radius / self.p)

    def directions(self) -> np.ndarray:
        """An orthonormal basis of {v : sum of v = 0}, [p, p - 1]: the columns of a reflection."""
        axis = np.full(self.p, 1.0 / math.sqrt(self.p))
        axis[0] += 1.0
        return (np.eye(self.p) - np.outer(axis, axis) / axis[0])[:, 1:]

    def vertices(self) -> np.ndarray:
        """The p points radius e_j."""
        return self.radius * np.eye(self.p)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """max(theta - level, 0) for each row of [..., p], the level making its sum radius.

        Coordinates are measured from the largest one: the level lies within ``radius`` below it.
        """
        theta = np.asarray(theta, dtype=float)
        depth = np.maximum(theta - np.max(theta, axis=-1, keepdims=True), -self.radius)
        falling = -np.sort(-depth, axis=-1)
        level = (np.cumsum(falling, axis=-1) - self.radius) / np.arange(1, self.p + 1)
        active = np.maximum(np.sum(falling > level, axis=-1, keepdims=True), 1)
        kept = np.maximum(depth - np.take_along_axis(level, active - 1, axis=-1), 0.0)
        return kept * (self.radius / np.sum(kept, axis=-1, keepdims=True))

    def support(self, g: np.ndarray) -> np.ndarray:
        """radius max_j g_j for each row of [..., p]."""
        return self.radius * np.max(g, axis=-1)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """The vertex radius e_j at the first smallest g_j."""
        g = np.asarray(g, dtype=float)
        vertex = np.zeros(g.shape)
        np.put_along_axis(vertex, np.argmin(g, axis=-1)[..., None], self.radius, -1)
        return vertex

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """sum of theta / radius where theta >= 0, otherwise inf."""
        theta = np.asarray(theta, dtype=float)
        total = np.sum(theta, axis=-1) / self.radius
        return np.where(np.any(theta < 0, axis=-1), np.inf, total)

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether sum and signs of each row of [..., p] hold up to tolerance * radius."""
        theta, slack = np.asarray(theta, dtype=float), tolerance * self.radius
        slack += 2e-16 * self.p * self.radius
        near = np.abs(np.sum(theta, axis=-1) - self.radius) <= slack
        return near & np.all(theta >= -slack, axis=-1)

    def width(self, rng: np.random.Generator | None = None, draws: int = 0) -> tuple[float, float]:
        """radius E max g_j, exactly."""
        return self.radius * expected_max(self.p), 0.0
