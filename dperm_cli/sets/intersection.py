"""Intersection of a set with a Euclidean ball."""

from __future__ import annotations

import math
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.problem.cone_program import ConeProgram, add_ball
from dperm_cli.sets.base import (
    AnyDimension,
    ConvexSet,
    Radius,
    dimension,
    length,
    reached_diameter,
    unit,
)
from dperm_cli.sets.shared import nested_set
from dperm_cli.sets.shared.roots import rising_crossing

_FAR = 1e10
_TIE = 4e-15


@dataclass(frozen=True)
class Intersection(ConvexSet):
    """K and {theta : |theta| <= ball}, the ball's radius set by ``constraint.radius``.

    inner : the set K as a mapping {name: ..., radius: ...}; without one it is the L1 ball of
        radius sqrt(p) / 1.5 times the ball's (which both cuts and is cut by the ball).

    With P the projection on K, the projection of x is P(s x) for the s in [0, 1] that brings its
    norm down to the ball's, and a maximiser of <g, theta> is P(t g) for the t that brings it up.
    ``diameter`` and ``outer_radius`` are upper bounds and ``inner_radius`` a lower bound unless
    K = -K.

    >>> cut = Intersection(1.0, 2, inner={"name": "box", "radius": 0.8})
    >>> cut.support(np.array([[1.0, 0.0], [1.0, 1.0]])).round(3).tolist()
    [0.8, 1.414]
    """

    iterative: ClassVar[bool] = True

    ball: Radius
    p: AnyDimension
    inner: nested_set.Inner = None

    def __post_init__(self) -> None:
        super().__post_init__()
        p, inner = dimension(self.p), self.inner
        if inner is None:
            inner = {"name": "l1_ball", "radius": math.sqrt(p) / 1.5 * self.ball}
        built = nested_set.build(inner, self.p if self.inner is not None else p)
        self._keep("inner", built)
        self._keep("p", built.p)
        if self._least > self.ball:
            words = f"must be at least {self._least:.6g}, the least norm in constraint.inner"
            raise InputError("constraint.radius", self.ball, words)

    size = cutting_ball = property(attrgetter("ball"))
    symmetric = property(attrgetter("_set.symmetric"))
    sign_symmetric = property(attrgetter("_set.sign_symmetric"))

    @property
    def add_cone_constraints(self) -> Any:
        return None if self._set.add_cone_constraints is None else self._add_cone_constraints

    def _add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        self._set.add_cone_constraints(program, theta)
        add_ball(program, theta, self.ball)

    @property
    def radius(self) -> float:
        """The smaller of the two radii."""
        return min(self.ball, self._set.radius)

    @property
    def diameter(self) -> float:
        """At most K's and that of the ball within K's affine hull."""
        return min(self._set.diameter, 2.0 * self._ball_within)

    @cached_property
    def least_diameter(self) -> float:  # type: ignore[override]
        """Both sets symmetric: twice the smaller radius, both of them reached."""
        if self._set.symmetric:
            return min(self._set.least_diameter, 2.0 * self.ball)
        return reached_diameter(self)

    @cached_property
    def inner_radius(self) -> float:
        """At least the balls that K and the ball hold about the centre."""
        held = self._share * self._set.inner_radius
        if self._share > 0 and self._set.directions().shape[1] == 0:
            return 0.0
        return max(min(held, self._slack(self.centre())), 0.0)

    @property
    def outer_radius(self) -> float:
        centre = self.centre()
        from_k = self._set.outer_radius + float(length(centre - self._set.centre()))
        within = self._ball_within + float(length(centre - self._foot))
        return min(from_k, within)

    def centre(self) -> np.ndarray:
        """K's centre, moved towards K's point of least norm until both hold a ball about it."""
        return self._least_point + self._share * (self._set.centre() - self._least_point)

    def directions(self) -> np.ndarray:
        return self._set.directions()

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Euclidean projection of each row of [..., p]."""
        theta = np.asarray(theta, dtype=float)
        found = self._set.project(theta)
        outside = length(found) > self.ball
        if np.any(outside):
            rows = theta[outside]
            found[outside] = self._on_sphere(unit(rows), length(rows))
        return found

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """A minimiser of <g, theta>, for each row of [..., p]."""
        return self._maximiser(-np.asarray(g, dtype=float))

    def support(self, g: np.ndarray) -> np.ndarray:
        """sup of <g, theta>, for each row of [..., p]."""
        g = np.asarray(g, dtype=float)
        return np.sum(g * self._maximiser(g), axis=-1)

    def gauge(self, theta: np.ndarray) -> np.ndarray:
        """The larger of the two gauges, where that multiple of K has theta; otherwise inf."""
        theta = np.asarray(theta, dtype=float)
        found = np.maximum(self._set.gauge(theta), length(theta) / self.ball)
        if self._least == 0:
            return found
        known = np.isfinite(found) & (found > 0)
        fits = self._set.contains(theta / np.where(known, found, 1.0)[..., None], 1e-12)
        return np.where(known & ~fits, np.inf, found)

    def contains(self, theta: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """Whether each row of [..., p] is in K and in the ball, up to the tolerance."""
        near = length(theta) <= self.ball * (1.0 + tolerance)
        return near & self._set.contains(theta, tolerance)

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """For K rounded by A_K and the ball's slack r, the root of (A_K^{-2} s^{-2} + r^{-2})^{-1}:
        inside both, and as round as A_K up to sqrt(2) for K = -K."""
        root, shift = self._set.isotropic()
        if self._share < 1.0 or np.any(np.abs(shift - self.centre()) > 1e-12 * self.radius):
            return super().isotropic()
        squares, basis = np.linalg.eigh(root @ root.T)
        axes = 1.0 / np.sqrt(1.0 / squares + 1.0 / self._slack(self.centre()) ** 2)
        return (basis * axes) @ basis.T, self.centre()

    @property
    def _set(self) -> Any:
        return self.inner

    @cached_property
    def _least_point(self) -> np.ndarray:
        origin = np.zeros(self.p)
        return origin if self._set.symmetric else self._set.project(origin)

    @cached_property
    def _least(self) -> float:
        return float(length(self._least_point))

    @cached_property
    def _foot(self) -> np.ndarray:
        """The point of K's affine hull nearest to the origin."""
        point, along = self._least_point, self._set.directions()
        return point - along @ (along.T @ point)

    @cached_property
    def _ball_within(self) -> float:
        """The radius of the ball's section by K's affine hull."""
        return math.sqrt(max(self.ball**2 - float(length(self._foot)) ** 2, 0.0))

    def _slack(self, point: np.ndarray) -> float:
        return self._ball_within - float(length(point - self._foot))

    @cached_property
    def _share(self) -> float:
        """How far towards K's centre: as far as the smaller of the two balls grows."""
        start, end = self._least_point, self._set.centre()
        inner = self._set.inner_radius
        if self._slack(end) >= min(inner, 0.1 * self._ball_within):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            fits = self._slack(start + middle * (end - start)) >= middle * inner
            low, high = (middle, high) if fits else (low, middle)
        return low

    def _along(self, g: np.ndarray) -> np.ndarray:
        """The part of g that K tells apart: across its affine hull <g, theta> is constant."""
        basis = self._set.directions()
        return g if basis.shape[1] == self.p else g @ basis @ basis.T

    def _on_sphere(self, ray: np.ndarray, far: np.ndarray) -> np.ndarray:
        """P(t ray) of norm ``ball`` for rows of unit vectors; its norm is above that at t = far."""

        def over(t: np.ndarray) -> np.ndarray:
            return length(self._set.project(t[:, None] * ray)) - self.ball

        low = np.maximum(0.5 * (self.ball - self._least), 0.0)
        t = rising_crossing(over, np.minimum(low, far), far, 1e-15 * self.ball)
        found = self._set.project(t[:, None] * ray)
        return found * np.minimum(1.0, self.ball / np.maximum(length(found), 1e-300))[:, None]

    def _maximiser(self, g: np.ndarray) -> np.ndarray:
        best = self._set.lmo(-g)
        outside = length(best) > self.ball
        if not np.any(outside):
            return best
        best = np.array(best, dtype=float)
        ray = unit(self._along(g[outside]))
        far, found = self._bracket(ray)
        cut = length(found) > self.ball
        if np.any(cut):
            found[cut] = self._on_sphere(ray[cut], far[cut])
        best[outside] = found
        return best

    def _bracket(self, ray: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t, P(t ray)) with its norm above ``ball``, or so far out that P is a maximiser."""
        far = np.full(len(ray), 2.0 * self.ball)
        found = self._set.project(far[:, None] * ray)
        best = self._set.support(ray)
        while True:
            # P(t ray) may be a maximiser over all of K, among several
            short = best - np.sum(found * ray, axis=1) > _TIE * self._set.radius
            open_ = short & (length(found) <= self.ball) & (far < _FAR * self.ball)
            if not np.any(open_):
                return far, found
            far[open_] *= 16.0
            found[open_] = self._set.project(far[open_][:, None] * ray[open_])
