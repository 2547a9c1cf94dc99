"""One-dimensional records (x, y) with x and y in {-1, 1} [BST14, App. A]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.datasets.base import DataSet
from dperm_cli.datasets.shared.generated_rows import guard_memory
from dperm_cli.datasets.shared.row_pipeline import Records, make_data
from dperm_cli.problem.data import Data


@dataclass(frozen=True, kw_only=True)
class OneDimension(DataSet, ABC):
    """A few groups of equal records, for the summed loss (y - x theta)_+."""

    task: ClassVar[str] = "regression"
    default_loss: ClassVar[str] = "positive_part"
    where: ClassVar[str] = "generated"

    n: Records = 3000

    @property
    def size(self) -> tuple[int, int]:
        return int(self.n), 1

    @abstractmethod
    def groups(self) -> tuple[tuple[int, float, float], ...]:
        """(count, x, y) of each group, in the order of the records."""

    def load(self, data_dir: Path | None = None) -> Data:
        """Build the records; ``data_dir`` is not used."""
        groups = self.groups()
        with guard_memory(sum(count for count, _, _ in groups), 1):
            x = np.concatenate([np.full((count, 1), a) for count, a, _ in groups])
            y = np.concatenate([np.full(count, b) for count, _, b in groups])
        note = ", ".join(f"{count} x (x={a:+g}, y={b:+g})" for count, a, b in groups)
        return make_data(
            self.name, self.task, x, y, None, None, row_bound=1.0, preprocessing=(note,)
        )
