"""Points of the usual sets whose normal cones are known exactly, and what optimality leaves there.

A computed point has to be on the face whose normals are used: on a box it is; on an L1 ball or a
simplex it is moved to a grid on which its norm is exactly the radius; on a Euclidean ball a
point on the sphere is off it by ``rounding_bounds.RoundingBounds.off_set`` at most. All methods
take rows [k, p].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm_cli.solvers.rounding_bounds import UNIT_ROUNDOFF, pairwise

_LEVELS = 20  # rounds for a level: any level is right, the last ones are the best


def total(rows: np.ndarray) -> np.ndarray:
    """Sums [k] of rows [k, p] by halving, so that the error grows with log p."""
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rest = rows[:, 2 * half :]
        rows = np.concatenate([rows[:, :half] + rows[:, half : 2 * half], rest], axis=1)
    return rows[:, 0]


def project(constraint: Any, theta: np.ndarray) -> np.ndarray:
    """The projection of each row, moved to where its normals are known."""
    if constraint.name == "l2_ball":
        return _on_sphere(constraint.project(theta), constraint.radius)
    if constraint.name == "l1_ball":
        return _on_cross(theta, constraint.radius)
    if constraint.name == "simplex":
        depth = np.maximum(theta - np.max(theta, axis=1, keepdims=True), -constraint.radius)
        return _on_grid(_above_level(depth, constraint.radius), constraint.radius, full=True)
    return constraint.project(theta)


def residual(constraint: Any, theta: np.ndarray, slope: np.ndarray, lasso: float) -> np.ndarray:
    """Norms [k] of an element of slope + lasso subgradient + normal cone at rows of ``project``."""
    if constraint.name == "simplex":
        return np.linalg.norm(_simplex_residual(theta, slope), axis=1)
    signed = slope + lasso * np.sign(theta)
    off = theta == 0.0
    if constraint.name == "l1_ball":
        return np.linalg.norm(_cross_residual(constraint.radius, theta, slope, lasso), axis=1)
    if constraint.name == "l2_ball":
        square = total(theta * theta)
        outward = np.maximum(-np.sum(np.where(off, 0.0, signed) * theta, axis=1), 0.0)
        sphere = _touches(np.sqrt(square), theta.shape[1], constraint.radius)
        push = np.where(sphere, outward / np.maximum(square, np.finfo(float).tiny), 0.0)
        signed = signed + push[:, None] * theta
    else:
        high, low = theta == constraint.half_width, theta == -constraint.half_width
        signed = np.where(high, np.maximum(signed, 0.0), signed)
        signed = np.where(low, np.minimum(signed, 0.0), signed)
    return np.linalg.norm(np.where(off, _beyond(slope, lasso), signed), axis=1)


def _beyond(slope: np.ndarray, most: np.ndarray | float) -> np.ndarray:
    """What is left of a slope against a subgradient of up to ``most``, in modulus."""
    return np.maximum(np.abs(slope) - most, 0.0)


def _touches(norm: np.ndarray, p: int, radius: float) -> np.ndarray:
    return norm >= radius * (1.0 - (pairwise(p) + 8.0) * UNIT_ROUNDOFF)


def _on_sphere(theta: np.ndarray, radius: float) -> np.ndarray:
    """Rows that are not clearly inside the ball, put on its sphere."""
    norm = np.sqrt(total(theta * theta))
    outer = _touches(norm, theta.shape[1], radius)
    return np.where(outer, radius / np.where(outer, norm, 1.0), 1.0)[:, None] * theta


def _on_cross(theta: np.ndarray, radius: float) -> np.ndarray:
    modulus = np.abs(theta)
    outside = total(modulus) > radius
    if np.any(outside):
        far = modulus[outside]
        depth = np.maximum(far - np.max(far, axis=1, keepdims=True), -radius)
        modulus = modulus.copy()
        modulus[outside] = _above_level(depth, radius)
    return np.copysign(_on_grid(modulus, radius, full=False), theta)


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


def _cross_residual(
    radius: float, theta: np.ndarray, slope: np.ndarray, lasso: float
) -> np.ndarray:
    """On the face the normals are level times the signs, and at most the level elsewhere."""
    on = theta != 0.0
    inward = np.where(on, -np.sign(theta) * slope - lasso, 0.0)
    outside = np.where(on, 0.0, np.abs(slope) - lasso)
    full = _counts(np.abs(theta), radius)[1] == 0
    level = np.zeros(len(theta))
    for _ in range(_LEVELS):
        more = (outside > level[:, None]) & ~on
        number = np.maximum(np.sum(on, axis=1) + np.sum(more, axis=1), 1)
        wanted = np.sum(inward, axis=1) + np.sum(np.where(more, outside, 0.0), axis=1)
        level = np.where(full, np.maximum(wanted / number, 0.0), 0.0)
    left = np.maximum(outside - level[:, None], 0.0)
    return np.where(on, inward - level[:, None], left)


def _simplex_residual(theta: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """On the face the normals are equal, and at most that elsewhere."""
    on = theta > 0.0
    level = -np.sum(np.where(on, slope, 0.0), axis=1) / np.sum(on, axis=1)
    for _ in range(_LEVELS):
        used = on | (slope + level[:, None] < 0.0)
        level = -np.sum(np.where(used, slope, 0.0), axis=1) / np.sum(used, axis=1)
    left = slope + level[:, None]
    return np.where(on, left, np.minimum(left, 0.0))
