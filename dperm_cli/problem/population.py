"""Risk on the distribution that a synthetic data set is drawn from, where its minimiser is known.

With theta* the minimiser of E l(theta; d) over all of R^p, the excess of theta is the mean over
fresh rows x of what the loss loses there in expectation over the response, which is known:

    logistic    softplus(z) - softplus(z*) - s(z*) (z - z*),  P(y = 1 | x) = s(z*)
    squared     (z - z*)^2 / 2                                y = z* + w, w symmetric
    absolute    (z - z*)^2 / (2 a) up to |z - z*| = a,        w uniform on [-a, a]
                |z - z*| - a / 2 beyond

with z = <x, theta> and z* = <x, theta*>. A median cloud is symmetric about its median m: there the
loss is averaged over the row and its reflection 2 m - x. Every term is >= 0, so that the
estimate's error falls with the excess itself.

Where the expectation has a formula the error is 0: the l1 median of a cloud in a cube of half-side
h is (z - m)^2 / (2 h) in each coordinate, up to |z - m| = h, and |z - m| - h / 2 beyond; and a data
set that knows its own excess on a set (``excess``: djw12_corners) is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.memo import MIB, memoise
from dperm_cli.problem.data import Data

ROWS, ENTRIES = 1 << 17, 1 << 24  # of the fresh sample, at most


def excess_risk(
    dataset: Any, data: Data, loss: str, theta: np.ndarray, constraint: Any = None
) -> tuple[float, float] | None:
    """(excess over the minimiser, its standard error) per record at theta [p], or None.

    None where the data set's minimiser is not the loss's, or where it has none. The loss is taken
    without a regulariser. The fresh rows are fixed by the data set's seed and are none of its own.
    ``constraint`` is the set that the least is taken on where a data set knows it on every set.
    """
    if hasattr(dataset, "excess"):
        exact = None if constraint is None else dataset.excess(loss, theta, constraint)
        return None if exact is None else (exact, 0.0)
    if data.minimiser is None or loss not in getattr(dataset, "minimises", ()):
        return None
    if loss == "l1_median" and getattr(dataset, "shape", "") == "box":
        return _cube_median(dataset.half_side, np.abs(theta - data.minimiser)), 0.0
    rows = _rows(dataset, data.minimiser.tobytes())
    terms = _TERMS[loss](dataset, rows, data.minimiser, theta)
    count = len(terms)
    mean = float(np.mean(terms))
    return max(mean, 0.0), float(np.std(terms)) / np.sqrt(count - 1.0)


def _cube_median(half: float, off: np.ndarray) -> float:
    """The l1 median loss at this distance, in each coordinate, from the centre of a cube."""
    return float(np.sum(np.where(off <= half, off * off / (2.0 * half), off - half / 2.0)))


@memoise(budget=512 * MIB)  # one sample takes up to 128 MB
def _rows(dataset: Any, minimiser: bytes) -> np.ndarray:
    theta = np.frombuffer(minimiser)
    return dataset.fresh(max(2, min(ROWS, ENTRIES // theta.size)), theta)


def _logistic_excess(
    dataset: Any, x: np.ndarray, best: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    z, (likely, least) = x @ theta, _at_the_best(dataset, best.tobytes())
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))) - likely * z - least


@memoise(budget=128 * MIB)
def _at_the_best(dataset: Any, minimiser: bytes) -> tuple[np.ndarray, np.ndarray]:
    """s(z*) and softplus(z*) - s(z*) z* of each fresh row: the same for every theta."""
    z = _rows(dataset, minimiser) @ np.frombuffer(minimiser)
    likely = np.exp(-np.logaddexp(0.0, -z))
    return likely, np.logaddexp(0.0, z) - likely * z


def _squared_excess(dataset: Any, x: np.ndarray, best: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return 0.5 * np.square(x @ (theta - best))


def _absolute_excess(
    dataset: Any, x: np.ndarray, best: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    off, width = np.abs(x @ (theta - best)), float(dataset.noise)
    if width == 0.0:
        return off
    return np.where(off <= width, off * off / (2.0 * width), off - width / 2.0)


def _l1_median_excess(
    dataset: Any, x: np.ndarray, best: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    off, to = x - best, theta - best
    moved = np.abs(off - to) + np.abs(off + to) - 2.0 * np.abs(off)
    return 0.5 * np.sum(moved, axis=1)


def _l2_median_excess(
    dataset: Any, x: np.ndarray, best: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    off, to = x - best, theta - best
    far, near = np.linalg.norm(off - to, axis=1), np.linalg.norm(off + to, axis=1)
    return 0.5 * (far + near) - np.linalg.norm(off, axis=1)


_TERMS = {
    "logistic": _logistic_excess,
    "squared": _squared_excess,
    "absolute": _absolute_excess,
    "l1_median": _l1_median_excess,
    "l2_median": _l2_median_excess,
}
