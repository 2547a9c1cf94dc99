"""The base class of losses of the distance |theta - x| to a record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.losses.base import PerRecord
from dperm_cli.problem.data import Bounds, Data, Minorant, PublicFacts

_BLOCK = 1 << 20  # how many entries of the differences theta - x are held at once
_SLACK = 1e-9  # how far a dual point may lie outside the unit ball, for rounding


class Median(PerRecord):
    """The base class of losses l(theta; x) = |theta - x| in some norm.

    A subclass defines:

    - ``norm`` and ``subgradient``, which take differences [..., p];
    - ``project_duals(dual)``, which projects dual points [b, p] on the dual norm's unit ball, and
      returns them with the largest dual norm before;
    - ``lipschitz_norm``, as in ``margin_loss.Glm``.

    CSR rows are made dense one block at a time.
    """

    norm: Any
    subgradient: Any
    project_duals: Any
    lipschitz_norm: Any

    def dimension(self, facts: PublicFacts) -> int:
        """One parameter per column."""
        return facts.p

    def values(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Each record's loss at each row of [..., p], shape [..., n]."""
        flat = theta.reshape(-1, data.p)
        out = np.empty((len(flat), data.n))
        for rows, x in _blocks(data):
            for k, point in enumerate(flat):
                out[k, rows] = self.norm(point - x)
        return out.reshape(*theta.shape[:-1], data.n)

    def gradient(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Sum over records of one subgradient (0 where theta is the record), [..., p]."""
        flat = theta.reshape(-1, data.p)
        out = np.zeros_like(flat, dtype=float)
        for _, x in _blocks(data):
            for k, point in enumerate(flat):
                out[k] += np.sum(self.subgradient(point - x), axis=0)
        return out.reshape(theta.shape)

    def lipschitz(self, bounds: Bounds) -> float:
        """The Lipschitz constant in the Euclidean norm."""
        return self.lipschitz_norm(bounds, 2)

    def curvature_bound(self, bounds: Bounds) -> None:
        """None: the loss has kinks."""
        return None

    def oscillation(self, bounds: Bounds, constraint: Any) -> float:
        """2 L min(diameter, 2 row), since |l_d - l_d'| <= L |x - x'| as well."""
        return 2.0 * self.lipschitz(bounds) * min(constraint.diameter, 2.0 * bounds.row)

    def dual_slope(self, dual: np.ndarray, data: Data) -> np.ndarray:
        """The slope [p] of ``minorant``: the sum of the dual points."""
        return np.sum(dual, axis=0)

    def curvature_factor(self, data: Data) -> float:
        """n: the argument of every record's loss is theta itself, up to a shift."""
        return float(data.n)

    def cone_entries(self, data: Data) -> int:
        """About four for each entry of the rows."""
        return 4 * data.n * data.p

    def dual(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """One subgradient per record [n, p] at theta [p], where ``minorant`` touches the sum."""
        return np.vstack([self.subgradient(theta - x) for _, x in _blocks(data)])

    def minorant(self, dual: np.ndarray, data: Data) -> Minorant:
        """An affine lower bound on the summed loss, from one dual point per record, [n, p].

        For a dual point a of norm at most 1, |theta - x| >= <a, theta - x>; these are added up.
        """
        slope, products, slopes, terms = np.zeros(data.p), [], [], []
        for rows, x in _blocks(data):
            a, most_outside = self.project_duals(dual[rows])
            if not most_outside <= 1.0 + _SLACK:
                return Minorant(np.zeros(data.p), -math.inf, 0.0, 0.0)
            lengths = np.linalg.norm(a, axis=1)
            slope += np.sum(a, axis=0)
            products.extend(np.sum(a * x, axis=1))
            slopes.extend(lengths)
            terms.extend(lengths * np.linalg.norm(x, axis=1))
        return Minorant(slope, -math.fsum(products), math.fsum(slopes), math.fsum(terms))


def _blocks(data: Data) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows: each one's place in the data, and its rows as a dense array [b, p]."""
    step = max(1, _BLOCK // data.p)
    for start in range(0, data.n, step):
        rows = slice(start, min(start + step, data.n))
        block = data.x[rows]
        yield rows, block.toarray() if sparse.issparse(block) else block
