"""Helpers of the data sets that prove BST14's lower bounds [BST14, Lemma 5.1, App. C]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Choices, Help, Range
from dperm_cli.datasets.shared.generated_rows import Made, guard_memory
from dperm_cli.datasets.shared.row_pipeline import DrawSeed, make_data
from dperm_cli.problem.data import Data

TASKS = {"binary": "linear", "location": "l2_median"}


@dataclass(frozen=True, kw_only=True)
class LowerBoundInstance(Made, ABC):
    """n records in {-1/sqrt(p), 1/sqrt(p)}^p: informative ones first, then padding.

    The padding is half c and half -c for the corner c = (1, ..., 1)/sqrt(p) and cancels, up to one
    c when its length is odd: n and M = |sum of the informative records| are chosen apart. With
    ``task=binary`` every label is +1, so that the linear loss is -<theta, d>; with
    ``task=location`` the records stand alone.
    """

    signal: Annotated[float, Range(0, "n"), Help("norm M of the informative sum")] = 100
    task: Annotated[str, Choices(*TASKS), Help("binary: every label is +1")] = "binary"
    seed: DrawSeed = 0

    @property
    def default_loss(self) -> str:
        return TASKS[self.task]

    @abstractmethod
    def informative(self) -> np.ndarray:
        """Signs [m, p] of the informative records, m <= n."""

    def load(self, data_dir: Path | None = None) -> Data:
        """Build the records; ``data_dir`` is not used."""
        n, p = self.size
        with guard_memory(n, p):
            signs = self.informative()
            rest = n - len(signs)
            if rest < 0:
                allowed = f"needs {len(signs)} informative records, more than n={n}"
                raise InputError("dataset.signal", self.signal, allowed)
            padding = np.ones((rest, p))
            padding[(rest + 1) // 2 :] = -1.0
            x = np.vstack([signs, padding]) / np.sqrt(p)
        reached = float(np.linalg.norm(np.sum(signs, axis=0)) / np.sqrt(p))
        total = float(np.linalg.norm(np.sum(x, axis=0)))
        notes = (
            f"{len(signs)} informative records, |their sum| = {reached:.6g}; {rest} of padding",
            f"|sum of all records| = {total:.6g}",
        )
        y = np.ones(n) if self.task == "binary" else np.zeros(n)
        # p squares of 1/sqrt(p) may add up to a rounding error above 1.
        x /= max(1.0, float(np.sqrt(np.sum(x[0] ** 2))))
        return make_data(self.name, self.task, x, y, None, None, row_bound=1.0, preprocessing=notes)
