"""The convex hull of given points."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dperm_cli.problem.cone_program import ConeProgram, add_mixture
from dperm_cli.sets.base import ConvexSet, by_rows, length
from dperm_cli.sets.shared import rounding_ellipsoids

FACET_DIMENSION = 6
FACET_POINTS = 200
_FLAT = 1e-11


class Hull(ConvexSet):
    """conv of the rows of points [m, p]; the centre is their mean."""

    def __init__(self, points: np.ndarray) -> None:
        self.points = np.asarray(points, dtype=float)
        self.p = self.points.shape[1]
        self._mean = np.mean(self.points, axis=0)

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether -v is a point for every point v."""
        return self._is_symmetric_about(np.zeros(self.p))

    @cached_property
    def radius(self) -> float:
        return float(np.max(length(self.points)))

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two points."""
        found = [np.max(length(self.points - point)) for point in self.points]
        return float(np.max(found))

    @cached_property
    def outer_radius(self) -> float:
        return float(np.max(length(self.points - self._mean)))

    @cached_property
    def inner_radius(self) -> float:
        """From the facets in up to 6 dimensions and 200 points, otherwise a lower bound.

        With the points centred, their variance along any unit u is at most the product of the
        hull's reaches along u and -u: the reach is at least the least variance over the outer
        radius, and at least the least standard deviation where the points have mirror images.
        """
        within = (self.points - self._mean) @ self._directions
        d = within.shape[1]
        if d == 0:
            return 0.0
        if d == 1:
            return float(min(np.max(within), -np.min(within)))
        if d <= FACET_DIMENSION and len(within) <= FACET_POINTS:
            from scipy.spatial import ConvexHull

            return float(-np.max(ConvexHull(within / self.outer_radius).equations[:, -1])) * (
                self.outer_radius
            )
        least = float(np.linalg.svd(within, compute_uv=False)[-1]) ** 2 / len(within)
        if self._is_symmetric_about(self._mean):
            return float(np.sqrt(least))
        return least / self.outer_radius

    def centre(self) -> np.ndarray:
        """The mean of the points, [p]."""
        return self._mean.copy()

    def directions(self) -> np.ndarray:
        return self._directions

    def vertices(self) -> np.ndarray:
        return self.points

    def add_cone_constraints(self, program: ConeProgram, theta: np.ndarray) -> None:
        add_mixture(program, theta, self.points)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The nearest mixture of the points, by an active-set method, for rows of [..., p]."""
        return by_rows(self._nearest, theta)

    def support(self, g: np.ndarray) -> np.ndarray:
        """The largest <g, v> over the points."""
        return np.max(np.asarray(g, dtype=float) @ self.points.T, axis=-1)

    def lmo(self, g: np.ndarray) -> np.ndarray:
        """The first point of smallest <g, v>."""
        return self.points[np.argmin(np.asarray(g, dtype=float) @ self.points.T, axis=-1)]

    def isotropic(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest ellipsoid around, shrunk by d (sqrt(d) for C = -C) to lie inside."""
        offset, basis = self._mean, self._directions
        d = basis.shape[1]
        if d == 0:
            return np.eye(self.p), offset.copy()
        mirrored = self._is_symmetric_about(offset)
        root, shift = rounding_ellipsoids.fit_enclosing_ellipsoid(
            (self.points - offset) @ basis, mirrored
        )
        root = root / ((np.sqrt(d) if mirrored else d) * (1.0 + 4e-6))
        return rounding_ellipsoids.embed(root, basis), offset + basis @ shift

    @cached_property
    def _directions(self) -> np.ndarray:
        _, values, rows = np.linalg.svd(self.points - self._mean, full_matrices=False)
        scale = max(float(values[0]), 1e-14 * self.radius) if values.size else 1.0
        return rows[values > _FLAT * scale].T if self.radius > 0 else np.zeros((self.p, 0))

    def _is_symmetric_about(self, middle: np.ndarray) -> bool:
        around = np.round((self.points - middle) / max(self.radius, 1e-300), 12) + 0.0
        return {row.tobytes() for row in around} == {row.tobytes() for row in -around + 0.0}

    def _nearest(self, x: np.ndarray) -> np.ndarray:
        """With D the points less x, min |D^T w|^2 + (sum of w - 1)^2 over w >= 0 has the weights
        of the projection up to their sum; then the face found is projected on directly."""
        gaps = self.points - x
        scale = max(float(np.min(length(gaps))), 1e-3 * self.radius, 1e-300)
        system = np.vstack([gaps.T / scale, np.ones(len(gaps))])
        weights = solve_nonnegative(system, np.append(np.zeros(self.p), 1.0))
        weights = weights / np.sum(weights)
        return self._polish_projection(x, weights)

    def _polish_projection(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        rough, face = weights @ self.points, np.flatnonzero(weights > 0)
        if len(face) == 1:
            return self.points[face[0]].copy()
        pivot = face[np.argmax(weights[face])]
        others = face[face != pivot]
        edges = (self.points[others] - self.points[pivot]).T
        share, *_ = np.linalg.lstsq(edges, x - rough, rcond=1e-12)
        refined = weights.copy()
        refined[others] += share
        refined[pivot] -= np.sum(share)
        if np.min(refined) < 0 or not np.all(np.isfinite(refined)):
            return rough
        return (refined / np.sum(refined)) @ self.points


def solve_nonnegative(system: np.ndarray, target: np.ndarray) -> np.ndarray:
    """argmin |system w - target| over w >= 0."""
    from scipy.optimize import nnls

    found, _ = nnls(system, target, maxiter=max(1000, 20 * system.shape[1]))
    return found
