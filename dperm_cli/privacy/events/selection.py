"""What the events of private selection have in common: the best of a random number of runs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.fields import Check
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.random_stopping import RunNumberLaw, SelectionLoss
from dperm_cli.privacy.budget import weakest_kind
from dperm_cli.privacy.events.base import Event, PrivacyLoss

MOST_RUNS = 1000  # expected ones


def _read_candidates(key: str, value: Any) -> tuple[tuple[Event, ...], ...]:
    """The events of one run, for each candidate."""
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(key, value, "must be a list of candidates")
    for events in value:
        sound = isinstance(events, (list, tuple)) and len(events) > 0
        if not sound or not all(_is_of_a_run(event) for event in events):
            words = "must be a list of the events of one run, which is no private selection"
            raise InputError(key, events, words)
    return tuple(tuple(events) for events in value)


def _is_of_a_run(event: Any) -> bool:
    return isinstance(event, Event) and not isinstance(event, PrivateSelection)


Candidates = Annotated[tuple[tuple[Event, ...], ...], Check(_read_candidates)]


class PrivateSelection(Event):
    """``count`` selections of the best of K runs, K random, by a score that each run releases.

    ``candidates`` has the events of one run, its score's included, for each candidate that a run
    may try; which one it tries is drawn, all alike. A subclass has the law of K. What is shown is
    the best run and its candidate, or a public start where K = 0. It is accounted for where every
    run is of Gaussian and pure steps, at the dearest candidate.
    """

    stream = "SelectionStream"

    candidates: tuple[tuple[Event, ...], ...]

    @property
    @abstractmethod
    def runs(self) -> RunNumberLaw:
        """The law of K."""

    @property
    def alternatives(self) -> tuple[tuple[Event, ...], ...]:
        """The candidates."""
        return self.candidates

    def kind(self) -> str:
        return weakest_kind(event.kind() for events in self.candidates for event in events)

    @property
    def by_record_names(self) -> bool:
        return any(event.by_record_names for events in self.candidates for event in events)

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
        runs = [[event.loss(relation) for event in events] for events in self.candidates]
        if self.kind() == "pure" and all(loss.bounded is not None for run in runs for loss in run):
            return self.pure_loss(max(_add_epsilons(run) for run in runs))
        squares = [[_square_mu(loss) for loss in run] for run in runs]
        if all(square is not None for run in squares for square in run):
            mu = math.sqrt(max(math.fsum(filter(None, run)) for run in squares))
            return PrivacyLoss(selection=SelectionLoss(mu, self.runs, self.count))
        names = {type(event).__name__: None for events in self.candidates for event in events}
        raise Unsupported(
            "private selection is accounted for runs of Gaussian and pure steps, and "
            f"{', '.join(names)} are not all of these; use mechanism.inner=noisy_gd"
        )

    def ratio(self, relation: str) -> float:
        """The root of the sum of squared ratios of one run, of the dearest candidate."""
        squares = (
            math.fsum(event.count * event.ratio(relation) ** 2 for event in events)
            for events in self.candidates
        )
        return math.sqrt(max(squares))

    def central_limit(self, ratio: float) -> float:
        """Three times what one run spends, about, as measured over budgets of practice."""
        return 3.0 * self.count * ratio**2

    def range_delta(self, relation: str, dim: int) -> float:
        one = max(
            math.fsum(event.range_delta(relation, dim) for event in events)
            for events in self.candidates
        )
        return min(1.0, self.count * self.expected_runs * one)

    def word_facts(self) -> dict[str, Any]:
        return {"expected": self.expected_runs, "choices": len(self.candidates)}

    def words(self, relation: str) -> str:
        runs = {"; ".join(e.words(relation) for e in events): None for events in self.candidates}
        return f"{super().words(relation)}: {' -- or: '.join(runs)}"


def _square_mu(loss: PrivacyLoss) -> float | None:
    """mu^2 of Gaussian or pure steps: every epsilon-DP step is mu-GDP; None of any other."""
    if loss == PrivacyLoss(mu2=loss.mu2):
        return loss.mu2
    steps = loss.bounded
    if steps is None or loss != PrivacyLoss(bounded=steps, updates=loss.updates):
        return None
    return steps.count * gaussian_profile.mu_of_pure(steps.reach) ** 2


def _add_epsilons(losses: Sequence[PrivacyLoss]) -> float:
    """The epsilon of pure steps one after another."""
    steps = (loss.bounded for loss in losses)
    return math.fsum(step.count * step.reach for step in steps if step is not None)
