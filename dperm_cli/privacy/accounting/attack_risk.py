"""What a guarantee leaves to an attacker: true positive rates, advantage, and success from a prior.

Sources: Dong, Roth, Su (Gaussian differential privacy, 2022) for the trade-off function f; Kairouz,
Oh, Viswanath (2015) for the f of one pair (epsilon, delta). An attack that guesses one record's
value, with chance a before it sees the release, is right with chance 1 - f(a) at most: it is a test
of that record against another one, whose false positive rate is a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import optimize

from dperm_cli.privacy.accounting import accountant
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Event

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
PRIORS = (0.1, 0.5)  # chances that a guess is right before the release is seen
_POINTS = 48  # epsilons whose pairs make a curve


@dataclass(frozen=True)
class AttackRisk:
    """Upper bounds on any attack that tells two neighbouring data sets apart by the release.

    Attributes:
        true_positive_rates: the largest, by false positive rate.
        advantage: the largest difference of the two rates: how much better than guessing.

    >>> from dperm_cli.privacy.events import Gaussian
    >>> events = (Gaussian(1.0 / 0.2367011, record_norm=1.0),)
    >>> found = find_attack_risk(events, Guarantee("approx", 1.0, 1e-6, "add_remove", "gaussian"))
    >>> round(found.advantage, 4), round(found.true_positive_rates[0.01], 4)
    (0.0942, 0.0183)
    """

    true_positive_rates: dict[float, float]
    advantage: float


def find_attack_risk(events: Sequence[Event], guarantee: Guarantee) -> AttackRisk:
    """The attack risk of a plan's events, from their privacy profile.

    The trade-off function is the envelope of all pairs (epsilon, delta) that the accountant
    certifies for the events. The pair of the guarantee alone is used where it gives less, and for
    local channels.
    """
    profile, pair = _make_profile(events, guarantee), (guarantee.epsilon, guarantee.delta)
    rates = {rate: _largest_rate(rate, profile, pair) for rate in FALSE_POSITIVE_RATES}
    return AttackRisk(rates, min(bound_advantage(*pair), profile(0.0)))


def bound_successes(
    events: Sequence[Event], guarantee: Guarantee, priors: Sequence[float] = PRIORS
) -> dict[float, float]:
    """The largest chance that a guess about one record is right, by its chance before the release.

    Args:
        events: the plan's privacy events.
        guarantee: what they give.
        priors: chances in (0, 1) that the guess is right without the release.

    Returns:
        1 - f(prior) for each prior; f is that of ``find_attack_risk``.
    """
    profile, pair = _make_profile(events, guarantee), (guarantee.epsilon, guarantee.delta)
    return {prior: _largest_rate(prior, profile, pair) for prior in priors}


def bound_curve(
    events: Sequence[Event], guarantee: Guarantee, rates: Sequence[float]
) -> list[float]:
    """The largest true positive rate at each of many false positive rates, for a picture.

    It is the envelope of a fixed number of pairs: never below ``find_attack_risk``'s exact search,
    and at most a little above it.
    """
    profile, pair = _make_profile(events, guarantee), (guarantee.epsilon, guarantee.delta)
    most = min(max(2.0 * pair[0], pair[0] + 4.0), 600.0)
    # dense near 0, where the curve turns most
    levels = [most * (k / _POINTS) ** 2 for k in range(_POINTS + 1)]
    pairs = [pair, *((level, profile(level)) for level in levels)]
    return [min(bound_rate(rate, *one) for one in pairs) for rate in rates]


def _make_profile(events: Sequence[Event], guarantee: Guarantee) -> Callable[[float], float]:
    """Delta by epsilon; 1 for local channels, of which the guarantee's pair alone is used."""

    def profile(epsilon: float) -> float:
        if guarantee.kind == "local":
            return 1.0
        return accountant.delta_of(events, epsilon=epsilon, relation=guarantee.relation)

    return profile


def _largest_rate(
    rate: float, profile: Callable[[float], float], pair: tuple[float, float]
) -> float:
    """1 - f at a false positive rate; the envelope's best pair is found by a bounded search."""
    alone = bound_rate(rate, *pair)
    most = max(2.0 * pair[0], pair[0] + 4.0)
    found: Any = optimize.minimize_scalar(
        lambda epsilon: bound_rate(rate, epsilon, profile(epsilon)),
        bounds=(0.0, min(most, 600.0)), method="bounded", options={"xatol": 1e-4},
    )  # fmt: skip
    return min(alone, float(found.fun))


def bound_advantage(epsilon: float, delta: float) -> float:
    """The largest advantage that one pair (epsilon, delta) allows.

    >>> round(bound_advantage(1.0, 0.0), 5)
    0.46212
    """
    return math.tanh(epsilon / 2.0) * (1.0 - delta) + delta


def bound_rate(rate: float, epsilon: float, delta: float) -> float:
    """The largest true positive rate that one pair (epsilon, delta) allows."""
    if epsilon > 600.0:
        return 1.0
    first = delta + math.exp(epsilon) * rate
    second = 1.0 - math.exp(-epsilon) * (1.0 - delta - rate)
    return min(1.0, first, second)
