"""Exact confidence intervals of an accuracy from a noisy count of correct predictions.

Proofs: ``docs/proofs/_evaluation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.rounded_noise import CountNoise, check_level

_LOST = 1e-17  # chance of the binomial values that a sum leaves out, by Hoeffding's bound
_HALVINGS = 60
SHARE_OF_TOTAL = 0.2  # of alpha, for an unknown number of records


def find_upper_chance(y: int, n_test: int, accuracy: float, noise: CountNoise) -> float:
    """P(Bin(n_test, accuracy) + N >= y), up to 1e-17 and rounding; it grows with the accuracy."""
    reach = math.sqrt(n_test * math.log(2 / _LOST) / 2) + 1
    low = max(0, math.floor(n_test * accuracy - reach))
    high = min(n_test, math.ceil(n_test * accuracy + reach))
    counts = np.arange(low, high + 1)
    return float(binom.pmf(counts, n_test, accuracy) @ noise.tail(y - counts))


def find_population_interval(
    y: int, n_test: int, noise: CountNoise, alpha: float = 0.05
) -> tuple[float, float]:
    """Where the accuracy on the population lies, for a public number of held-out records.

    The held-out records are an independent sample. All a with P_a(Y >= y) and P_a(Y <= y) at least
    alpha/2, Y = Bin(n_test, a) + N: the ends count sampling and noise, and miss with chance at most
    alpha, whatever a is.

    Args:
        y: released count of correct predictions, noise included; any whole number.
        n_test: held-out records.
        noise: law of the noise of y.
        alpha: chance of missing.

    Returns:
        Lower and upper end, in [0, 1].

    Raises:
        InputError: for n_test below 1, or alpha outside (0, 1).

    >>> from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise
    >>> low, high = find_population_interval(850, 1000, RoundedNoise("laplace", 10.0))
    >>> round(low, 5), round(high, 5)
    (0.81211, 0.88564)
    """
    check_level(alpha)
    _check_records(n_test)
    low = _find_first(lambda a: find_upper_chance(y, n_test, a, noise) >= alpha / 2)[0]
    high = _find_first(lambda a: 1 - find_upper_chance(y + 1, n_test, a, noise) < alpha / 2)[1]
    return low, high


def find_interval_on_records(
    y: int, n_test: int, noise: CountNoise, alpha: float = 0.05
) -> tuple[float, float]:
    """Where the accuracy on these very records lies: the noise alone is uncertain.

    Args, Returns, Raises: as ``find_population_interval``.

    >>> from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise
    >>> find_interval_on_records(850, 1000, RoundedNoise("laplace", 10.0))
    (0.82, 0.88)
    """
    check_level(alpha)
    _check_records(n_test)
    reach = noise.bound(alpha)
    return _cut((y - reach) / n_test), _cut((y + reach) / n_test)


def find_interval_of_unknown_number(
    right: int,
    wrong: int,
    noise: CountNoise,
    alpha: float = 0.05,
    *,
    wrong_noise: CountNoise | None = None,
) -> tuple[float, float]:
    """Where the accuracy on the population lies if the number of records is itself noisy.

    For ``add_remove``, where the number of held-out records is private. A fifth of alpha bounds
    that number by the sum of both counts; the rest is for the accuracy, at the least favourable
    number within the bound.

    Args:
        right: released count of correct predictions.
        wrong: released count of other predictions.
        noise: law of the noise of each count.
        alpha: chance of missing.
        wrong_noise: law of the noise of ``wrong``, where it is another.

    Returns:
        Lower and upper end, in [0, 1]; (0, 1) where the number may be 0.

    Raises:
        InputError: for alpha outside (0, 1).
    """
    check_level(alpha)
    half = alpha * SHARE_OF_TOTAL / 2
    reach = noise.bound(half) + (wrong_noise or noise).bound(half)
    fewest, most = right + wrong - reach, right + wrong + reach
    if fewest < 1:
        return 0.0, 1.0
    rest = alpha * (1 - SHARE_OF_TOTAL)
    low = find_population_interval(right, most, noise, rest)[0]
    return low, find_population_interval(right, fewest, noise, rest)[1]


def _find_first(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Two numbers around the least a in [0, 1] with ``holds``, which stays true above it.

    The lower one is a valid lower end, the upper one a valid upper end.
    """
    if holds(0.0):
        return 0.0, 0.0
    if not holds(1.0):
        return 1.0, 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _check_records(n_test: int) -> None:
    if n_test < 1:
        raise InputError("n_test", n_test, "at least 1 held-out record")


def _cut(value: float) -> float:
    return min(1.0, max(0.0, value))
