"""Weights of least sum that make a point from atoms: a linear program, by an interior point method.

min sum(w) subject to sum w_j a_j = v, w >= 0, where -a_j counts as an atom too if they are signed.
Its dual is max <y, v> subject to <y, a_j> <= 1, for which y = 0 is always inside. Each round solves
one system of order m, whatever the number of atoms [Mehrotra 1992].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass

_ROUNDS = 60
_GAP = 1e-12  # of the sum: the product of weights and slacks at which the rounds end
_TO_BOUNDARY = 0.995
_FELT = 1e-20  # of the largest: weights over slacks below it are lost in rounding
_SMALLEST = 1e-15  # of the mean of the diagonal: added to it, and 100 times more at each failure
_FACTORS = 6


@dataclass(frozen=True)
class Weights:
    """An answer of the method, which the caller has to check.

    Attributes
    ----------
    labels : atoms [k] whose weight exceeds the slack of their inequality; j + count is -a_j.
    weights : of these atoms, [k].
    prices : y, [m].
    """

    labels: np.ndarray
    weights: np.ndarray
    prices: np.ndarray


def find_weights(atoms: np.ndarray, target: np.ndarray, signed: bool) -> Weights | None:
    """The weights and prices for the rows of atoms [count, m]; None if a system has no solution."""
    work = _Work(atoms, target, signed)
    if not work.begin():
        return None
    for _ in range(_ROUNDS):
        if work.is_done() or not work.improve():
            break
    if not np.all(np.isfinite(work.weights)):
        return None
    used = np.flatnonzero(work.weights > work.slack)
    return Weights(used, work.weights[used], work.prices)


class _Work:
    """The point of the method: weights w > 0, prices y, slacks s > 0 of <y, a_j> + s_j = 1."""

    def __init__(self, atoms: np.ndarray, target: np.ndarray, signed: bool) -> None:
        self._atoms, self._target, self._signed = atoms, target, signed
        self._count, self._m = atoms.shape
        self.prices = np.zeros(self._m)
        self.weights = self.slack = np.ones(2 * self._count if signed else self._count)

    def begin(self) -> bool:
        """Start at the shortest weights that make the target, raised above 0."""
        factor = self._factor(np.ones(self._count))
        if factor is None:
            return False
        from scipy import linalg  # loaded by need: it takes long, and few problems come here

        shortest = self._both(self._atoms @ linalg.cho_solve(factor, self._target))
        least = 0.0 if self._signed else min(0.0, float(np.min(shortest)))
        raised = np.maximum(shortest - least, 0.0)
        self.weights = raised + 0.1 * float(np.max(np.abs(shortest)))
        return True

    def is_done(self) -> bool:
        """Whether <w, s> is next to nothing: more rounds would only add rounding."""
        return float(self.weights @ self.slack) <= _GAP * float(np.sum(self.weights))

    def improve(self) -> bool:
        """One predictor and one corrector with the same factor; False if there is no factor."""
        w, s = self.weights, self.slack
        ratio = w / s
        factor = self._factor(ratio.reshape(-1, self._count).sum(axis=0))
        if factor is None:
            return False
        centre = float(w @ s) / len(w)
        dw, _, ds = self._direction(factor, -w * s)
        after = float((w + _reach(w, dw) * dw) @ (s + _reach(s, ds) * ds)) / len(w)
        aim = centre * (after / centre) ** 3
        dw, dy, ds = self._direction(factor, aim - w * s - dw * ds)
        there, back = (_TO_BOUNDARY * _reach(w, dw), _TO_BOUNDARY * _reach(s, ds))
        self.weights = w + there * dw
        self.prices, self.slack = self.prices + back * dy, s + back * ds
        return bool(np.all(np.isfinite(self.weights)))

    def _direction(self, factor: Any, product: np.ndarray) -> tuple[np.ndarray, ...]:
        """(dw, dy, ds) that keep or mend the equations, with s dw + w ds = product."""
        from scipy import linalg

        w, s = self.weights, self.slack
        lack = 1.0 - self._scores(self.prices) - s
        aim = self._rest() - self._mix((product - w * lack) / s)
        dy = linalg.cho_solve(factor, aim)
        ds = lack - self._scores(dy)
        return (product - w * ds) / s, dy, ds

    def _factor(self, ratio: np.ndarray) -> Any:
        """The Cholesky factor of sum ratio_j a_j a_j^T, or None."""
        from scipy import linalg

        felt = ratio > _FELT * np.max(ratio)  # late rounds feel few atoms
        rows = self._atoms[felt] * np.sqrt(ratio[felt])[:, None]
        gram = rows.T @ rows
        more = _SMALLEST * float(np.trace(gram)) / self._m
        for _ in range(_FACTORS):
            gram[np.diag_indices(self._m)] += more
            try:
                return linalg.cho_factor(gram)
            except (linalg.LinAlgError, ValueError):  # not positive, or not finite
                more *= 100.0
        return None

    def _mix(self, weights: np.ndarray) -> np.ndarray:
        if self._signed:
            weights = weights[: self._count] - weights[self._count :]
        return weights @ self._atoms

    def _scores(self, prices: np.ndarray) -> np.ndarray:
        return self._both(self._atoms @ prices)

    def _both(self, values: np.ndarray) -> np.ndarray:
        """Values of the atoms, followed by those of their opposites where these are atoms too."""
        return np.concatenate([values, -values]) if self._signed else values

    def _rest(self) -> np.ndarray:
        return self._target - self._mix(self.weights)


def _reach(values: np.ndarray, step: np.ndarray) -> float:
    """The share of the step, at most 1, that leaves the values at or above 0."""
    falls = step < 0
    return float(np.min(-values[falls] / step[falls], initial=1.0))
