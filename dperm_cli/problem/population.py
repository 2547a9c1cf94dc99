"""Excess population risk of a synthetic data set whose minimiser is known.

The risk is on the distribution that the data set is drawn from. With theta* the minimiser of
E l(theta; d) over all of R^p, the excess of theta is the mean over rows x of the conditional
expectation of l(theta; d) - l(theta*; d) given x, for which there are formulas:

    logistic    softplus(z) - softplus(z*) - s(z*) (z - z*),  P(y = 1 | x) = s(z*)
    squared     (z - z*)^2 / 2                                y = z* + w, w symmetric
    absolute    (z - z*)^2 / (2 a) up to |z - z*| = a,        w uniform on [-a, a]
                |z - z*| - a / 2 beyond

with z = <x, theta> and z* = <x, theta*>. Their rows are uniform on a sphere or in a ball. There the
mean over rows is made of means over one coordinate of a point on a sphere, and has no error: a ball
of p dimensions holds the first p coordinates of the points of a sphere in p + 2.

A cloud of points for a median is symmetric about its median m; the loss is averaged over a row and
its reflection 2 m - x. In a cube of half-side h the mean l1 distance is (z - m)^2 / (2 h) in each
coordinate up to |z - m| = h, and |z - m| - h / 2 beyond. For other clouds it is taken over fresh
rows. Every term is >= 0, so the estimate's error falls with the excess itself.

A data set may compute its own excess on a set (``excess``, as djw12_corners does).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dperm_cli.core.memo import MIB, memoise
from dperm_cli.problem.data import Data

ROWS, ENTRIES = 1 << 17, 1 << 24  # most rows, and most entries, of the fresh sample


def excess_risk(
    dataset: Any, data: Data, loss: Any, theta: np.ndarray, constraint: Any = None
) -> tuple[float, float] | None:
    """The excess population risk per record at theta.

    Where it is estimated, on fresh rows, they follow from the data set's seed, and are different
    from its own rows. The loss is taken without a regulariser.

    Args:
        dataset: the synthetic data set.
        data: its records.
        loss: the loss.
        theta: the point [p].
        constraint: the set over which the least risk is taken, for data sets that know it there.

    Returns:
        (excess over the minimiser, its standard error); None where the data set has no minimiser,
        or not that of this loss.
    """
    return find_excess_risks(dataset, data, loss, theta[None], constraint)[0]


def find_excess_risks(
    dataset: Any, data: Data, loss: Any, points: np.ndarray, constraint: Any = None
) -> list[tuple[float, float] | None]:
    """``excess_risk`` at each of some points [m, p]; none depends on the other points."""
    if dataset.excess is not None:
        if constraint is None:
            return [None] * len(points)
        own = (dataset.excess(loss, theta, constraint) for theta in points)
        return [None if risk is None else (risk, 0.0) for risk in own]
    best = data.minimiser
    if best is None:
        return [None] * len(points)
    exact = _find_exact(dataset, loss, best, points)
    if exact is not None:
        return [(float(risk), 0.0) for risk in exact]
    if dataset.law != "mirrored" or loss.mirrored_excess is None:  # another loss's minimiser
        return [None] * len(points)
    rows = _rows(dataset, best.tobytes()) - best
    return [_estimate(loss.mirrored_excess(rows, theta - best)) for theta in points]


def _find_exact(
    dataset: Any, loss: Any, best: np.ndarray, points: np.ndarray
) -> Sequence[float] | np.ndarray | None:
    """The excess at each point by a formula; None where there is none."""
    dimension, radius = dataset.row_sphere or (0, 0.0)
    if dimension and dataset.law == "log_odds" and loss.odds_excess is not None:
        return loss.odds_excess(points, best, dimension, radius)
    if dimension and dataset.law == "even_noise" and loss.noise_excess is not None:
        off = radius * np.linalg.norm(np.ascontiguousarray(points - best), axis=1)
        return loss.noise_excess(off, float(dataset.noise), dimension)
    if dataset.law == "mirrored" and dataset.cube_half_side is not None and loss.cube_excess:
        return [loss.cube_excess(dataset.cube_half_side, np.abs(theta - best)) for theta in points]
    return None


def _estimate(terms: np.ndarray) -> tuple[float, float]:
    """The mean of terms [n] and its standard error."""
    error = float(np.std(terms)) / math.sqrt(len(terms) - 1.0)
    return max(float(np.mean(terms)), 0.0), error


@memoise(budget=512 * MIB)  # one sample takes up to 128 MB
def _rows(dataset: Any, minimiser: bytes) -> np.ndarray:
    theta = np.frombuffer(minimiser)
    return dataset.fresh(max(2, min(ROWS, ENTRIES // theta.size)), theta)
