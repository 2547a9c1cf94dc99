"""``PublicFacts``: the facts of a data set that anybody may know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from dperm_cli.core.dataclass import dataclass

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


class Block(NamedTuple):
    """Columns side by side that one candidate for their scaling makes of a record.

    Attributes:
        name: the candidate.
        start, stop: the first of its columns, and the first that is no longer one.
        row_bound: on the L2 norm of these columns of a row.
    """

    name: str
    start: int
    stop: int
    row_bound: float

    @property
    def width(self) -> int:
        """How many columns."""
        return self.stop - self.start


def list_blocks(names: Sequence[str], width: int, row_bounds: Sequence[float]) -> tuple[Block, ...]:
    """Blocks of so many columns each, side by side."""
    pairs = zip(names, row_bounds, strict=True)
    return tuple(Block(one, k * width, (k + 1) * width, b) for k, (one, b) in enumerate(pairs))


def bound_joint_rows(blocks: Sequence[Block]) -> float:
    """The bound on the L2 norm of rows that hold these blocks side by side."""
    return math.hypot(*(block.row_bound for block in blocks))


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
    blocks : of the columns, where rows hold those of several scalings side by side; else none.
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
    blocks: tuple[Block, ...] = ()

    def of_block(self, block: Block) -> PublicFacts:
        """Those of the data whose rows are one of the blocks."""
        return replace(
            self, p=block.width, row_bound=block.row_bound, blocks=(), points=None, phi=None,
            phi_row_bound=None,
        )  # fmt: skip

    def bounds(self, radius: float) -> Bounds:
        """The bounds of a problem over a set of this radius."""
        return Bounds(self.row_bound, self.target_bound, radius, self.p, self.classes)
