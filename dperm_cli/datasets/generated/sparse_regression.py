"""Targets of a sparse linear model whose parameter, the population minimiser, is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Count, Help, NonNegative, Range
from dperm_cli.datasets.shared.generated_rows import (
    LinearModel,
    ball,
    guard_memory,
    leaf,
    responses,
)
from dperm_cli.datasets.shared.row_pipeline import Columns, make_data
from dperm_cli.problem.data import Data


@dataclass(frozen=True, kw_only=True)
class SparseRegression(LinearModel):
    """y = <x, theta*> + w with ``nonzeros`` equal coefficients of either sign.

    w is uniform on [-noise, noise] and independent of x. Targets stay within 1, which
    row_bound * signal + noise <= 1 makes sure of. theta* minimises the expected squared and
    absolute loss over R^p, hence over any set that contains it.
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

    def load(self, data_dir: Path | None = None) -> Data:
        """Draw the records; ``data_dir`` is not used."""
        with guard_memory(self.n, self.p):
            theta = self._parameter()
            x, y = self._draw("train", int(self.n), theta)
            held = self._draw("test", int(self.n_test), theta) if self.n_test else (None, None)
        return make_data(
            "sparse_regression", self.task, x, y, *held,
            row_bound=float(self.row_bound),
            preprocessing=(self.rows_in_words,),
            minimiser=theta,
        )  # fmt: skip

    def _parameter(self) -> np.ndarray:
        rng = leaf(self.seed, "sparse_regression", "theta")
        k = int(self.nonzeros)
        theta = np.zeros(int(self.p))
        places = rng.permutation(int(self.p))[:k]
        theta[places] = rng.choice([-1.0, 1.0], size=k) * (self.signal / np.sqrt(k))
        return theta

    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        uniform = leaf(self.seed, "sparse_regression", part, "targets").random((n, 2))
        rng = leaf(self.seed, "sparse_regression", part, "rows")
        x = ball(rng, n, theta.size, None if self.rows == "unit" else uniform[:, 1])
        x *= float(self.row_bound)
        y = responses(x, theta) + self.noise * (2.0 * uniform[:, 0] - 1.0)
        return x, np.clip(y, -1.0, 1.0)
