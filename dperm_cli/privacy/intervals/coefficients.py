"""Confidence intervals of the coefficients of a released minimiser: its noise, and sampling.

Proofs: ``docs/proofs/_evaluation.md``, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincc, ndtri

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.privacy.intervals.rounded_noise import check_level

_ANGLES = 4000  # of the average over directions


@dataclass(frozen=True)
class NoiseOnPoint:
    """What a released minimiser holds of noise.

    Attributes:
        on_gradient: (law, scale) of noise on the gradient of the sum over the training records,
            ``gaussian`` or ``gamma_norm`` each.
        on_point: the same of noise on the point itself.
    """

    on_gradient: tuple[tuple[str, float], ...] = ()
    on_point: tuple[tuple[str, float], ...] = ()


def find_coefficient_ends(
    theta: np.ndarray,
    curvature: np.ndarray,
    strength: float,
    reach: float,
    variance: float,
    noise: NoiseOnPoint,
    alpha: float = 0.05,
) -> tuple[np.ndarray, np.ndarray]:
    """Where the minimiser for the population lies, about, coordinate by coordinate.

    The curvature of the objective is taken ``reach`` below what was released in every direction,
    so that the intervals err to the wide side. Those of Gamma norms are added to normal ones, each
    at half of alpha.

    Args:
        theta: the released point [p].
        curvature: of the sum of losses over the training records, noise included [p, p].
        strength: of the regularisers of that sum.
        reach: how far its noise moves eigenvalues of ``curvature``.
        variance: of the slope of a record's loss over its curvature.
        noise: of the point.
        alpha: chance that one interval misses, about.

    Returns:
        Lower and upper ends [p]; infinite where the curvature may be 0.

    Raises:
        InputError: for alpha outside (0, 1).
    """
    check_level(alpha)
    values, basis = np.linalg.eigh(curvature)
    least = np.maximum(values - reach, 0.0) + strength
    most = np.maximum(values + reach, 0.0)
    if not least.min() > 0.0:
        return np.full(len(theta), -math.inf), np.full(len(theta), math.inf)
    squares = basis**2
    # J^-1 A J^-1 with A the curvature without regularisers is at most J^-1
    spread = variance * np.minimum(squares @ (most / least**2), squares @ (1.0 / least))
    lengths = np.sqrt(squares @ (1.0 / least**2))  # of the rows of J^-1
    heavy: list[tuple[np.ndarray, float]] = []
    for factors, parts in ((lengths, noise.on_gradient), (np.ones(len(theta)), noise.on_point)):
        for law, scale in parts:
            if law == "gaussian":
                spread = spread + (factors * scale) ** 2
            else:
                heavy.append((factors, scale))
    level = alpha if not heavy else alpha / 2.0
    reaches = -float(ndtri(level / 2.0)) * np.sqrt(spread)
    for factors, scale in heavy:
        reaches = reaches + factors * scale * find_norm_quantile(
            len(theta), alpha / 2.0 / len(heavy)
        )
    return theta - reaches, theta + reaches


@memoise(MIB)
def find_norm_quantile(p: int, alpha: float) -> float:
    """The t with P(|b_1| > t) = alpha, b in R^p of density proportional to exp(-|b|).

    >>> round(find_norm_quantile(1, 0.05), 3), round(-math.log(0.05), 3)
    (2.996, 2.996)
    """
    check_level(alpha)
    if p == 1:
        return -math.log(alpha)
    angles = (np.arange(_ANGLES) + 0.5) * (math.pi / 2.0 / _ANGLES)
    weights = np.sin(angles) ** (p - 2)
    weights /= weights.sum()
    sides = np.cos(angles)
    low, high = 0.0, 10.0 * p - 10.0 * math.log(alpha)
    for _ in range(60):
        middle = 0.5 * (low + high)
        chance = float(weights @ gammaincc(float(p), middle / sides))
        low, high = (middle, high) if chance > alpha else (low, middle)
    return high


def find_edge(variance: float, p: int) -> float:
    """How far noise on a packed matrix moves its eigenvalues, about: the edge of its spectrum.

    Args:
        variance: of the noise on each entry of the packed triangle.
        p: the order of the matrix.
    """
    return math.sqrt(variance) * (math.sqrt(2.0 * p) + 2.0)


def is_bounded(ends: Sequence[float]) -> bool:
    """Whether an interval has two ends."""
    return all(math.isfinite(end) for end in ends)
