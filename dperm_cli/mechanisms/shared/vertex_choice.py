"""Sets as convex hulls of finitely many public points: scores, points and exact choices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from dperm_cli.privacy.streams import LawStream
from dperm_cli.problem.problem import Constraint

MOST = 20_000  # points of a list
_CUBE = 12  # dimensions of a cube whose corners are listed
_LEAST = 2.0**-52  # the least uniform number that the generator makes
_CELL = -math.log(_LEAST)
_DEPTHS = 20
_POINT_BITS = 20  # of the largest coordinate of a list, that whole scores keep


class VertexTable:
    """A set as the convex hull of ``count`` points, the rows of an array [count, p]."""

    def __init__(self, points: np.ndarray) -> None:
        self._points = np.asarray(points, dtype=float)

    @property
    def count(self) -> int:
        return len(self._points)

    def scores(self, g: np.ndarray) -> np.ndarray:
        """<g, v> for every point, [..., p] -> [..., count]."""
        return g @ self._points.T

    def whole_scores(self, g: np.ndarray, public: np.ndarray, step: float) -> WholeScores:
        """<g + public, v> in whole units, [trials, count] int64, and the unit.

        The points are rounded here, which is a public choice of others. ``g`` [trials, p] consists
        of multiples of ``step``, a power of two.
        """
        cell = self._cell()
        rounded = np.rint(self._points / cell).astype(np.int64)
        scores = np.rint(g / step).astype(np.int64) @ rounded.T
        rest = (public / step) @ rounded.T.astype(float)
        return scores + np.rint(rest).astype(np.int64), cell * step

    def spread(self, across: float) -> tuple[float, float]:
        """Bounds on the L2 and the L1 distance of two rounded points, ``across`` that of points."""
        p, cell = self._points.shape[1], self._cell()
        furthest = 2.0 * float(np.max(np.sum(np.abs(self._points), axis=1))) + p * cell
        return across + math.sqrt(p) * cell, min(math.sqrt(p) * across + p * cell, furthest)

    @property
    def longest(self) -> float:
        """A bound on the L1 norm of a rounded point, in the cells that it is rounded to."""
        p = self._points.shape[1]
        return p * (float(np.max(np.abs(self._points))) / self._cell() + 1.0)

    def _cell(self) -> float:
        return math.ldexp(1.0, math.frexp(float(np.max(np.abs(self._points))))[1] - _POINT_BITS)

    def mix(self, weights: np.ndarray) -> np.ndarray:
        """Sum of weight times point, [..., count] -> [..., p]."""
        return weights @ self._points

    def take(self, index: np.ndarray) -> np.ndarray:
        """The points of these numbers, [trials] -> [trials, p]."""
        return self._points[index]


class AxisVertices:
    """The same for radius e_j, all j, and -radius e_j after them where ``signed``: no array."""

    def __init__(self, radius: float, p: int, signed: bool) -> None:
        self._radius, self._p, self._signed = radius, p, signed

    @property
    def count(self) -> int:
        return 2 * self._p if self._signed else self._p

    def scores(self, g: np.ndarray) -> np.ndarray:
        along = self._radius * g
        return np.concatenate([along, -along], axis=-1) if self._signed else along

    def whole_scores(self, g: np.ndarray, public: np.ndarray, step: float) -> WholeScores:
        """As for a table; nothing is rounded, as the radius is in the unit."""
        along = np.rint(g / step).astype(np.int64) + np.rint(public / step).astype(np.int64)
        along = np.concatenate([along, -along], axis=-1) if self._signed else along
        return along, self._radius * step

    def spread(self, across: float) -> tuple[float, float]:
        return across, 2.0 * self._radius

    @property
    def longest(self) -> float:
        return 1.0

    def mix(self, weights: np.ndarray) -> np.ndarray:
        if self._signed:
            weights = weights[..., : self._p] - weights[..., self._p :]
        return self._radius * weights

    def take(self, index: np.ndarray) -> np.ndarray:
        points = np.zeros((len(index), self._p))
        sign = np.where(index < self._p, 1.0, -1.0)
        points[np.arange(len(index)), index % self._p] = self._radius * sign
        return points


WholeScores = tuple[np.ndarray, float]
Vertices = VertexTable | AxisVertices


def list_vertices(constraint: Constraint) -> Vertices | None:
    """The set as a hull of at most ``MOST`` points (2 p of them for the L1 ball), else None."""
    body = constraint.inner_body
    if body.axis_hull is not None:
        return AxisVertices(body.axis_hull.radius, body.p, body.axis_hull.signed)
    if body.half_side is not None:
        if body.p > _CUBE:
            return None
        signs = itertools.product((1.0, -1.0), repeat=body.p)
        return VertexTable(body.half_side * np.array(list(signs)))
    points = body.vertices()
    if points is None and body.p == 1:
        points = body.lmo(np.array([[1.0], [-1.0]]))
    return VertexTable(points) if points is not None and len(points) <= MOST else None


def centre_distance(constraint: Any) -> float:
    """sup of |theta - centre| over the set; an upper bound where the set knows no better."""
    apart = constraint.radius + float(np.linalg.norm(constraint.centre()))
    return min(constraint.outer_radius or apart, apart, constraint.diameter)


def heights(law: LawStream, step: int) -> np.ndarray:
    """One standard exponential a trial, [trials], of range ``_DEPTHS`` times 36: past e^-700."""
    total = np.zeros(law.trials)
    deeper = np.ones(law.trials, dtype=bool)
    for number in range(_DEPTHS):
        level = law.each(step, number)
        ends = deeper & (level >= _LEAST)
        total[ends] -= np.log(level[ends])
        deeper &= ~ends
        total[deeper] += _CELL
        if not deeper.any():
            break
    return total


def choose(exponent: float, scores: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Indices [trials] of law proportional to exp(-exponent scores), for scores [trials, count].

    By inversion of exp(-``drawn``), ``drawn`` [trials] standard exponential: the chances are added
    up as logarithms from the least one on, so that each has its own relative precision.
    """
    log_weights = -exponent * (scores - np.min(scores, axis=1, keepdims=True))
    order = np.argsort(log_weights, axis=1, kind="stable")
    below = np.logaddexp.accumulate(np.take_along_axis(log_weights, order, 1), axis=1)
    passed = np.sum(below[:, :-1] < (below[:, -1] - drawn)[:, None], axis=1)
    return np.take_along_axis(order, passed[:, None], axis=1)[:, 0]
