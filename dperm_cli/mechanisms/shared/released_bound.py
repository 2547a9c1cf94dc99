"""Bounds on the excess risk that are computed from released gradients: post-processing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

COLUMNS = ("bound_released", "bound_released_95")  # of a row
FAILURE = 0.05  # chance that the bound for a single run is too small


def move_bounds(info: Mapping[str, Any], added_risk: float | None) -> dict[str, Any]:
    """What came out of a release, as it is for another problem with the same points.

    Args:
        info: by-products of the release.
        added_risk: by how much an excess risk may be larger in that problem; None for unknown.

    Returns:
        The same with the bounds raised, or without them.
    """
    kept = {name: value for name, value in info.items() if name not in COLUMNS}
    if added_risk is None:
        return kept
    return kept | {name: info[name] + added_risk for name in COLUMNS if name in info}


class ReleasedBound:
    """What noisy gradients say about the mean of the points where they were taken.

    With h_t the noisy gradient at q_t and u any point of the set, F(mean of q_t) - F(u) is at most
    the mean of <h_t, q_t - u> in expectation [docs/proofs/noisy_gd.md, Theorem 5]. The largest of
    these over u needs released values alone. The rule that moves the points plays no part, so that
    steps may follow from released gradients.

    >>> from dperm_cli.sets import make_ball
    >>> found = ReleasedBound(make_ball(1.0, 1), trials=1)
    >>> found.add(np.array([[0.5]]), np.array([[2.0]]))
    >>> found.columns(noise=0.1, error=0.0)["bound_released"].tolist()
    [3.0]
    """

    def __init__(self, constraint: Any, trials: int) -> None:
        """Nothing seen yet.

        Args:
            constraint: the set, in the coordinates of the gradients.
            trials: the number of runs side by side.
        """
        self._set, self._count = constraint, 0
        self._products: Any = np.zeros(trials)
        self._sum: Any = 0.0

    def add(self, query: np.ndarray, noisy: np.ndarray) -> None:
        """Count one point and its noisy gradient, the regulariser's included, [trials, p] each."""
        self._products = self._products + np.sum(query * noisy, axis=1)
        self._sum = self._sum + noisy
        self._count += 1

    def columns(self, noise: float, error: float) -> dict[str, np.ndarray]:
        """The two bounds of each run, in the unit of the sum over records.

        Args:
            noise: the standard deviation of a gradient's noise, per coordinate.
            error: a bound on the length by which a gradient is off but for its noise.

        Returns:
            ``bound_released`` [trials], whose expectation is at least the expected excess risk,
            and ``bound_released_95`` [trials], which is at least the excess risk with a
            probability of 0.95.
        """
        found = (self._products + self._set.support(-self._sum)) / self._count
        found = found + error * self._set.diameter
        wander = noise * self._set.diameter * math.sqrt(2.0 * math.log(1.0 / FAILURE) / self._count)
        return dict(zip(COLUMNS, (found, found + wander), strict=True))
