"""The mean logistic loss of labels with known chances, at some points, with fixed bits.

Margins, losses and sums are computed in an order that depends on the numbers of rows and columns
alone, so that no processor, no library of products and no other point changes their bits.
"""

from __future__ import annotations

import numpy as np

from dperm_cli.loops import vector_lanes as lanes
from dperm_cli.loops.jit import compile_inline, compile_loop, fma
from dperm_cli.loops.slopes import exp, log_of_one_plus

_BLOCK = 256  # rows whose margins are held at once
FEW = 4  # fewer columns than these are read one by one: x [p, n]


def find_least(rows: np.ndarray, best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is known of labels y in {-1, 1} whose log odds are <x, best>.

    Args:
        rows: x [n, p].
        best: The point [p].

    Returns:
        The chances s(z) = 1 / (1 + exp(-z)) of y = 1 [n], z = <x, best>, and the mean losses
        log(1 + exp(z)) - s(z) z [n], which are the least of any margin.
    """
    x, (point,) = _arrange(rows, best[None])
    chances, least = np.empty(len(rows)), np.empty(len(rows))
    _fill_least(x, point, chances, least)
    return chances, least


def sum_excess(
    rows: np.ndarray, points: np.ndarray, chances: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over rows of log(1 + exp(z)) - chance z - least, and of its square, at each point.

    Args:
        rows: x [n, p].
        points: theta [m, p]; z = <x, theta>.
        chances: Of y = 1 [n].
        least: What each mean loss is measured from [n].

    Returns:
        The sums [m], and those of the squares [m].
    """
    x, theta = _arrange(rows, points)
    if not chances.shape == least.shape == (len(rows),):  # the loop checks no bounds
        raise ValueError(f"rows {rows.shape} do not fit chances {chances.shape}, {least.shape}")
    found = np.zeros((len(theta), 8))
    _add_excess(x, theta, np.ascontiguousarray(chances), np.ascontiguousarray(least), found)
    a, b, c, d = np.moveaxis(found.reshape(-1, 2, 4), 2, 0)
    total, square = ((a + c) + (b + d)).T
    return total, square


def _arrange(rows: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if rows.ndim != 2 or points.ndim != 2 or points.shape[1] != rows.shape[1]:
        raise ValueError(f"rows {rows.shape} do not fit points {points.shape}")
    few = points.shape[1] < FEW  # a vector of one row's numbers would hold too few: of a column
    x = np.ascontiguousarray(rows.T if few else rows, dtype=float)
    return x, np.ascontiguousarray(points, dtype=float)


@compile_inline
def _mean_loss(z, e, chance):
    """The mean loss of margin z, with e = exp(-|z|)."""
    positive = z if z > 0.0 else 0.0
    return (positive + log_of_one_plus(e)) - chance * z


@compile_inline
def _fill_margins(x, start, theta, z):
    """z[i] <- <x_{start + i}, theta>, with the bits of ``lanes.dot``."""
    p = theta.size
    if p < FEW:
        whole = z.size - z.size % 4
        z[:] = 0.0
        for k in range(p):
            column, weight = k * x.shape[1] + start, lanes.spread(theta[k])
            for i in range(0, whole, 4):
                before = lanes.load(z, i)
                lanes.store(z, i, lanes.mul_add(lanes.load(x, column + i), weight, before))
            for i in range(whole, z.size):
                z[i] = fma(x[k, start + i], theta[k], z[i])
    else:
        for i in range(z.size):
            z[i] = lanes.dot(x, (start + i) * p, theta, 0, p)


@compile_loop
def _fill_least(x, theta, chances, least):
    """chances and least [n] of rows x."""
    n = chances.size
    z = np.empty(n)
    _fill_margins(x, 0, theta, z)
    for i in range(n):
        e = exp(-abs(z[i]))
        chances[i] = (1.0 if z[i] >= 0.0 else e) / (1.0 + e)
    for i in range(n):
        least[i] = _mean_loss(z[i], exp(-abs(z[i])), chances[i])


@compile_inline
def _turn_into_excess(z, e, chances, least):
    # Two loops are faster than one: the processor starts more rows before the first is done.
    for i in range(z.size):
        e[i] = exp(-abs(z[i]))
    for i in range(z.size):
        z[i] = _mean_loss(z[i], e[i], chances[i]) - least[i]


@compile_loop
def _add_excess(x, theta, chances, least, found):
    """found [m, 8]: four sums of the excess, of every fourth row, and four of its squares."""
    n = chances.size
    block, powers = np.empty(_BLOCK + 3), np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        z = block[: stop - start]
        for m in range(theta.shape[0]):
            _fill_margins(x, start, theta[m], z)
            _turn_into_excess(z, powers[: z.size], chances[start:stop], least[start:stop])
            block[z.size : z.size + 3] = 0.0
            total, square = lanes.load(found, 8 * m), lanes.load(found, 8 * m + 4)
            for i in range(0, z.size, 4):
                one = lanes.load(block, i)
                total, square = lanes.add(total, one), lanes.mul_add(one, one, square)
            lanes.store(found, 8 * m, total)
            lanes.store(found, 8 * m + 4, square)
