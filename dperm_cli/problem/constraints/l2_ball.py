"""Euclidean ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.problem.constraints._norm_ball import NormBall


@dataclass(frozen=True)
class L2Ball(NormBall):
    """{theta in R^p : |theta|_2 <= radius}."""

    name: ClassVar[str] = "l2_ball"
    code: ClassVar[int] = 0

    radius: float
    p: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.positive("constraint.radius", self.radius))
        object.__setattr__(self, "p", checks.integer("p", self.p, low=1))

    @property
    def size(self) -> float:
        return self.radius

    @property
    def diameter(self) -> float:
        """2 radius."""
        return 2.0 * self.radius

    def norm(self, theta: np.ndarray) -> np.ndarray:
        return np.linalg.norm(theta, axis=-1)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """theta min(1, radius / |theta|) for each row of [..., p]."""
        theta = np.asarray(theta, dtype=float)
        length = self.norm(theta)[..., None]
        return theta * (self.radius / np.maximum(length, self.radius))

    def support(self, g: np.ndarray) -> np.ndarray:
        """radius |g|_2 for each row of [..., p]."""
        return self.radius * np.linalg.norm(g, axis=-1)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """-radius g / |g|, and the origin where g = 0."""
        g = np.asarray(g, dtype=float)
        length = self.norm(g)[..., None]
        return -g * (self.radius / np.where(length > 0, length, 1.0))
