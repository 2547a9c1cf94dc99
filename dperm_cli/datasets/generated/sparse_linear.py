"""Linear losses whose worst case sweeps how strong and how spread the signal is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Count, Help, Range
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared.generated_rows import INSIDE, Made, guard_memory, leaf
from dperm_cli.datasets.shared.row_pipeline import Columns, DrawSeed, make_data
from dperm_cli.problem.data import Data


@dataclass(frozen=True, kw_only=True)
class SparseLinear(Made):
    """``signal`` copies of one row with ``spread`` equal entries +-1/sqrt(spread), then padding.

    The padding is half c and half -c for another such row and cancels, up to one c where its length
    is odd: n and M = |sum of the informative records| are chosen apart, as in the instances of
    [BST14, Lemma 5.1]. With linear loss and an L1 ball of radius r the optimum is -r M /
    sqrt(spread) on a face of ``spread`` vertices, one of them for spread = 1: a projection to m
    dimensions takes other vertices for those once spread reaches m. Rows are stored sparse.

    >>> SparseLinear(n=200, p=50, signal=30, spread=5).load().preprocessing[0]
    '30 informative records, |their sum| = 30; 170 of padding'
    """

    task: ClassVar[str] = "binary"
    default_loss: ClassVar[str] = "linear"

    p: Columns = 1000
    signal: Annotated[int, Range(0, "n"), Help("norm M of the informative sum")] = 100
    spread: Annotated[Count, Help("nonzero entries of a row, at most p / 2")] = 10
    seed: DrawSeed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 * self.spread > self.p:
            raise InputError(
                "dataset.spread", self.spread, f"must be at most p / 2 = {self.p // 2}"
            )

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        return Size(int(self.n), int(self.p), entries=int(self.n * self.spread), dense=False)

    def load(self, data_dir: Path | None = None) -> Data:
        """Build the records; ``data_dir`` is not used."""
        (n, p), k, m = self.size, int(self.spread), int(self.signal)
        rng = leaf(self.seed, self.name)
        places = rng.permutation(p)[: 2 * k].reshape(2, k)
        signs = rng.choice([-1.0, 1.0], size=(2, k)) * (INSIDE / np.sqrt(k))
        which = np.zeros(n, dtype=int)
        which[m:] = 1
        sign = np.ones(n)
        sign[m + (n - m + 1) // 2 :] = -1.0
        with guard_memory(n, k):
            values = (sign[:, None] * signs[which]).ravel()
            indptr = np.arange(0, n * k + 1, k)
            x: Any = sparse.csr_array((values, places[which].ravel(), indptr), shape=(n, p))
            x.sort_indices()
        notes = (
            f"{m} informative records, |their sum| = {m}; {n - m} of padding",
            f"|sum of all records| = {float(np.linalg.norm(x.sum(axis=0))):.6g}",
        )
        return make_data(
            self.name, "binary", x, np.ones(n), None, None, row_bound=1.0, preprocessing=notes
        )
