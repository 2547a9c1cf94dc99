"""Confidence intervals of the mean of numbers in [0, 1] from their sum with noise.

Nothing but the range of the numbers is assumed. Proofs: ``docs/proofs/_evaluation.md``, section 7.
"""

from __future__ import annotations

import math

from scipy.special import ndtri, xlogy

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise, check_level

SHARE_OF_NOISE = 0.2  # of alpha; the rest is for sampling
_HALVINGS = 60
Interval = tuple[float, float]


def bound_noise(noise: RoundedNoise, alpha: float) -> float:
    """The t with P(|Z| > t) = alpha, Z the noise before it is rounded."""
    check_level(alpha)
    if noise.law == "gaussian":
        return -noise.scale * float(ndtri(alpha / 2))
    return -noise.scale * math.log(alpha)


def find_mean_on_records(
    total: float, records: int, noise: RoundedNoise, alpha: float = 0.05, slack: float = 0.0
) -> Interval:
    """Where the mean over these very records lies: the noise alone is uncertain.

    Args:
        total: released sum of numbers in [0, 1], noise included.
        records: how many were added up.
        noise: law of the noise, before rounding.
        alpha: chance of missing.
        slack: how far the noise may be rounded.

    Returns:
        Lower and upper end, in [0, 1].

    Raises:
        InputError: for records below 1, or alpha outside (0, 1).

    >>> low, high = find_mean_on_records(250.0, 1000, RoundedNoise("laplace", 10.0))
    >>> round(low, 4), round(high, 4)
    (0.22, 0.28)
    """
    check_records(records)
    reach = bound_noise(noise, alpha) + slack
    return clip_share((total - reach) / records), clip_share((total + reach) / records)


def find_population_mean(
    total: float, records: int, noise: RoundedNoise, alpha: float = 0.05, slack: float = 0.0
) -> Interval:
    """Where the mean of the population lies, of which the records are an independent sample.

    A fifth of alpha bounds the noise, and Chernoff's bound with the divergence of Bernoulli laws
    [Hoeffding 1963] the sampling.

    Args, Returns, Raises: as ``find_mean_on_records``.

    >>> low, high = find_population_mean(250.0, 1000, RoundedNoise("laplace", 10.0))
    >>> round(low, 4), round(high, 4)
    (0.1699, 0.3374)
    """
    low, high = find_mean_on_records(total, records, noise, alpha * SHARE_OF_NOISE, slack)
    room = math.log(2.0 / (alpha * (1.0 - SHARE_OF_NOISE)))
    return find_chernoff_end(low, records, room, -1), find_chernoff_end(high, records, room, 1)


def find_mean_of_unknown_number(
    total: float, records: int, noise: RoundedNoise, alpha: float = 0.05, slack: float = 0.0
) -> Interval:
    """Where the mean of the population lies if the number of records is itself noisy.

    A fifth of alpha bounds the number, a fifth the sum, three fifths the sampling.

    Args:
        total: released sum of numbers in [0, 1].
        records: released number of records, noise included.
        noise: law of the noise of both.
        alpha: chance of missing.
        slack: how far the noise may be rounded.

    Returns:
        Lower and upper end, in [0, 1]; (0, 1) where the number may be 0.
    """
    reach = bound_noise(noise, alpha / 5.0) + slack
    fewest, most = math.floor(records - reach), math.ceil(records + reach)
    if fewest < 1:
        return 0.0, 1.0
    room = math.log(2.0 / (alpha * 0.6))
    low, high = clip_share((total - reach) / most), clip_share((total + reach) / fewest)
    return find_chernoff_end(low, most, room, -1), find_chernoff_end(high, fewest, room, 1)


def find_chernoff_end(mean: float, records: int, room: float, side: int) -> float:
    """The mean mu furthest from ``mean`` on one side with records * KL(mean, mu) <= room.

    Args:
        mean: of the sample, in [0, 1].
        records: of the sample.
        room: the logarithm of 1 over the chance of missing on this side.
        side: 1 for the upper end, -1 for the lower one.
    """
    if side > 0:
        return 1.0 - find_chernoff_end(1.0 - mean, records, room, -1)
    low, high = 0.0, mean
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if records * _diverge(mean, middle) <= room else (middle, high)
    return low


def check_records(records: int) -> None:
    """Refuse a sample without records."""
    if records < 1:
        raise InputError("records", records, "at least 1 held-out record")


def clip_share(value: float) -> float:
    """The number in [0, 1] that is nearest."""
    return min(1.0, max(0.0, value))


def _diverge(a: float, b: float) -> float:
    """KL(Bernoulli(a), Bernoulli(b)), infinite where b rules out what a allows."""
    if (b <= 0.0 < a) or (b >= 1.0 > a):
        return math.inf
    less = xlogy(a, b) if b > 0 else 0.0
    rest = xlogy(1.0 - a, 1.0 - b) if b < 1 else 0.0
    return float(xlogy(a, a) + xlogy(1.0 - a, 1.0 - a) - less - rest)
