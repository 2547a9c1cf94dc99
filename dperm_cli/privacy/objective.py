"""The event of objective perturbation, and what it spends [CMS11, Alg. 2; KST12; BST14, App. E].

The minimiser over C of F(theta; D) + (Lam / 2) |theta|^2 + <b, theta> is released, b drawn from
N(0, scale^2 I) or from the density prop. to exp(-|b| / scale). Its density is that of b, times a
Jacobian. Replacing a record moves b by the difference v of two gradients at the released point, and
the log-Jacobian by at most J = rank ln(1 + curvature / Lam). So the loss is at most

    J + (what noise of this scale spends on v)

with |v| <= S. Gamma norm: J + S / scale. Gaussian: v depends on b, so the loss is not that of a
Gaussian mechanism. For a loss of the margin v = a x - a' x', with |a x|, |a' x'| <= L, lies in a
rhombus whose half-diagonals m1, m2 (times the scale) obey m1^2 + m2^2 = s^2 = (2 L / scale)^2;
the loss is at most J + max_k (m_k |g_k| + m_k^2 / 2) for independent standard normals g1, g2. With

    H(e; m) = E (1 - exp(e - m |g| - m^2 / 2))_+
            = 2 delta_GM(e; m) where e >= m^2 / 2, else 1 - 2 e^e Phi(-m),

delta(epsilon) <= sup 1 - (1 - H(e; m1)) (1 - H(e; m2)), e = epsilon - J, which is at most
2 delta_GM(e; s) where e >= s sqrt(1 + s^2 / 4). A record that comes or goes has one direction:
H(e; L / scale). Proofs: docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from dperm_cli.privacy import _gdp

_ANGLES = 32
_ROUND_UP = 1.0 + 1e-12


def noise_epsilon(delta: float, ratio: float, relation: str) -> float:
    """The least e >= 0 with ``noise_delta(e, ratio, relation)`` <= delta, rounded up."""
    if noise_delta(0.0, ratio, relation) <= delta:
        return 0.0
    edge = _edge(ratio, relation)
    far = _gdp.epsilon(delta / 2.0, ratio)
    if far >= edge:
        return far
    low, high = 0.0, edge
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        enough = noise_delta(middle, ratio, relation) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def noise_delta(e: float, ratio: float, relation: str) -> float:
    """What Gaussian noise leaves at e >= 0 beside the Jacobian; ``ratio`` = sensitivity / scale."""
    if ratio <= 0.0:
        return 0.0
    if e >= _edge(ratio, relation):
        return min(1.0, 2.0 * _gdp.delta(e, ratio) * _ROUND_UP)
    if relation == "add_remove":
        return half_normal(e, ratio)
    # every angle lies in a cell, and H rises with m
    angle = np.linspace(0.0, math.pi / 4.0, _ANGLES + 1)
    wide = ratio * np.cos(angle[:-1])
    narrow = ratio * np.sin(angle[1:])
    both = zip(wide, narrow, strict=True)
    kept = [(1.0 - half_normal(e, a)) * (1.0 - half_normal(e, b)) for a, b in both]
    return min(1.0, (1.0 - min(kept)) * _ROUND_UP)


def half_normal(e: float, m: float) -> float:
    """H(e; m) = E (1 - exp(e - m |g| - m^2 / 2))_+ for a standard normal g, e >= 0."""
    if m <= 0.0:
        return 0.0
    if e >= m * m / 2.0:
        return min(1.0, 2.0 * _gdp.delta(e, m) * _ROUND_UP)
    return min(1.0, -math.expm1(math.log(2.0) + e + float(log_ndtr(-m))) + 1e-15)


def noise_ratio(e: float, delta: float, relation: str) -> float:
    """A ratio with ``noise_delta(e, ratio, relation)`` <= delta, rounded down.

    The largest one, wherever that is on the near side of ``_edge``.
    """
    high = _gdp.mu(e, delta / 2.0) * (1.0 - 1e-11)
    if noise_delta(e, high, relation) <= delta:
        return high
    low = high
    while noise_delta(e, low, relation) > delta:
        low /= 2.0
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if noise_delta(e, middle, relation) <= delta else (low, middle)
    return low


def _edge(ratio: float, relation: str) -> float:
    """The e from which H is 2 delta_GM, and from which one direction is the worst case."""
    if relation == "add_remove":
        return ratio * ratio / 2.0
    return ratio * math.sqrt(1.0 + ratio * ratio / 4.0)
