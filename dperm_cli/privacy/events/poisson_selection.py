"""Private selection whose number of runs has a Poisson law."""

from __future__ import annotations

from typing import Annotated

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Count, Range
from dperm_cli.privacy.accounting.random_stopping import Poisson
from dperm_cli.privacy.events.selection import MOST_RUNS, Candidates, PrivateSelection


@dataclass(frozen=True)
class PoissonSelection(PrivateSelection):
    """``count`` selections of the best of K runs, K Poisson of a ``mean``; a start where K = 0.

    A run has to be mu-GDP [PS22, Thm 6]: nothing pure follows from pure runs.

    >>> from dperm_cli.privacy.events import Gaussian
    >>> PoissonSelection([[Gaussian(scale=4.0, record_norm=0.5)]], 3.0).kind()
    'approx'
    """

    candidates: Candidates
    mean: Annotated[float, Range(1, MOST_RUNS)]
    count: Count = 1

    law = "poisson_selection"
    phrase = (
        "the best of K runs by their noisy scores, each of one of {choices} candidates, K Poisson "
        "of mean {mean}, none of them where K = 0; one does"
    )

    @property
    def runs(self) -> Poisson:
        return Poisson(self.mean)
