"""Decide whether one more release fits into a budget, when each is planned after the ones before.

Plans that are chosen after releases were seen may follow these releases. Adding up privacy curves
with the accountant is then no valid rule for when to stop. What is used here are filters: rules
that are proved for such sequences (docs/proofs/_budgets.md).

- ``pure``: the epsilons add up to epsilon at most.
- ``gaussian``: all releases are Gaussian, and their mu^2 add up to mu(epsilon, delta)^2 at most.
- ``mixed``: as ``pure``; or the Renyi divergences at one order, fixed when the budget is opened,
  add up to a room fixed with it, and the deltas of other releases to a share of delta kept for
  them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dperm_cli.core.brent import find_minimum
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.group_privacy import guarantee_for_person
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Event, Gaussian

RULES = ("mixed", "pure", "gaussian")
# sums of decimal numbers in binary: three times 0.1 is not beyond 0.3
_ROUNDING = 1.0 + 1e-12
KEPT_SHARE = 0.1  # of delta, for releases that are neither pure nor Gaussian


@dataclass(frozen=True)
class Spend:
    """What one release takes, for all records of a person.

    Attributes:
        epsilon: of a pure release, or with ``delta`` of any other; 0 for a Gaussian one.
        delta: of a release that is neither pure nor Gaussian.
        mu: of a Gaussian release, as of N(0, 1) and N(mu, 1).
    """

    epsilon: float = 0.0
    delta: float = 0.0
    mu: float = 0.0

    def renyi(self, order: float) -> float:
        """The Renyi divergence of this order, without what ``delta`` is for."""
        return renyi_of_pure(self.epsilon, order) + order * self.mu**2 / 2.0

    def for_replacement(self) -> Spend:
        """What it takes under replace_one, where this is for add_remove: a removal and an addition.

        >>> Spend(epsilon=0.5).for_replacement(), Spend(mu=0.25).for_replacement().mu
        (Spend(epsilon=1.0, delta=0.0, mu=0.0), 0.5)
        """
        return Spend(2.0 * self.epsilon, (1.0 + math.exp(self.epsilon)) * self.delta, 2.0 * self.mu)


@dataclass(frozen=True)
class BudgetFilter:
    """The rule of one budget; all of it is fixed when the budget is opened.

    Attributes:
        epsilon, delta, relation: of the budget.
        rule: one of ``RULES``.
        order, room: of the Renyi divergences, for ``mixed``.
        kept_delta: what other releases' deltas may add up to, for ``mixed``.

    >>> opened = BudgetFilter.open(3.0, 0.0)
    >>> one = Spend(epsilon=1.0)
    >>> opened.allows([one, one, one]), opened.allows([one, one, one, Spend(epsilon=0.1)])
    (True, False)
    """

    epsilon: float
    delta: float
    relation: str = "replace_one"
    rule: str = "pure"
    order: float = 0.0
    room: float = 0.0
    kept_delta: float = 0.0

    @classmethod
    def open(
        cls,
        epsilon: float,
        delta: float,
        relation: str = "replace_one",
        rule: str | None = None,
        kept_share: float = KEPT_SHARE,
    ) -> BudgetFilter:
        """The filter of a new budget.

        Args:
            epsilon, delta, relation: of the budget.
            rule: one of ``RULES``; None is ``pure`` without delta, else ``mixed``.
            kept_share: of delta, for releases that are neither pure nor Gaussian.

        Raises:
            InputError: the rule needs a delta.
        """
        rule = rule or ("mixed" if delta else "pure")
        if rule != "pure" and not delta:
            raise InputError("rule", rule, "needs delta above 0; without one it is pure")
        if rule != "mixed":
            return cls(epsilon, delta, relation, rule)
        kept = kept_share * delta
        order, room = choose_order(epsilon, delta - kept)
        return cls(epsilon, delta, relation, rule, order, room, kept)

    def allows(self, spends: Sequence[Spend]) -> bool:
        """Whether all of these releases together keep to the budget."""
        pure = not any(spend.delta or spend.mu for spend in spends)
        if self.rule == "gaussian":
            if any(spend.epsilon or spend.delta for spend in spends):
                return False
            return math.fsum(spend.mu**2 for spend in spends) <= self.mu**2
        if pure and math.fsum(spend.epsilon for spend in spends) <= self.epsilon * _ROUNDING:
            return True
        if self.rule == "pure":
            return False
        if math.fsum(spend.delta for spend in spends) > self.kept_delta:
            return False
        return math.fsum(spend.renyi(self.order) for spend in spends) <= self.room

    @property
    def mu(self) -> float:
        """The mu that all of the budget is worth."""
        return gaussian_profile.mu(self.epsilon, self.delta)

    def largest_pure(self, spends: Sequence[Spend]) -> float:
        """The largest epsilon that one more pure release may have, to six digits below."""
        return self._largest(spends, lambda size: Spend(epsilon=size), self.epsilon)

    def largest_gaussian(self, spends: Sequence[Spend]) -> float:
        """The largest mu that one more Gaussian release may have, to six digits below."""
        if self.rule == "pure":
            return 0.0
        return self._largest(spends, lambda size: Spend(mu=size), self.mu)

    def _largest(self, spends: Sequence[Spend], make: Any, whole: float) -> float:
        if self.allows([*spends, make(whole)]):
            return whole
        low, high = 0.0, whole
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.allows([*spends, make(middle)]) else (low, middle)
        return low if low > 1e-9 * whole else 0.0


def spend_of(events: Sequence[Event], found: Guarantee, persons_records: int = 1) -> Spend:
    """What a release takes of a budget under its own relation.

    Args:
        events: of its plan.
        found: what they give for one record.
        persons_records: how many records of one person count.
    """
    if all(isinstance(event, Gaussian) for event in events):
        square = math.fsum(event.draws * event.ratio(found.relation) ** 2 for event in events)
        return Spend(mu=persons_records * math.sqrt(square))
    whole = guarantee_for_person(found, persons_records)
    return Spend(epsilon=whole.epsilon, delta=whole.delta)


def choose_order(epsilon: float, delta: float) -> tuple[float, float]:
    """(order, room) with the most room for Gaussian releases.

    A Renyi divergence of at most ``room`` at this order gives (epsilon, delta).

    >>> order, room = choose_order(1.0, 1e-6)
    >>> round(order, 1), round(room, 3)
    (22.0, 0.535)
    """

    def negative_share(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        return -room_at(order, epsilon, delta) / order

    found = find_minimum(negative_share, -6.0, 16.0, xtol=1e-10)
    order = 1.0 + math.exp(found.x)
    room = room_at(order, epsilon, delta)
    if room <= 0.0:
        allowed = f"is too small beside delta {delta:g} for a mixed budget: say rule=pure"
        raise InputError("epsilon", epsilon, allowed)
    return order, room


def room_at(order: float, epsilon: float, delta: float) -> float:
    """The Renyi divergence of this order that gives (epsilon, delta) [Canonne, Kamath, Steinke
    2020, Prop. 12]."""
    return epsilon - math.log1p(-1.0 / order) + (math.log(delta) + math.log(order)) / (order - 1.0)


def renyi_of_pure(epsilon: float, order: float) -> float:
    """The largest Renyi divergence of this order of an epsilon-private release.

    It is that of randomized response: ln((sinh(a e) - sinh((a - 1) e)) / sinh(e)) / (a - 1).

    >>> renyi_of_pure(0.0, 20.0), round(renyi_of_pure(0.1, 2.0), 6)
    (0.0, 0.009959)
    """
    if epsilon == 0.0:
        return 0.0
    # ratios to e^(a e): nothing overflows
    top = -math.expm1(-2.0 * order * epsilon)
    less = math.exp(-epsilon) * -math.expm1(-2.0 * (order - 1.0) * epsilon)
    under = -math.expm1(-2.0 * epsilon)
    logarithm = (order - 1.0) * epsilon + math.log((top - less) / under)
    return min(epsilon, max(0.0, logarithm / (order - 1.0)))
