"""The intersection of half-spaces."""

from __future__ import annotations

from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.problem.cone_program import ConeProgram
from dperm_cli.sets.base import ConvexSet, by_rows, length, reached_diameter
from dperm_cli.sets.shared import rounding_ellipsoids
from dperm_cli.sets.shared.vertex_hull import FACET_DIMENSION, Hull, solve_nonnegative

_EXACT = 1e-9
_BEYOND = 2.0**60
_CORNERS = 20_000


class HalfSpaces(ConvexSet):
    """{theta : matrix theta <= offset}, bounded and not empty; the centre is that of a largest
    ball inside (within the affine hull).

    In up to 6 dimensions the corners are listed and the sizes exact; above that ``radius``,
    ``diameter`` and ``outer_radius`` are those of the smallest box around, which are upper bounds.
    """

    matrix: np.ndarray
    offset: np.ndarray
    _middle: np.ndarray
    _inner: float
    _basis: np.ndarray
    _free: np.ndarray

    def __init__(self, matrix: np.ndarray, offset: np.ndarray, key: str) -> None:
        """InputError names ``key`` for a set that is empty or unbounded."""
        norms = length(matrix)
        if np.any((norms == 0) & (offset < 0)):
            raise InputError(key, "<half-spaces>", "have no point in common")
        kept = norms > 0
        self.matrix = matrix[kept] / norms[kept, None]
        self.offset = offset[kept] / norms[kept]
        self.p = matrix.shape[1]
        self._check(key)

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        program.add("nonnegative", [(-self.matrix, theta)], self.offset)

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether every half-space comes with its mirror image."""
        scale = max(float(np.max(np.abs(self.offset))), 1e-300)
        rows = np.round(np.column_stack([self.matrix, self.offset / scale]), 12) + 0.0
        mirror = rows.copy()
        mirror[:, :-1] = -mirror[:, :-1] + 0.0
        return {row.tobytes() for row in rows} == {row.tobytes() for row in mirror}

    @cached_property
    def radius(self) -> float:
        if self._corners is not None:
            return self._corners.radius
        low, high = self._box
        return float(length(np.maximum(np.abs(low), np.abs(high))))

    @cached_property
    def least_diameter(self) -> float:  # type: ignore[override]
        return self.diameter if self._corners is not None else reached_diameter(self)

    @cached_property
    def diameter(self) -> float:
        if self._corners is not None:
            return self._corners.diameter
        return float(length(self._box[1] - self._box[0]))

    @cached_property
    def outer_radius(self) -> float:
        if self._corners is not None:
            return float(np.max(length(self._corners.points - self._middle)))
        low, high = self._box
        return float(length(np.maximum(high - self._middle, self._middle - low)))

    @property
    def inner_radius(self) -> float:
        return self._inner

    def centre(self) -> np.ndarray:
        return self._middle.copy()

    def directions(self) -> np.ndarray:
        return self._basis

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The nearest point, by an active-set method, for each row of [..., p]."""
        return by_rows(self._nearest, theta)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """A corner of smallest <g, theta>, by linear programming."""
        if self._corners is not None:
            return self._corners.lmo(g)
        return by_rows(self._lowest, g)

    def support(self, g: np.ndarray) -> np.ndarray:
        """The largest <g, theta>."""
        if self._corners is not None:
            return self._corners.support(g)
        return super().support(g)

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """The least t >= 0 with matrix theta <= t offset, inf where there is none."""
        theta = np.asarray(theta, dtype=float)
        heights = theta @ self.matrix.T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = heights / self.offset
        low = np.max(np.where(self.offset > 0, ratios, 0.0), axis=-1)
        high = np.min(np.where(self.offset < 0, ratios, np.inf), axis=-1)
        slack = 1e-12 * length(theta)
        flat = np.any((self.offset == 0) & (heights > slack[..., None]), axis=-1)
        low = np.maximum(low, 0.0)
        return np.where(flat | (low > high * (1.0 + 1e-12)), np.inf, low)

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether each row of [..., p] is within tolerance * radius of every half-space."""
        over = np.asarray(theta, dtype=float) @ self.matrix.T - self.offset
        return np.all(over <= (tolerance + 1e-14) * self.radius, axis=-1)

    def vertices(self) -> np.ndarray | None:
        return None if self._corners is None else self._corners.points

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest ellipsoid inside."""
        basis, middle = self._basis, self._middle
        if basis.shape[1] == 0:
            return np.eye(self.p), middle.copy()
        rows, free = self.matrix @ basis, self._free
        root, shift = rounding_ellipsoids.fit_inscribed_ellipsoid(
            rows[free], (self.offset - self.matrix @ middle)[free], np.zeros(basis.shape[1])
        )
        return rounding_ellipsoids.embed(root, basis), middle + basis @ shift

    def _nearest(self, x: np.ndarray) -> np.ndarray:
        # From far away only the leading digits of the distance are right: the point found and a
        # nearer one on the way to x are then the start of another search, with the same answer.
        # Beyond 2^60 times the set a double holds nothing of it: such a point is moved in first.
        x = x * min(1.0, _BEYOND * self._scale / max(float(length(x)), 1e-300))
        found, far = self._feasible(x), 16.0 * self._scale
        for _ in range(4):
            distance = float(length(x - found))
            if distance <= far:
                break
            before, found = found, self._feasible(found + far / distance * (x - found))
            if np.max(np.abs(found - before)) <= 1e-15 * self._scale:
                break
        return found

    def _feasible(self, x: np.ndarray) -> np.ndarray:
        for _ in range(3):
            over = self.matrix @ x - self.offset
            if np.max(over) <= 2e-15 * self._scale:
                break
            x = self._step(x, over)
        return x

    def _step(self, x: np.ndarray, over: np.ndarray) -> np.ndarray:
        """The multipliers w >= 0 of min |x - theta|^2, as least squares [Lawson and Hanson].

        For the scale c, min |matrix^T w|^2 + (over w / c - 1)^2 has them up to a factor. On the
        half-spaces they name, the point is then solved for directly.
        """
        scale = max(float(np.max(over)), 1e-300)
        for _ in range(2):
            system = np.vstack([self.matrix.T, over / scale])
            weights = solve_nonnegative(system, np.append(np.zeros(self.p), 1.0))
            rest = 1.0 - weights @ over / scale
            if rest <= 0:
                break
            move = scale * (weights @ self.matrix) / rest
            if not 0.01 < length(move) / scale < 100:
                scale = max(float(length(move)), 1e-300)
                continue
            break
        tight = weights > 0
        exact, *_ = np.linalg.lstsq(self.matrix[tight], over[tight], rcond=1e-13)
        return x - exact

    def _lowest(self, g: np.ndarray) -> np.ndarray:
        scale = float(np.max(np.abs(g)))
        if scale == 0:
            return self._middle.copy()
        found = self._program(g / scale)
        tight = self.matrix @ found.x - self.offset > -_EXACT * self._scale
        if not np.any(tight):
            return found.x
        # the corner itself, where the tight half-spaces fix one
        exact, *_ = np.linalg.lstsq(
            self.matrix[tight], self.offset[tight] - self.matrix[tight] @ found.x, rcond=1e-12
        )
        moved = found.x + exact
        fits = np.max(self.matrix @ moved - self.offset) <= 1e-14 * self._scale
        return moved if fits else found.x

    def _check(self, key: str) -> None:
        """Find the centre, or say that there is none; then the hull, then bounds."""
        ball = self._largest_ball(np.ones(len(self.offset)))
        if ball.status == 2 or (ball.status == 0 and ball.x[-1] < 0):
            raise InputError(key, "<half-spaces>", "have no point in common")
        if ball.status != 0 or not self._is_bounded():
            raise InputError(key, "<half-spaces>", "leave the set unbounded")
        self._middle, self._inner = ball.x[:-1], float(max(ball.x[-1], 0.0))
        self._basis, self._free = np.eye(self.p), np.ones(len(self.offset), dtype=bool)
        if self._inner <= _EXACT * self._scale:
            self._find_hull()
        if self.symmetric:
            self._middle = np.zeros(self.p)
        room = self.offset - self.matrix @ self._middle
        reach = length(self.matrix @ self._basis)[self._free] if self._free.any() else np.ones(1)
        if self._free.any():
            self._inner = float(max(np.min(room[self._free] / reach), 0.0))
        else:
            self._inner = 0.0

    def _find_hull(self) -> None:
        """Half-spaces that hold with equality on the whole set, and the largest ball within."""
        least = np.array([row @ self._program(row).x for row in self.matrix])
        flat = self.offset - least <= _EXACT * self._scale
        _, values, rows = np.linalg.svd(self.matrix[flat], full_matrices=True)
        rank = int(np.sum(values > 1e-10))
        self._basis = rows[rank:].T
        reach = length(self.matrix @ self._basis) if rank < self.p else np.zeros(len(flat))
        self._free = ~flat & (reach > 1e-10)
        exact, *_ = np.linalg.lstsq(
            self.matrix[flat], self.offset[flat] - self.matrix[flat] @ self._middle, rcond=1e-12
        )
        self._middle = self._middle + exact
        if self._free.any():
            ball = self._largest_ball(np.where(self._free, reach, 0.0), flat)
            if ball.status == 0:
                self._middle = ball.x[:-1]

    def _largest_ball(self, reach: np.ndarray, flat: np.ndarray | None = None) -> Any:
        """The linear programme for (centre, radius); a ball of negative radius means no point."""
        from scipy import optimize

        linprog: Any = optimize.linprog  # its type would be looked for in scipy's source, at length
        flat = np.zeros(len(reach), dtype=bool) if flat is None else flat
        rows, free = np.column_stack([self.matrix, reach]), ~flat
        found = linprog(
            np.append(np.zeros(self.p), -1.0),
            A_ub=rows[free], b_ub=self.offset[free] / self._scale,
            A_eq=rows[flat], b_eq=self.offset[flat] / self._scale,
            bounds=(None, None), method="highs",
        )  # fmt: skip
        if found.x is not None:
            found.x = found.x * self._scale
        return found

    @cached_property
    def _scale(self) -> float:
        return max(float(np.max(np.abs(self.offset), initial=0.0)), 1e-300)

    def _is_bounded(self) -> bool:
        """Full column rank, and positive weights under which the normals cancel."""
        from scipy import optimize

        linprog: Any = optimize.linprog  # its type would be looked for in scipy's source, at length
        if np.linalg.matrix_rank(self.matrix) < self.p:
            return False
        found = linprog(
            np.zeros(len(self.offset)), A_eq=self.matrix.T, b_eq=np.zeros(self.p),
            bounds=(1.0, None), method="highs",
        )  # fmt: skip
        return found.status == 0

    def _program(self, g: np.ndarray) -> Any:
        """The linear programme min <g, theta>."""
        from scipy import optimize

        linprog: Any = optimize.linprog  # its type would be looked for in scipy's source, at length
        found = linprog(g, A_ub=self.matrix, b_ub=self.offset / self._scale,
                        bounds=(None, None), method="highs")  # fmt: skip
        if found.x is None:
            raise ArithmeticError(f"linear programme: {found.message}")
        found.x = found.x * self._scale
        return found

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        unit = np.eye(self.p)
        low = np.diag(self.lmo(unit))
        return low, np.diag(self.lmo(-unit))

    @cached_property
    def _corners(self) -> Hull | None:
        """The corners, where the dimension is small enough to list them."""
        d, count = self._basis.shape[1], int(np.sum(self._free))
        if d == 0:
            return Hull(self._middle[None])
        if d > FACET_DIMENSION or comb(count, d) > _CORNERS * 50:
            return None
        rows = self.matrix[self._free] @ self._basis
        room = (self.offset - self.matrix @ self._middle)[self._free]
        if d == 1:
            ends = room / rows[:, 0]
            span = [np.max(ends[rows[:, 0] < 0]), np.min(ends[rows[:, 0] > 0])]
            return Hull(self._middle + np.array(span)[:, None] @ self._basis.T)
        if self._inner <= 1e-7 * self._scale:
            return None
        from scipy.spatial import ConvexHull

        # the facets of the polar body are the corners of this one
        planes = ConvexHull(rows / room[:, None]).equations
        corners = -planes[:, :-1] / planes[:, -1:]
        corners = np.unique(np.round(corners / self._scale, 13), axis=0) * self._scale
        return Hull(self._middle + corners @ self._basis.T)
