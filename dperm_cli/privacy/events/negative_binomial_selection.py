"""Private selection whose number of runs has a truncated negative binomial law."""

from __future__ import annotations

from typing import Annotated

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Count, Range
from dperm_cli.privacy.accounting import bounded_laws
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial
from dperm_cli.privacy.events.base import PrivacyLoss
from dperm_cli.privacy.events.selection import MOST_RUNS, Candidates, PrivateSelection


@dataclass(frozen=True)
class NegativeBinomialSelection(PrivateSelection):
    """``count`` selections of the best of K >= 1 runs, K negative binomial with 0 left out.

    ``eta`` = 1 is geometric, 0 logarithmic; the chance of more runs falls as (1 - ``gamma``)^k.
    Where a run is epsilon pure, a selection is (2 + eta) epsilon pure [LT19; PS22, Cor. 3].

    >>> from dperm_cli.privacy.events import Laplace
    >>> best = NegativeBinomialSelection([[Laplace(4.0, 0.5)]], eta=1.0, gamma=0.1)
    >>> round(best.expected_runs, 6), round(best.loss("replace_one").bounded.reach, 6)
    (10.0, 0.75)
    """

    candidates: Candidates
    eta: Annotated[float, Range(above=-1, high=10)]
    gamma: Annotated[float, Range(above=0, below=1)]
    count: Count = 1

    law = "negative_binomial_selection"
    phrase = (
        "the best of K runs by their noisy scores, each of one of {choices} candidates, K >= 1 "
        "negative binomial (eta {eta}, gamma {gamma}; {expected} runs expected); one does"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.expected_runs <= MOST_RUNS:
            raise InputError("gamma", self.gamma, f"expects more than {MOST_RUNS} runs")

    @property
    def runs(self) -> NegativeBinomial:
        return NegativeBinomial(self.eta, self.gamma)

    def pure_loss(self, epsilon: float) -> PrivacyLoss:
        return PrivacyLoss(bounded=bounded_laws.pure(self.runs.pure_epsilon(epsilon), self.count))
