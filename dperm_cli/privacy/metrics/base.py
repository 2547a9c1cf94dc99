"""``Metric``: what one metric adds up over held-out records, and what it says of the noisy sums.

A record's contribution is a vector of whole numbers of ``step``, made of that record and of public
facts alone. So sums are exact, and lie on the grid of secure noise (``docs/proofs/_evaluation.md``,
section 6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.privacy.intervals.rounded_noise import RoundedNoise

FINE_STEP = 2.0**-20  # of contributions that are no counts
NEARLY_ALL = 0.9  # of [0, 1]: an interval of a share that is as wide says nothing
# Errors of a regression are cut there, in targets within [-1, 1]: a quarter of the declared range.
LARGEST_ERROR = 0.5


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out records as metrics read them; every entry is made of one record alone.

    Attributes:
        labels: class numbers 0, 1, ... [n], or targets in [-1, 1] of a regression.
        predictions: of the released model, as ``labels``.
        scores: of a model of two classes, in [-1, 1]: over the largest that a row can have [n].
        chances: the model's probability of the record's own label [n]; None without a likelihood.
        groups: the number of the record's group [n]; None where none are told apart.
        rows: over the bound on their norm [n, p]; None where no metric needs them.
        bends: the second derivative of the loss at the record over the largest, in [0, 1] [n].
    """

    labels: np.ndarray
    predictions: np.ndarray
    scores: np.ndarray | None = None
    chances: np.ndarray | None = None
    groups: np.ndarray | None = None
    rows: np.ndarray | None = None
    bends: np.ndarray | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.labels)
        parts = (self.predictions, self.scores, self.chances, self.groups, self.bends)
        if len(shape) != 1 or any(part is not None and np.shape(part) != shape for part in parts):
            raise InputError("predictions", shape, "one for each label, in one dimension")

    @property
    def records(self) -> int:
        """How many records are held out."""
        return len(self.labels)


@dataclass(frozen=True)
class Reading:
    """The public facts that noisy sums are read with.

    Attributes:
        records: held-out records, a public number.
        noise: of every sum of counts; of other sums the same law without rounding.
        alpha: chance that one interval misses, rounding of the noise taken off.
        unit: what 1 in a target stands for, in the unit of the file.
        chance_of_score: the model's probability at a score in [-1, 1]; None without a likelihood.
        fit: public facts of the released point (``coefficients.FitFacts``); None without them.
    """

    records: int
    noise: RoundedNoise
    alpha: float
    unit: float = 1.0
    chance_of_score: Callable[[float], float] | None = None
    fit: Any = None


class Metric(ABC):
    """One metric, or several of the same sums.

    Attributes:
        name: by which it is asked for.
        sums: the name of what it adds up, which metrics may share; its own name by default.
        step: what a sum is a whole multiple of.
        dim: how many sums.
        l1, l2: how far replacing one record moves them together, at most, in both norms.
        terms: the most noisy sums that one of its intervals adds up.
    """

    name: ClassVar[str]
    sums: ClassVar[str] = ""
    step: ClassVar[float] = 1.0
    dim: int
    l1: float
    l2: float
    terms: int = 1
    gives_shares: ClassVar[bool] = False  # its main figures are shares, between 0 and 1

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.sums = cls.sums or cls.__dict__.get("name", "")

    @abstractmethod
    def add_up(self, held: HeldOut) -> np.ndarray:
        """The sums over these records in whole numbers of ``step``, int64 [dim]."""

    @abstractmethod
    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        """What the released sums [dim] say, as JSON-able values: figures with their intervals.

        Args:
            sums: noise included; counts as whole numbers, others in their unit.
            reading: the public facts.
        """

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        """The few figures of ``describe`` for a page: (estimate, interval) by name."""
        return {}


def is_idle(interval: tuple[float | None, float | None] | Sequence[float | None]) -> bool:
    """Whether the interval of a share is all of [0, 1], or nearly: then it says nothing.

    >>> is_idle((0.0, 0.95)), is_idle((0.3, 1.0))
    (True, False)
    """
    low, high = interval
    return low is None or high is None or high - low >= NEARLY_ALL


def find_errors(held: HeldOut) -> np.ndarray:
    """|y - prediction| of each record over the largest that counts, in [0, 1] [n]."""
    return np.minimum(np.abs(held.labels - held.predictions) / LARGEST_ERROR, 1.0)


def count_cells(numbers: np.ndarray, cells: int) -> np.ndarray:
    """How many records are in each cell, int64 [cells], from their cells' numbers [n]."""
    return np.bincount(np.asarray(numbers, dtype=np.int64), minlength=cells).astype(np.int64)


def sum_of_steps(values: np.ndarray) -> int:
    """The exact sum of numbers in [-1, 1] rounded one by one, in whole numbers of ``FINE_STEP``."""
    return int(np.rint(np.asarray(values, dtype=float) / FINE_STEP).astype(np.int64).sum())
