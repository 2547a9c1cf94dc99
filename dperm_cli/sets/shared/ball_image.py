"""The image of a Euclidean ball under a matrix: an ellipsoid, which may be flat."""

from __future__ import annotations

import numpy as np

from dperm_cli.problem.cone_program import ConeProgram, add_ball, add_equal
from dperm_cli.sets.base import ConvexSet, length, unit
from dperm_cli.sets.shared.gaussian_widths import expected_root
from dperm_cli.sets.shared.roots import falling_root

_FLAT = 1e-13


class Quadric(ConvexSet):
    """{A phi : |phi| <= 1} for A [p, k].

    It is stored as semi-axes [r] and orthonormal directions [p, r]. Semi-axes below 1e-13 of the
    largest count as zero. A set without semi-axes is the origin.
    """

    def __init__(self, axes: np.ndarray, directions: np.ndarray | None = None) -> None:
        """``directions`` None: the coordinate axes."""
        self.axes, self._basis = axes, directions
        self.p = len(axes) if directions is None else len(directions)

    @classmethod
    def of(cls, matrix: np.ndarray) -> Quadric:
        """The image of the unit ball under ``matrix``."""
        basis, axes, _ = np.linalg.svd(matrix, full_matrices=False)
        kept = axes > _FLAT * max(float(axes[0]), 1e-300)
        return cls(axes[kept], basis[:, kept])

    @property
    def radius(self) -> float:
        """The largest semi-axis."""
        return float(np.max(self.axes, initial=0.0))

    @property
    def inner_radius(self) -> float:
        """The smallest semi-axis."""
        return float(np.min(self.axes)) if self.axes.size else 0.0

    def directions(self) -> np.ndarray:
        return np.eye(self.p) if self._basis is None else self._basis

    def root(self) -> np.ndarray:
        return self.directions() * self.axes

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        """theta = A u with |u| <= 1."""
        root = self.root()
        unit_ball = program.variables(root.shape[1])
        add_equal(program, theta, root, unit_ball)
        add_ball(program, unit_ball, 1.0)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """a_j^2 x_j / (a_j^2 + m) along each axis, with the m that meets the boundary."""
        theta = np.asarray(theta, dtype=float)
        along = self._along(theta)
        outside = length(along / self.axes) > 1.0
        if self._basis is None and not np.any(outside):
            return theta.copy()
        along[outside] = self._to_surface(along[outside])
        return along if self._basis is None else along @ self._basis.T

    def support(self, g: np.ndarray) -> np.ndarray:
        """|a * g| along the axes."""
        return length(self.axes * self._along(g))

    def lmo(self, g: np.ndarray) -> np.ndarray:
        best = -self.axes * unit(self.axes * self._along(g))
        return best if self._basis is None else best @ self._basis.T

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """|theta / a| along the axes; inf off the span of a flat set."""
        theta = np.asarray(theta, dtype=float)
        along = self._along(theta)
        found = length(along / self.axes)
        if self._basis is None or len(self.axes) == self.p:
            return found
        off = length(theta - along @ self._basis.T) > 1e-12 * length(theta)
        return np.where(off, np.inf, found)

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether each row of [..., p] is in (1 + tolerance) C; false for nan.

        A flat set is contained in the points within tolerance * radius of it.
        """
        if self._basis is None or len(self.axes) == self.p:
            return self.gauge(theta) <= 1.0 + tolerance
        return super().contains(theta, tolerance)

    def width(self, rng: np.random.Generator | None = None, draws: int = 0) -> tuple[float, float]:
        """E |a * g|, by a one-dimensional integral."""
        return (expected_root(self.axes) if self.axes.size else 0.0), 0.0

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """The symmetric square root: the set becomes the unit ball of its span."""
        if self._basis is None:
            return np.diag(self.axes), np.zeros(self.p)
        filler = float(np.exp(np.mean(np.log(self.axes)))) if self.axes.size else 1.0
        root = filler * np.eye(self.p)
        root += (self._basis * (self.axes - filler)) @ self._basis.T
        return root, np.zeros(self.p)

    def _along(self, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=float)
        return rows.copy() if self._basis is None else rows @ self._basis

    def _to_surface(self, x: np.ndarray) -> np.ndarray:
        """Project rows [m, r] outside the set to its surface.

        The multiplier is between |a x| - a^2 for the largest and for the smallest axis.
        """
        if not x.size:
            return x
        unity = self.axes / self.radius
        x = x / self.radius
        reach, squares = length(unity * x), unity**2

        def excess(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            below = squares + m[:, None]
            part = unity * x / below
            norm = length(part)
            part = part / norm[:, None]
            return norm - 1.0, -norm * np.sum(part**2 / below, axis=1)

        low = np.maximum(reach - 1.0, 0.0)
        m = falling_root(excess, low, np.maximum(reach - np.min(squares), low))
        found = squares * x / (squares + m[:, None])
        return self.radius * found / np.maximum(length(found / unity), 1.0)[:, None]
