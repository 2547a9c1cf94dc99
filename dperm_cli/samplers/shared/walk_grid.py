"""The cube, its cells and their weights for the grid walk [BST14, Alg. 5]."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import Unsupported
from dperm_cli.samplers.base import Potential, Target
from dperm_cli.samplers.shared.potential_checks import evaluate_in_blocks
from dperm_cli.samplers.shared.walk_steps import Walk

_BISECTIONS = 60


@dataclass(frozen=True)
class RoundedBody:
    """theta = u M^T + shift, u in R^d: coordinates in which the unit ball lies in the set.

    ``low`` [d] is the least corner of a cube of edge ``tau`` around the set; ``cube``: the set is
    that cube. ``size`` bounds |u - u'| over the set, ``reach`` |theta| over the cube.
    """

    body: Any
    matrix: np.ndarray
    shift: np.ndarray
    low: np.ndarray
    tau: float
    size: float
    cube: bool

    @property
    def dim(self) -> int:
        return self.matrix.shape[1]

    @property
    def reach(self) -> float:
        middle = self.low + 0.5 * self.tau
        around = float(np.linalg.norm(self.points(middle)))
        return around + self.stretch * 0.5 * self.tau * math.sqrt(self.dim)

    @property
    def stretch(self) -> float:
        """The largest factor by which theta moves when u does."""
        return float(np.linalg.norm(self.matrix, 2))

    def points(self, u: np.ndarray) -> np.ndarray:
        return u @ self.matrix.T + self.shift


def round_body(body: Any) -> RoundedBody:
    """From the set's own isotropic map, restricted to its affine hull."""
    root, shift = body.isotropic()
    frame, _ = np.linalg.qr(np.linalg.solve(root, body.directions()))
    matrix = root @ frame
    back = np.linalg.pinv(matrix)
    high = np.asarray(body.support(back)) - back @ shift
    low = -np.asarray(body.support(-back)) - back @ shift
    tau = float(np.max(high - low))
    cube = matrix.shape[1] == 1 or body.inner_body.half_side is not None
    spread = float(np.linalg.norm(back, 2)) * body.diameter
    size = tau * math.sqrt(matrix.shape[1]) if cube else min(spread, _length(high - low))
    return RoundedBody(body, matrix, shift, 0.5 * (high + low - tau), tau, size, cube)


def describe(target: Target, accuracy: float, printed: bool = False) -> tuple[RoundedBody, Walk]:
    """The coordinates and the numbers of the walk, from public facts alone."""
    place = round_body(target.constraint)
    if not place.cube and not _holds_unit_ball(place):
        raise Unsupported("grid_walk needs the set in isotropic position, and has no map for it")
    eta = lipschitz(target, place.reach) * place.stretch
    walk = Walk(eta, place.size, place.tau, place.dim, accuracy, place.cube, printed)
    return place, walk


def lipschitz(target: Target, reach: float) -> float:
    """A Lipschitz constant of f's own formula on |theta| <= reach.

    The formula is convex on the whole space: it extends f from the set to the cube.
    """
    spec = target.spec
    if spec.form is None or reach <= spec.constraint.radius * (1.0 + 1e-12):
        return target.lipschitz
    loss = spec.form.lipschitz(replace(spec.bounds, radius=reach))
    record = loss + spec.regulariser.lipschitz(reach, spec.p)
    return target.exponent * spec.n * record + target.kappa * reach


@dataclass(frozen=True)
class Grid:
    """The cells of the cube: ``weights`` are -log F [cells], ``accept`` and ``jump`` the moves'."""

    place: RoundedBody
    cells: int
    energy: np.ndarray
    accept: np.ndarray
    jump: np.ndarray

    @property
    def side(self) -> float:
        return self.place.tau / self.cells

    def start(self) -> int:
        """The number of the cell that holds u = 0."""
        index = np.clip(((0.0 - self.place.low) / self.side).astype(int), 0, self.cells - 1)
        return int(np.ravel_multi_index(tuple(index), (self.cells,) * self.place.dim))

    def point(self, at: int, uniforms: np.ndarray) -> np.ndarray:
        """A uniform point [p] of a cell, from d uniforms."""
        index = np.array(np.unravel_index(at, (self.cells,) * self.place.dim))
        return self.place.points(self.place.low + self.side * (index + uniforms))


def grid(potential: Potential, n: int, place: RoundedBody, walk: Walk) -> Grid:
    """Weights F = exp(-f - alpha max(0, gauge - 1)) at the cells' centres, and the chain."""
    cells, dim = int(walk.cells), place.dim
    index = np.indices((cells,) * dim).reshape(dim, -1).T
    theta = place.points(place.low + (place.tau / cells) * (index + 0.5))
    energy = evaluate_in_blocks(potential, theta, n)
    if not place.cube:
        energy = energy + walk.alpha * np.maximum(gauge(place, theta) - 1.0, 0.0)
    accept, jump = moves(energy.reshape((cells,) * dim))
    return Grid(place, cells, energy, accept, jump)


def moves(energy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(chance that a proposed move is made [cells, 2 d], what it adds to the cell's number [2 d]).

    A move leaves with min(1, F(there) / F(here)); off the grid it is never made.
    """
    dim, shape = energy.ndim, energy.shape
    accept = np.zeros((energy.size, 2 * dim))
    jump = np.zeros(2 * dim, np.int64)
    for axis in range(dim):
        stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        first = [slice(None)] * dim
        first[axis] = slice(0, -1)
        second = [slice(None)] * dim
        second[axis] = slice(1, None)
        lower, upper = tuple(first), tuple(second)
        rise = energy[upper] - energy[lower]
        for k, here, climb in ((2 * axis, lower, rise), (2 * axis + 1, upper, -rise)):
            chance = np.zeros(shape)
            chance[here] = np.exp(-np.maximum(climb, 0.0))
            accept[:, k] = chance.ravel()
        jump[2 * axis], jump[2 * axis + 1] = stride, -stride
    return accept, jump


def gauge(place: RoundedBody, theta: np.ndarray) -> np.ndarray:
    """The Minkowski norm about the point that the map sends 0 to, at rows [m, p]."""
    body, centre = place.body, place.shift
    if not np.any(centre):
        return np.asarray(body.gauge(theta))
    away = theta - centre
    inside = body.contains(theta, 1e-12)
    low, high = np.zeros(len(theta)), np.ones(len(theta))
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        within = body.contains(centre + middle[:, None] * away, 0.0)
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return np.where(inside, 1.0, 1.0 / np.maximum(low, 1e-12))


def _holds_unit_ball(place: RoundedBody) -> bool:
    axes = np.vstack([np.eye(place.dim), -np.eye(place.dim)])
    return bool(np.all(place.body.contains(place.points(axes), 1e-6)))


def _length(sides: np.ndarray) -> float:
    return float(np.linalg.norm(sides))
