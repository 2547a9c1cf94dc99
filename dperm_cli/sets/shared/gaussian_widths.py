"""Gaussian widths as sums and one-dimensional integrals, g standard Gaussian in R^p."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

_PANELS = 80


def expected_length(p: int) -> float:
    """E |g|_2 = sqrt(2) Gamma((p + 1) / 2) / Gamma(p / 2)."""
    from scipy.special import gammaln  # here and below: a refused set needs none of it

    return math.sqrt(2.0) * math.exp(float(gammaln(0.5 * (p + 1)) - gammaln(0.5 * p)))


def expected_max(p: int) -> float:
    """E max_j g_j = int_0^inf (1 - Phi^p) - (1 - Phi)^p."""
    from scipy.special import ndtr

    if p == 1:
        return 0.0
    x, w = _grid(0.0, 12.0 + math.sqrt(2.0 * math.log(p)))
    above = -np.expm1(p * np.log1p(-ndtr(-x)))
    return float(np.sum(w * (above - ndtr(-x) ** p)))


def expected_norm(p: int, power: float) -> float:
    """E |g|_s for 1 <= s <= inf.

    With an exponential Y, P(Y > (t |g_j|)^s) = E P(|g_j| < Y^{1/s} / t) =: 1 - u(t), and
    E |g|_s = int_0^inf (1 - (1 - u(t))^p) t^{-2} dt / Gamma(1 - 1/s).
    """
    from scipy.special import erfc

    if power == 1:
        return p * math.sqrt(2.0 / math.pi)
    if power == 2:
        return expected_length(p)
    if power == math.inf:
        x, w = _grid(0.0, 12.0 + math.sqrt(2.0 * math.log(2 * p)))
        return float(np.sum(w * -np.expm1(p * np.log1p(-erfc(x / math.sqrt(2.0))))))
    # p E|g|^s t^s stands for the probability at the small t left of the grid
    log_mean = 0.5 * power * math.log(2.0) + math.lgamma(0.5 * (power + 1)) - math.lgamma(0.5)
    log_mean += math.log(p)
    start = (math.log(1e-12) - log_mean) / power
    v, w = _grid(start, 32.0)
    with np.errstate(divide="ignore"):
        above = -np.expm1(p * np.log1p(-np.minimum(_expected_tail(np.exp(-v), power), 1.0)))
    head = math.exp(log_mean + (power - 1.0) * start) / (power - 1.0)
    total = head + float(np.sum(w * above * np.exp(-v))) + math.exp(-32.0)
    return total / math.gamma(1.0 - 1.0 / power)


def expected_root(axes: np.ndarray) -> float:
    """E |a * g|_2 = int_0^inf (1 - prod_j (1 + 2 s a_j^2)^{-1/2}) s^{-3/2} ds / (2 sqrt(pi))."""
    largest = float(np.max(axes))
    if largest == 0.0:
        return 0.0
    squares = (axes / largest) ** 2
    start = math.log(1e-15 / float(np.sum(squares)))
    v, w = _grid(start, 70.0)
    log_product = -0.5 * np.sum(np.log1p(2.0 * np.exp(v)[:, None] * squares), axis=1)
    head = 2.0 * float(np.sum(squares)) * math.exp(0.5 * start)
    total = head + float(np.sum(w * -np.expm1(log_product) * np.exp(-0.5 * v)))
    total += 2.0 * math.exp(-35.0)
    return largest * total / (2.0 * math.sqrt(math.pi))


def _expected_tail(reach: np.ndarray, power: float) -> np.ndarray:
    """E erfc(Y^{1/s} reach / sqrt(2)) for an exponential Y, by trapezoids in log Y."""
    from scipy.special import erfc

    step = 0.04
    y = np.arange(-64.0, 4.2, step)
    weight = step * np.exp(y - np.exp(y))
    return erfc(np.exp(y / power) * reach[:, None] / math.sqrt(2.0)) @ weight


def _grid(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a composite Gauss-Legendre rule."""
    edges = np.linspace(low, high, _PANELS + 1)
    half = 0.5 * np.diff(edges)[:, None]
    nodes, weights = _make_rule()
    return (edges[:-1, None] + half * (1.0 + nodes)).ravel(), (half * weights).ravel()


@cache
def _make_rule() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(24)  # which has to be imported
