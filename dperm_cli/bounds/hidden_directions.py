"""How much of a hidden direction a private release can show, from exact laws of a coordinate.

Some records say ``-L <theta, u>`` for a random direction u, which the release is to find. By
privacy the law of the release hardly depends on u, so that on average its inner product with u is
at most a share of the largest one. The functions here bound that share. ``a`` is k epsilon and
``d`` is delta_k, the delta of k records together, for (epsilon, delta) guarantees; ``ratio`` is
k mu for Gaussian ones. t is a coordinate of a uniform point of the unit sphere in b dimensions.
Proofs: docs/proofs/_hidden_directions.md.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, ndtr, ndtri

from dperm_cli.privacy.accounting import gaussian_profile

_REACH, _NODES = 9.0, 241  # of the trapezoid rule over a normal number
_LEGENDRE = 160  # nodes where a normal number is above zero
# what quadrature and special functions may be off by, relatively; tests measure a thousandth of it
ROOM = 1e-9


def cap_mean(b: int, q: np.ndarray) -> np.ndarray:
    """E[t; t among the top q], the mean of t over the cap of mass q, not divided by q.

    With the cap's height h it is Gamma(b/2) y^((b-1)/2) / (sqrt(pi) Gamma((b-1)/2) (b-1)) at
    y = 1 - h^2. y is computed itself: 1 - h^2 from h would be 0 for small caps.
    """
    q = np.asarray(q, dtype=float)
    half = np.minimum(q, 1.0 - q)
    if b == 1:
        return half
    y = _cap_square_root(b, half)
    log_factor = gammaln(b / 2.0) - gammaln((b - 1) / 2.0) - 0.5 * math.log(math.pi)
    return np.exp(log_factor - math.log(b - 1.0)) * y ** ((b - 1) / 2.0)


def cap_square(b: int, q: np.ndarray) -> np.ndarray:
    """E[t^2; t among the top q] for q at most 1/2."""
    q = np.asarray(q, dtype=float)
    if b == 1:
        return np.minimum(q, 0.5)
    return betainc((b - 1) / 2.0, 1.5, _cap_square_root(b, q)) / (2.0 * b)


def _cap_square_root(b: int, q: np.ndarray) -> np.ndarray:
    """y = 1 - h^2 of the cap t >= h of mass q <= 1/2."""
    if b == 2:  # t is the cosine of a uniform angle
        return np.square(np.sin(math.pi * np.minimum(q, 0.5)))
    if b == 3:  # t is uniform
        q = np.minimum(q, 0.5)
        return 4.0 * q * (1.0 - q)
    return betaincinv((b - 1) / 2.0, 0.5, np.minimum(2.0 * q, 1.0))


def share_of_cap(b: int, a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """An upper bound on E[w t] for (epsilon, delta): d + (e^a - e^-a) A(q) + e^-a A(d).

    A is ``cap_mean`` and q = (1 - d) / (1 + e^a).
    """
    return share_of(lambda q: cap_mean(b, q), a, d)


def share_of(mean, a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """``share_of_cap`` for any symmetric law, by its ``mean`` of the top q."""
    a, d = np.asarray(a, dtype=float), np.minimum(np.asarray(d, dtype=float), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        q = (1.0 - d) / (1.0 + np.exp(a))
        found = d + (np.exp(a) - np.exp(-a)) * mean(q) + np.exp(-a) * mean(d)
    return np.where(a < 300.0, np.minimum(found * (1.0 + ROOM), 1.0), 1.0)


def square_share(b: int, a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """An upper bound V on E[w t_+^2]-like shares for (epsilon, delta), of blocks of b coordinates.

    d + (1 - d) tanh^2(a / 2) for signs (b = 1), else d + e^a A2(q) + e^-a (1/(2b) - A2(q)).
    """
    a, d = np.asarray(a, dtype=float), np.minimum(np.asarray(d, dtype=float), 1.0)
    if b == 1:
        return np.minimum((d + (1.0 - d) * np.tanh(a / 2.0) ** 2) * (1.0 + ROOM), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        top = cap_square(b, (1.0 - d) / (1.0 + np.exp(a)))
        found = d + np.exp(a) * top + np.exp(-a) * (0.5 / b - top)
    return np.where(a < 300.0, np.minimum(found * (1.0 + ROOM), 1.0), 1.0)


def gaussian_share(b: int, ratio: np.ndarray) -> np.ndarray:
    """E F^-1(Phi(Z + ratio)), F the distribution function of t: the share for Gaussian privacy."""
    return np.minimum(_mean(lambda x: _quantile(b, x), ratio) * (1.0 + ROOM), 1.0)


def gaussian_square_share(b: int, ratio: np.ndarray) -> np.ndarray:
    """V for Gaussian privacy: E tanh(s^2 + s Z), s = ratio / 2, for signs; else
    E[(F^-1(Phi(Z + ratio)))_+^2]."""
    ratio = np.asarray(ratio, dtype=float)
    if b == 1:
        s = 0.5 * ratio[..., None]
        z, weights = _normal_nodes()
        found = np.tanh(s * s + s * z) @ weights
    else:
        found = _mean_above_zero(lambda x: _quantile(b, x) ** 2, ratio)
    return np.minimum(found * (1.0 + ROOM), 1.0)


def axes_share(p: int, ratio: np.ndarray, signed: bool) -> np.ndarray:
    """The share for Gaussian privacy where u is one of the axes, or +-one of them if ``signed``.

    Phi(ratio - z) - Phi(-ratio - z) at Phi(-z) = 1/(2p), or Phi(ratio - z) at Phi(-z) = 1/p.
    """
    ratio = np.asarray(ratio, dtype=float)
    if signed:
        z = -ndtri(0.5 / p)
        found = ndtr(ratio - z) - ndtr(-ratio - z)
    else:
        found = ndtr(ratio + ndtri(1.0 / p))
    return np.minimum(found * (1.0 + ROOM), 1.0)


def simplex_share(p: int, a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The chance of a vertex for (epsilon, delta): d + e^a min(q, 1/p) + e^-a (1/p - q)_+."""
    a, d = np.asarray(a, dtype=float), np.minimum(np.asarray(d, dtype=float), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        q = (1.0 - d) / (1.0 + np.exp(a))
        found = d + np.exp(a) * np.minimum(q, 1.0 / p)
        found = found + np.exp(-a) * np.maximum(1.0 / p - q, 0.0)
    return np.where(a < 300.0, np.minimum(found * (1.0 + ROOM), 1.0), 1.0)


def group_delta(epsilon: float, delta: float, k: np.ndarray) -> np.ndarray:
    """delta_k = delta (e^(k epsilon) - 1) / (e^epsilon - 1), at most 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = delta * np.expm1(np.asarray(k, dtype=float) * epsilon) / math.expm1(epsilon)
    return np.fmin(found, 1.0) if delta else np.zeros(np.shape(k))  # 1 where it is inf / inf


@cache
def find_mu(epsilon: float, delta: float) -> float:
    """The mu whose Gaussian privacy is (epsilon, delta)."""
    return gaussian_profile.mu(epsilon, delta)


@cache
def _normal_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a mean over a standard normal number."""
    z = np.linspace(-_REACH, _REACH, _NODES)
    weights = np.exp(-0.5 * z * z)
    return z, weights / weights.sum()


def _mean(function, ratio: np.ndarray) -> np.ndarray:
    z, weights = _normal_nodes()
    return function(z + np.asarray(ratio, dtype=float)[..., None]) @ weights


def _mean_above_zero(function, ratio: np.ndarray) -> np.ndarray:
    """E[function(Z + ratio); Z + ratio > 0], by Gauss and Legendre's rule where it is smooth."""
    nodes, weights = _unit_nodes()
    ratio = np.asarray(ratio, dtype=float)[..., None]
    width = ratio + _REACH
    x = width * nodes
    density = np.exp(-0.5 * (x - ratio) ** 2) / math.sqrt(2.0 * math.pi)
    return np.sum(function(x) * density * width * weights, axis=-1)


@cache
def _unit_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of an integral over [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_LEGENDRE)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _quantile(b: int, x: np.ndarray) -> np.ndarray:
    """F^-1(Phi(x)): the value that t is below with the chance that a normal number is below x."""
    if b == 1:
        return np.sign(x)
    return np.sign(x) * np.sqrt(np.maximum(1.0 - _cap_square_root(b, ndtr(-np.abs(x))), 0.0))
