"""What a guarantee leaves to an attacker: true positive rates, advantage, and success from a prior.

Sources: Dong, Roth, Su (Gaussian differential privacy, 2022) for the trade-off function f; Kairouz,
Oh, Viswanath (2015) for the f of one pair (epsilon, delta). An attack that guesses one record's
value, with chance a before it sees the release, is right with chance 1 - f(a) at most: it is a test
of that record against another one, whose false positive rate is a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.privacy.accounting import accountant
from dperm_cli.privacy.accounting.group_privacy import guarantee_for_person, sum_of_steps
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Event

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
_POINTS = 32  # epsilons whose pairs make a curve, and between which is searched


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


class TradeOff:
    """1 - f, the largest true positive rate by false positive rate, of a plan's events.

    f is the envelope of all pairs (epsilon, delta) that the accountant certifies for the events.
    The pair of the guarantee alone is used where it gives less, and for local channels. Every pair
    is a bound by itself: what a search misses makes a number larger and never too small.

    Args:
        events: the plan's privacy events.
        guarantee: what they give for one record.
        size: records of a person that the attack is about, at most: each pair is that of the group.

    >>> from dperm_cli.privacy.events import Pure
    >>> guarantee = Guarantee("pure", 1.0, 0.0, "replace_one", "pure")
    >>> round(TradeOff((Pure(1.0),), guarantee).bound_success(0.1), 5)
    0.27183
    """

    def __init__(self, events: Sequence[Event], guarantee: Guarantee, size: int = 1) -> None:
        self._events, self._guarantee, self._size = tuple(events), guarantee, size
        whole = guarantee_for_person(guarantee, size)
        self._pair = (whole.epsilon, whole.delta)
        most = min(max(2.0 * guarantee.epsilon, guarantee.epsilon + 4.0), 600.0)
        # dense near 0, where the envelope turns most
        self._levels = [most * (k / _POINTS) ** 2 for k in range(_POINTS + 1)]

    @cached_property
    def _pairs(self) -> list[tuple[float, float]]:
        return [self._find_pair(level) for level in self._levels]

    def _find_pair(self, epsilon: float) -> tuple[float, float]:
        """The pair of the group at an epsilon of one record.

        Delta is 1 for local channels, of which the guarantee's pair alone is used.
        """
        if self._guarantee.kind == "local":
            return self._size * epsilon, 1.0
        relation = self._guarantee.relation
        delta = accountant.delta_of(self._events, epsilon=epsilon, relation=relation)
        if self._size > 1 and delta > 0.0:
            delta = min(1.0, delta * sum_of_steps(epsilon, self._size))
        return self._size * epsilon, delta

    def find_advantage(self) -> float:
        """The largest difference of true and false positive rate."""
        return min(bound_advantage(*pair) for pair in (self._pair, *self._pairs))

    def bound_success(self, rate: float) -> float:
        """1 - f at a rate, or the success of a guess from that prior: by a search for the pair."""
        from scipy import optimize

        found = [bound_rate(rate, *pair) for pair in self._pairs]
        best = min(range(len(found)), key=found.__getitem__)
        ends = (self._levels[max(best - 1, 0)], self._levels[min(best + 1, _POINTS)])
        near: Any = optimize.minimize_scalar(
            lambda epsilon: bound_rate(rate, *self._find_pair(epsilon)),
            bounds=ends, method="bounded", options={"xatol": 1e-4},
        )  # fmt: skip
        return min(bound_rate(rate, *self._pair), found[best], float(near.fun))

    def bound_curve(self, rates: Sequence[float]) -> list[float]:
        """1 - f at each of many rates, by pairs that are computed once: close above the search."""
        pairs = [self._pair, *self._pairs]
        return [min(bound_rate(rate, *pair) for pair in pairs) for rate in rates]


def find_attack_risk(events: Sequence[Event], guarantee: Guarantee) -> AttackRisk:
    """The attack risk of a plan's events, from their trade-off function."""
    found = TradeOff(events, guarantee)
    rates = {rate: found.bound_success(rate) for rate in FALSE_POSITIVE_RATES}
    return AttackRisk(rates, found.find_advantage())


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
