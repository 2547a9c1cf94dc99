"""Count the steps that a random walk on a line needs, from powers of its transition matrix."""

from __future__ import annotations

import numpy as np

from dperm_cli.samplers.shared.walk_grid import Grid

MOST_CELLS = 1500
MOST_OSCILLATION = 500.0  # of -log F: weights stay well above the least double
_UNIT = 2.0**-53


def transitions(grid: Grid) -> np.ndarray:
    """The lazy walk's matrix [cells, cells] on a line."""
    up, down = 0.25 * grid.accept[:, 0], 0.25 * grid.accept[:, 1]
    return np.diag(1.0 - up - down) + np.diag(up[:-1], 1) + np.diag(down[1:], -1)


def stationary(grid: Grid) -> np.ndarray:
    """pi, [cells]."""
    weight = np.exp(np.min(grid.energy) - grid.energy)
    return weight / np.sum(weight)


def certify_steps(grid: Grid, distance: float, most: float) -> int:
    """A power of two t <= 2 most with |log(P^t(start, .) / pi)| <= distance.

    The matrix and its powers have no negative entries, so a product's relative error is at most
    (cells + 8) units of rounding besides those of its factors: after t steps t (cells + 8) units,
    which are taken off the distance. ArithmeticError where no such t is found.
    """
    power, pi, start = transitions(grid), stationary(grid), grid.start()
    t, unit = 1, (grid.cells + 8.0) * _UNIT * 2.0
    while True:
        with np.errstate(divide="ignore"):
            reached = float(np.max(np.abs(np.log(power[start] / pi))))
        if reached + (t + 1.0) * unit <= distance:
            return t
        if t > most or t * unit > distance:
            raise ArithmeticError("the walk was not seen to mix: not a private outcome")
        power, t = power @ power, 2 * t
