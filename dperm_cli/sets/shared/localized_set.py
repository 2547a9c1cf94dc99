"""A set cut down to a ball about one of its points, as localization does [BST14, Alg. 3]."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem.cone_program import ConeProgram, add_ball
from dperm_cli.sets.base import Balls, ConvexSet, ask_body, length, unit
from dperm_cli.sets.intersection import Intersection
from dperm_cli.sets.shared.roots import rising_crossing


@dataclass(frozen=True, eq=False)
class Localised(ConvexSet):
    """C_0 = {theta in C : |theta - point| <= reach} for a point of C.

    ``point`` is [p], or [..., p] with one ball for each row of what is projected: then
    ``project``, ``contains`` and ``centre`` work row by row and the other methods do not.
    ``radius`` is C's and ``diameter`` the smaller of C's and the ball's: both are upper bounds that
    hold wherever the point lies, so that a mechanism can plan with them before the point is known.
    """

    name: ClassVar[str] = "localised"
    symmetric: ClassVar[bool] = False

    inner: Any
    point: np.ndarray
    reach: float

    @property
    def p(self) -> int:  # type: ignore[override]
        return self.inner.p

    size = property(attrgetter("reach"))

    @property
    def ball_about(self) -> tuple[np.ndarray, float]:
        return self.point, self.reach

    @property
    def add_cone_constraints(self) -> Any:
        return None if self.inner.add_cone_constraints is None else self._add_cone_constraints

    def _add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        self.inner.add_cone_constraints(program, theta)
        add_ball(program, theta, self.reach, self.point)

    def balls(self) -> Balls | None:
        around = self.inner.balls()
        if around is None:
            return None
        radii = np.append(around.radii, float(self.reach))
        return Balls(np.vstack([around.centres, self.point]), radii)

    @property
    def radius(self) -> float:  # type: ignore[override]
        """At least sup of |theta| over the set: that of C."""
        return self.inner.radius

    @property
    def diameter(self) -> float:
        """At least sup of |theta - theta'| over the set."""
        return min(self.inner.diameter, 2.0 * self.reach)

    @property
    def least_diameter(self) -> float:
        """C has a point half its diameter or more from any other, and the segment to it is in C."""
        return min(self.reach, 0.5 * self.inner.least_diameter)

    inner_radius = property(attrgetter("_shifted_set.inner_radius"))
    outer_radius = property(attrgetter("_shifted_set.outer_radius"))

    def centre(self) -> np.ndarray:
        """The ball's centre where C holds the whole ball, else a point further inside, [..., p]."""
        if np.ndim(self.point) > 1:
            return self.point
        return self.point + self._shifted_set.centre()

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Euclidean projection of each row of [..., p].

        With P the projection on C it is P(point + s (theta - point)) for the s in [0, 1] that
        brings the distance to the point down to ``reach``.
        """
        theta = np.asarray(theta, dtype=float)
        point = np.broadcast_to(self.point, theta.shape)
        step = theta - point
        far = length(step)
        drawn_in = np.minimum(1.0, self.reach / np.maximum(far, 1e-300))
        found = self.inner.project(point + drawn_in[..., None] * step)
        # the nearest point of the ball, or of C, is the answer where it is in both
        outside = length(found - (point + drawn_in[..., None] * step)) > 1e-15 * self.radius
        if np.any(outside):
            found[outside] = self._both(theta[outside], point[outside])
        return found

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """A minimiser of <g, theta>, for each row of [..., p]."""
        return self.point + self._shifted_set.lmo(g)

    def support(self, g: np.ndarray) -> np.ndarray:
        """sup of <g, theta> for each row of [..., p]; never too small but for rounding.

        For every x, sup <= (C's support at g - x) + <x, point> + reach |x|, and the best x points
        from ``point`` to a maximiser.
        """
        g = np.asarray(g, dtype=float)
        rows = g.reshape(-1, self.p)
        found = [self._support(row, most) for row, most in zip(rows, self.lmo(-rows), strict=True)]
        return np.array(found).reshape(g.shape[:-1])

    def _reach_along(self, g: np.ndarray) -> np.ndarray:
        """<g, theta> at the maximisers, which no search proves: hundreds of times faster."""
        return np.asarray((g * self.lmo(-g)).sum(axis=-1))

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """The least t >= 0 with theta in t C_0, inf where there is none; the origin may be out."""
        if not bool(self.contains(np.zeros(self.p))):
            raise ValueError("the gauge of a set without the origin is not a norm")
        return super().gauge(theta)

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether each row of [..., p] is in C and in the ball, up to tolerance * radius."""
        theta = np.asarray(theta, dtype=float)
        near = length(theta - self.point) <= self.reach + tolerance * self.radius
        return near & self.inner.contains(theta, tolerance)

    def directions(self) -> np.ndarray:
        return self.inner.directions()

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """(A [p, p], b [p]): theta = A phi + b puts the set near isotropic position."""
        root, shift = self._shifted_set.isotropic()
        return root, shift + self.point

    @cached_property
    def _shifted_set(self) -> Intersection:
        """C_0 - point: C - point cut by a ball about the origin."""
        return Intersection(self.reach, self.p, _ShiftedSet(self.inner, self.point))  # type: ignore[arg-type]

    def _both(self, theta: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Projections of rows that neither C nor the ball settles alone, [m, p]."""
        found, step = self.inner.project(theta), theta - point
        cut = length(found - point) > self.reach
        if not np.any(cut):
            return found
        step, point = step[cut], point[cut]

        def over(s: np.ndarray) -> np.ndarray:
            return length(self.inner.project(point + s[:, None] * step) - point) - self.reach

        # P(point + s step) is at most s |step| away from point
        low = np.minimum(self.reach / length(step), 1.0)
        s = rising_crossing(over, low, np.ones(len(step)), 1e-15 * self.reach)
        moved = self.inner.project(point + s[:, None] * step) - point
        within = np.minimum(1.0, self.reach / np.maximum(length(moved), 1e-300))
        found[cut] = point + within[:, None] * moved
        return found

    def _support(self, g: np.ndarray, maximiser: np.ndarray) -> float:
        """Each ball takes a multiple of its normal at the maximiser off g; any multiples do."""
        from scipy.optimize import minimize

        rays = [(unit(maximiser - self.point), self.reach, self.point)]
        inner = self.inner
        while inner.cutting_ball is not None:  # an iterative maximiser proves no upper bound
            rays.append((unit(maximiser), inner.cutting_ball, np.zeros(self.p)))
            inner = inner.inner
        normals = np.array([ray for ray, _, _ in rays])
        prices = np.array([reach + float(ray @ point) for ray, reach, point in rays])
        far = float(length(g))

        def bound(shares: np.ndarray) -> float:
            weights = far * np.abs(shares)
            return float(inner.support(g - weights @ normals)) + float(weights @ prices)

        starts = [np.zeros(len(rays)), *np.eye(len(rays)), np.full(len(rays), 0.5)]
        best = min(bound(start) for start in starts)
        if far == 0.0:
            return best
        options = {"xatol": 1e-14, "fatol": 1e-16 * far * self.radius, "maxiter": 400}
        first = min(starts, key=bound)
        found: Any = minimize(bound, first, method="Nelder-Mead", options=options)
        return min(best, float(g @ self.point) + self.reach * far, float(found.fun))


@dataclass(frozen=True, eq=False)
class _ShiftedSet(ConvexSet):
    """body - point, for a point of the body: a set around the origin."""

    name: ClassVar[str] = "moved"
    symmetric: ClassVar[bool] = False

    body: Any
    point: np.ndarray

    p = ask_body("p")
    size = ask_body("size")
    diameter = ask_body("diameter")
    least_diameter = ask_body("least_diameter")
    inner_radius = ask_body("inner_radius")
    outer_radius = ask_body("outer_radius")
    directions = ask_body("directions")

    @property
    def radius(self) -> float:
        """At least sup of |theta - point|."""
        return min(self.body.diameter, self.body.radius + float(length(self.point)))

    def project(self, theta: np.ndarray) -> np.ndarray:
        return self.body.project(np.asarray(theta) + self.point) - self.point

    def lmo(self, g: np.ndarray) -> np.ndarray:
        return self.body.lmo(g) - self.point

    def support(self, g: np.ndarray) -> np.ndarray:
        return self.body.support(g) - np.asarray(g) @ self.point

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        return self.body.contains(np.asarray(theta) + self.point, tolerance)

    def centre(self) -> np.ndarray:
        return self.body.centre() - self.point

    def vertices(self) -> np.ndarray | None:
        found = self.body.vertices()
        return None if found is None else found - self.point

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        root, shift = self.body.isotropic()
        return root, shift - self.point
