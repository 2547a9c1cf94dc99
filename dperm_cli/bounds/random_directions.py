"""Upper bounds on how much a reweighted random direction correlates with any fixed direction.

A random direction u is drawn, depending on the set:

- Euclidean ball: uniformly from the sphere;
- box: uniformly from the corners of the cube;
- cross-polytope: uniformly from the 2 p unit vectors +-e_j.

For a fixed extreme point theta of the set, t is <theta, u> divided by its largest value over the
set. So t is symmetric about 0 and at most 1. Every bound here follows from the function
E(t - x)_+ of x, which is called the gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betainc, gammaln

_HALVINGS = 60  # bisection steps
_EXACT = 10_000  # dimensions up to which the difference of two integrals keeps its digits


Gain = Callable[[int, np.ndarray], np.ndarray]


def log_gain(p: int, x: np.ndarray) -> np.ndarray:
    """ln E(t - x)_+ on the sphere for 0 < x < 1, or an upper bound of it where that underflows.

    t has density c (1 - t^2)^{(p-3)/2}. Exact: A - x V with A = c S^{(p-1)/2} / (p - 1),
    V = Pr[t > x], S = 1 - x^2. From above: c S^{(p+1)/2} / (x^2 (p^2 - 1)), since
    t - x <= (t^2 - x^2) / (2 x) and dt <= d(t^2) / (2 x).
    """
    x = np.asarray(x, dtype=float)
    if p == 1:
        return np.log((1.0 - x) / 2.0)
    square = np.maximum((1.0 - x) * (1.0 + x), 1e-300)
    log_c = gammaln(p / 2.0) - gammaln((p - 1) / 2.0) - 0.5 * math.log(math.pi)
    above = log_c + (p + 1) / 2.0 * np.log(square) - 2.0 * np.log(x) - math.log(p * p - 1.0)
    if p > _EXACT:
        return above
    mean = np.exp(log_c + (p - 1) / 2.0 * np.log(square) - math.log(p - 1))
    exact = mean - x * betainc((p - 1) / 2.0, 0.5, square) / 2.0
    usable = exact > 1e-8 * mean
    usable &= mean > 1e-280
    return np.where(usable, np.log(np.where(usable, exact, 1.0)) + 1e-7, above)


def log_gain_of_corners(p: int, x: np.ndarray) -> np.ndarray:
    """As ``log_gain``, for t the mean of p random signs.

    A sum up to p = 200; above, Chernoff's bound: (t - x)_+ <= e^{l (t - x)} / (e l) at
    l = p artanh(x) gives e^{-p d(x)} / (e p artanh x), where d(x) is the divergence of a sign of
    mean x from a fair one.
    """
    x = np.clip(np.asarray(x, dtype=float), 1e-300, 1.0 - 1e-16)
    if p <= 200:
        ones = np.arange(p + 1)
        log_law = gammaln(p + 1) - gammaln(ones + 1) - gammaln(p - ones + 1) - p * math.log(2.0)
        beyond = np.maximum((2.0 * ones - p) / p - x[..., None], 0.0)
        return np.log(np.maximum(beyond @ np.exp(log_law), 1e-300)) + 1e-10
    divergence = (1 + x) / 2 * np.log1p(x) + (1 - x) / 2 * np.log1p(-x)
    return -p * divergence - 1.0 - np.log(p * np.arctanh(x))


def log_gain_of_axes(p: int, x: np.ndarray) -> np.ndarray:
    """As ``log_gain``, for t = 1 or -1 with probability 1 / (2 p) each and 0 otherwise."""
    return np.log(np.maximum(1.0 - np.asarray(x, dtype=float), 1e-300) / (2.0 * p))


def choose_gain(body: Any) -> Gain | None:
    """The log gain of a set: a Euclidean ball, a cube or an L1 ball; None for other sets."""
    if body.is_ball:
        return log_gain
    if body.half_side is not None:
        return log_gain_of_corners
    hull = body.axis_hull
    return log_gain_of_axes if hull is not None and hull.signed else None


def bound_correlation(p: int, log_ratio: np.ndarray, gain_of: Gain = log_gain) -> np.ndarray:
    """An upper bound on E[w t] / E[w] over all weights w(u) with sup w <= e^log_ratio inf w.

    The best weights take two values, the larger one where t > x, and x is the bound itself: the
    root of (e^log_ratio - 1) E(t - x)_+ = x. For p = 1 it is tanh(log_ratio / 2).
    """
    a = np.asarray(log_ratio, dtype=float)
    if p == 1:
        return np.tanh(a / 2.0)
    log_factor = a + np.log(-np.expm1(-a))
    low, high = np.zeros_like(a), np.ones_like(a)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        beyond = log_factor + gain_of(p, middle) <= np.log(middle)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return high


def bound_one_sided_correlation(p: int, level: np.ndarray, gain_of: Gain = log_gain) -> np.ndarray:
    """An upper bound on E[w t] over weights in [e^-level, e^level] with E w = 1.

    For every x, E[w t] <= x + e^level E(t - x)_+ - e^-level E(x - t)_+. The result is the least of
    these over a grid of x.
    """
    b = np.asarray(level, dtype=float)[..., None]
    x = np.append((np.arange(400) + 0.5) / 400.0, 1.0 - 1e-12)
    gain = gain_of(p, x)
    values = -np.expm1(-b) * x + np.exp(np.minimum(b + gain, 700.0)) - np.exp(gain - b)
    return np.minimum(1.0, np.min(values, axis=-1))
