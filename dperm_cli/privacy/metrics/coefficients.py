"""Intervals of the coefficients, from the curvature of the loss on held-out records."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.symmetric import pack_symmetric, triangle_size, unpack_symmetric
from dperm_cli.privacy.intervals.area_under_curve import find_variance
from dperm_cli.privacy.intervals.coefficients import (
    NoiseOnPoint,
    find_coefficient_ends,
    find_edge,
    is_bounded,
)
from dperm_cli.privacy.metrics.base import (
    FINE_STEP,
    LARGEST_ERROR,
    HeldOut,
    Metric,
    Reading,
    find_errors,
)

MOST = 100  # coefficients
_ENTRIES = 1 << 22  # of contributions that are made at once
_SHORTER = 1.0 - 2.0**-40  # rows in floating point may be longer than 1 by less


@dataclass(frozen=True, eq=False)
class FitFacts:
    """What is public of the released point that coefficients are of.

    Attributes:
        theta: the point [p].
        records: that it was fitted to.
        curvature: the most that the loss of a record can bend, in any direction.
        strength: of the regularisers of the sum over the records.
        noise: of the point.
        inside: whether the point is clear of the boundary of its set.
    """

    theta: np.ndarray
    records: int
    curvature: float
    strength: float
    noise: NoiseOnPoint
    inside: bool


@dataclass(frozen=True)
class Coefficients(Metric):
    """The sum of w x x^T, x a row of norm at most 1 and w in [0, 1] its share of curvature.

    The upper triangle is added up, entries off the diagonal times sqrt(2): one record's has norm 1
    at most, and two differ by sqrt(2). With ``squares`` the sum of min(4 (y - prediction)^2, 1)
    follows, of a regression.

    Args:
        names: of the coordinates.
        squares: whether the variance of errors is needed.

    >>> Coefficients(("a", "b")).dim
    3
    """

    names: tuple[str, ...]
    squares: bool = False

    name: ClassVar[str] = "coefficients"
    step: ClassVar[float] = FINE_STEP

    @property
    def dim(self) -> int:
        return triangle_size(len(self.names)) + self.squares

    @property
    def l2(self) -> float:
        return math.sqrt(2.0 + self.squares) + math.sqrt(self.dim) * FINE_STEP

    @property
    def l1(self) -> float:
        size = triangle_size(len(self.names))
        return math.sqrt(2.0 * size) + self.squares + self.dim * FINE_STEP

    def add_up(self, held: HeldOut) -> np.ndarray:
        if held.rows is None or held.bends is None:
            raise InputError("metrics", self.name, "needs rows and their shares of curvature")
        size = triangle_size(len(self.names))
        total, width = np.zeros(size, dtype=np.int64), max(1, _ENTRIES // size**2)
        for start in range(0, held.records, width):
            rows = held.rows[start : start + width] * _SHORTER
            products = rows[:, :, None] * rows[:, None, :]
            products *= held.bends[start : start + width, None, None]
            steps = np.rint(pack_symmetric(products) / FINE_STEP).astype(np.int64)
            total += steps.sum(axis=0)
        if not self.squares:
            return total
        squares = np.rint(find_errors(held) ** 2 / FINE_STEP).astype(np.int64)
        return np.append(total, squares.sum())

    def describe(self, sums: np.ndarray, reading: Reading) -> dict[str, Any]:
        fit: Any = reading.fit
        p, entry = len(self.names), find_variance(reading.noise)
        grow = fit.curvature * fit.records / reading.records
        matrix = unpack_symmetric(sums[: triangle_size(p)], p) * grow
        variance = 1.0
        if self.squares:
            most = (float(sums[-1]) + 2.0 * math.sqrt(entry)) / reading.records
            variance = LARGEST_ERROR**2 * min(1.0, max(0.0, most))
        low, high = find_coefficient_ends(
            fit.theta, matrix, fit.strength, find_edge(entry, p) * grow, variance, fit.noise,
            reading.alpha,
        )  # fmt: skip
        found = {}
        for name, value, *ends in zip(self.names, fit.theta, low, high, strict=True):
            known = fit.inside and is_bounded(ends)
            found[name] = {
                "released": float(value),
                "interval_for_the_population": [float(end) if known else None for end in ends],
            }
        return {
            "of": "the minimiser of the regularised loss over the population, rows as encoded",
            "method_of_the_intervals": "normal approximation, of noise and sampling",
            "held_by_the_boundary_of_its_set": not fit.inside,
            "coefficients": found,
        }

    def summarise(self, described: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        """How many intervals are clear of 0."""
        ends = [one["interval_for_the_population"] for one in described["coefficients"].values()]
        clear = sum(None not in (low, high) and low * high > 0.0 for low, high in ends)
        return {f"coefficients of {len(ends)} that are clear of 0": (clear, None)}
