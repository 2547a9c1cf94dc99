"""What shuffling adds to local answers: a proved delta for n users in an order that nobody knows.

Each user sends one answer of a channel that is epsilon_0-locally private. Seen from one user, any
other answer is with chance e^-epsilon_0 a clone: a fair draw from the same two laws between which
that user's answer lies. Bound: the hockey stick between two laws of counts, summed in floating
point, with every error of rounding and of truncation added. Proof: docs/proofs/_shuffling.md.
Source: [FMT21, Thm 3.2].
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.privacy.accounting.gaussian_profile import root

MOST_LOCAL = 100.0  # local epsilons above it are taken for no privacy
MOST_USERS = 10**9
LEAST_DELTA = 1e-200
TAIL_EXPONENT = 92.0  # numbers of clones outside the window have a chance of 2 e^-92
BLOCKS = (256, 4096)  # of numbers of clones that are evaluated: least and most
WORK = 1e6  # blocks times the root of the mean number of clones
CLOSE = 1e-9  # relative width of what a search returns
_UNIT = 2.0**-53
_TINY = 1e-300
_EXACT_LENGTH = 16  # below it the error of Stirling's formula is a table
_CHUNK = 64  # terms of a tail between two looks


def delta_of(local_epsilon: float, users: int, epsilon: float) -> float:
    """An upper bound on delta(epsilon) of ``users`` shuffled answers, under replace_one.

    Args:
        local_epsilon: epsilon_0 of one answer.
        users: how many users answer once each, n.
        epsilon: that of the shuffled answers, at least 0.

    Returns:
        A number that the exact delta of no such protocol exceeds.

    Raises:
        ValueError: numbers outside their ranges.

    >>> round(delta_of(1.0, 1, 0.5), 6), delta_of(1.0, 5, 1.0)
    (0.287649, 0.0)
    """
    _check(local_epsilon, users)
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon={epsilon}: must be at least 0")
    if epsilon >= local_epsilon:
        return 0.0
    # alpha - e^epsilon (1 - alpha), the bound without any clone
    alone = -math.expm1(epsilon - local_epsilon) / (1.0 + math.exp(-local_epsilon))
    alone *= 1.0 + 32.0 * _UNIT
    if users == 1:
        return alone
    counts, weights, left = _weigh_clones(local_epsilon, users - 1)
    found = float(np.sum(weights * _bound_given_clones(counts, local_epsilon, epsilon, alone)))
    found *= 1.0 + (len(counts) + 8) * _UNIT
    return min(alone, found + left + _TINY)


def amplify(local_epsilon: float, users: int, delta: float) -> float:
    """The least epsilon at which the bound is ``delta``, rounded up: that of shuffled answers.

    Returns:
        An epsilon between 0 and ``local_epsilon``.

    >>> round(amplify(1.0, 10_000, 1e-8), 4)
    0.0689
    """
    _check(local_epsilon, users)
    _check_delta(delta)
    if delta_of(local_epsilon, users, 0.0) <= delta:
        return 0.0

    def lacks(epsilon: float) -> float:
        return _log_ratio(delta_of(local_epsilon, users, epsilon), delta)

    found = root(lacks, 0.0, float(local_epsilon), 0.5 * CLOSE)
    while found < local_epsilon and delta_of(local_epsilon, users, found) > delta:
        found *= 1.0 + CLOSE
    return min(found, float(local_epsilon))


def find_local_epsilon(epsilon: float, delta: float, users: int) -> float:
    """The largest local epsilon with which shuffled answers keep to (epsilon, delta), rounded down.

    Returns:
        At least ``epsilon``; ``MOST_LOCAL`` where larger ones would do.

    >>> round(find_local_epsilon(1.0, 1e-8, 10_000), 3)
    4.436
    """
    _check(epsilon, users)
    _check_delta(delta)
    if delta_of(MOST_LOCAL, users, epsilon) <= delta:
        return MOST_LOCAL

    def exceeds(local_epsilon: float) -> float:
        return _log_ratio(delta_of(local_epsilon, users, epsilon), delta)

    found = root(exceeds, float(epsilon), MOST_LOCAL, 0.5 * CLOSE)
    while found > epsilon and delta_of(found, users, epsilon) > delta:
        found *= 1.0 - CLOSE
    return max(found, float(epsilon))


def _log_ratio(found: float, delta: float) -> float:
    """ln(found / delta), at least -700: above 0 where the bound is too large."""
    return max(math.log(max(found, _TINY) / delta), -700.0)


def _check(local_epsilon: float, users: int) -> None:
    if not 0.0 < local_epsilon <= MOST_LOCAL:
        raise ValueError(f"epsilon={local_epsilon}: must be above 0 and at most {MOST_LOCAL:g}")
    if not 1 <= users <= MOST_USERS:
        raise ValueError(f"users={users}: must be 1 to {MOST_USERS}")


def _check_delta(delta: float) -> None:
    if not LEAST_DELTA <= delta < 1.0:
        raise ValueError(f"delta={delta}: must be at least {LEAST_DELTA:g} and below 1")


def _weigh_clones(local_epsilon: float, others: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Numbers of clones, upper bounds on their chances, and the chance of those left out.

    A number stands for all up to the next one: more clones never have a larger delta.
    """
    share, rest = math.exp(-local_epsilon), -math.expm1(-local_epsilon)
    mean, third = others * share, TAIL_EXPONENT / 3.0
    # Bernstein; one more for the rounding of the mean
    reach = third + math.sqrt(third**2 + 2.0 * mean * rest * TAIL_EXPONENT) + 1.0
    first, last = max(0, math.floor(mean - reach)), min(others, math.ceil(mean + reach))
    top = min(max(math.floor(mean), first), last)
    odds = 1.0 / math.expm1(local_epsilon)
    above = np.arange(top, last, dtype=float)
    below = np.arange(top, first, -1.0)
    rising = np.cumprod((others - above) / (above + 1.0) * odds)
    falling = np.cumprod(below / (others - below + 1.0) / odds)
    sizes = np.concatenate([falling[::-1], [1.0], rising])
    far = max(last - top, top - first) + 1
    weights = sizes / np.sum(sizes) * (1.0 + 32.0 * far * _UNIT)
    blocks = min(len(sizes), round(min(max(WORK / math.sqrt(mean + 1.0), BLOCKS[0]), BLOCKS[1])))
    starts = np.unique(np.linspace(0, len(sizes) - 1, blocks).astype(int))
    whole = first == 0 and last == others
    left = 0.0 if whole else 2.0 * math.exp(-TAIL_EXPONENT)
    return (first + starts).astype(float), np.add.reduceat(weights, starts), left


def _bound_given_clones(
    counts: np.ndarray, local_epsilon: float, epsilon: float, alone: float
) -> np.ndarray:
    """Upper bounds on delta given c clones: alone b(t - 1) - (e^epsilon - 1) P(X >= t).

    X has the law Bin(c, 1/2) and the chances b. Its t is the first count at which the likelihood
    ratio exceeds e^epsilon.
    """
    edge = math.expm1(-epsilon - local_epsilon) / (
        math.expm1(-local_epsilon) * (1.0 + math.exp(-epsilon))
    )
    place = (counts + 1.0) * edge
    first = np.minimum(np.floor(place) + 1.0, counts + 1.0)
    before, error = _half_binomial(counts, first - 1.0)
    tail, terms = _sum_tail(counts, first)
    gain = alone * before * (1.0 + error)
    loss = math.expm1(epsilon) * before * tail * (1.0 - error - (4.0 * terms + 32.0) * _UNIT)
    found = gain - np.maximum(loss, 0.0)
    # where rounding may have moved t by one
    near = np.abs(place - np.rint(place)) <= 64.0 * _UNIT * place
    earlier = before * (first - 1.0) / (counts - first + 2.0)
    slack = 256.0 * _UNIT * (1.0 + math.exp(epsilon)) * (before + earlier)
    return np.clip(found + near * slack, 0.0, alone)


def _half_binomial(counts: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(Bin(c, 1/2) = k) by Stirling's formula with its error, and its relative rounding error."""
    rest = counts - places
    inside = (places > 0.0) & (rest > 0.0)
    c, k, j = (np.where(inside, value, 1.0) for value in (counts, places, rest))
    c = np.where(inside, c, 2.0)
    away = (k - j) / c
    deviance = k * np.log1p(away) + j * np.log1p(-away)
    excess = _stirling_error(c) - _stirling_error(k) - _stirling_error(j)
    found = np.sqrt(c / (2.0 * math.pi * k * j)) * np.exp(excess - deviance)
    error = (16.0 * np.abs(k - j) + 256.0) * _UNIT
    return np.where(inside, found, np.exp2(-counts)), error


def _stirling_error(lengths: np.ndarray) -> np.ndarray:
    """ln k! - ln(sqrt(2 pi k) k^k e^-k) of whole k >= 1, to 50 units of 2^-53."""
    table = [
        math.log(math.factorial(k) / (k / math.e) ** k / math.sqrt(2.0 * math.pi * k))
        for k in range(1, _EXACT_LENGTH)
    ]
    exact = np.array([0.0, *table])
    long = np.maximum(lengths, float(_EXACT_LENGTH))
    one = 1.0 / long**2
    series = 1 / 12 - one * (1 / 360 - one * (1 / 1260 - one * (1 / 1680 - one / 1188)))
    # the series alternates, and its next term at 16 is 1e-16
    place = np.minimum(lengths, _EXACT_LENGTH - 1.0).astype(int)
    return np.where(lengths < _EXACT_LENGTH, exact[place], series / long)


def _sum_tail(counts: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, int]:
    """P(X >= t) / P(X = t - 1) of Bin(c, 1/2), from below, and the number of terms."""
    total, term = np.zeros_like(counts), np.ones_like(counts)
    most = int(np.max(counts - first)) + 1
    for start in range(0, most, _CHUNK):
        steps = np.arange(start, start + _CHUNK)[:, None]
        ratios = np.maximum(counts - first + 1.0 - steps, 0.0) / (first + steps)
        terms = np.cumprod(np.concatenate([term[None], ratios]), axis=0)
        total, term = total + np.sum(terms[1:], axis=0), terms[-1]
        if np.all(term <= 1e-18 * total):
            return total, start + _CHUNK
    return total, max(most, 1)
