"""Exact uniform draws on a convex set.

Boxes, balls of an Lp norm [Barthe, Guedon, Mendelson and Naor 2005], simplices and ellipsoids have
formulas; a polytope of few dimensions is cut into simplices; an intersection and whatever is left
are drawn by rejection, where a trial with fixed numbers shows that this ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import Source
from dperm_cli.samplers.shared.membership import make_membership_test

Draw = Callable[[Source], np.ndarray]

_BLOCK, _MOST_BLOCKS = 256, 2000
_TRIAL_BLOCKS = 20  # a thousandth of what a draw may take, several times over
_FACET_DIMENSION = 6
_INSIDE = 1e-12


def draw_uniform(constraint: Any, source: Source) -> np.ndarray:
    """One point [p], uniform on the set; ``Unsupported`` as ``make_uniform_draw``."""
    return make_uniform_draw(constraint)(source)


def make_uniform_draw(constraint: Any) -> Draw:
    """What draws points [p], uniform on the set.

    ``Unsupported``, which depends on the set alone, where there is neither a formula nor a chance
    of hitting the set.
    """
    body = constraint.inner_body
    p, hull = body.p, body.axis_hull
    if body.half_side is not None:
        return partial(_cube, body.half_side, p)
    if hull is not None:
        return partial(_lp_ball if hull.signed else _simplex, hull.radius, p)
    if body.root() is not None:
        return partial(_ellipsoid, body.root())
    if body.norm_power is not None:
        return partial(_lp_ball, body.size, p, power=body.norm_power)
    if body.directions().shape[1] <= _FACET_DIMENSION and body.vertices() is not None:
        return _make_polytope_draw(body)
    draw = (
        _make_rejection_draw(body) if body.cutting_ball is None else _make_intersection_draw(body)
    )
    draw(_Fixed(), _TRIAL_BLOCKS)
    return draw


def _cube(half_width: float, p: int, source: Source) -> np.ndarray:
    return half_width * (2.0 * source.uniform(p) - 1.0)


def _simplex(radius: float, p: int, source: Source) -> np.ndarray:
    e = -np.log(source.uniform(p))
    return radius * e / np.sum(e)


def _ellipsoid(root: np.ndarray, source: Source) -> np.ndarray:
    k = root.shape[1]
    if k == 0:
        return np.zeros(len(root))
    g = source.normal(k)
    return root @ (g / np.linalg.norm(g) * float(source.uniform(1)[0]) ** (1.0 / k))


def _lp_ball(radius: float, p: int, source: Source, power: float = 1.0) -> np.ndarray:
    """g_j of density proportional to exp(-|g|^power) and an exponential e: g / (|g|^power + e).

    |g|^power is Gamma(1 / power), that is Gamma(1 + 1 / power) times the power of a uniform.
    """
    signs = np.where(source.uniform(p) <= 0.5, -1.0, 1.0)
    levels = source.uniform(p + 1)
    if power == 1.0:
        g = -np.log(levels[:p])
    else:
        wide = gammaincinv(1.0 + 1.0 / power, 1.0 - levels[:p] * (1.0 - 2.0**-53))
        g = wide ** (1.0 / power) * source.uniform(p)
    logs = power * np.log(np.maximum(g, 1e-300))
    total = np.logaddexp.reduce(np.append(logs, math.log(max(-math.log(levels[p]), 1e-300))))
    return radius * signs * g * math.exp(-total / power)


def _make_polytope_draw(body: Any) -> Draw:
    """The simplices of the boundary with the centre, one of them by volume, a point by weights."""
    basis, centre, points = body.directions(), body.centre(), body.vertices()
    d, within = basis.shape[1], (points - centre) @ basis
    if d == 0:
        return lambda source: centre.copy()
    if d == 1:
        faces = np.array([[int(np.argmin(within))], [int(np.argmax(within))]])
    else:
        from scipy.spatial import ConvexHull

        faces = ConvexHull(within).simplices
    corners = within[faces]  # [m, d, d]
    volumes = np.cumsum(np.abs(np.linalg.det(corners)))

    def draw(source: Source) -> np.ndarray:
        level = float(source.uniform(1)[0]) * volumes[-1]
        face = min(int(np.searchsorted(volumes, level)), len(faces) - 1)
        e = -np.log(source.uniform(d + 1))
        return centre + basis @ ((e[:d] / np.sum(e)) @ corners[face])

    return draw


def _make_intersection_draw(body: Any) -> Callable[..., np.ndarray]:
    """From the inner set and from the ball by turns, until both hold the point."""
    inner = make_uniform_draw(body.inner)
    flat = body.directions().shape[1] < body.p
    ball = partial(_ellipsoid, body.cutting_ball * np.eye(body.p))

    def draw(source: Source, blocks: int = _MOST_BLOCKS) -> np.ndarray:
        for turn in range(blocks * _BLOCK // 4):
            point = (ball if turn % 2 and not flat else inner)(source)
            if body.contains(point, _INSIDE):
                return point
        raise _hopeless(body, blocks)

    return draw


def _make_rejection_draw(body: Any) -> Callable[..., np.ndarray]:
    """From the box of the set's extents along its own directions."""
    basis, origin, holds = body.directions(), body.centre(), make_membership_test(body)
    high = body.support(basis.T) - basis.T @ origin
    low = -body.support(-basis.T) - basis.T @ origin

    def draw(source: Source, blocks: int = _MOST_BLOCKS) -> np.ndarray:
        for _ in range(blocks):
            z = low + (high - low) * source.uniform(_BLOCK, basis.shape[1])
            points = origin + z @ basis.T
            found = holds(points)
            if np.any(found):
                return points[int(np.argmax(found))]
        raise _hopeless(body, blocks)

    return draw


def _hopeless(body: Any, blocks: int) -> Exception:
    words = f"no uniform point of the set in {body.p} dimensions in {_BLOCK * blocks} tries"
    if blocks == _TRIAL_BLOCKS:
        return Unsupported(words)
    return ArithmeticError(f"{words}: not a private outcome")


class _Fixed:
    """Fixed random numbers for a test whether draws are possible."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(2014)

    def uniform(self, *shape: int) -> np.ndarray:
        return 1.0 - self._rng.random(shape)

    def normal(self, *shape: int) -> np.ndarray:
        return self._rng.standard_normal(shape)
