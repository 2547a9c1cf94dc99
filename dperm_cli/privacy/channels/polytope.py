"""The channel of least information between a polytope and a multiple of it [DJW12, Thm 3].

C is the hull of vertices u_1 .. u_m that a group of isometries of C carries into one another
(``symmetries``; the l_1 ball, the cube and regular polytopes are examples), the origin at its
centre. Given a vertex, the answer is one of the M u_j, of the largest entropy with the vertex for
its mean; given a point within C, a vertex is drawn first whose mean is the point. The proof, for
this class of polytopes, is in docs/proofs/_djw12.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported

MOST_VERTICES = 2048
MOST_NODES = 200_000  # images tried in the search for symmetries
SLACK = 1e-9  # relative: coordinates of vertices are as good as that
_RESIDUAL = 1e-13
_STEPS = 500


@dataclass(frozen=True)
class PolytopeChannel:
    """Z on M u_1 .. M u_m with E[Z | x] = x, for vertices [m, d] and M > 1.

    ``laws`` [m, m] holds Q(M u_j | u_i), row by row. Raises Unsupported, with the reason, for
    vertices that no group of isometries carries into one another.

    >>> square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> PolytopeChannel(square, multiplier=2.0).laws.shape
    (4, 4)
    """

    shape: ClassVar[str] = "polytope"

    vertices: np.ndarray
    multiplier: float
    _symmetries: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        vertices = np.array(self.vertices, dtype=float)
        if vertices.ndim != 2 or not np.isfinite(vertices).all():
            raise ValueError("vertices must be a table of finite numbers, one vertex a row")
        if not (math.isfinite(self.multiplier) and self.multiplier > 1.0):
            raise ValueError(f"multiplier {self.multiplier}: must be above 1")
        vertices.setflags(write=False)
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "_symmetries", symmetries(vertices))

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return int(self.vertices.shape[1])

    def outputs(self) -> np.ndarray:
        """M u_j, [m, d]."""
        return self.multiplier * self.vertices

    @cached_property
    def first(self) -> Exponential:
        """Q(M u_j | u_1)."""
        return max_entropy(self.vertices, self.vertices[0] / self.multiplier)

    @cached_property
    def laws(self) -> np.ndarray:
        """Q(M u_j | u_i), [m, m]: the first row, carried over by the symmetries."""
        first = np.exp(self.first.logs)
        rows = np.empty((len(first), len(first)))
        for row, carry in zip(rows, self._symmetries, strict=True):
            row[carry] = first
        return rows

    @property
    def information(self) -> float:
        """sup over laws of X of I(X; Z), in nats: ln m - H(Z | u_1), for X uniform on vertices."""
        return self.first.information

    @property
    def expansion(self) -> float:
        """r / (2 M^2), r the dimension of the span: the leading term of the information."""
        return _span(self.vertices).shape[1] / (2.0 * self.multiplier**2)

    @property
    def epsilon(self) -> float:
        """The largest ln Q(z | x) / Q(z | x'): every column of ``laws`` holds the row's numbers."""
        return float(np.max(self.first.logs) - np.min(self.first.logs))

    def weights(self, x: np.ndarray) -> np.ndarray:
        """Probabilities [m] of vertices whose mean is the point x [d] of C.

        ValueError where x lies outside by more than ``SLACK`` of the vertices' length.
        """
        from scipy.optimize import nnls

        length = float(np.linalg.norm(self.vertices[0]))
        system = np.vstack([self.vertices.T / length, np.ones(len(self.vertices))])
        found, off = nnls(system, np.append(np.asarray(x, dtype=float) / length, 1.0))
        if not off <= SLACK:
            raise ValueError("the point lies outside the polytope")
        return found / np.sum(found)

    def law(self, x: np.ndarray) -> np.ndarray:
        """The chances [k, m] of the answers to points [k, d] of C."""
        points, of = np.unique(np.atleast_2d(x), axis=0, return_inverse=True)
        weights = np.array([self.weights(point) for point in points])
        return (weights @ self.laws)[of.reshape(-1)]

    def distance(self, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        """sup over answers of |ln Q(z | x) / Q(z | x')|, [k]; at most ``epsilon``."""
        return np.max(np.abs(np.log(self.law(x)) - np.log(self.law(other))), axis=1)

    def sample(self, x: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Answers [k, d] to points [k, d], from uniform numbers [k] in [0, 1)."""
        below = np.cumsum(self.law(x), axis=1)
        chosen = np.sum(below <= below[:, -1:] * uniform[:, None], axis=1)
        return self.outputs()[np.minimum(chosen, below.shape[1] - 1)]


def multiplier_for(vertices: np.ndarray, information: float) -> float:
    """The M whose channel has this information (nats), between 0 and ln m, relative to 1e-10.

    The information falls from ln m at M = 1 to 0.
    """
    from scipy.optimize import brentq

    vertices = np.asarray(vertices, dtype=float)
    most = math.log(len(vertices))
    if not 0.0 < information < most:
        raise ValueError(f"information {information}: must be between 0 and ln m = {most:.6g}")
    symmetries(vertices)

    def off(log_excess: float) -> float:
        mean = vertices[0] / (1.0 + math.exp(log_excess))
        return max_entropy(vertices, mean).information - information

    low, high = -1.0, 1.0
    while off(low) < 0.0 and low > -30.0:
        low -= 2.0
    while off(high) > 0.0 and high < 30.0:
        high += 2.0
    root: Any = brentq(off, low, high, xtol=1e-11)
    return 1.0 + math.exp(float(root))


@dataclass(frozen=True)
class Exponential:
    """The law proportional to exp<theta, u_j> on vertices: its logarithms [m] and information.

    ``information`` is its divergence from the uniform law, ln m - H.
    """

    logs: np.ndarray
    information: float


def max_entropy(vertices: np.ndarray, mean: np.ndarray) -> Exponential:
    """The law of largest entropy on the vertices [m, d] that has this mean.

    It is proportional to exp<theta, u_j>; theta minimises the convex ln sum exp<theta, u_j> -
    <theta, mean>, here by Newton's method in the span of the vertices. The mean has to lie in the
    relative interior of their hull; ValueError where none is found.
    """
    basis = _span(vertices)
    points, target = vertices @ basis, basis.T @ mean
    size = float(np.max(np.linalg.norm(points, axis=1)))
    points, target = points / size, target / size
    theta, least = np.zeros(points.shape[1]), math.inf
    for _ in range(_STEPS):
        law = np.exp(_log_law(points, theta))
        away = law @ points - target
        off = float(np.linalg.norm(away))
        if off <= _RESIDUAL and off >= 0.5 * least:  # as good as rounding lets it be
            break
        least = off
        centred = points - law @ points
        bend = (centred * law[:, None]).T @ centred
        step = np.linalg.lstsq(bend, away, rcond=None)[0]
        theta = theta - _length(points, target, theta, step, float(away @ step)) * step
    if not least <= _RESIDUAL:
        raise ValueError("no law on the vertices has this mean in its interior")
    spread = math.log1p(float(np.mean(np.expm1(points @ theta))))
    return Exponential(_log_law(points, theta), max(0.0, float(theta @ target) - spread))


def _length(
    points: np.ndarray, target: np.ndarray, theta: np.ndarray, step: np.ndarray, gain: float
) -> float:
    """The first of 1, 1/2, 1/4, ... to lower the dual by a fourth of what its slope promises."""
    if gain <= 1e-12:  # the values no longer tell
        return 1.0

    def dual(at: np.ndarray) -> float:
        slopes = points @ at
        top = float(np.max(slopes))
        return top + math.log(float(np.sum(np.exp(slopes - top)))) - float(target @ at)

    here, length = dual(theta), 1.0
    while length > 1e-12 and not dual(theta - length * step) <= here - 0.25 * length * gain:
        length /= 2.0
    return length


def symmetries(vertices: np.ndarray) -> np.ndarray:
    """Permutations [m, m] that isometries of the hull make of its vertices: row i sends u_1 to u_i.

    Unsupported, with the reason, where there are none: vertices of different lengths, a centre
    away from the origin, or corners that are not alike.
    """
    count = len(vertices)
    if not 2 <= count <= MOST_VERTICES:
        raise Unsupported(f"{count} vertices: must be between 2 and {MOST_VERTICES}")
    gram = _gram(vertices)
    if not np.allclose(np.diag(gram), 1.0, atol=SLACK):
        raise Unsupported("the vertices have different lengths, so no rotation joins them")
    close = gram - 2.0 * np.eye(count) > 1.0 - SLACK
    if close.any():
        first, second = np.argwhere(close)[0] + 1
        raise Unsupported(f"vertices {first} and {second} are the same point")
    centre = np.linalg.norm(np.mean(vertices, axis=0)) / np.linalg.norm(vertices[0])
    if centre > SLACK:
        raise Unsupported("the vertices' mean is not the origin: no multiple of C holds C")
    _alike(gram)
    return _orbit(vertices, gram)


def _gram(vertices: np.ndarray) -> np.ndarray:
    """Inner products over the square of the first vertex's length."""
    square = float(vertices[0] @ vertices[0])
    if not square > 0.0:
        raise Unsupported("a vertex is the origin")
    return vertices @ vertices.T / square


def _alike(gram: np.ndarray) -> None:
    """Each corner sees the others under the same angles, or no isometry joins them all."""
    rows = np.sort(gram, axis=1)
    other = np.max(np.abs(rows - rows[0]), axis=1) > 1e3 * SLACK
    if other.any():
        which = int(np.argmax(other)) + 1
        raise Unsupported(f"vertex {which} does not see the others as vertex 1 does")


def _orbit(vertices: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """A permutation from u_1 to each vertex, made of as few searched ones as will do."""
    count = len(vertices)
    found = {0: np.arange(count)}
    generators: list[np.ndarray] = []
    anchors = _anchors(vertices)
    for wanted in range(count):
        if wanted in found:
            continue
        new = _isometry(vertices, gram, anchors, wanted)
        if new is None:
            raise Unsupported(f"no isometry of the polytope takes vertex 1 to vertex {wanted + 1}")
        generators.append(new)
        _close(found, generators)
    return np.array([found[place] for place in range(count)])


def _close(found: dict[int, np.ndarray], generators: list[np.ndarray]) -> None:
    """Carry on every permutation by the generators until no new image of u_1 turns up.

    Those that were there before the last generator have been carried by the others already.
    """
    old, waiting = len(found), list(found)
    place = 0
    while place < len(waiting):
        carry, place = found[waiting[place]], place + 1
        for generator in generators[-1:] if place <= old else generators:
            image = int(generator[carry[0]])
            if image not in found:
                found[image] = generator[carry]
                waiting.append(image)


def _anchors(vertices: np.ndarray) -> list[int]:
    """Linearly independent vertices that span all, the first vertex first."""
    chosen: list[int] = []
    rest = vertices / np.linalg.norm(vertices[0])
    place = 0
    while True:
        chosen.append(place)
        unit = rest[place] / np.linalg.norm(rest[place])
        rest = rest - np.outer(rest @ unit, unit)
        lengths = np.linalg.norm(rest, axis=1)
        if np.max(lengths) <= 1e-6:
            return chosen
        place = int(np.argmax(lengths > 1e-6))


def _isometry(
    vertices: np.ndarray, gram: np.ndarray, anchors: list[int], wanted: int
) -> np.ndarray | None:
    """A permutation of the vertices by an isometry of the hull that sends u_1 to ``wanted``.

    Images of the anchors are tried one after another, each at the right angles to those before;
    all of them fix a linear map, which has to carry vertices to vertices.
    """
    solve = np.linalg.pinv(vertices[anchors])
    nodes = 0
    stack: list[Iterator[int]] = [iter([wanted])]
    images: list[int] = []
    while stack:
        image = next(stack[-1], None)
        if image is None:
            stack.pop()
            if images:
                images.pop()
            continue
        nodes += 1
        if nodes > MOST_NODES:
            raise Unsupported("the search for the polytope's symmetries was given up")
        images.append(image)
        if len(images) == len(anchors):
            carry = _map_vertices(vertices, solve @ vertices[images])
            if carry is not None:
                return carry
            images.pop()
            continue
        depth = len(images)
        right = np.abs(gram[images] - gram[anchors[:depth], anchors[depth]][:, None]) <= 1e3 * SLACK
        fit = np.flatnonzero(right.all(axis=0))
        # a shift by ``wanted`` first: its powers reach far when vertices are listed in turn
        turn = np.argsort((fit - anchors[depth] - wanted) % len(gram), kind="stable")
        stack.append(iter(fit[turn].tolist()))
    return None


def _map_vertices(vertices: np.ndarray, linear: np.ndarray) -> np.ndarray | None:
    """Where the map x -> x linear sends each vertex, or None unless it permutes them."""
    length = float(np.linalg.norm(vertices[0]))
    near = (vertices @ linear) @ vertices.T / length**2
    carry = np.argmax(near, axis=1)
    off = np.max(np.abs(vertices @ linear - vertices[carry])) / length
    whole = len(np.unique(carry)) == len(carry)
    return carry if whole and off <= 1e4 * SLACK else None


def _span(vertices: np.ndarray) -> np.ndarray:
    """An orthonormal basis [d, r] of the vertices' span."""
    _, lengths, rows = np.linalg.svd(vertices, full_matrices=False)
    return rows[lengths > 1e-9 * lengths[0]].T


def _log_law(points: np.ndarray, theta: np.ndarray) -> np.ndarray:
    slopes = points @ theta
    top = float(np.max(slopes))
    return slopes - top - math.log(float(np.sum(np.exp(slopes - top))))
