"""What the events of private selection have in common: the best of a random number of runs."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import Check
from dperm_cli.privacy.accounting.private_selection import RunNumberLaw, SelectionLoss
from dperm_cli.privacy.budget import weakest_kind
from dperm_cli.privacy.events.base import Event, PrivacyLoss

MOST_RUNS = 1000  # expected ones


def _read_base(key: str, value: Any) -> tuple[Event, ...]:
    """The events of one run."""
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(key, value, "must be a list of the events of one run")
    for event in value:
        if not isinstance(event, Event) or isinstance(event, PrivateSelection):
            raise InputError(key, event, "must be events of a run that is no private selection")
    return tuple(value)


Base = Annotated[tuple[Event, ...], Check(_read_base)]


class PrivateSelection(Event):
    """``count`` selections of the best of K runs, K random, by a score that each run releases.

    ``base`` are the events of one run, its score's included. A subclass has the law of K. What is
    shown is the best run, or a public start where K = 0. It is accounted for where one run is
    mu-GDP, or pure.
    """

    law = "private_selection"
    stream = "SelectionStream"

    base: tuple[Event, ...]

    @property
    @abstractmethod
    def runs(self) -> RunNumberLaw:
        """The law of K."""

    def kind(self) -> str:
        return weakest_kind(event.kind() for event in self.base)

    @property
    def expected_runs(self) -> float:
        """E K."""
        return self.runs.expected_runs

    def find_number(self, uniform: float) -> int:
        """K, from a uniform number."""
        return self.runs.find_number(uniform)

    def pure_loss(self, epsilon: float) -> PrivacyLoss:
        """What the selection spends where one run is ``epsilon`` pure."""
        raise Unsupported(f"{type(self).__name__} gives no pure guarantee; set delta above 0 and "
                          "take a run with Gaussian noise")  # fmt: skip

    def loss(self, relation: str) -> PrivacyLoss:
        losses = [event.loss(relation) for event in self.base]
        if all(loss == PrivacyLoss(mu2=loss.mu2) for loss in losses):
            mu = math.sqrt(math.fsum(loss.mu2 for loss in losses))
            return PrivacyLoss(selection=SelectionLoss(mu, self.runs, self.count))
        pure = [loss.bounded for loss in losses]
        if self.kind() == "pure" and None not in pure:
            whole = math.fsum(one.count * one.reach for one in pure if one is not None)
            return self.pure_loss(whole)
        raise Unsupported(
            "private selection is accounted for runs that are Gaussian throughout, or pure: "
            + ", ".join(dict.fromkeys(type(event).__name__ for event in self.base))
            + " are neither"
        )

    def ratio(self, relation: str) -> float:
        """The root of the sum of squared ratios of one run."""
        return math.sqrt(math.fsum(e.count * e.ratio(relation) ** 2 for e in self.base))

    def central_limit(self, ratio: float) -> float:
        """Three times what one run spends, about, as measured over budgets of practice."""
        return 3.0 * self.count * ratio**2

    def range_delta(self, relation: str, dim: int) -> float:
        one = math.fsum(event.range_delta(relation, dim) for event in self.base)
        return min(1.0, self.count * self.expected_runs * one)

    def word_facts(self) -> dict[str, Any]:
        return {"expected": self.expected_runs}

    def words(self, relation: str) -> str:
        one = "; ".join(event.words(relation) for event in self.base)
        return f"{super().words(relation)}: {one}"
