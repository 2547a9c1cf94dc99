"""The data set D1, on which rounding the kink off (huberization) costs n h [BST14, Lemma A.2]."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.shared.one_dimension import OneDimension


@dataclass(frozen=True, kw_only=True)
class Bst14D1(OneDimension):
    """n/3 records (x=-1, y=1) and 2n/3 records (x=1, y=-1), n/3 rounded to the nearest integer.

    The summed loss (y - x theta)_+ has its kink and its minimum at theta = -1.

    >>> Bst14D1(n=300).groups()  # (count, x, y)
    ((100, -1.0, 1.0), (200, 1.0, -1.0))
    """

    def groups(self) -> tuple[tuple[int, float, float], ...]:
        third = round(int(self.n) / 3)
        return ((third, -1.0, 1.0), (int(self.n) - third, 1.0, -1.0))
