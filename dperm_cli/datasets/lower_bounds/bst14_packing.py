"""The hard data set of the lower bound for (epsilon, 0) [BST14, Lemma 5.1, part 1]."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, Range
from dperm_cli.datasets.shared.generated_rows import leaf
from dperm_cli.datasets.shared.lower_bound_rows import LowerBoundInstance


@dataclass(frozen=True, kw_only=True)
class Bst14Packing(LowerBoundInstance):
    """``signal`` copies of one corner d of the cube, then padding [BST14, App. C.1].

    The copies add up to norm M = signal, all records to a norm in [M - 1, M + 1]. The paper's hard
    choice is M = p / (20 epsilon); that of the sharper bound is 0.44 p / epsilon for large p
    (docs/proofs/_lower_bounds.md, Thm 3). The corner d is drawn uniformly from the seed, as is each
    member of the paper's random packing.

    >>> rows = Bst14Packing(n=100, p=4, signal=30).load().x
    >>> rows.shape, bool(abs(np.linalg.norm(rows.sum(axis=0)) - 30) <= 1.001)
    ((100, 4), True)
    """

    signal: Annotated[int, Range(0, "n"), Help("norm M of the informative sum")] = 100

    def informative(self) -> np.ndarray:
        rng = leaf(self.seed, self.name, "corner")
        corner = rng.choice([-1.0, 1.0], size=int(self.p))
        return np.tile(corner, (int(self.signal), 1))
