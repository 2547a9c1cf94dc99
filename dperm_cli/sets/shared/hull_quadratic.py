"""The minimiser of a convex quadratic over a hull of many atoms, as a mixture of few.

The method is an active-set method like Wolfe's nearest-point algorithm. The active set, called the
corral, is a set of affinely independent atoms. The minimiser over its affine hull is computed from
a Cholesky factor. In each round all atoms are looked at once; the best of them form a pool, which
is used up before the next round. The objective falls at every change of the corral, so no corral
occurs twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass

_ROUNDS = 400
_BATCH = 32
_SHARE = 0.3  # atoms enter the pool that gain at least this share of what the best one gains
_GAP = 1e-14
_LEAD = 1e-15
_SMALL = 1e-14  # a weight up to this counts as 0


@dataclass(frozen=True)
class Mixture:
    """A convex combination: labels [k] of atoms and their weights [k], > 0, of sum 1."""

    labels: np.ndarray
    weights: np.ndarray


def solve(
    body: Any, hessian: np.ndarray | None, b: np.ndarray, start: Mixture | None = None
) -> tuple[np.ndarray, Mixture]:
    """argmin of <v, H v> / 2 - <b, v> over the set ``body`` (an ``Atomic``), H = I for None.

    Returns the point [p] and its mixture. The gap support(-grad) - <-grad, v> is what rounding
    leaves of it, unless 400 rounds were not enough; whoever needs a bound computes it.
    """
    work = _Work(body, hessian, b)
    work.begin(start)
    best, best_gap, least = work.point(), np.inf, np.inf
    idle = 0
    for _ in range(_ROUNDS):
        v = work.point()
        gap, enough = work.price(v)
        value = work.value(v)
        # on a face of many atoms the gap falls slowly at first, while the objective does fall
        if gap < 0.5 * best_gap or value < least - enough:
            idle = 0
        else:
            idle += 1
        least = min(value, least)
        if gap < best_gap:
            best, best_gap, kept = v, gap, work.mixture()
        if gap <= enough or idle >= 8 or not work.improve():
            break
    return best, kept


class _Work:
    """The method's state: the pool of atoms, the corral among them, its Cholesky factor."""

    def __init__(self, body: Any, hessian: np.ndarray | None, b: np.ndarray) -> None:
        self._body, self._hessian, self._b = body, hessian, b
        self._labels = np.zeros(0, dtype=np.int64)
        self._atoms = np.zeros((0, body.p))
        self._bent = self._atoms  # H a for each atom
        self._pull = np.zeros(0)  # <a, b> for each atom
        self._in: list[int] = []  # the corral, as places in the pool
        self._weights = np.zeros(0)  # of the corral
        self._factor = np.zeros((0, 0))
        self._lift = max(float(body.radius) ** 2, 1e-300) * self._scale()

    def begin(self, start: Mixture | None) -> None:
        if start is not None:
            self._join(start.labels)
            kept = self._independent()
            if kept:
                weights = start.weights[kept]
                self._in, self._weights = kept, weights / np.sum(weights)
                self._refactor()
                self._descend()
                return
        centre = self._body.centre()
        first = self._body.labels_of(self._body.atoms.scores(-self._slope(centre)))
        self._join(np.atleast_1d(first))
        self._in, self._weights = [len(self._labels) - 1], np.ones(1)
        self._refactor()

    def point(self) -> np.ndarray:
        # over the whole pool: to pick the corral's rows would copy them
        spread = np.zeros(len(self._labels))
        spread[self._in] = self._weights
        return spread @ self._atoms

    def value(self, v: np.ndarray) -> float:
        return 0.5 * float((self._slope(v) - self._b) @ v)

    def mixture(self) -> Mixture:
        order = np.argsort(self._labels[self._in])
        return Mixture(self._labels[self._in][order], self._weights[order])

    def price(self, v: np.ndarray) -> tuple[float, float]:
        """The gap at v over all atoms, and the part of it that rounding explains."""
        down = -self._slope(v)
        scores = self._body.atoms.scores(down)
        lead = (np.abs(scores) if self._body.symmetric else scores) - float(down @ v)
        gap = float(np.max(lead))
        ahead = np.flatnonzero(lead >= _SHARE * gap) if gap > 0 else np.zeros(0, dtype=np.int64)
        if len(ahead) > _BATCH:
            ahead = ahead[np.argpartition(-lead[ahead], _BATCH)[:_BATCH]]
        signs = scores[ahead] < 0 if self._body.symmetric else np.zeros(len(ahead), dtype=bool)
        self._prune()
        self._join(np.where(signs, ahead + self._body.atoms.count, ahead))
        return gap, self._allow(down, _GAP)

    def improve(self) -> bool:
        """Use up the pool; False when none of its atoms could enter the corral.

        An atom enters once: where rounding is all that is left, some would go in and out for long.
        """
        moved, entered = False, []
        for _ in range(4 * len(self._labels) + 16):
            v = self.point()
            down = -self._slope(v)
            lead = self._atoms @ down - float(down @ v)
            lead[self._in + entered] = -np.inf
            if not len(lead):
                break
            best = int(np.argmax(lead))
            if not lead[best] > self._allow(down, _LEAD) or not self._enter(best):
                break
            self._descend()
            entered.append(best)
            moved = True
        return moved

    def _allow(self, down: np.ndarray, share: float) -> float:
        """What rounding may do to <down, a - v>, and a share of what that may be."""
        size = float(np.linalg.norm(self._b)) + float(np.linalg.norm(down + self._b))
        return self._body.radius * (share * float(np.linalg.norm(down)) + 4e-16 * size)

    def _scale(self) -> float:
        if self._hessian is None:
            return 1.0
        return max(float(np.trace(self._hessian)) / len(self._hessian), 1e-300)

    def _slope(self, v: np.ndarray) -> np.ndarray:
        return (v if self._hessian is None else self._hessian @ v) - self._b

    def _join(self, labels: np.ndarray) -> None:
        fresh = labels[~np.isin(labels, self._labels)]
        if not len(fresh):
            return
        atoms = self._body.atoms.take(fresh)
        bent = atoms if self._hessian is None else atoms @ self._hessian
        self._labels = np.append(self._labels, fresh)
        self._atoms = np.vstack([self._atoms, atoms])
        self._bent = self._atoms if self._hessian is None else np.vstack([self._bent, bent])
        self._pull = np.append(self._pull, atoms @ self._b)

    def _prune(self) -> None:
        """Forget the atoms outside the corral."""
        keep = np.array(self._in, dtype=np.int64)
        self._labels, self._atoms = self._labels[keep], self._atoms[keep]
        self._pull = self._pull[keep]
        self._bent = self._atoms if self._hessian is None else self._bent[keep]
        self._in = list(range(len(keep)))

    def _products(self, place: int) -> np.ndarray:
        """<a_i, H a_place> + lift over the corral: adding the same to all moves no weight."""
        return (self._atoms @ self._bent[place])[self._in] + self._lift

    def _enter(self, place: int) -> bool:
        """Put an atom into the corral; False where it depends on those there."""
        from scipy.linalg import solve_triangular  # loaded by need: it takes long

        column = self._products(place)
        own = float(self._atoms[place] @ self._bent[place]) + self._lift
        row = solve_triangular(self._factor, column, lower=True, check_finite=False)
        left = own - float(row @ row)
        if not left > 1e-14 * own:
            return False
        k = len(self._in)
        grown = np.zeros((k + 1, k + 1))
        grown[:k, :k], grown[k, :k], grown[k, k] = self._factor, row, np.sqrt(left)
        self._factor = grown
        self._in = [*self._in, place]
        self._weights = np.append(self._weights, 0.0)
        return True

    def _refactor(self) -> None:
        matrix = self._atoms[self._in] @ self._bent[self._in].T + self._lift
        self._factor = np.linalg.cholesky(matrix)

    def _independent(self) -> list[int]:
        """Places of a largest set of atoms whose factor can be had, in the pool's order."""
        kept: list[int] = []
        self._in, self._factor = kept, np.zeros((0, 0))
        self._weights = np.zeros(0)
        for place in range(len(self._labels)):
            if not self._in:
                self._in, self._weights = [place], np.zeros(1)
                self._refactor()
            else:
                self._enter(place)
        return list(self._in)

    def _affine(self) -> np.ndarray:
        """Weights of sum 1, of any sign, of the minimiser over the corral's affine hull."""
        from scipy.linalg import cho_solve

        target = np.stack([self._pull[self._in], np.ones(len(self._in))], axis=1)
        solved = cho_solve((self._factor, True), target, check_finite=False)
        free, ones = solved[:, 0], solved[:, 1]
        return free + ones * (1.0 - np.sum(free)) / np.sum(ones)

    def _descend(self) -> None:
        """Move to the affine minimiser, and drop atoms whose weight becomes 0 on the way."""
        while True:
            aim = self._affine()
            if np.min(aim) > _SMALL:
                self._weights = aim / np.sum(aim)
                return
            falling = aim <= _SMALL
            drop = self._weights - aim
            ratio = np.where(
                falling & (drop > 0), self._weights / np.where(drop > 0, drop, 1.0), 1.0
            )
            step = float(np.clip(np.min(ratio[falling]), 0.0, 1.0))
            moved = self._weights + step * (aim - self._weights)
            keep = moved > _SMALL
            if np.all(keep):
                keep[np.flatnonzero(falling)[np.argmin(ratio[falling])]] = False
            if not np.any(keep):
                keep[np.argmax(moved)] = True
            self._in = [place for place, kept in zip(self._in, keep, strict=True) if kept]
            self._weights = moved[keep] / np.sum(moved[keep])
            self._refactor()
