"""Renyi bound of sparse answers: only those far from the public guess are paid [JT13, Alg. 1].

A query is answered from what was released before (c_t) unless c_t and the noisy value a_t + b,
b ~ Laplace(scale), are more than ``threshold`` apart; then the noisy value is shown, an update. At
most B updates are made, and any number of queries. With x = (a_t - c_t) / scale, theta = threshold
/ scale and e = sensitivity / scale, one query compares x with x', |x - x'| <= e, and shows either a
Laplace value outside [-theta, theta] or the fact that it lies inside. With

    N = P(inside)^a Q(inside)^(1 - a),   U = integral over the outside of p^a q^(1 - a),

kappa(a) = sup log(U / (1 - N)) makes exp((a - 1) loss - kappa updates) a supermartingale, so that
the Renyi divergence of order a of everything shown is at most kappa(a) B / (a - 1), for any number
of queries. Proof, and why the sup is over the two families below: docs/proofs/_kernels.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dperm_cli.core.dataclass import dataclass

# Cells of the search, on each of which the second derivative bounds what lies between the nodes.
_CELLS = 128
# Rounding of N and U, sums of a few terms of order one.
_ROUNDING = 1e-14
# Beyond this distance the families are not proved to hold the worst case.
MOST_REACH = 1.0


@dataclass(frozen=True)
class UpdatesLoss:
    """The loss of ``updates`` updates among any number of queries; ``count`` runs.

    ``reach`` is sensitivity / scale, ``threshold`` the threshold over the scale.
    """

    reach: float
    threshold: float
    updates: int
    count: int = 1

    def log_m(self, tilt: float) -> float:
        """A bound on log E e^{tilt S}, inf where none is known."""
        return self.count * self.updates * kappa(tilt, self.reach, self.threshold)

    @property
    def largest_tilt(self) -> float:
        """A tilt above which kappa is infinite; 0 where no kappa is known."""
        if not self.reach <= min(MOST_REACH, self.threshold):
            return 0.0
        return min(1.0 / math.expm1(self.reach), 0.75 / self.reach)


@lru_cache(maxsize=4096)
def kappa(tilt: float, reach: float, threshold: float) -> float:
    """An upper bound on kappa of order 1 + tilt, inf where there is none.

    It exceeds the sup by what the curvature leaves open between 128 cells: less than 1e-3 of it.
    """
    if reach == 0.0:
        return 0.0
    if not (0.0 < reach <= min(MOST_REACH, threshold) and tilt > 0.0):
        return math.inf
    if tilt * reach > 1.0:
        return math.inf
    inside, outside = _families(1.0 + tilt, reach, threshold, _CELLS)
    room = 1.0 - inside - _between(1.0 + tilt, reach, threshold, _CELLS) - _ROUNDING
    if not np.all(room > 0.0):
        return math.inf
    worst = float(np.max(np.log((outside + _ROUNDING) / room)))
    return max(worst, 0.0)


def ratio(order: float, x: np.ndarray, other: np.ndarray, threshold: float) -> np.ndarray:
    """log(U / (1 - N)) at the points x, x' (elementwise), inf where N >= 1: what kappa bounds.

    In units of the noise scale; for tests, by adding up the pieces between all kinks.
    """
    inside, outside = _moments(order, np.asarray(x, float), np.asarray(other, float), threshold)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(inside < 1.0, np.log(outside / (1.0 - inside)), np.inf)


def _families(order: float, reach: float, threshold: float, cells: int):
    """N and U [2, cells + 1] at |x - x'| = reach, the threshold between the two."""
    a = np.linspace(0.0, reach, cells + 1)
    x = np.stack([threshold - a, threshold + a])
    other = np.stack([threshold + (reach - a), threshold - (reach - a)])
    return _moments(order, x, other, threshold)


def _moments(order: float, x: np.ndarray, other: np.ndarray, threshold: float):
    """N and U at x, x'."""
    inside = np.exp(order * _log_inside(x, threshold) + (1 - order) * _log_inside(other, threshold))
    outside = _tail(order, x - threshold, other - threshold)
    return inside, outside + _tail(order, -x - threshold, -other - threshold)


def _log_inside(x: np.ndarray, threshold: float) -> np.ndarray:
    """log P(|x + Laplace(1)| <= threshold)."""
    x = np.abs(x)
    near = np.minimum(x, threshold)
    middle = 1.0 - 0.5 * np.exp(near - threshold) - 0.5 * np.exp(-near - threshold)
    beyond = threshold - np.maximum(x, threshold)
    far = beyond + math.log(0.5) + math.log(-math.expm1(-2.0 * threshold))
    return np.where(x <= threshold, np.log(middle), far)


def _tail(order: float, x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Integral over y > 0 of p^order q^(1 - order), Laplace densities about x and x'."""
    low, high = np.maximum(np.minimum(x, other), 0.0), np.maximum(np.maximum(x, other), 0.0)
    # right of both, left of both, and between them
    right = -order * (high - x) - (1.0 - order) * (high - other)
    left = np.exp(order * (low - x) + (1.0 - order) * (low - other))
    left -= np.exp(-order * x - (1.0 - order) * other)
    slope = np.where(x < other, 1.0 - 2.0 * order, 2.0 * order - 1.0)
    start = np.where(
        x < other,
        -order * (low - x) + (1.0 - order) * (low - other),
        order * (low - x) - (1.0 - order) * (low - other),
    )
    start = np.where(high > low, start, 0.0)
    between = np.exp(start) * np.expm1(slope * (high - low)) / slope
    return 0.5 * (np.exp(right) + np.where(low > 0.0, left, 0.0) + between)


def _between(order: float, reach: float, threshold: float, cells: int) -> float:
    """What N + U e^-kappa can exceed its chord by on one cell: h^2 / 8 of the second derivative."""
    corner = math.exp(-2.0 * threshold)
    steep = 2.0 * order - 1.0
    bend = math.exp(reach) * (1.0 + corner) / (1.0 - corner)
    curved = steep * steep + steep * (bend + 1.0) + 2.0 * steep * math.exp((order - 1.0) * reach)
    return (reach / cells) ** 2 / 8.0 * curved
