"""Noise on sums of second moments: Gaussian, and the difference of two Wishart matrices."""

from __future__ import annotations

import math

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.symmetric import order_of, triangle_size
from dperm_cli.privacy.accounting import generator_range
from dperm_cli.privacy.events.base import MOVES, OneSum
from dperm_cli.privacy.events.sums import Gaussian


@dataclass(frozen=True)
class GaussianMoments(Gaussian):
    """``count`` releases of the sums of x x^T and of y x over all records plus Gaussian noise.

    What is released is the upper triangle of the first, its off-diagonal entries times sqrt(2),
    followed by the second, plus N(0, scale^2 I). ``record_norm`` and ``gap`` are L2 norms of all
    that together.

    >>> GaussianMoments(scale=4.0, record_norm=1.0, gap=1.5).sensitivity("replace_one")
    1.5
    """

    gap_survives_rounding = True
    summed = "moments"
    phrase = (
        "the sums over all records of x x^T and of y x, both over their bounds, plus Gaussian "
        "noise of standard deviation {scale} in every entry (off the diagonal: over sqrt 2)"
        f"{MOVES} (L2 norm)"
    )

    def gradients(self, records: int) -> None:
        """None: these are no sums of gradients."""

    def range_delta(self, relation: str, dim: int) -> float:
        return super().range_delta(relation, triangle_size(dim) + dim)

    def grid_diagonal(self, dim: int) -> float:
        return math.sqrt(triangle_size(dim) + dim)


@dataclass(frozen=True)
class WishartDifference(OneSum):
    """``count`` releases of a sum of symmetric matrices plus scale (W - W') / 2.

    W and W' are independent Wishart matrices with one degree of freedom more than their order: then
    the log density of the noise changes by at most 1 / scale for each unit of the nuclear norm.
    ``record_norm`` bounds the nuclear norm of one record's matrix, ``gap`` (optional) that of the
    difference of two. One release is sensitivity / scale pure. A record's matrix is t t^T, t its
    row of p columns and its target.

    >>> WishartDifference(scale=4.0, record_norm=0.5).ratio("replace_one")
    0.25
    """

    law = "wishart"
    stream = "NoiseStream"
    norm_order = "nuc"
    summed = "joint_moments"
    phrase = (
        "a sum over all records of symmetric matrices plus half the difference of two Wishart "
        f"matrices of scale {{scale}}{MOVES} (nuclear norm)"
    )

    def fit_size(self, dim: int) -> int:
        return triangle_size(order_of(dim))

    def range_delta(self, relation: str, dim: int) -> float:
        return self.count * generator_range.exponential_range_delta(self.ratio(relation))

    def grid_diagonal(self, dim: int) -> float:
        # a cell of packed matrices of order q: its Frobenius diagonal, sqrt(q) times
        return math.sqrt((dim + 1.0) * triangle_size(dim + 1))
