"""Records of a logistic model whose parameter, the population minimiser, is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError
from dperm_cli.core.rng import generator, seed_sequence
from dperm_cli.problem.data import Data
from dperm_cli.problem.datasets._prepare import make_data

ROWS = ("unit", "clip", "none")


@dataclass(frozen=True, kw_only=True)
class SyntheticLogistic:
    """P(y = 1 | x) = 1 / (1 + exp(-<x, theta*>)), theta* of norm ``signal``, its direction random.

    Rows are uniform on the sphere of radius row_bound (``rows=unit``) or in its ball (``clip``,
    ``none``). theta* minimises the expected logistic loss over R^p, hence over any set that
    contains it. Rows and labels are drawn one by one: a smaller n gives a prefix of a larger one.
    """

    task: ClassVar[str] = "binary"
    default_loss: ClassVar[str] = "logistic"
    where: ClassVar[str] = "generated"

    n: int = 2000
    p: int = 10
    signal: float = 5.0
    rows: str = "unit"
    row_bound: float = 1.0
    n_test: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        checks.integer("dataset.n", self.n, low=1)
        checks.integer("dataset.p", self.p, low=1)
        checks.nonnegative("dataset.signal", self.signal)
        checks.choice("dataset.rows", self.rows, ROWS)
        checks.positive("dataset.row_bound", self.row_bound)
        checks.integer("dataset.n_test", self.n_test, low=0)
        checks.integer("dataset.seed", self.seed, low=0)

    @property
    def size(self) -> tuple[int, int]:
        return int(self.n), int(self.p)

    def load(self, data_dir: Path | None = None) -> Data:
        """Draw the records; ``data_dir`` is not used."""
        try:
            return self._load()
        except (MemoryError, ValueError):
            allowed = "these rows do not fit into memory"
            raise InputError("dataset.n", f"{self.n} (p={self.p})", allowed) from None

    def _load(self) -> Data:
        theta = self._leaf("theta").standard_normal(int(self.p))
        theta *= self.signal / np.linalg.norm(theta)
        x, y = self._draw("train", int(self.n), theta)
        x_test, y_test = (
            self._draw("test", int(self.n_test), theta) if self.n_test else (None, None)
        )
        place = "on the sphere" if self.rows == "unit" else "in the ball"
        return make_data(
            "synthetic_logistic", self.task, x, y, x_test, y_test,
            row_bound=float(self.row_bound),
            preprocessing=(f"rows uniform {place} of radius {self.row_bound:g}",),
            minimiser=theta,
        )  # fmt: skip

    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = theta.size
        x = self._leaf(part, "rows").standard_normal((n, p))
        uniform = self._leaf(part, "labels").random((n, 2))
        radius = np.ones(n) if self.rows == "unit" else uniform[:, 1] ** (1.0 / p)
        x *= (self.row_bound * (1.0 - 1e-13) * radius / np.linalg.norm(x, axis=1))[:, None]
        likely = np.exp(-np.logaddexp(0.0, -(x @ theta)))
        return x, np.where(uniform[:, 0] < likely, 1.0, -1.0)

    def _leaf(self, *path: str) -> np.random.Generator:
        return generator(seed_sequence(int(self.seed), "dataset", "synthetic_logistic", *path))
