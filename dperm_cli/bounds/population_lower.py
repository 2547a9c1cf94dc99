"""Lower bounds on the population risk: of any estimator, and of any private one.

Risks are means over records, for independent records from the worst distribution of linear losses
on a ball. Proofs: docs/proofs/_hidden_directions.md, Theorem D.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from dperm_cli.bounds.base import Setting, check, check_unregularised, lower_bound
from dperm_cli.bounds.hidden_lower import Privacy
from dperm_cli.core.memo import MIB, memoise

MOST_EXACT = 20_000  # records up to which two binomial laws are compared number by number
MOST_COUNTS = 400  # numbers of records at which a share is computed
_TAIL = 1e-15  # of a binomial law that counts as if all of it were shown
_TRIED = 60  # chances tried

_check_ball = check(lambda at: at.spec.constraint.is_ball, "is for a Euclidean ball")


@memoise(MIB)
def find_sampling_risk(n: int) -> float:
    """The largest a (1 - TV(Bin(n, (1+a)/2), Bin(n, (1-a)/2))), in units of L R.

    Two distributions of signs with means a and -a: n records tell them apart with a chance of
    (1 + TV) / 2 at most [Le Cam].
    """
    tried = np.minimum(np.geomspace(0.05, 4.0, 4 * _TRIED) / math.sqrt(n), 1.0)
    return max(float(a) * (1.0 - _find_distance(n, float(a))) for a in tried)


def _find_distance(n: int, mean: float) -> float:
    """An upper bound on the total variation distance of the two sums of n signs."""
    if n > MOST_EXACT:  # by the Hellinger affinity (1 - a^2)^(1/2) of one sign
        return math.sqrt(-math.expm1(n * math.log1p(-(mean**2)))) if mean < 1.0 else 1.0
    counts = np.arange(n + 1)
    apart = binom.pmf(counts, n, (1.0 + mean) / 2.0) - binom.pmf(counts, n, (1.0 - mean) / 2.0)
    return float(np.sum(np.maximum(apart, 0.0)))


@memoise(MIB)
def find_private_risk(privacy: Privacy, n: int, p: int) -> float:
    """The largest (b / sqrt p) (1 - sqrt(E V(K))), K of law Bin(n, b/p), in units of L R.

    A record is -L s_j theta_j with chance b/p for each of p coordinates, s_j a hidden sign, and V
    is the share of the sign that a release of K such records can show.
    """
    most = p * privacy.last(n, 1) / n
    tried = np.unique(np.minimum(np.geomspace(1e-3, 1.0, _TRIED) * most, 1.0))
    values = (
        float(b) / math.sqrt(p) * (1.0 - math.sqrt(_mean_share(privacy, n, float(b) / p)))
        for b in tried
    )
    return max(0.0, *values)


def _mean_share(privacy: Privacy, n: int, chance: float) -> float:
    """An upper bound on E V(K): V grows in K, so that a group of numbers counts as its largest."""
    low, high = binom.ppf(_TAIL, n, chance), binom.isf(_TAIL, n, chance)
    if not (math.isfinite(low) and math.isfinite(high)):
        reach = -float(ndtri(_TAIL)) * math.sqrt(n * chance) + 40.0
        low, high = max(0.0, n * chance - reach), min(float(n), n * chance + reach)
    ends = np.unique(np.linspace(low, high, MOST_COUNTS).astype(np.int64))
    ends = np.append(ends[ends < high], int(high))
    masses = np.diff(np.append(0.0, binom.cdf(ends, n, chance)))
    shares = np.where(ends > 0, privacy.square(1, np.maximum(ends, 1)), 0.0)
    rest = max(0.0, 1.0 - float(np.sum(masses)))
    return min(1.0, float(masses @ shares) + rest + 2.0 * _TAIL)


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
