"""Records of a logistic model whose parameter, the population minimiser, is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.fields import Help, NonNegative
from dperm_cli.datasets.shared.generated_rows import (
    INSIDE,
    LinearModel,
    leaf,
    lengths,
    responses,
    roots,
)
from dperm_cli.datasets.shared.row_blocks import BLOCK_CELLS
from dperm_cli.datasets.shared.row_pipeline import Split
from dperm_cli.problem.data import Data

_PART = 1 << 18  # records


@dataclass(frozen=True, kw_only=True)
class SyntheticLogistic(LinearModel):
    """P(y = 1 | x) = 1 / (1 + exp(-<x, theta*>)), the direction of theta* random.

    theta* minimises the expected logistic loss over R^p, hence over any set that contains it.

    >>> data = SyntheticLogistic(n=5, p=3, signal=2.0, n_test=0).load()
    >>> data.task, data.x.shape, round(float(np.linalg.norm(data.minimiser)), 3)
    ('binary', (5, 3), 2.0)
    """

    task: ClassVar[str] = "binary"
    law: ClassVar[str] = "log_odds"

    signal: Annotated[NonNegative, Help("norm of the true parameter")] = 5.0

    def _parameter(self) -> np.ndarray:
        theta = leaf(self.seed, self.name, "theta").standard_normal((1, int(self.p)))
        return (theta * (self.signal / lengths(theta)))[0]

    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        [drawn] = self._draw_parts(part, n, theta, n)
        return drawn

    def _draw_parts(
        self, part: str, n: int, theta: np.ndarray, most: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same in parts of at most ``most`` records: the same numbers, whatever the parts."""
        rows, labels = (leaf(self.seed, self.name, part, word) for word in ("rows", "labels"))
        p = theta.size
        for start in range(0, n, most):
            count = min(most, n - start)
            x = rows.standard_normal((count, p))
            uniform = labels.random((count, 2))
            radius = np.ones(count) if self.rows == "unit" else roots(uniform[:, 1], p)
            x *= (self.row_bound * INSIDE * radius / lengths(x))[:, None]
            # compared with a uniform number: a last bit turns a label in one of 10^15 records
            likely = np.exp(-np.logaddexp(0.0, -responses(x, theta)))
            yield x, np.where(uniform[:, 0] < likely, 1.0, -1.0)

    @property
    def split_later(self) -> Split | None:
        """Parts, of sets without held-out records: these would be drawn apart."""
        return Split() if self.n_test == 0 else None

    def load_parts(self, data_dir: Path | None = None, done: int = 0) -> Iterator[Data]:
        """The records, a part at a time."""
        theta, most = self._parameter(), max(1, min(_PART, BLOCK_CELLS // int(self.p)))
        for x, y in self._draw_parts("train", int(self.n), theta, most):
            if done <= 0:
                yield self.make_part(x, y, (None, None), theta)
            done -= len(y)
