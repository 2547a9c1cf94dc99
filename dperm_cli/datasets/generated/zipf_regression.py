"""Regression on sparse rows whose columns have the frequencies of words (Zipf's law)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Count, Help, NonNegative, Range
from dperm_cli.datasets.shared.generated_rows import (
    INSIDE,
    Generated,
    leaf,
    responses,
)
from dperm_cli.datasets.shared.row_pipeline import Columns


@dataclass(frozen=True, kw_only=True)
class ZipfRegression(Generated):
    """Rows of norm row_bound made of ``row_nonzeros`` draws of a column, and y = <x, theta*> + w.

    Column j is drawn with probability proportional to 1 / (j + 1). A column that is drawn twice
    weighs double, as in counts of words. theta* has ``nonzeros`` coefficients of equal size and
    alternating sign on the most frequent columns, with L1 norm ``signal``. So on an L1 ball of
    radius ``signal`` it lies inside a face and is no vertex. w is uniform on [-noise, noise];
    targets are clipped to [-1, 1]. Rows are drawn, stored and used sparse.

    >>> data = ZipfRegression(n=4, p=100, row_nonzeros=10, n_test=0).load()
    >>> data.x.shape, data.x.nnz <= 4 * 10
    ((4, 100), True)
    """

    task: ClassVar[str] = "regression"

    p: Columns = 1000
    row_nonzeros: Annotated[Count, Help("draws a row, of j with chance ~ 1 / (j + 1)")] = 10
    nonzeros: Annotated[Count, Range(1, "p"), Help("coefficients, on the most popular columns")] = 4
    signal: Annotated[NonNegative, Help("L1 norm of the true parameter")] = 1.6
    noise: Annotated[NonNegative, Help("uniform on [-noise, noise]")] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        largest = self.row_bound * self.signal / self.nonzeros
        if largest * np.sqrt(min(self.nonzeros, self.row_nonzeros)) + self.noise > 1.0 + 1e-12:
            allowed = "targets must stay within 1: lower signal, row_bound or noise, or raise "
            raise InputError("dataset.signal", f"{self.signal:g}", allowed + "dataset.nonzeros")

    @property
    def row_entries(self) -> int:
        return int(self.row_nonzeros)

    @property
    def rows_in_words(self) -> str:
        return f"{self.row_nonzeros} draws of a column a row, to norm {self.row_bound:g}"

    def _parameter(self) -> np.ndarray:
        theta, k = np.zeros(int(self.p)), int(self.nonzeros)
        theta[:k] = np.where(np.arange(k) % 2 == 0, 1.0, -1.0) * (self.signal / k)
        return theta

    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        p, k = int(self.p), int(self.row_nonzeros)
        chances = np.cumsum(1.0 / np.arange(1.0, p + 1.0))
        uniform = leaf(self.seed, self.name, part, "rows").random((n, k))
        columns = np.minimum(np.searchsorted(chances, uniform * chances[-1]), p - 1)
        indptr = np.arange(0, n * k + 1, k)
        x = sparse.csr_array((np.ones(n * k), columns.ravel(), indptr), shape=(n, p))
        x.sum_duplicates()
        lengths = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
        x.data *= np.repeat(INSIDE * self.row_bound / lengths, np.diff(x.indptr))
        noise = leaf(self.seed, self.name, part, "targets").random(n)
        popular = int(self.nonzeros)  # all that theta* looks at
        y = responses(x[:, :popular].toarray(), theta) + self.noise * (2.0 * noise - 1.0)
        return x, np.clip(y, -1.0, 1.0)
