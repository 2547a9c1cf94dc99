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
H(e; L / scale).

A minimiser is never released as a solver found it: a second event pays for the distance that the
solver may have left. With Gaussian events of mu2 in all beside it,

    delta(epsilon) <= E h(epsilon - mu2^2 / 2 - mu2 z),  z ~ N(0, 1),

h the bound above as a function of epsilon, 1 below J (``joint_delta``). Proofs:
docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtr

from dperm_cli.core.memo import MIB, memoise
from dperm_cli.privacy.accounting import gaussian_profile

_ANGLES = 32
_ROUND_UP = 1.0 + 1e-12
_CELLS = 16  # in which the range below the edge of the closed form is cut
_NEGLIGIBLE = 1e-9  # of delta: what that range adds where the closed form is all there is


def noise_epsilon(delta: float, ratio: float, relation: str) -> float:
    """The least e >= 0 with ``noise_delta(e, ratio, relation)`` <= delta, rounded up."""
    if noise_delta(0.0, ratio, relation) <= delta:
        return 0.0
    edge = _edge(ratio, relation)
    far = gaussian_profile.epsilon(delta / 2.0, ratio)
    if far >= edge:
        return far
    return _halve(lambda e: noise_delta(e, ratio, relation) <= delta, 0.0, edge)[1]


def noise_delta(e: float, ratio: float, relation: str) -> float:
    """What Gaussian noise leaves at e >= 0 beside the Jacobian; ``ratio`` = sensitivity / scale."""
    if ratio <= 0.0:
        return 0.0
    if e >= _edge(ratio, relation):
        return min(1.0, 2.0 * gaussian_profile.delta(e, ratio) * _ROUND_UP)
    if relation == "add_remove":
        return half_normal(e, ratio)
    # every angle lies in a cell, and H rises with m
    angle = np.linspace(0.0, math.pi / 4.0, _ANGLES + 1)
    wide = ratio * np.cos(angle[:-1])
    narrow = ratio * np.sin(angle[1:])
    shares = _half_normals(e, [*wide.tolist(), *narrow.tolist()])
    both = zip(shares[:_ANGLES], shares[_ANGLES:], strict=True)
    kept = [(1.0 - a) * (1.0 - b) for a, b in both]
    return min(1.0, (1.0 - min(kept)) * _ROUND_UP)


def joint_delta(e: float, ratio: float, second: float, relation: str) -> float:
    """What Gaussian noise leaves at e beside the Jacobian, with ``second``-GDP releases beside it.

    A bound on E h(e - mu^2 / 2 - mu z), mu = ``second``, h = ``noise_delta`` at 0 and above and 1
    below. From ``_edge`` on h is at most 2 delta_GM(.; ratio), of which the expectation is
    2 delta_GM(e; sqrt(ratio^2 + mu^2)). The range below the edge is cut into cells: h falls, so its
    value at the lower end of a cell bounds it there.
    """
    if e < 0.0:
        return 1.0
    if second <= 0.0:
        return noise_delta(e, ratio, relation)
    both = 2.0 * gaussian_profile.delta(e, math.hypot(ratio, second))
    outside = _outside(e, ratio, second, relation)
    if outside > _NEGLIGIBLE * both:
        ends, values = _below_edge(ratio, relation)
        chances = np.diff(ndtr((ends + second * second / 2.0 - e) / second), prepend=0.0)
        outside = float(chances @ values)
    return min(1.0, (both + outside) * _ROUND_UP)


@memoise(budget=8 * MIB)
def _below_edge(ratio: float, relation: str) -> tuple[np.ndarray, np.ndarray]:
    """Upper ends of cells of (-inf, edge], and bounds on h in them."""
    ends = _edge(ratio, relation) * np.arange(_CELLS + 1) / _CELLS
    values = [1.0, *(noise_delta(float(end), ratio, relation) for end in ends[:-1])]
    return ends, np.array(values)


def joint_epsilon(delta: float, ratio: float, second: float, relation: str) -> float:
    """The least e >= 0 with ``joint_delta(e, ratio, second, relation)`` <= delta, rounded up."""
    if second <= 0.0:
        return noise_epsilon(delta, ratio, relation)
    if joint_delta(0.0, ratio, second, relation) <= delta:
        return 0.0
    both = math.hypot(ratio, second)
    high = gaussian_profile.epsilon(delta / 2.0, both)
    outside = _outside(high, ratio, second, relation)
    if outside <= _NEGLIGIBLE * delta:
        # a hair further out, where even less is outside
        return gaussian_profile.epsilon((delta / _ROUND_UP - outside) / 2.0, both)
    high = max(high, second)
    while joint_delta(high, ratio, second, relation) > delta:
        high *= 2.0
    return _halve(lambda e: joint_delta(e, ratio, second, relation) <= delta, 0.0, high)[1]


def _halve(
    enough: Callable[[float], bool], low: float, high: float, closest: float = 1e-9
) -> tuple[float, float]:
    """Halve [low, high] about where ``enough`` begins to hold, which it does not at low."""
    while high - low > closest * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high


def _outside(e: float, ratio: float, second: float, relation: str) -> float:
    """The chance that the second stage leaves less of e than ``_edge``."""
    return float(ndtr((_edge(ratio, relation) + second * second / 2.0 - e) / second))


def half_normal(e: float, m: float) -> float:
    """H(e; m) = E (1 - exp(e - m |g| - m^2 / 2))_+ for a standard normal g, e >= 0."""
    return _half_normals(e, [m])[0]


def _half_normals(e: float, ratios: list[float]) -> list[float]:
    """``half_normal`` at each of some m."""
    closed = [m for m in ratios if m > 0.0 and e >= m * m / 2.0]
    deltas = dict(zip(closed, gaussian_profile.list_deltas(e, closed), strict=True))
    return [
        min(1.0, 2.0 * deltas[m] * _ROUND_UP) if m in deltas else _below_half(e, m) for m in ratios
    ]


def _below_half(e: float, m: float) -> float:
    if m <= 0.0:
        return 0.0
    return min(1.0, -math.expm1(math.log(2.0) + e + float(log_ndtr(-m))) + 1e-15)


def noise_ratio(
    e: float, delta: float, relation: str, second: Callable[[float], float] = lambda ratio: 0.0
) -> float:
    """A ratio with ``joint_delta(e, ratio, second(ratio), relation)`` <= delta, rounded down.

    The largest one, wherever that is on the near side of ``_edge``. ``second`` is the mu of the
    releases beside it, at most the ratio itself, and may not fall.
    """

    def fits(ratio: float) -> bool:
        return joint_delta(e, ratio, second(ratio), relation) <= delta

    high = gaussian_profile.mu(e, delta / 2.0) * (1.0 - 1e-11)
    if fits(high):
        return high
    low = high
    while not fits(low):
        low /= 2.0
    # near the edge a bound is a sum of many terms, and a rough one
    closest = 1e-12 if e >= 2.0 * _edge(high, relation) else 1e-6
    return _halve(lambda ratio: not fits(ratio), low, high, closest)[0]


def _edge(ratio: float, relation: str) -> float:
    """The e from which H is 2 delta_GM, and from which one direction is the worst case."""
    if relation == "add_remove":
        return ratio * ratio / 2.0
    return ratio * math.sqrt(1.0 + ratio * ratio / 4.0)
