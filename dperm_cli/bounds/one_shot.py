"""Upper bounds for linear losses: one noisy sum of all gradients, and the best point for it.

Linear losses are what the lower bounds are made of. Their sum is known from one vector, which is
released once with noise Z; the answer minimises the noisy sum over the set. Proofs:
docs/proofs/_hidden_directions.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv, gammaln, hyp1f1, lambertw, ndtr

from dperm_cli.core.brent import find_minimum
from dperm_cli.core.memo import MIB, memoise

_GRID = 400  # of lengths tried
_NODES = 400  # of radii and of angles in quadratures
ROUNDING = 1.0 + 1e-12  # what a function of SciPy may be off by
ROOM = 1e-4  # what a quadrature with a Gamma norm may be off by; tests measure a tenth of it


def mean_cosine(p: int, x: float) -> float:
    """E (x + Z_1)/|x e_1 + Z| for a standard normal Z in p dimensions.

    It is x Gamma((p+1)/2) 1F1(1/2; p/2 + 1; -x^2/2) / (sqrt(2) Gamma(p/2 + 1)).
    """
    if p == 1:
        return 2.0 * float(ndtr(x)) - 1.0
    log_factor = float(gammaln((p + 1) / 2.0) - gammaln(p / 2.0 + 1.0)) - 0.5 * math.log(2.0)
    return x * math.exp(log_factor) * float(hyp1f1(0.5, p / 2.0 + 1.0, -0.5 * x * x))


@memoise(MIB)
def find_gaussian_risk(p: int, longest: float) -> float:
    """The largest x (1 - c_p(x)) over x <= ``longest``, c_p the ``mean_cosine``.

    Times 2 L R / mu it bounds the risk of Gaussian noise of scale 2 L / mu on a ball of radius R.
    """
    return _find_largest(lambda x: x * (1.0 - mean_cosine(p, x)), min(longest, 3.0 * p**0.5 + 10.0))


@memoise(MIB)
def find_gamma_risk(p: int, longest: float) -> float:
    """The same for noise of density proportional to e^-|z|; times 2 L R / epsilon it is for pure
    privacy."""
    if p == 1:
        at = min(1.0, longest)
        return at * math.exp(-at)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    radii, shares = gammaincinv(p, 0.5 * (nodes + 1.0)), 0.5 * weights
    cosines, angles = _list_angles(p)

    def risk(x: float) -> float:
        r, w = radii[:, None], cosines[None]
        along = (x + r * w) / np.sqrt(x * x + r * r + 2.0 * x * r * w)
        return x * (1.0 - float(shares @ along @ angles))

    return (1.0 + ROOM) * _find_largest(risk, min(longest, 3.0 * p + 10.0))


@memoise(MIB)
def find_side_risk(longest: float) -> float:
    """The largest 2 x (1 - Phi(x)) over x <= ``longest``: of one coordinate of a cube."""
    return _find_largest(lambda x: 2.0 * x * float(ndtr(-x)), min(longest, 10.0))


def find_draw_risk(points: int) -> float:
    """The largest mean of gaps x_i >= 0 with weights e^-x_i, one of ``points`` gaps being 0.

    It is W((points - 1)/e), W being Lambert's function: the others then have equal gaps.
    """
    return ROUNDING * float(lambertw((points - 1) / math.e).real)


def _list_angles(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a mean over a coordinate of a uniform point of the sphere."""
    angle = (np.arange(_NODES) + 0.5) * math.pi / _NODES
    weights = np.exp((p - 2.0) * np.log(np.sin(angle)))
    return np.cos(angle), weights / weights.sum()


def _find_largest(function, longest: float) -> float:
    """The largest value on [0, longest] of a function with one peak."""
    tried = np.linspace(0.0, longest, _GRID)[1:]
    values = [function(x) for x in tried]
    place = int(np.argmax(values))
    low, high = tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]
    found = find_minimum(lambda x: -function(x), low, high)
    return max(values[place], -found.value)
