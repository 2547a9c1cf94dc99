"""Targets of a sparse linear model whose parameter, the population minimiser, is known."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Count, Help, NonNegative, Range
from dperm_cli.datasets.shared.generated_rows import (
    LinearModel,
    ball,
    leaf,
    responses,
)
from dperm_cli.datasets.shared.row_pipeline import Columns


@dataclass(frozen=True, kw_only=True)
class SparseRegression(LinearModel):
    """y = <x, theta*> + w with ``nonzeros`` equal coefficients of either sign.

    w is uniform on [-noise, noise] and independent of x. Targets stay within 1, which
    row_bound * signal + noise <= 1 makes sure of. theta* minimises the expected squared and
    absolute loss over R^p, hence over any set that contains it.

    >>> data = SparseRegression(n=5, p=20, nonzeros=3, signal=0.75, n_test=0).load()
    >>> int(np.count_nonzero(data.minimiser)), round(float(np.linalg.norm(data.minimiser)), 3)
    (3, 0.75)
    """

    task: ClassVar[str] = "regression"
    law: ClassVar[str] = "even_noise"

    p: Columns = 100
    nonzeros: Annotated[Count, Range(1, "p"), Help("coefficients of the truth, at most p")] = 5
    signal: Annotated[NonNegative, Help("norm of the true parameter")] = 0.75
    noise: Annotated[NonNegative, Help("uniform; row_bound * signal + noise <= 1")] = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.row_bound * self.signal + self.noise <= 1.0 + 1e-12:
            allowed = "targets must stay within 1: row_bound * signal + noise <= 1"
            raise InputError("dataset.noise", f"{self.noise:g}", allowed)

    def _parameter(self) -> np.ndarray:
        rng = leaf(self.seed, self.name, "theta")
        k = int(self.nonzeros)
        theta = np.zeros(int(self.p))
        places = rng.permutation(int(self.p))[:k]
        theta[places] = rng.choice([-1.0, 1.0], size=k) * (self.signal / np.sqrt(k))
        return theta

    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        uniform = leaf(self.seed, self.name, part, "targets").random((n, 2))
        rng = leaf(self.seed, self.name, part, "rows")
        x = ball(rng, n, theta.size, None if self.rows == "unit" else uniform[:, 1])
        x *= float(self.row_bound)
        y = responses(x, theta) + self.noise * (2.0 * uniform[:, 0] - 1.0)
        return x, np.clip(y, -1.0, 1.0)
