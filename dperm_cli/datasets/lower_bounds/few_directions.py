"""Rows of low rank on which noisy gradient descent is as bad as its rank-dependent bound."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Help, Positive, Range
from dperm_cli.datasets.base import Size
from dperm_cli.datasets.shared.generated_rows import Made, guard_memory
from dperm_cli.datasets.shared.row_pipeline import Columns, make_data
from dperm_cli.problem.data import Data


@dataclass(frozen=True, kw_only=True)
class FewDirections(Made):
    """Unit rows along ``rank`` of the p axes in turn, targets signal / sqrt(rank), - and + by axis.

    The absolute loss is 0 at the vector with these values on the axes, whose norm is ``signal``:
    the start at 0 is as far from it as the bound of docs/proofs/noisy_gd.md allows, and the way
    there is a straight line along which every axis has an equal share of the gradient. Rows are
    stored sparse.

    >>> data = FewDirections(n=6, p=50, rank=4).load()
    >>> data.x.sum(axis=0)[:5].tolist(), data.y[0].item()
    ([2.0, 2.0, 1.0, 1.0, 0.0], -0.5)
    """

    task: ClassVar[str] = "regression"
    default_loss: ClassVar[str] = "absolute"

    p: Columns = 100
    rank: Annotated[int, Range(1, "p"), Help("axes that rows lie on, at most p")] = 4
    signal: Annotated[Positive, Help("norm of the minimiser, at most sqrt(rank)")] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signal > math.sqrt(self.rank):
            allowed = f"targets must stay within 1: at most sqrt(rank) = {math.sqrt(self.rank):g}"
            raise InputError("dataset.signal", self.signal, allowed)

    def find_size(self, data_dir: Path | None = None, count: bool = False) -> Size:
        return Size(int(self.n), int(self.p), entries=int(self.n), dense=False)

    def load(self, data_dir: Path | None = None) -> Data:
        """Build the records; ``data_dir`` is not used."""
        (n, p), rank = self.size, int(self.rank)
        with guard_memory(n, 2):
            places = np.arange(n) % rank
            x = sparse.csr_array((np.ones(n), (np.arange(n), places)), shape=(n, p))
            target = self.signal / math.sqrt(rank)
            y = np.where(places % 2 == 0, -target, target)
        note = f"unit rows along {rank} axes in turn, targets -{target:.6g} and {target:.6g}"
        return make_data(
            self.name, self.task, x, y, None, None, row_bound=1.0, preprocessing=(note,)
        )
