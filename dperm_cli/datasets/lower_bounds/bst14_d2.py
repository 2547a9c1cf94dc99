"""The data set D2 on which huberization costs 1/h [BST14, App. A, Lemma A.3]."""

from __future__ import annotations

from typing import Annotated

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, Positive
from dperm_cli.datasets.shared.one_dimension import OneDimension


@dataclass(frozen=True, kw_only=True)
class Bst14D2(OneDimension):
    """max(n/2 - 1/(32 h), 0) records (x=-1, y=1), the others (x=1, y=1); h = ``width``.

    The first count is rounded to the nearest integer. The summed loss (y - x theta)_+ has slope
    -min(1/(16 h), n) on [-1, 1], up to that rounding, and its minimum at theta = 1.

    >>> Bst14D2(n=100, width=0.01).groups()  # (count, x, y)
    ((47, -1.0, 1.0), (53, 1.0, 1.0))
    """

    width: Annotated[Positive, Help("the half-width h that the data set is made for")] = 0.01

    def groups(self) -> tuple[tuple[int, float, float], ...]:
        n = int(self.n)
        first = max(round(n / 2 - 1.0 / (32.0 * self.width)), 0)
        return ((first, -1.0, 1.0), (n - first, 1.0, 1.0))
