"""Targets of a sparse linear model whose parameter, the population minimiser, is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.problem.data import Data
from dperm_cli.problem.datasets._generated import ball, fitting, leaf
from dperm_cli.problem.datasets._prepare import make_data

ROWS = ("unit", "clip", "none")


@dataclass(frozen=True, kw_only=True)
class SparseRegression:
    """y = <x, theta*> + w with ``nonzeros`` equal coefficients of either sign, |theta*| = signal.

    Rows are uniform on the sphere of radius row_bound (``rows=unit``) or in its ball (``clip``,
    ``none``); w is uniform on [-noise, noise] and independent of x. Targets stay within 1, which
    row_bound * signal + noise <= 1 makes sure of. theta* minimises the expected squared and
    absolute loss over R^p, hence over any set that contains it. A smaller n gives a prefix of a
    larger one.
    """

    task: ClassVar[str] = "regression"
    default_loss: ClassVar[str] = "squared"
    where: ClassVar[str] = "generated"

    n: int = 2000
    p: int = 100
    nonzeros: int = 5
    signal: float = 0.75
    noise: float = 0.25
    rows: str = "unit"
    row_bound: float = 1.0
    n_test: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        checks.integer("dataset.n", self.n, low=1)
        checks.integer("dataset.p", self.p, low=1)
        checks.integer("dataset.nonzeros", self.nonzeros, low=1, high=int(self.p))
        checks.nonnegative("dataset.signal", self.signal)
        checks.nonnegative("dataset.noise", self.noise)
        checks.choice("dataset.rows", self.rows, ROWS)
        checks.positive("dataset.row_bound", self.row_bound)
        checks.integer("dataset.n_test", self.n_test, low=0)
        checks.integer("dataset.seed", self.seed, low=0)
        if not self.row_bound * self.signal + self.noise <= 1.0 + 1e-12:
            allowed = "targets must stay within 1: row_bound * signal + noise <= 1"
            raise InputError("dataset.noise", self.noise, allowed)

    @property
    def size(self) -> tuple[int, int]:
        return int(self.n), int(self.p)

    def load(self, data_dir: Path | None = None) -> Data:
        """Draw the records; ``data_dir`` is not used."""
        with fitting(self.n, self.p):
            theta = self._parameter()
            x, y = self._draw("train", int(self.n), theta)
            held = self._draw("test", int(self.n_test), theta) if self.n_test else (None, None)
        place = "on the sphere" if self.rows == "unit" else "in the ball"
        return make_data(
            "sparse_regression", self.task, x, y, *held,
            row_bound=float(self.row_bound),
            preprocessing=(f"rows uniform {place} of radius {self.row_bound:g}",),
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
        y = x @ theta + self.noise * (2.0 * uniform[:, 0] - 1.0)
        return x, np.clip(y, -1.0, 1.0)
