"""Draws from exp(-g) on an interval, g convex and piecewise quadratic, by inversion."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from dperm_cli.samplers.base import Pieces, Source
from dperm_cli.samplers.shared.truncated_gaussian import _FAR, invert_normal, invert_steep

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_FLAT = 1.0  # a fall of g below which a quadrature of 12 nodes is exact to rounding


class Cells(NamedTuple):
    """Intervals [start, start + width] on which g is monotone and quadratic.

    ``slope`` is the modulus of g' at the cell's end where g is lowest, ``low`` g there, ``left``
    whether that is the left end; ``log_mass`` the log of the integral of exp(-g), all [m].
    """

    start: np.ndarray
    width: np.ndarray
    slope: np.ndarray
    left: np.ndarray
    log_mass: np.ndarray


class Law(NamedTuple):
    """exp(-g) on [low, high], ready to be drawn from; ``cells`` is None for a single point."""

    low: float
    curvature: float
    cells: Cells | None
    masses: np.ndarray

    def draw(self, source: Source) -> float:
        """One t; it takes two numbers."""
        levels = source.uniform(2)
        if self.cells is None:
            return self.low
        cells, masses = self.cells, self.masses
        k = min(int(np.searchsorted(masses, levels[0] * masses[-1])), len(masses) - 1)
        depth = find_depth(float(cells.slope[k]), self.curvature, float(cells.width[k]), levels[1])
        start, end = cells.start[k], cells.start[k] + cells.width[k]
        t = start + depth if cells.left[k] else end - depth
        return float(min(max(t, start), end))


def law(pieces: Pieces, low: float, high: float) -> Law:
    """The law of density proportional to exp(-g) on [low, high]."""
    if not low < high:
        return Law(low, pieces.curvature, None, np.zeros(0))
    cells = make_cells(pieces, low, high)
    masses = np.cumsum(np.exp(cells.log_mass - np.max(cells.log_mass)))
    return Law(low, pieces.curvature, cells, masses)


def make_cells(pieces: Pieces, low: float, high: float) -> Cells:
    """The interval cut at the kinks and at the minimiser, with each cell's mass."""
    order = np.argsort(pieces.at, kind="stable")
    at, jump = pieces.at[order], pieces.jump[order]
    before = at <= low
    slope = pieces.slope + pieces.curvature * low + math.fsum(jump[before])
    inside = ~before & (at < high)
    knots = np.concatenate([[low], at[inside], [high]])
    rise = np.concatenate([[slope], jump[inside]])
    widths = np.diff(knots)
    # the derivative at the start and at the end of each cell
    first = np.cumsum(rise) + pieces.curvature * (knots[:-1] - low)
    last = first + pieces.curvature * widths
    turns = np.flatnonzero((first < 0) & (last > 0))
    if turns.size:
        k = int(turns[0])
        lowest = knots[k] - first[k] / pieces.curvature
        knots = np.insert(knots, k + 1, min(max(lowest, knots[k]), knots[k + 1]))
        first, last = np.insert(first, k + 1, 0.0), np.insert(last, k, 0.0)
        widths = np.diff(knots)
    level = np.concatenate([[0.0], np.cumsum(0.5 * (first + last) * widths)])
    left = first + last >= 0
    floor = np.where(left, level[:-1], level[1:])
    inner = np.where(left, np.maximum(first, 0.0), np.maximum(-last, 0.0))
    log_mass = _log_mass(inner, pieces.curvature, widths) - floor
    return Cells(knots[:-1], widths, inner, left, log_mass)


def _log_mass(slope: np.ndarray, curvature: float, width: np.ndarray) -> np.ndarray:
    """log of the integral over [0, width] of exp(-slope t - curvature t^2 / 2), slope >= 0."""
    fall = slope * width + 0.5 * curvature * width * width
    with np.errstate(divide="ignore", invalid="ignore"):
        if curvature == 0.0:
            return np.log(np.where(fall > 0, width * (-np.expm1(-fall) / fall), width))
        t = 0.5 * width[:, None] * (1.0 + _NODES)
        drop = slope[:, None] * t + 0.5 * curvature * t * t
        gentle = 0.5 * width * (np.exp(-np.minimum(drop, 2.0 * _FLAT)) @ _WEIGHTS)
        root = math.sqrt(curvature)
        near, far = slope / root, slope / root + root * width
        tails = erfcx(near / math.sqrt(2.0)) - np.exp(-fall) * erfcx(far / math.sqrt(2.0))
        return np.log(np.where(fall <= _FLAT, gentle, math.sqrt(0.5 * math.pi) / root * tails))


def find_depth(slope: float, curvature: float, width: float, u: float) -> float:
    """t in [0, width] at level u of the density exp(-slope t - curvature t^2 / 2), slope >= 0."""
    if curvature > 0.0:
        root = math.sqrt(curvature)
        near = slope / root
        if near > -_FAR:
            return float(invert_steep(slope, curvature, width, u))
        return (float(invert_normal(near, near + root * width, np.array([u]))[0]) - near) / root
    if slope * width < 1e-300:
        return u * width
    return -math.log1p(u * math.expm1(-slope * width)) / slope
