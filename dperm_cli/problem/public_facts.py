"""``PublicFacts``: the facts of a data set that anybody may know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

# np.ndarray [n, p] in C order, or scipy.sparse.csr_array (scipy ships no types)
Matrix = Any


@dataclass(frozen=True)
class Bounds:
    """The public bounds from which a loss's constants follow.

    Attributes:
        row: on the L2 norm of a row.
        target: on |y|.
        radius: on |theta|_2 over the set.
        columns: the number of columns of the data.
        classes: the number of classes of a multiclass task.
    """

    row: float
    target: float
    radius: float
    columns: int
    classes: int = 2


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """All that a feature map, a projection, a plan or a schedule may follow of a data set.

    It holds no training record and no way to one. ``Data.facts`` makes it.

    Attributes
    ----------
    n : the public number of records: the declared population, or the number of training records
        where that is public or disclosed.
    p : number of columns.
    task, classes, row_bound, target_bound, entry_bound, phi, phi_row_bound : as ``Data`` has them.
    points : held-out inputs [m, p], which are published with whatever is made of them; or None.
    hidden_points : whether there are held-out inputs that are not public, since which they are, and
        how many, follows the private number of records.
    """

    n: int
    p: int
    task: str
    classes: int
    row_bound: float
    target_bound: float
    entry_bound: float | None = None
    phi: np.ndarray | None = field(default=None, repr=False)
    phi_row_bound: float | None = None
    points: Matrix | None = field(default=None, repr=False)
    hidden_points: bool = False

    def bounds(self, radius: float) -> Bounds:
        """The bounds of a problem over a set of this radius."""
        return Bounds(self.row_bound, self.target_bound, radius, self.p, self.classes)
