"""Points around a known median: the population minimiser of both median losses."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Choices, Help, NonNegative, Range
from dperm_cli.datasets.shared.generated_rows import (
    INSIDE,
    Generated,
    ball,
    leaf,
    lengths,
)

SHAPES = ("ball", "box")


@dataclass(frozen=True, kw_only=True)
class MedianCloud(Generated):
    """Rows uniform in a ball or a box (a cube) around m, with |m| = shift, m's direction random.

    The cloud is symmetric about m, so m is its coordinate-wise and its Euclidean median. It is as
    large as the ball of radius row_bound around 0 allows: a ball of radius row_bound - shift, or
    the cube inside it.

    >>> data = MedianCloud(n=5, p=3, shift=0.5).load()
    >>> data.x.shape, round(float(np.linalg.norm(data.minimiser)), 3)
    ((5, 3), 0.5)
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

    @property
    def rows_in_words(self) -> str:
        return f"rows uniform in a {self.shape} around the median"

    @property
    def half_side(self) -> float:
        """Of the cube around the median, for ``shape=box``."""
        return (self.row_bound - self.shift) / math.sqrt(int(self.p))

    @property
    def cube_half_side(self) -> float | None:
        return self.half_side if self.shape == "box" else None

    def _parameter(self) -> np.ndarray:
        median = leaf(self.seed, self.name, "median").standard_normal((1, int(self.p)))
        return (median * (self.shift / lengths(median)))[0]

    def _draw(self, part: str, n: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        room = self.row_bound - self.shift
        rng = leaf(self.seed, self.name, part)
        if self.shape == "box":  # in place: the rows alone may take most of the memory
            cloud = rng.random((n, theta.size))
            cloud *= 2.0
            cloud -= 1.0
            cloud /= np.sqrt(theta.size)
        else:
            uniform = leaf(self.seed, self.name, part, "radius").random(n)
            cloud = ball(rng, n, theta.size, uniform)
        cloud *= room
        cloud += theta
        cloud *= INSIDE
        return cloud, np.zeros(n)
