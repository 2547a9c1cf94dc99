"""Lower bounds on the population risk: of any estimator, and of any private one.

Risks are means over records, for independent records from the worst distribution of linear losses
on a ball. Proofs: docs/proofs/_hidden_directions.md, Theorem D.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, betainc

from dperm_cli.bounds.base import Setting, check, check_unregularised, lower_bound
from dperm_cli.bounds.hidden_directions import ROOM
from dperm_cli.bounds.hidden_lower import Privacy
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.core.spaced_numbers import drop_repeats, space_by_ratio

MOST_COUNTS = 200  # numbers of records at which a share is computed
_DEVIATIONS = 6.0  # of a binomial law, beyond which all counts as shown
_TRIED = 12  # chances tried, and once more about the best

_check_ball = check(lambda at: at.spec.constraint.is_ball, "is for a Euclidean ball")


@memoise(MIB)
def find_sampling_risk(n: int) -> float:
    """The largest a (1 - TV(Bin(n, (1+a)/2), Bin(n, (1-a)/2))), in units of L R.

    Two distributions of signs with means a and -a: n records tell them apart with a chance of
    (1 + TV) / 2 at most [Le Cam].
    """

    def value(a: float) -> float:
        return a * (1.0 - _find_distance(n, a))

    best = max(_spread(0.05 / math.sqrt(n), 4.0 / math.sqrt(n)), key=value)
    return max(map(value, _spread(0.7 * best, 1.4 * best, 8 * _TRIED)))


def _find_distance(n: int, mean: float) -> float:
    """The total variation distance of the two sums of n signs: more than half of them are 1."""
    half = n // 2
    likely, rare = betainc(half + 1.0, n - half, [(1.0 + mean) / 2.0, (1.0 - mean) / 2.0])
    return min(1.0, float(likely - rare) * (1.0 + ROOM))


@memoise(MIB)
def find_private_risk(privacy: Privacy, n: int, p: int) -> float:
    """The largest (b / sqrt p) (1 - sqrt(E V(K))), K of law Bin(n, b/p), in units of L R.

    A record is -L s_j theta_j with chance b/p for each of p coordinates, s_j a hidden sign, and V
    is the share of the sign that a release of K such records can show.
    """

    def find_values(chances: list[float]) -> list[float]:
        shares = _find_mean_shares(privacy, n, [b / p for b in chances])
        both = zip(chances, shares, strict=True)
        return [b / math.sqrt(p) * (1.0 - math.sqrt(share)) for b, share in both]

    most = p * privacy.last(n, 1) / n
    tried = _spread(1e-3 * most, most)
    found = find_values(tried)
    best = tried[found.index(max(found))]
    return max(0.0, *find_values(_spread(0.7 * best, 1.4 * best)))


def _spread(low: float, high: float, count: int = _TRIED) -> list[float]:
    """Chances to try, from ``low`` to ``high`` and at most 1."""
    return drop_repeats(np.minimum(space_by_ratio(low, high, count), 1.0)).tolist()


def _find_mean_shares(privacy: Privacy, n: int, chances: Sequence[float]) -> list[float]:
    """An upper bound on E V(K) for each chance, K of law Bin(n, chance).

    V grows in K, so that a group of numbers counts as its largest.
    """
    ends, sizes = _list_ends(n, np.asarray(chances))
    below = bdtr(ends, n, np.repeat(chances, sizes))
    shares = np.where(ends > 0, privacy.square(1, np.maximum(ends, 1)), 0.0)
    stops = np.cumsum(sizes)
    starts = stops - sizes
    masses = np.empty(len(below))  # of each group of numbers
    np.subtract(below[1:], below[:-1], out=masses[1:])
    masses[starts] = below[starts]
    found = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        own = masses[start:stop]
        rest = 1.0 - float(own.sum())  # of larger numbers, which count as if all were shown
        found.append(float(own @ shares[start:stop]) + max(0.0, rest))
    return [min(1.0, share * (1.0 + ROOM)) for share in found]


def _list_ends(n: int, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest of each group of likely numbers of records, of law Bin(n, chance).

    Returns:
        Those of the first chance, then of the next, and so on; and how many there are of each.
    """
    mean = n * chances
    reach = _DEVIATIONS * np.sqrt(mean) + 20.0
    low, high = np.maximum(0.0, mean - reach), np.minimum(float(n), np.ceil(mean + reach))
    ends = np.linspace(low, high, MOST_COUNTS, axis=1).astype(np.int64)
    new = np.ones(ends.shape, dtype=bool)
    np.not_equal(ends[:, 1:], ends[:, :-1], out=new[:, 1:])
    return ends[new], new.sum(axis=1)


@lower_bound("Le Cam", _check_ball, check_unregularised, quantity="population_risk")
def sampling_error(at: Setting) -> float:
    """.34 L R / sqrt n: two distributions that n records cannot tell apart, private or not."""
    spec = at.spec
    return spec.lipschitz * spec.constraint.radius * find_sampling_risk(spec.n)


@lower_bound("hidden signs", _check_ball, check_unregularised, quantity="population_risk")
def hidden_signs(at: Setting) -> float:
    """(b L R / sqrt p) (1 - sqrt(E V(K))): signs that a private release cannot show."""
    spec = at.spec
    found = find_private_risk(Privacy.of(at.budget), spec.n, spec.p)
    return spec.lipschitz * spec.constraint.radius * found
