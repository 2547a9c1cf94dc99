"""A cover of a convex set of dimension 3 at most by boxes, each with a tangent of f below f."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.samplers.base import Potential
from dperm_cli.samplers.shared.potential_checks import (
    check_envelope,
    differentiate_in_blocks,
    evaluate_in_blocks,
)

_START = 4  # boxes along an axis
_SHARE = 0.6  # of the waste, removed in one round
_PROBES = (0.25, 0.75)  # quantiles of the proposals in a box at which f is looked at
_OUTSIDE = 0.55  # a proposal outside the set is dropped without a look at f: cheap
_NEAR = 1e-9


@dataclass(frozen=True)
class Frame:
    """theta = origin + u V^T for u in R^d, d the dimension of the set's affine hull."""

    body: Any
    origin: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, body: Any) -> Frame:
        return cls(body, body.centre(), body.directions())

    @property
    def dim(self) -> int:
        return self.basis.shape[1]

    def points(self, u: np.ndarray) -> np.ndarray:
        """theta [..., p] of u [..., d]."""
        return self.origin + u @ self.basis.T

    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest u over the set, per axis, [d] each."""
        middle = self.origin @ self.basis
        high = np.asarray(self.body.support(self.basis.T)) - middle
        return -np.asarray(self.body.support(-self.basis.T)) - middle, high

    def inside(self, theta: np.ndarray) -> np.ndarray:
        return self.body.contains(theta, 1e-12)


@dataclass(frozen=True)
class Cells:
    """Boxes u = centre +- half [m, d] with the tangent base + <slope, u - centre> [m], [m, d].

    ``mass`` is the integral of exp(-tangent) over each box, over the largest of them; ``waste`` the
    share of it that is expected to be rejected, proposals outside the set counting in part.
    """

    centre: np.ndarray
    half: np.ndarray
    base: np.ndarray
    slope: np.ndarray
    log_mass: np.ndarray
    waste: np.ndarray

    @property
    def mass(self) -> np.ndarray:
        return np.exp(self.log_mass - np.max(self.log_mass))

    @property
    def acceptance(self) -> float:
        """An estimate of the share of the work on proposals that is not lost."""
        return 1.0 - float(np.sum(self.mass * self.waste) / np.sum(self.mass))

    def take(self, chosen: np.ndarray) -> Cells:
        return Cells(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def join(self, other: Cells) -> Cells:
        names = self.__dataclass_fields__
        return Cells(*(np.concatenate([getattr(c, n) for c in (self, other)]) for n in names))


def cover(potential: Potential, frame: Frame, n: int, goal: float, most: int) -> Cells:
    """Boxes split where most proposals would be lost, until ``goal`` of them is kept.

    It stops at about ``most`` boxes; the law of the draws does not depend on where it stops.
    """
    low, high = frame.extent()
    size = (high - low) / (2 * _START)
    corners = np.array(list(product(range(_START), repeat=frame.dim)))
    centre = low + size * (2 * corners + 1)
    cells = _describe(potential, frame, n, centre, np.broadcast_to(size, centre.shape))
    while cells.acceptance < goal and len(cells.base) < most:
        lost = cells.mass * cells.waste
        order = np.argsort(-lost, kind="stable")
        count = 1 + int(np.searchsorted(np.cumsum(lost[order]), _SHARE * np.sum(lost)))
        chosen = order[: min(count, 1 + (most - len(lost)) // 2**frame.dim)]
        kept = np.ones(len(lost), bool)
        kept[chosen] = False
        centre, half = _halves(cells.centre[chosen], cells.half[chosen])
        cells = cells.take(kept).join(_describe(potential, frame, n, centre, half))
    return cells


def quantile(slope: np.ndarray, half: np.ndarray, level: Any) -> np.ndarray:
    """The t in [-half, half] below which exp(-slope t) has the share ``level`` of its mass."""
    steep = np.abs(slope) * 2.0 * half
    flat = steep < 1e-9
    safe = np.where(flat, 1.0, np.abs(slope))
    with np.errstate(divide="ignore"):
        away = np.minimum(-np.log1p(level * np.expm1(-steep)) / safe, 2.0 * half)
    t = np.where(flat, 2.0 * half * level, away) - half
    return np.where(slope < 0, -t, t)


def _halves(centre: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 2^d boxes that each box falls into."""
    signs = np.array(list(product((-0.5, 0.5), repeat=centre.shape[1])))
    inner = (centre[:, None] + signs * half[:, None]).reshape(-1, centre.shape[1])
    return inner, np.repeat(0.5 * half, len(signs), axis=0)


def _describe(
    potential: Potential, frame: Frame, n: int, centre: np.ndarray, half: np.ndarray
) -> Cells:
    """Boxes with their tangents, those left out that do not meet the set.

    The tangent is taken at the point of the set that is nearest to the box's centre.
    """
    middle = frame.points(centre)
    at = frame.body.project(middle)
    distance = np.linalg.norm(middle - at, axis=1)
    meets = distance <= np.linalg.norm(half, axis=1) * (1 + _NEAR) + _NEAR * frame.body.radius
    centre, half, middle, at = centre[meets], half[meets], middle[meets], at[meets]
    gradient = differentiate_in_blocks(potential, at, n)
    base = evaluate_in_blocks(potential, at, n) + np.sum(gradient * (middle - at), axis=1)
    slope = gradient @ frame.basis
    log_mass = np.sum(_log_integral(slope, half), axis=1) - base
    waste = _waste(potential, frame, n, (centre, half, base, slope))
    return Cells(centre, half, base, slope, log_mass, waste)


def _waste(potential: Potential, frame: Frame, n: int, boxes: tuple) -> np.ndarray:
    """1 - the mean of the acceptance over some quantiles of the proposals of each box."""
    centre, half, base, slope = boxes
    kept = np.zeros(len(base))
    levels = _probes(frame.dim)
    for level in levels:
        t = quantile(slope, half, level)
        theta = frame.points(centre + t)
        inside = frame.inside(theta)
        tangent = base[inside] + np.sum(slope[inside] * t[inside], axis=1)
        gap = evaluate_in_blocks(potential, theta[inside], n) - tangent
        check_envelope(potential, gap)
        kept[inside] += np.exp(-np.maximum(gap, 0.0))
        kept[~inside] += _OUTSIDE
    return 1.0 - kept / len(levels)


def _probes(dim: int) -> np.ndarray:
    """Every second corner of the cube of the two quantiles (both ends of an interval)."""
    corners = np.array(list(product((0, 1), repeat=dim)))
    chosen = corners if dim == 1 else corners[np.sum(corners, axis=1) % 2 == 0]
    return np.asarray(_PROBES)[chosen]


def _log_integral(slope: np.ndarray, half: np.ndarray) -> np.ndarray:
    """log of the integral of exp(-slope t) over [-half, half]."""
    a = np.abs(slope) * half
    safe = np.maximum(a, 1e-4)
    steep = safe + np.log(-np.expm1(-2.0 * safe) / (2.0 * safe))
    return np.log(2.0 * half) + np.where(a < 1e-4, a * a / 6.0, steep)
