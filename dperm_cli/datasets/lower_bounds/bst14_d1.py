"""The data set D1 on which huberization costs n h [BST14, App. A, Lemma A.2]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dperm_cli.datasets.base import DataSet
from dperm_cli.datasets.shared import one_dimension
from dperm_cli.datasets.shared.row_pipeline import Records
from dperm_cli.problem.data import Data


@dataclass(frozen=True, kw_only=True)
class Bst14D1(DataSet):
    """n/3 records (x=-1, y=1) and 2n/3 records (x=1, y=-1), n/3 rounded to the nearest integer.

    The summed loss (y - x theta)_+ has its kink and its minimum at theta = -1.
    """

    task: ClassVar[str] = "regression"
    default_loss: ClassVar[str] = "positive_part"
    where: ClassVar[str] = "generated"

    n: Records = 3000

    @property
    def size(self) -> tuple[int, int]:
        return int(self.n), 1

    def load(self, data_dir: Path | None = None) -> Data:
        """Build the records; ``data_dir`` is not used."""
        third = round(int(self.n) / 3)
        groups = ((third, -1.0, 1.0), (int(self.n) - third, 1.0, -1.0))
        return one_dimension.records("bst14_d1", groups)
