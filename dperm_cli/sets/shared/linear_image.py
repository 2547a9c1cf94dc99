"""The image of a set under a matrix, where it is no ellipsoid and has no short list of vertices."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from dperm_cli.problem.cone_program import ConeProgram, add_equal
from dperm_cli.sets.base import ConvexSet, gauge_by_cuts, length, reached_diameter
from dperm_cli.sets.shared.ball_image import Quadric

_STEPS = 2_000
_FIRST = 60
_GOAL = 1e-13
_SIGNS = 12


class LinearImage(ConvexSet):
    """{M phi : phi in K} for M [p, k].

    ``radius``, ``diameter`` and ``outer_radius`` are upper bounds, from |M| and from the smallest
    box around (cubes of up to 12 sides: exact); ``inner_radius`` is a lower bound.
    """

    accuracy = 1e-10

    def __init__(self, matrix: np.ndarray, inner: Any) -> None:
        self.matrix, self.inner, self.p = matrix, inner, len(matrix)
        self._basis, self._values, self._rows = np.linalg.svd(matrix, full_matrices=False)
        kept = self._values > 1e-13 * max(float(self._values[0]), 1e-300)
        self._rank = int(np.sum(kept))

    size = property(attrgetter("inner.size"))
    symmetric = property(attrgetter("inner.symmetric"))

    @property
    def add_cone_constraints(self) -> Any:
        return None if self.inner.add_cone_constraints is None else self._add_cone_constraints

    def _add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        before = program.variables(self.inner.p, self.inner.radius)
        add_equal(program, theta, self.matrix, before)
        self.inner.add_cone_constraints(program, before)

    @cached_property
    def radius(self) -> float:
        return min(self._norm * self.inner.radius, self._about(np.zeros(self.p)))

    @property
    def diameter(self) -> float:
        if self.symmetric:
            return 2.0 * self.radius
        sides = self.support(np.eye(self.p)) + self.support(-np.eye(self.p))
        return min(self._norm * self.inner.diameter, float(length(sides)))

    least_diameter = cached_property(reached_diameter)  # type: ignore[assignment]

    @cached_property
    def inner_radius(self) -> float:
        """The inner radius of K times the least singular value of M along K."""
        along = self.matrix @ self.inner.directions()
        values = np.linalg.svd(along, compute_uv=False) if along.size else np.zeros(0)
        kept = values[values > 1e-13 * max(float(self._values[0]), 1e-300)]
        return float(np.min(kept)) * self.inner.inner_radius if kept.size else 0.0

    @cached_property
    def outer_radius(self) -> float:
        centre = self.centre()
        return min(self._norm * self.inner.outer_radius, self._about(centre))

    def centre(self) -> np.ndarray:
        """The image of K's centre."""
        return self.matrix @ self.inner.centre()

    def directions(self) -> np.ndarray:
        along = self.matrix @ self.inner.directions()
        basis, values, _ = np.linalg.svd(along, full_matrices=False)
        return basis[:, values > 1e-13 * max(float(self._values[0]), 1e-300)]

    def support(self, g: np.ndarray) -> np.ndarray:
        """K's support at M^T g."""
        return self.inner.support(np.asarray(g, dtype=float) @ self.matrix)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """The image of K's minimiser at M^T g."""
        return self.inner.lmo(np.asarray(g, dtype=float) @ self.matrix) @ self.matrix.T

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """K's gauge at the preimage where M is injective, otherwise by projections."""
        theta = np.asarray(theta, dtype=float)
        if self._rank < self.matrix.shape[1]:
            return gauge_by_cuts(self, theta)
        before = self._before(theta)
        off = length(theta - before @ self.matrix.T) > 1e-11 * length(theta)
        return np.where(off, np.inf, self.inner.gauge(before))

    def project(self, theta: np.ndarray) -> np.ndarray:
        """M phi for the phi in K that minimises |M phi - theta|, for each row of [..., p].

        A cube under an M that is not injective is solved by an active-set method; an injective M
        and polytopes by gradient steps with momentum, until a step moves the image less than
        rounding does, at the latest after 2000. For other sets a root of the dual's gradient
        follows a few steps, and ``error_bound`` says when to stop: at 1e-13 of the radius, or after
        2000 steps at what it then is.
        """
        theta = np.asarray(theta, dtype=float)
        rows = theta.reshape(-1, self.p)
        injective = self._rank == self.matrix.shape[1]
        if self.inner.half_side is not None and not injective:
            return (self._in_box(rows) @ self.matrix.T).reshape(theta.shape)
        if self.inner.polyhedral or injective:
            return (self._preimages(rows, _STEPS) @ self.matrix.T).reshape(theta.shape)
        return self._certify_projection(rows).reshape(theta.shape)

    def error_bound(self, theta: np.ndarray, near: np.ndarray) -> np.ndarray:
        """A bound on |near - projection of theta|, up to rounding, for rows [..., p] in the set.

        With v = theta - near it is the least of |v|, of the root of support(v) - <v, near>, and of
        |u - near| for the set's farthest point u along v: the projection's dual is
        support(v) + |v|^2 / 2 - <v, theta>, 1-strongly convex, with u - near as a subgradient.
        """
        normal = theta - near
        farthest = self.lmo(-normal)
        gap = np.sum(normal * (farthest - near), axis=-1)
        by_gap = np.sqrt(np.maximum(gap, 0.0) + 4e-16 * self.radius * length(normal))
        return np.minimum(np.minimum(length(normal), by_gap), length(farthest - near))

    def _certify_projection(self, rows: np.ndarray) -> np.ndarray:
        """A few steps, the dual for the rows that need more, all the steps for what is left."""
        found = self._preimages(rows, _FIRST) @ self.matrix.T
        for i in np.flatnonzero(self.error_bound(rows, found) > _GOAL * self.radius):
            found[i] = self._by_dual(rows[i], found[i])
        slow = self.error_bound(rows, found) > self.accuracy * self.radius
        if np.any(slow):
            again = self._preimages(rows[slow], _STEPS) @ self.matrix.T
            better = self.error_bound(rows[slow], again) < self.error_bound(rows[slow], found[slow])
            found[slow] = np.where(better[:, None], again, found[slow])
        return found

    def width(
        self, rng: np.random.Generator | None = None, draws: int = 4096
    ) -> tuple[float, float]:
        """K's width where M is orthogonal up to a factor, otherwise by simulation."""
        same = self._rank == self.p == self.matrix.shape[1]
        if same and self._values[-1] >= self._values[0] * (1.0 - 1e-14):
            value, error = self.inner.width(rng, draws)
            return self._norm * value, self._norm * error
        return super().width(rng, draws)

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """M times the map of K, made square; the smaller ball of M where M is not injective."""
        root, shift = self.inner.isotropic()
        if self.matrix.shape[1] == self._rank and self.inner.directions().shape[1] == self._rank:
            return Quadric.of(self.matrix @ root).isotropic()[0], self.matrix @ shift
        return super().isotropic()

    @property
    def _norm(self) -> float:
        return float(self._values[0])

    def _before(self, theta: np.ndarray) -> np.ndarray:
        r = self._rank
        return (theta @ self._basis[:, :r] / self._values[:r]) @ self._rows[:r]

    def _about(self, point: np.ndarray) -> float:
        """A bound on the distance from a point: exact for few signs, else from the box around."""
        k = self.matrix.shape[1]
        if self.inner.half_side is not None and k <= _SIGNS:
            signs = 1.0 - 2.0 * (np.arange(2**k)[:, None] >> np.arange(k) & 1)
            corners = self.inner.size * signs @ self.matrix.T
            return float(np.max(length(corners - point)))
        unit = np.eye(self.p)
        high, low = self.support(unit) - point, self.support(-unit) + point
        return float(length(np.maximum(high, low)))

    def _in_box(self, rows: np.ndarray) -> np.ndarray:
        """Exact preimages for a cube, row by row: least squares within bounds."""
        from scipy import optimize

        half = self.inner.size
        bounds = (-half, half)
        solve: Any = optimize.lsq_linear  # a type would be looked for in scipy's source, at length
        solved = [solve(self.matrix, row, bounds, "bvls", tol=1e-15).x for row in rows]
        return np.array(solved).reshape(len(rows), -1)

    def _by_dual(self, row: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The farthest point along the v where the dual's gradient vanishes, if that is nearer."""
        from scipy import optimize

        find_root: Any = optimize.root  # as above
        unit = self.radius

        def gradient(v: np.ndarray) -> np.ndarray:
            return v + (self.lmo(-v) - row) / unit

        solved = find_root(gradient, (row - near) / unit, options={"xtol": 1e-15, "maxfev": 400})
        other = self.lmo(-solved.x)
        bounds = self.error_bound(row, np.array([near, other]))
        return other if bounds[1] < bounds[0] else near

    def _preimages(self, rows: np.ndarray, steps: int) -> np.ndarray:
        inner, matrix, step = self.inner, self.matrix, 1.0 / self._norm**2
        gram, pull = matrix.T @ matrix * step, rows @ matrix * step
        phi = ahead = inner.project(self._before(rows))
        momentum = np.ones((len(rows), 1))
        for _ in range(steps):
            moved = inner.project(ahead - ahead @ gram + pull)
            change = moved - phi
            uphill = np.sum((ahead - moved) * change, axis=1, keepdims=True) > 0
            momentum = np.where(uphill, 1.0, momentum)
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            drift = np.max(np.abs((moved - ahead) @ matrix.T), initial=0.0)
            ahead = moved + (momentum - 1.0) / following * change
            ahead = np.where(uphill, moved, ahead)
            phi, momentum = moved, following
            if drift <= 2e-15 * self.radius:
                break
        return phi
