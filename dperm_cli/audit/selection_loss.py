"""What the best of a random number of runs spends in two examples, computed from densities.

Gaussian runs whose score is what they show: with G the generating function of K, the best of K
numbers of distribution function F has the density G'(F) F'. Pure runs with three outcomes: the
likelier of two is hidden by the rarer of the better score, and the two move in opposite directions.
Both are examples, so that a claim below what they spend is wrong. Generating functions and their
slopes are written here once more, apart from those of the accountant.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dperm_cli.audit.quadrature import delta_at, place_nodes

_REACH, _PIECES = 12.0, 1600
_RARE = np.geomspace(1e-14, 0.4, 400)  # chances of the outcome that hides the other


def find_share(event: Any, epsilon: float, delta: float, relation: str) -> float:
    """The epsilon of the dearer candidate's example at ``delta``, over ``epsilon``."""
    if event.kind() == "pure":
        one = max(
            math.fsum(e.count * e.ratio(relation) for e in events) for events in event.candidates
        )
        return event.count * _spend_of_outcomes(event, one) / epsilon
    mu = math.sqrt(event.count) * event.ratio(relation)

    def excess(level: float) -> float:
        return _spend_of_numbers(event, mu, level) - delta

    most = 2.0 * epsilon
    while excess(most) > 0.0:
        most *= 2.0
    return float(brentq(excess, 0.0, most, xtol=1e-9)) / epsilon if excess(0.0) > 0.0 else 0.0  # type: ignore[arg-type]


def _spend_of_numbers(event: Any, mu: float, epsilon: float) -> float:
    """delta at epsilon of the best of K numbers N(0, 1) or N(mu, 1)."""
    x, weight = place_nodes(-_REACH, mu + _REACH, _PIECES)
    first, second = (_best_density(event, x - centre) for centre in (0.0, mu))
    return max(delta_at(epsilon, first, second, weight), delta_at(epsilon, second, first, weight))


def _best_density(event: Any, x: np.ndarray) -> np.ndarray:
    """The density of the best of K standard normal numbers; K = 0 counts for nothing."""
    return _slope(event, log_ndtr(-x)) * np.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)


def _slope(event: Any, log_beaten: np.ndarray) -> np.ndarray:
    """G'(1 - s) at the logarithm of s, the chance that one run is better."""
    return _SLOPES[event.law](event, np.exp(log_beaten))


def _slope_of_poisson(event: Any, beaten: np.ndarray) -> np.ndarray:
    return event.mean * np.exp(-event.mean * beaten)


def _slope_of_negative_binomial(event: Any, beaten: np.ndarray) -> np.ndarray:
    gamma, eta = event.gamma, event.eta
    rest = gamma + (1.0 - gamma) * beaten  # 1 - (1 - gamma) (1 - s)
    scale = -math.log(gamma) if eta == 0.0 else (gamma**-eta - 1.0) / eta
    return (1.0 - gamma) * rest ** (-eta - 1.0) / scale


_SLOPES = {
    "poisson_selection": _slope_of_poisson,
    "negative_binomial_selection": _slope_of_negative_binomial,
}


def _spend_of_outcomes(event: Any, epsilon: float) -> float:
    """The largest log ratio of the second outcome, which is shown where the first never is.

    Outcomes of chance q (the better score) and r, r far smaller: it is shown with a chance near
    r G'(1 - q). On the neighbour q is e^epsilon times as likely and r as much rarer; up to
    q = 1 / (1 + e^epsilon) the rest moves by no larger a factor.
    """
    rise = math.exp(epsilon)
    q = _RARE[1.0 / (1.0 + rise) >= _RARE]
    ratio = _slope(event, np.log(q)) / _slope(event, np.log(rise * q))
    return epsilon + float(np.max(np.log(ratio)))
