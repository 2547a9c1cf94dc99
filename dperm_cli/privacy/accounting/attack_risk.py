"""What a guarantee leaves to an attacker: largest true positive rates, and his advantage."""

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

    def profile(epsilon: float) -> float:
        if guarantee.kind == "local":
            return 1.0
        return accountant.delta_of(events, epsilon=epsilon, relation=guarantee.relation)

    pair = (guarantee.epsilon, guarantee.delta)
    rates = {rate: _largest_rate(rate, profile, pair) for rate in FALSE_POSITIVE_RATES}
    alone = math.tanh(pair[0] / 2.0) * (1.0 - pair[1]) + pair[1]
    return AttackRisk(rates, min(alone, profile(0.0)))


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


def bound_rate(rate: float, epsilon: float, delta: float) -> float:
    """The largest true positive rate that one pair (epsilon, delta) allows."""
    if epsilon > 600.0:
        return 1.0
    first = delta + math.exp(epsilon) * rate
    second = 1.0 - math.exp(-epsilon) * (1.0 - delta - rate)
    return min(1.0, first, second)
