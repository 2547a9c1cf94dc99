"""The Gaussian mechanism's exact profile and its two inverses [Balle-Wang 2018; Dong-Roth-Su 2019].

A mechanism is mu-GDP when no test tells its outputs on neighbours apart better than N(mu, 1) from
N(0, 1). Its delta at epsilon is Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). With
a = epsilon/mu - mu/2, b = epsilon/mu + mu/2 and R the Mills ratio of the normal law that is
phi(a) (R(a) - R(b)), the form used here: it loses no digits at delta = 1e-300, and the difference
is taken as an integral of -R'(x) = 1 - x R(x) where mu is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri_exp

from dperm_cli.core.brent import find_root
from dperm_cli.core.memo import MIB, memoise

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_SMALL_MU = 0.25
_FAR = 50.0
# Gauss-Legendre's rule of ten nodes on [-1, 1]: to compute it takes longer than to import this
_NODES = np.array(
    [-0.9739065285171717, -0.8650633666889845, -0.6794095682990244, -0.4333953941292472,
     -0.14887433898163122, 0.14887433898163122, 0.4333953941292472, 0.6794095682990244,
     0.8650633666889845, 0.9739065285171717]
)  # fmt: skip
_WEIGHTS = np.array(
    [0.06667134430868814, 0.1494513491505804, 0.219086362515982, 0.2692667193099965,
     0.2955242247147528, 0.2955242247147528, 0.2692667193099965, 0.219086362515982,
     0.1494513491505804, 0.06667134430868814]
)  # fmt: skip
# Evaluation errors stay below this; inverses step to the private side by it.
_ROUNDING = 4e-13
_KEPT = MIB  # of inverses: calibration, its check and the report ask for the same ones


def log_delta(epsilon: float, mu: float) -> float:
    """Natural log of the delta of a mu-GDP mechanism at epsilon >= 0 (-inf for mu = 0)."""
    if mu <= 0.0:
        return -math.inf
    low, high = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    if low < 0.0 and mu >= _SMALL_MU:
        return math.log(float(ndtr(-low)) - math.exp(epsilon + float(log_ndtr(-high))))
    return _take_log(low, _mills_gap(low, mu) if mu < _SMALL_MU else _mills(low) - _mills(high))


def delta(epsilon: float, mu: float) -> float:
    """The delta of a mu-GDP mechanism at epsilon >= 0."""
    return math.exp(log_delta(epsilon, mu))


def list_deltas(epsilon: float, mus: Sequence[float]) -> list[float]:
    """``delta`` at each mu, to the last bit: together they take a fraction of the time."""
    lows = {mu: epsilon / mu - mu / 2.0 for mu in mus if 0.0 < mu < _SMALL_MU}
    near = {mu: low for mu, low in lows.items() if low <= _FAR}
    ends, widths = np.array([*near.values()]), np.array([*near])
    slopes = _mills_slopes(ends[:, None], widths[:, None])
    logs = {
        mu: _take_log(near[mu], mu / 2.0 * float(_WEIGHTS @ slope))
        for mu, slope in zip(near, slopes, strict=True)
    }
    return [math.exp(logs[mu]) if mu in logs else delta(epsilon, mu) for mu in mus]


def _take_log(low: float, gap: float) -> float:
    """The log of phi(low) times a difference of Mills ratios."""
    return -low * low / 2.0 - _HALF_LOG_2PI + math.log(gap)


@memoise(_KEPT)
def epsilon(delta: float, mu: float) -> float:
    """The smallest epsilon of a mu-GDP mechanism at delta, rounded up; inf for delta = 0 < mu."""
    if mu <= 0.0:
        return 0.0
    if not delta > 0.0:
        return math.inf
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    high = mu * mu / 2.0 + mu
    while log_delta(high, mu) > target:
        high = 2.0 * high
    return root(lambda e: log_delta(e, mu) - target, 0.0, high) * (1.0 + _ROUNDING)


@memoise(_KEPT)
def mu(epsilon: float, delta: float) -> float:
    """The largest mu whose profile stays within (epsilon, delta), rounded down."""
    target = math.log(delta)
    # delta_GM(0; mu) > mu/4 for mu <= 1, and mu = sqrt(2 eps) gives delta near 1/2 for large eps.
    low, high = 1e-12, 1.0
    while log_delta(epsilon, high) <= target:
        high = 2.0 * high
    while log_delta(epsilon, low) > target:
        low = low / 16.0
    log_mu = root(lambda m: log_delta(epsilon, math.exp(m)) - target, math.log(low), math.log(high))
    return math.exp(log_mu) * (1.0 - _ROUNDING)


def mu_of_pure(epsilon: float) -> float:
    """The mu at which every epsilon-DP step is mu-GDP [Dong-Roth-Su 2019, Prop. 1], rounded up."""
    # the logarithm of 1 / (1 + e^epsilon) does not overflow
    return -2.0 * float(ndtri_exp(-np.logaddexp(0.0, epsilon))) * (1.0 + _ROUNDING)


def pure_of_mu(mu: float) -> float:
    """The largest epsilon of which every pure step is mu-GDP, rounded down: ``mu_of_pure``'s
    inverse."""
    return float(log_ndtr(mu / 2.0) - log_ndtr(-mu / 2.0)) * (1.0 - 2.0 * _ROUNDING)


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


def _mills_gap(low: float, width: float) -> float:
    """R(low) - R(low + width), as the integral of 1 - x R(x)."""
    slope = _mills_slopes(low, width)
    if low > _FAR:  # the asymptotic series, where the difference above cancels
        x = low + width * (_NODES + 1.0) / 2.0
        slope = (1.0 - (3.0 - (15.0 - (105.0 - 945.0 / x**2) / x**2) / x**2) / x**2) / x**2
    return width / 2.0 * float(_WEIGHTS @ slope)


def _mills_slopes(low: Any, width: Any) -> np.ndarray:
    """1 - x R(x) at the nodes x of [low, low + width]: [10], of columns [k, 1] [k, 10]."""
    x = low + width * (_NODES + 1.0) / 2.0
    return 1.0 - x * math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))


def root(f: Callable[[float], float], low: float, high: float, relative: float = 1e-14) -> float:
    """The root of f between two points of opposite sign, by Brent's method."""
    return find_root(f, low, high, xtol=1e-300, rtol=relative, steps=500)
