"""Points of the usual sets whose normal cones are known exactly, and what optimality leaves there.

A computed point has to be on the face whose normals are used: on a box it is; on an L1 ball or a
simplex it is moved to a grid on which its norm is exactly the radius; on a Euclidean ball a point
on the sphere is off it by ``off_set`` at most. All methods take rows [k, p].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

U = 2.0**-53  # the rounding error of one operation, over its result
_LEVELS = 20  # rounds for a level: any level is right, the last ones are the best


def pairwise(length: int) -> float:
    """The k of k u / (1 - k u), the error of a sum of ``length`` numbers by halving."""
    return math.ceil(math.log2(max(length, 2))) + 1.0


class Normals(ABC):
    """The normal cones of a set.

    Attributes:
        off_set: how far a point of ``project`` may be from one whose normals are known exactly.
        step: what rounding in ``project`` adds to the error of one projected step.
        constant_l1: whether |theta|_1 is the same at all points of the set.
    """

    off_set: float = 0.0
    step: float = 0.0
    constant_l1: bool = False

    def __init__(self, body: Any) -> None:
        self.body, self.radius, self.p = body, body.radius, body.p

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The projection of each row, moved to where its normals are known."""
        return self.body.project(theta)

    def residual(self, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
        """Norms [k] of an element of slope + lasso subgradient + normal cone at such rows."""
        return np.linalg.norm(self._find_residual(theta, slope, lasso), axis=1)

    @abstractmethod
    def _find_residual(self, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
        """What the best subgradient and normal leave of slopes, [k, p]."""


class CubeNormals(Normals):
    """Of [-a, a]^p."""

    def _find_residual(self, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
        signed = slope + lasso * np.sign(theta)
        high, low = theta == self.body.half_side, theta == -self.body.half_side
        signed = np.where(high, np.maximum(signed, 0.0), signed)
        signed = np.where(low, np.minimum(signed, 0.0), signed)
        return np.where(theta == 0.0, _beyond(slope, lasso), signed)


class SphereNormals(Normals):
    """Of the Euclidean ball."""

    def __init__(self, body: Any) -> None:
        super().__init__(body)
        self.off_set = (pairwise(self.p) + 8.0) * U * self.radius
        self.step = 2.0 * self.off_set

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Rows that are not clearly inside the ball are put on its sphere."""
        theta = self.body.project(theta)
        norm = np.sqrt(total(theta * theta))
        outer = self._touches(norm)
        return np.where(outer, self.radius / np.where(outer, norm, 1.0), 1.0)[:, None] * theta

    def _find_residual(self, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
        signed, off = slope + lasso * np.sign(theta), theta == 0.0
        square = total(theta * theta)
        outward = np.maximum(-np.sum(np.where(off, 0.0, signed) * theta, axis=1), 0.0)
        push = outward / np.maximum(square, np.finfo(float).tiny)
        push = np.where(self._touches(np.sqrt(square)), push, 0.0)
        return np.where(off, _beyond(slope, lasso), signed + push[:, None] * theta)

    def _touches(self, norm: np.ndarray) -> np.ndarray:
        return norm >= self.radius * (1.0 - (pairwise(self.p) + 8.0) * U)


class _Grid(Normals):
    """Of a set whose points are moved to where their moduli sum to the radius exactly."""

    def __init__(self, body: Any) -> None:
        super().__init__(body)
        # the level, in every coordinate, and what is left of the sum, in one of them
        longest = self.p + 2.0 + math.sqrt(self.p) * (pairwise(self.p) + 8.0)
        self.step = 4.0 * U * self.radius * longest


class CrossNormals(_Grid):
    """Of the L1 ball."""

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The projection of each row, on the grid."""
        modulus = np.abs(theta)
        outside = total(modulus) > self.radius
        if np.any(outside):
            far = modulus[outside]
            depth = np.maximum(far - np.max(far, axis=1, keepdims=True), -self.radius)
            modulus = modulus.copy()
            modulus[outside] = _above_level(depth, self.radius)
        return np.copysign(_on_grid(modulus, self.radius, full=False), theta)

    def _find_residual(self, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
        """On the face the normals are level times the signs, and at most the level elsewhere."""
        on = theta != 0.0
        inward = np.where(on, -np.sign(theta) * slope - lasso, 0.0)
        outside = np.where(on, 0.0, np.abs(slope) - lasso)
        full = _counts(np.abs(theta), self.radius)[1] == 0
        level = np.zeros(len(theta))
        for _ in range(_LEVELS):
            more = (outside > level[:, None]) & ~on
            number = np.maximum(np.sum(on, axis=1) + np.sum(more, axis=1), 1)
            wanted = np.sum(inward, axis=1) + np.sum(np.where(more, outside, 0.0), axis=1)
            level = np.where(full, np.maximum(wanted / number, 0.0), 0.0)
        left = np.maximum(outside - level[:, None], 0.0)
        return np.where(on, inward - level[:, None], left)


class SimplexNormals(_Grid):
    """Of the scaled probability simplex."""

    constant_l1 = True

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The projection of each row, on the grid."""
        depth = np.maximum(theta - np.max(theta, axis=1, keepdims=True), -self.radius)
        return _on_grid(_above_level(depth, self.radius), self.radius, full=True)

    def _find_residual(self, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
        """On the face the normals are equal, and at most that elsewhere."""
        on = theta > 0.0
        level = -np.sum(np.where(on, slope, 0.0), axis=1) / np.sum(on, axis=1)
        for _ in range(_LEVELS):
            used = on | (slope + level[:, None] < 0.0)
            level = -np.sum(np.where(used, slope, 0.0), axis=1) / np.sum(used, axis=1)
        left = slope + level[:, None]
        return np.where(on, left, np.minimum(left, 0.0))


def total(rows: np.ndarray) -> np.ndarray:
    """Sums [k] of rows [k, p] by halving, so that the error grows with log p."""
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rest = rows[:, 2 * half :]
        rows = np.concatenate([rows[:, :half] + rows[:, half : 2 * half], rest], axis=1)
    return rows[:, 0]


def _beyond(slope: np.ndarray, most: np.ndarray | float) -> np.ndarray:
    """What is left of a slope against a subgradient of up to ``most``, in modulus."""
    return np.maximum(np.abs(slope) - most, 0.0)


def _above_level(depth: np.ndarray, radius: float) -> np.ndarray:
    """max(depth - level, 0), the level making its sum the radius: entries below it are dropped
    until none is left [Michelot 1986]. depth is 0 at the largest entry and at least -radius."""
    kept = np.ones(depth.shape, dtype=bool)
    while True:
        level = (total(np.where(kept, depth, 0.0)) - radius) / np.sum(kept, axis=1)
        fewer = kept & (depth > level[:, None])
        if np.array_equal(fewer, kept):
            return np.where(kept, np.maximum(depth - level[:, None], 0.0), 0.0)
        kept = fewer


def _unit(radius: float) -> float:
    """The power of two of which the radius is a whole number between 2^52 and 2^53."""
    return math.ldexp(1.0, math.frexp(radius)[1] - 53)


def _counts(modulus: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows in units of the grid, and what their sums leave of the radius."""
    unit = _unit(radius)
    counts = np.rint(modulus / unit).astype(np.int64)
    return counts, int(radius / unit) - np.sum(counts, axis=1)


def _on_grid(modulus: np.ndarray, radius: float, full: bool) -> np.ndarray:
    """Rows of moduli with sums of exactly the radius; without ``full`` clearly smaller ones stay.

    The largest entry takes what rounding left.
    """
    counts, left = _counts(modulus, radius)
    best = np.argmax(counts, axis=1)[:, None]
    most = np.take_along_axis(counts, best, axis=1)
    np.put_along_axis(counts, best, most + left[:, None], axis=1)
    found = counts.astype(float) * _unit(radius)
    return found if full else np.where((left > modulus.shape[1])[:, None], modulus, found)
