"""Newton steps that stay in the set: minimisers of a quadratic model over it, many at a time."""

from __future__ import annotations

import numpy as np

from dperm_cli.problem.problem import Constraint

_ROUNDS = 200  # of Newton's method for the multiplier of a ball
_LEAST = 2.0**-300  # of a value beside the slope at the radius: a less one moves nothing
_STILL = 1e-6
_STEPS = 4  # of accelerated projected descent, for other sets: each takes a projection


def minimise_in_ball(
    values: np.ndarray, basis: np.ndarray, slope: np.ndarray, at: np.ndarray, radius: float
) -> np.ndarray:
    """argmin of <slope, u> + <u, M u> / 2 over |at + u| <= radius, [trials, p].

    M = basis diag(values) basis^T, [trials, p] and [trials, p, p], all values > 0; ``at`` is in the
    ball. The minimiser is y - at with y = (M + nu I)^-1 (M at - slope) for the least nu >= 0 that
    brings y into the ball, found by Newton's method on 1 / |y|, concave and rising in nu.
    """
    values, slope, start, unit = _make_moderate(values, slope, at, radius)
    inside = float(np.ldexp(radius, -unit))
    along = values * _to_basis(basis, start) - _to_basis(basis, slope)
    square, nu = along**2, np.zeros(len(at))
    for _ in range(_ROUNDS):
        shifted = values + nu[:, None]
        norm2 = np.sum(square / shifted**2, axis=1)
        bend = np.sum(square / shifted**3, axis=1)
        outside = norm2 > inside**2
        with np.errstate(invalid="ignore", divide="ignore"):
            step = np.where(outside, norm2 / bend * (np.sqrt(norm2) / inside - 1.0), 0.0)
        nu = nu + step
        if np.all(step <= 1e-15 * (nu + values[:, 0])):
            break
    return np.ldexp(_from_basis(basis, along / (values + nu[:, None])), unit) - at


def _make_moderate(
    values: np.ndarray, slope: np.ndarray, at: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Values, slope and ``at`` in units in which no power of them overflows, and that of lengths.

    Units are powers of two, the second one of each trial: nothing is rounded. Lengths are divided
    by 2^unit, which is about the radius; the largest value and the largest slope are at most 1.
    """
    unit = int(np.frexp(radius)[1])
    steep = np.max(np.abs(slope), axis=1)
    most = np.frexp(np.max(values, axis=1))[1]
    scale = np.where(steep > 0.0, np.maximum(np.frexp(steep)[1] - unit, most), most)[:, None]
    bent = np.maximum(np.ldexp(values, -scale), _LEAST)
    return bent, np.ldexp(slope, -scale - unit), np.ldexp(at, -unit), unit


def minimise_in_set(
    values: np.ndarray,
    basis: np.ndarray,
    slope: np.ndarray,
    at: np.ndarray,
    constraint: Constraint,
) -> np.ndarray:
    """About the same over any set, by accelerated projected descent: for post-processing alone."""
    largest, least = values[:, -1:], values[:, :1]
    root = np.sqrt(least / largest)
    momentum = (1.0 - root) / (1.0 + root)
    point = query = constraint.project(at - slope / largest)
    for _ in range(_STEPS):
        bent = _from_basis(basis, values * _to_basis(basis, query - at)) + slope
        moved = constraint.project(query - bent / largest)
        rest = float(np.max(np.abs(moved - point)))
        point, query = moved, moved + momentum * (moved - point)
        if rest <= _STILL * constraint.radius:
            break
    return point - at


def minimise_unconstrained(values: np.ndarray, basis: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """-M^-1 slope, [trials, p]."""
    return -_from_basis(basis, _to_basis(basis, slope) / values)


# einsum sums in an order that hangs on the number of trials, on processors without AVX2
def _to_basis(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (basis * vectors[:, :, None]).sum(axis=1)


def _from_basis(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (basis * vectors[:, None, :]).sum(axis=2)
