"""Confidence intervals of the area under the curve from noisy counts of scores by label."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, ndtri

from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise, check_level

_FEWEST = 10.0  # records of a class, and standard errors of their number, that an interval needs


def find_area(negative: np.ndarray, positive: np.ndarray) -> float | None:
    """The share of pairs (negative, positive) in which the positive bin is higher, ties half.

    Args:
        negative, positive: counts by bin [m] from the lowest scores up, noise included.

    Returns:
        The area, cut to [0, 1]; None where a class may have no record.

    >>> find_area(np.array([8, 2]), np.array([1, 9]))
    0.85
    """
    below, total = _count_below(negative), float(negative.sum()) * float(positive.sum())
    if negative.sum() <= 0 or positive.sum() <= 0:
        return None
    return min(1.0, max(0.0, float(positive @ below) / total))


def find_area_interval(
    negative: np.ndarray, positive: np.ndarray, noise: RoundedNoise, alpha: float = 0.05
) -> tuple[float, float]:
    """Where the area lies in the population, by a normal approximation.

    The variance is that of the linear part of the area in the counts, of sampling and of noise,
    and that of the products of noise. The interval is the hull of one for the area and one
    for the logarithm of its odds.

    Args:
        negative, positive: as ``find_area``.
        noise: law of the noise of each count.
        alpha: chance of missing, about.

    Returns:
        Lower and upper end, in [0, 1]; (0, 1) where too few records of a class are certain.

    Raises:
        InputError: for alpha outside (0, 1).
    """
    check_level(alpha)
    none, some = float(negative.sum()), float(positive.sum())
    variance = find_variance(noise)
    spread = math.sqrt(variance * len(negative))
    if min(none, some) < max(_FEWEST, _FEWEST * spread / 2.0):
        return 0.0, 1.0
    area = float(positive @ _count_below(negative)) / (none * some)
    area = min(1.0 - 0.5 / none, max(0.5 / some, area))
    up = _count_below(negative) / none - area  # what a positive record of a bin adds, times some
    down = 1.0 - _count_below(positive) / some - area
    sampling = (np.maximum(positive, 0) @ up**2) / some**2
    sampling += (np.maximum(negative, 0) @ down**2) / none**2
    drawn = variance * (up @ up / some**2 + down @ down / none**2)
    drawn += variance**2 * len(negative) ** 2 / 2.0 / (none * some) ** 2
    reach = -float(ndtri(alpha / 2.0)) * math.sqrt(sampling + drawn)
    low, high = _turn_odds(area, reach)
    return max(0.0, min(low, area - reach)), min(1.0, max(high, area + reach))


def find_variance(noise: RoundedNoise) -> float:
    """The variance of one draw, that of rounding included."""
    factor = 1.0 if noise.law == "gaussian" else 2.0
    return factor * noise.scale**2 + 1.0 / 12.0


def _turn_odds(area: float, reach: float) -> tuple[float, float]:
    """Ends whose logarithms of odds are as far from the area's as its slope says."""
    inside = min(max(area, min(0.5, reach / 2.0)), max(0.5, 1.0 - reach / 2.0))
    middle, slope = math.log(inside / (1.0 - inside)), reach / (inside * (1.0 - inside))
    return float(expit(middle - slope)), float(expit(middle + slope))


def _count_below(counts: np.ndarray) -> np.ndarray:
    """How many are in lower bins, and half of those in the bin itself, [m]."""
    return np.cumsum(counts) - 0.5 * counts
