"""The data set D2 on which huberization costs 1/h [BST14, App. A, Lemma A.3]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from dperm_cli.core.fields import Help, Positive
from dperm_cli.datasets.base import DataSet
from dperm_cli.datasets.shared import one_dimension
from dperm_cli.datasets.shared.row_pipeline import Records
from dperm_cli.problem.data import Data


@dataclass(frozen=True, kw_only=True)
class Bst14D2(DataSet):
    """max(n/2 - 1/(32 h), 0) records (x=-1, y=1), the others (x=1, y=1); h = ``width``.

    The first count is rounded to the nearest integer. The summed loss (y - x theta)_+ has slope
    -min(1/(16 h), n) on [-1, 1], up to that rounding, and its minimum at theta = 1.
    """

    task: ClassVar[str] = "regression"
    default_loss: ClassVar[str] = "positive_part"
    where: ClassVar[str] = "generated"

    n: Records = 3000
    width: Annotated[Positive, Help("the half-width h that the data set is made for")] = 0.01

    @property
    def size(self) -> tuple[int, int]:
        return int(self.n), 1

    def load(self, data_dir: Path | None = None) -> Data:
        """Build the records; ``data_dir`` is not used."""
        n = int(self.n)
        first = max(round(n / 2 - 1.0 / (32.0 * self.width)), 0)
        groups = ((first, -1.0, 1.0), (n - first, 1.0, 1.0))
        return one_dimension.records("bst14_d2", groups)
