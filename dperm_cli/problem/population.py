"""Excess population risk of a synthetic data set whose minimiser is known.

The risk is on the distribution that the data set is drawn from. With theta* the minimiser of
E l(theta; d) over all of R^p, the excess of theta is the mean over fresh rows x of the conditional
expectation of l(theta; d) - l(theta*; d) given x, for which there are formulas:

    logistic    softplus(z) - softplus(z*) - s(z*) (z - z*),  P(y = 1 | x) = s(z*)
    squared     (z - z*)^2 / 2                                y = z* + w, w symmetric
    absolute    (z - z*)^2 / (2 a) up to |z - z*| = a,        w uniform on [-a, a]
                |z - z*| - a / 2 beyond

with z = <x, theta> and z* = <x, theta*>. A cloud of points for a median is symmetric about its
median m; there the loss is averaged over the row and its reflection 2 m - x. Every term is >= 0, so
the estimate's error falls with the excess itself.

In two cases the expectation has a formula, and the error is 0. For the l1 median of a cloud in a
cube of half-side h, it is (z - m)^2 / (2 h) in each coordinate up to |z - m| = h, and
|z - m| - h / 2 beyond. And a data set may compute its own excess on a set (``excess``, as
djw12_corners does).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dperm_cli.core.memo import MIB, memoise
from dperm_cli.problem.data import Data

ROWS, ENTRIES = 1 << 17, 1 << 24  # most rows, and most entries, of the fresh sample
_BLOCK = 1 << 12  # margins at a time: what a formula needs on the way stays in cache


def excess_risk(
    dataset: Any, data: Data, loss: Any, theta: np.ndarray, constraint: Any = None
) -> tuple[float, float] | None:
    """The excess population risk per record at theta, estimated on fresh rows.

    The fresh rows follow from the data set's seed, and are different from its own rows. The loss is
    taken without a regulariser.

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
    best = data.minimiser
    if (
        best is None or dataset.excess is not None or dataset.law != "log_odds"
        or loss.odds_excess is None
    ):  # fmt: skip
        return [_find_excess_risk(dataset, data, loss, theta, constraint) for theta in points]
    known = best.tobytes()
    rows, (likely, least) = _rows(dataset, known), _at_the_best(dataset, loss, known)
    n, found = len(rows), list[tuple[float, float] | None]()
    for total, square in zip(*loss.odds_excess(rows, points, likely, least), strict=True):
        mean = float(total) / n
        deviation = math.sqrt(max(0.0, float(square) / n - mean * mean))
        found.append((max(mean, 0.0), deviation / math.sqrt(n - 1.0)))
    return found


def _find_excess_risk(
    dataset: Any, data: Data, loss: Any, theta: np.ndarray, constraint: Any
) -> tuple[float, float] | None:
    if dataset.excess is not None:
        exact = None if constraint is None else dataset.excess(loss, theta, constraint)
        return None if exact is None else (exact, 0.0)
    best = data.minimiser
    if best is None:
        return None
    if loss.cube_excess is not None and dataset.cube_half_side is not None:
        return loss.cube_excess(dataset.cube_half_side, np.abs(theta - best)), 0.0
    terms = _terms(dataset, loss, best, theta)
    if terms is None:
        return None
    mean = float(np.mean(terms))
    return max(mean, 0.0), float(np.std(terms)) / math.sqrt(len(terms) - 1.0)


def _terms(dataset: Any, loss: Any, best: np.ndarray, theta: np.ndarray) -> np.ndarray | None:
    """The excess at each fresh row; None for a law whose minimiser is not the loss's."""
    known = best.tobytes()
    if dataset.law == "even_noise" and loss.noise_excess is not None:
        off, noise = _rows(dataset, known) @ (theta - best), float(dataset.noise)
        return _in_blocks(lambda z: loss.noise_excess(z, noise), off)
    if dataset.law == "mirrored" and loss.mirrored_excess is not None:
        return loss.mirrored_excess(_rows(dataset, known) - best, theta - best)
    return None


def _in_blocks(formula: Callable[..., np.ndarray], *numbers: np.ndarray) -> np.ndarray:
    """``formula(*numbers)`` of a formula that takes each row alone: the same bits."""
    found = np.empty(len(numbers[0]))
    for start in range(0, len(found), _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = formula(*(each[block] for each in numbers))
    return found


@memoise(budget=512 * MIB)  # one sample takes up to 128 MB
def _rows(dataset: Any, minimiser: bytes) -> np.ndarray:
    theta = np.frombuffer(minimiser)
    from dperm_cli.loops.log_odds import FEW

    rows = dataset.fresh(max(2, min(ROWS, ENTRIES // theta.size)), theta)
    # a few columns are read one by one: they are laid out so once for all points
    return np.asfortranarray(rows) if dataset.law == "log_odds" and theta.size < FEW else rows


@memoise(budget=128 * MIB)
def _at_the_best(dataset: Any, loss: Any, minimiser: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The chance and the least mean loss of each fresh row; they do not depend on theta."""
    return loss.odds_least(_rows(dataset, minimiser), np.frombuffer(minimiser))
