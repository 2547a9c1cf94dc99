"""Corners with slight biases: the hard distributions of [DJW12, Thms 1, 2], risk known exactly."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Choices, Help, NonNegative, Seed
from dperm_cli.datasets.shared.generated_rows import Made, guard_memory, leaf
from dperm_cli.datasets.shared.row_pipeline import make_data
from dperm_cli.problem.data import Data

CORNERS = ("cube", "cross")
FAVOURED = ("all", "one")
TASKS = {"binary": "linear", "location": "l1_median"}
BLOCK = 1 << 22  # random numbers held at once


@dataclass(frozen=True, kw_only=True)
class Djw12Corners(Made):
    """n corners s of the cube [-1, 1]^p or of the l_1 ball, drawn independently.

    Of the cube, s_j = +1 with chance (1 + b v_j) / 2, independently over j; of the l_1 ball, a
    uniform coordinate j and the sign +1 with that chance. v is a random corner of the cube, or of
    the l_1 ball where one coordinate alone is ``favoured``, and b = min(1, signal / sqrt(n)). With
    ``task=binary`` the label y is a fair sign and the row y s, so that losses of the margin see
    <s, theta>; with ``location`` the row is s. Rows have l_inf norm 1, those of the l_1 ball also
    l_1 norm 1; their Euclidean norm is sqrt(p), or 1. Rows are drawn block by block: nothing beside
    the rows themselves, 8 n p bytes, grows with n p.

    >>> np.abs(Djw12Corners(n=100, p=3, signal=2.0).bias).round(3).tolist()
    [0.2, 0.2, 0.2]
    >>> np.unique(Djw12Corners(n=100, p=3).load().x).tolist()
    [-1.0, 1.0]
    """

    corners: Annotated[str, Choices(*CORNERS), Help("cross: one coordinate is +-1")] = "cube"
    favoured: Annotated[str, Choices(*FAVOURED), Help("coordinates with a bias")] = "all"
    signal: Annotated[NonNegative, Help("the bias is signal / sqrt(n), at most 1")] = 1.0
    task: Annotated[str, Choices(*TASKS), Help("location: for corners=cube")] = "binary"
    seed: Annotated[Seed, Help("which sides are favoured, and the draw")] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corners == "cross" and self.task == "location":
            allowed = "is for corners of the cube: a coordinate of the l_1 ball's is mostly 0"
            raise InputError("dataset.task", self.task, allowed)

    @property
    def default_loss(self) -> str:
        return TASKS[self.task]

    @property
    def bias(self) -> np.ndarray:
        """b v: the mean of the sign of each coordinate, [p]."""
        p, rng = int(self.p), leaf(self.seed, self.name, "side")
        side = rng.choice([-1.0, 1.0], size=p)
        if self.favoured == "one":
            side[np.arange(p) != rng.integers(p)] = 0.0
        return min(1.0, float(self.signal) / math.sqrt(int(self.n))) * side

    def load(self, data_dir: Path | None = None) -> Data:
        """Draw the records; ``data_dir`` is not used."""
        n, p = self.size
        with guard_memory(n, p):
            x = self._corners(n, p)
        y = np.zeros(n)
        if self.task == "binary":
            y = leaf(self.seed, self.name, "labels").choice([-1.0, 1.0], size=n)
            x *= y[:, None]
        longest = math.sqrt(p) if self.corners == "cube" else 1.0
        note = f"corners of the {self.corners}, mean sign {np.max(np.abs(self.bias)):.6g}"
        return make_data(
            self.name, self.task, x, y, None, None, row_bound=longest, preprocessing=(note,)
        )

    def _corners(self, n: int, p: int) -> np.ndarray:
        rng, chance = leaf(self.seed, self.name, "signs"), 0.5 * (1.0 + self.bias)
        if self.corners == "cross":
            x = np.zeros((n, p))
            which = rng.integers(p, size=n)
            x[np.arange(n), which] = np.where(rng.random(n) < chance[which], 1.0, -1.0)
            return x
        x, step = np.empty((n, p)), max(1, BLOCK // p)
        for start in range(0, n, step):
            rows = x[start : start + step]
            rows[:] = rng.random(rows.shape) < chance
            rows *= 2.0
            rows -= 1.0
        return x

    def excess(self, loss: Any, theta: np.ndarray, constraint: Any) -> float | None:
        """E l(s; theta) less its least on the set, exactly; None where the least is not known.

        Linear losses on any set; otherwise sets on which the loss is linear (all within the unit
        box for location, within margins of 1 for the hinge loss), and boxes of any size where it
        is a sum over coordinates.
        """
        median = loss.distance_power == 1.0
        if self.task != ("location" if median else "binary"):
            return None
        affine = (median or loss.affine_margin >= 1.0) and self._is_linear(constraint)
        if affine or loss.affine_margin == math.inf:
            mean = self.bias / (self.p if self.corners == "cross" else 1.0)
            return max(0.0, float(constraint.support(mean)) - float(mean @ theta))
        if constraint.half_side is None or (self.corners == "cube" and not median):
            return None
        if loss.best_mean is None:
            return None
        best = np.clip(loss.best_mean(self.bias), -constraint.size, constraint.size)
        off = loss.sign_mean(self.bias, theta) - loss.sign_mean(self.bias, best)
        return max(0.0, float(np.sum(off)) / (self.p if self.corners == "cross" else 1.0))

    def _is_linear(self, constraint: Any) -> bool:
        """Whether no coordinate, or for the hinge on the cube no margin, exceeds 1 on the set."""
        if constraint.l1_radius is None:
            return False
        margins = self.corners == "cube" and self.task == "binary"
        return bool((constraint.l1_radius if margins else constraint.size) <= 1.0)
