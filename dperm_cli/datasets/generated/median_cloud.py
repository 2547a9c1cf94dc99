"""Points around a known median: the population minimiser of both median losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Choices, Help, NonNegative, Range
from dperm_cli.datasets.shared.generated_rows import INSIDE, Generated, ball, guard_memory, leaf
from dperm_cli.datasets.shared.row_pipeline import make_data
from dperm_cli.problem.data import Data

SHAPES = ("ball", "box")


@dataclass(frozen=True, kw_only=True)
class MedianCloud(Generated):
    """Rows uniform in a ball or a box (a cube) around m, with |m| = shift, m's direction random.

    The cloud is symmetric about m, so m is its coordinate-wise and its Euclidean median. It is as
    large as the ball of radius row_bound around 0 allows: a ball of radius row_bound - shift, or
    the cube inside it.
    """

    task: ClassVar[str] = "location"
    law: ClassVar[str] = "mirrored"

    shape: Annotated[str, Choices(*SHAPES), Help("what the points fill")] = "ball"
    shift: Annotated[NonNegative, Help("norm of the median, below row_bound")] = 0.5
    n_test: Annotated[int, Range(0), Help("held-out records")] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shift < self.row_bound:
            allowed = f"must be below row_bound={self.row_bound:g}, so that rows can vary"
            raise InputError("dataset.shift", f"{self.shift:g}", allowed)

    def load(self, data_dir: Path | None = None) -> Data:
        """Draw the records; ``data_dir`` is not used."""
        with guard_memory(self.n, self.p):
            median = leaf(self.seed, "median_cloud", "median").standard_normal(int(self.p))
            median *= self.shift / np.linalg.norm(median)
            x = self._draw("train", int(self.n), median)
            x_test = self._draw("test", int(self.n_test), median) if self.n_test else None
        y_test = None if x_test is None else np.zeros(len(x_test))
        return make_data(
            "median_cloud", self.task, x, np.zeros(len(x)), x_test, y_test,
            row_bound=float(self.row_bound),
            preprocessing=(f"rows uniform in a {self.shape} around the median",),
            minimiser=median,
        )  # fmt: skip

    def fresh(self, count: int, minimiser: np.ndarray) -> np.ndarray:
        """Rows of the same law that belong to neither part, [count, p]."""
        return self._draw("population", count, minimiser)

    @property
    def half_side(self) -> float:
        """Of the cube around the median, for ``shape=box``."""
        return (self.row_bound - self.shift) / math.sqrt(int(self.p))

    @property
    def cube_half_side(self) -> float | None:
        return self.half_side if self.shape == "box" else None

    def _draw(self, part: str, n: int, median: np.ndarray) -> np.ndarray:
        room = self.row_bound - self.shift
        rng = leaf(self.seed, "median_cloud", part)
        if self.shape == "box":  # in place: the rows alone may take most of the memory
            cloud = rng.random((n, median.size))
            cloud *= 2.0
            cloud -= 1.0
            cloud /= np.sqrt(median.size)
        else:
            uniform = leaf(self.seed, "median_cloud", part, "radius").random(n)
            cloud = ball(rng, n, median.size, uniform)
        cloud *= room
        cloud += median
        cloud *= INSIDE
        return cloud
