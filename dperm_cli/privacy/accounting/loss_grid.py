"""delta(epsilon) of a short composition on a grid of losses [Doroshenko et al. 2022], tilted.

Every step's loss law is replaced by one on multiples of h that is worse at every epsilon: mass
between two grid points moves to them so that its P-mass and its Q-mass are both kept ("connect the
dots"). Compositions are then powers of one discrete Fourier transform, taken under the tilt
e^{lambda S}, which keeps the digits of small deltas. What is left besides the grid's (pessimistic)
error:

aliases      mass a period B = N h or more below its reading enters with a positive weight; mass
             that may lie B or more above it is added, e^{-lambda (B + low - epsilon)} in all.
left out     tilted mass e^-32 of the whole: at most M(lambda) e^{-lambda epsilon} e^-27. Added.
quadrature   bin masses are 2-, 3- or 12-point Gauss-Legendre sums of positive terms, right to
             2e-13 relative, and
rounding     of the transforms: at most 4e-16 log2(N) count of their norm. Both added.

The bound holds for any window and any tilt. Their choice only decides how tight it is.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy import fft

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting.saddle_point import Composition, Saddle
from dperm_cli.privacy.accounting.subsampled_laws import (
    Law,
    SampledStep,
    panels,
    quadrature_nodes,
    tilt_step,
    with_atom,
)

_LEFT_OUT = 32.0
_MOST_POINTS = 1 << 19
_LEAST_POINTS = 1 << 12
# Share of epsilon that the grid may cost, where the most points allow it.
_GRID_SHARE = 1e-6


@dataclass(frozen=True)
class Grid:
    """The tilted law of S on a window of the grid; ``log_delta`` bounds delta at any epsilon."""

    saddle: Saddle
    points: np.ndarray
    mass: np.ndarray
    extra: float

    def log_delta(self, epsilon: float) -> float:
        if epsilon < self.points[0]:
            return 0.0
        first = int(np.searchsorted(self.points, epsilon))
        gap = self.points[first:] - epsilon
        total = self.mass[first:] @ (np.exp(-self.saddle.tilt * gap) * -np.expm1(-gap))
        # all mass but the window's own lies at least a period above its reading
        above = math.exp(-self.saddle.tilt * (float(self.points[-1]) - epsilon))
        total = float(total) + above + self.extra
        return self.saddle.log_m - self.saddle.tilt * epsilon + math.log(total)


@dataclass(frozen=True)
class Layout:
    """The number of points and the spacing h of a grid.

    ``fine`` says whether the grid costs at most the share ``_GRID_SHARE`` of epsilon.
    """

    steps: tuple[Law, ...]
    saddle: Saddle
    count: int
    h: float
    extra: float
    fine: bool


def layout(composition: Composition, saddle: Saddle) -> Layout:
    """The coarsest grid that is fine enough, or else the finest that is affordable."""
    steps = composition.steps
    if composition.mu2 > 0.0:
        steps = (*steps, SampledStep(1.0, math.sqrt(composition.mu2), "fixed"))
    laws = [tilt_step(step, saddle.tilt, digits=_LEFT_OUT) for step in steps]
    widest = max(float(np.abs(law.loss).max()) for law in laws)
    allowed = _GRID_SHARE * max(saddle.epsilon, 1e-2 / saddle.tilt)
    count, fine = _LEAST_POINTS, False
    while not fine and count <= _MOST_POINTS:
        h = max(1.5 * saddle.period / count, widest / _MOST_POINTS)
        # splitting adds variance (l - a)(b - l) to a loss in [a, b]
        added = sum(
            step.count * float(law.even @ np.minimum(h * h / 6.0, np.abs(law.loss) * h))
            for step, law in zip(steps, laws, strict=True)
        )
        fine = 0.5 * saddle.tilt * added <= allowed and h <= 0.01 * saddle.epsilon
        count *= 2
    count //= 2
    extra = _allowance(sum(step.count for step in steps), count, saddle.tilt * h)
    wasted = saddle.log_m - saddle.tilt * saddle.epsilon - saddle.log_delta
    return Layout(steps, saddle, count, h, extra, fine and extra * math.exp(wasted) < 1e-5)


def grid(layout: Layout) -> Grid:
    """The composition on a grid, tilted as the saddle says, with a window around its epsilon."""
    saddle, count, h = layout.saddle, layout.count, layout.h
    log_m, transform = 0.0, np.ones(count // 2 + 1, dtype=complex)
    for step in layout.steps:
        step_log_m = tilt_step(step, saddle.tilt).log_m
        law = _discretise_step(step, saddle.tilt, h, count, step_log_m)
        total = float(law.sum())
        log_m += step.count * (step_log_m + math.log(total))
        transform = transform * fft.rfft(law / total) ** step.count
    mass = fft.irfft(transform, count)
    index = math.floor(saddle.epsilon / h) - count // 3 + np.arange(count)
    mass = np.maximum(mass[index % count], 0.0)
    return Grid(replace(saddle, log_m=log_m), h * index, mass, layout.extra)


def _allowance(uses: int, count: int, step_tilt: float) -> float:
    """All errors that are not pessimistic by construction, as a share of M e^{-lambda epsilon}."""
    rounding = 4e-16 * math.log2(count) * (1.0 + uses) * math.sqrt(1.0 + 1.0 / step_tilt)
    return rounding + 2e-13 * uses + 1e-11 + math.exp(5.0 - _LEFT_OUT)


def _discretise_step(step: Law, tilt: float, h: float, count: int, log_m: float) -> np.ndarray:
    """Tilted masses e^{tilt k h} p_k / M of one step on the grid, folded modulo ``count``."""
    x, width, reference = with_atom(step, *_nodes(step, tilt, h))
    loss = step.loss(x)
    if step.form == "add":
        density, loss = reference, -loss
    else:
        density = reference + loss
    k = np.floor(loss / h)
    right = np.expm1(-(loss - k * h)) / math.expm1(-h)
    right = np.clip(right, 0.0, 1.0)
    # P-mass w r at (k+1) h, w (1-r) at k h; r keeps the Q-mass
    base = width * np.exp(density + tilt * loss - log_m)
    upper = base * right * np.exp(tilt * ((k + 1.0) * h - loss))
    lower = base * (1.0 - right) * np.exp(tilt * (k * h - loss))
    k = k.astype(np.int64)
    out = np.bincount((k + 1) % count, upper, count) + np.bincount(k % count, lower, count)
    if step.is_symmetric:
        # mass m e^{tilt k h} at k h has its image m e^{-(1 + tilt) k h} at -k h
        power = 1.0 + 2.0 * tilt
        upper, lower = upper * np.exp(-power * (k + 1) * h), lower * np.exp(-power * k * h)
        out += np.bincount(-(k + 1) % count, upper, count) + np.bincount(-k % count, lower, count)
        out[0] += _atom(step) * math.exp(-log_m)
    return out


def _atom(step: Law) -> float:
    """Mass of the losses that are exactly zero."""
    if step.form != "fixed":
        return 0.0
    return (1.0 - step.rate) * math.erf(step.shift / math.sqrt(8.0))


def _nodes(step: Law, tilt: float, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes and weights on panels that no multiple of h crosses in the loss."""
    kept = panels(step, tilt, 0.0, _LEFT_OUT)
    ends = step.loss(kept)
    first, last = math.ceil(ends.min() / h), math.floor(ends.max() / h)
    cuts = step.inverse(h * np.arange(first, last + 1))
    cuts = cuts[np.isfinite(cuts)]
    edges = np.unique(np.concatenate([kept.ravel(), cuts]))
    pairs = np.stack([edges[:-1], edges[1:]], axis=1)
    inside = np.searchsorted(kept[:, 0], pairs.mean(axis=1), side="right") - 1
    pairs = pairs[(inside >= 0) & (pairs.mean(axis=1) < kept[np.maximum(inside, 0), 1])]
    size = pairs[:, 1] - pairs[:, 0]
    scale = (1.0 + (1.0 + tilt) * step.shift / 20.0) * size
    parts = [
        quadrature_nodes(pairs[scale <= 7e-4], 2),
        quadrature_nodes(pairs[(scale > 7e-4) & (scale <= 5e-3)], 3),
        quadrature_nodes(pairs[scale > 5e-3], 12),
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
