"""The view of a release on a grid: sums of records that are exact in integers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.symmetric import triangle_size
from dperm_cli.loops import exact_noise, exact_sums, sgd
from dperm_cli.losses.base import to_dense
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Loss, Problem
from dperm_cli.views.central import CentralView


def has_exact_sums(loss: Loss) -> bool:
    """Whether the gradient of a single record is compiled, so that sums of it are exact."""
    return loss.code is not None or loss.location_code is not None or loss.softmax


def require_exact_sums(loss: Loss) -> None:
    """``Unsupported`` for a loss whose gradients are not made record by record."""
    if not has_exact_sums(loss):
        raise Unsupported(f"{loss.name} has no exact sum of gradients; use noise=research")


def _refuse(*_: Any, **__: Any) -> Any:
    raise PrivacyError("on a grid, records are seen through exact sums alone")


class GridView(CentralView):
    """The view of a release on a grid. Sums are exact and do not depend on the order of addition.

    Every record's contribution is shortened to its public bound and rounded to the grid. The
    rounded contributions are added as integers. So the sums of neighbouring data sets differ by
    exactly one record's rounded contribution (or two, if one is replaced). Minimisers are those of
    ``find_perturbed_minimisers``, whose whole error is certified.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> view = GridView(linear_pair("replace_one", n=4, radius=1.0)[0], Grid(-10))
    >>> view.gradient_sum(np.zeros((2, 1))).tolist()
    [[-4.0], [-4.0]]
    """

    maps_alone: ClassVar[bool] = True

    def __init__(self, problem: Problem, grid: Grid) -> None:
        super().__init__(problem)
        self._grid, self._bound = grid, problem.spec().lipschitz
        self._rows = self._read_rows(problem.data)

    @property
    def gradient_error(self) -> float:
        """Half a step for each record and coordinate by rounding, and half for the arithmetic."""
        return self.spec.n * self._grid.step * math.sqrt(self.spec.p)

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """Sum over records of the rounded subgradients at each row of [..., p], without the ridge.

        The results are exact multiples of the grid's step, at most 2^50 of them.
        """
        return self._add_gradients(theta, self._rows)

    def batch_gradient(self, theta: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """The same over the records ``batch`` ([b])."""
        data = self._problem.data.take(np.asarray(batch, dtype=np.int64))
        return self._add_gradients(theta, self._read_rows(data))

    def packed_moments(self, target: float) -> np.ndarray:
        """As for ``CentralView``; a row is shortened to its bound and a target held to its own."""
        data = self._problem.data
        targets = -self.loss.slope(np.zeros(data.n), data.y)
        return self._add_moments(np.ones(data.n), targets, target, 1.0)[:-1]

    def packed_joint_moments(self, target: float, share: float) -> np.ndarray:
        """As for ``CentralView``; a row is shortened to its bound and a target held to its own."""
        data, p = self._problem.data, self.spec.p
        targets = -self.loss.slope(np.zeros(data.n), data.y)
        added = self._add_moments(np.ones(data.n), targets, target, 1.0, math.sqrt(share))
        # where the last column of the matrix stands in its packed triangle
        last = np.cumsum(np.arange(p + 1, 0, -1)) - 1
        found = np.empty(len(added))
        found[last] = added[triangle_size(p) :]
        found[np.delete(np.arange(len(added)), last)] = added[: triangle_size(p)]
        return found

    def packed_curvature(self, theta: np.ndarray) -> np.ndarray:
        """As for ``CentralView``, for losses of one margin.

        A record's matrix has the curvature of its loss at the margin 0 where ``theta`` is the
        origin, and else the largest. Both follow from the record without a product of its row.
        """
        data, smoothness = self._problem.data, float(self.loss.smoothness)
        weights = np.ones(data.n)
        if not np.any(theta):
            weights = self.loss.majoriser(np.zeros(data.n), data.y) / smoothness
        spec: Any = self.spec
        added = self._add_moments(weights, np.zeros(data.n), 0.0, spec.smoothness)
        return added[: triangle_size(spec.p)]

    def _add_moments(
        self,
        weights: np.ndarray,
        targets: np.ndarray,
        target: float,
        unit: float,
        share: float = 0.0,
    ) -> np.ndarray:
        """The sums of ``exact_sums.moment_sum``, times ``unit``, on the grid."""
        p = self.spec.p
        out = np.empty(triangle_size(p) + p + 1, np.int64)
        per_unit = unit / self._grid.step
        exact_sums.moment_sum(
            self._rows, p, weights, targets, self.spec.row_bound, target, share, per_unit, out
        )
        return out.astype(float) * self._grid.step

    def replace_set(self, **changes: Any) -> GridView:
        """A view of the same records with another (public) set, another loss or another ridge."""
        found = super().replace_set(**changes)
        assert isinstance(found, GridView)
        return found

    def _make_view(self, problem: Problem) -> GridView:
        require_exact_sums(problem.loss)
        return GridView(problem, self._grid)

    def _read_rows(self, data: Data) -> sgd.Rows:
        """The records as compiled loops take them; an entry of a sparse row is there once."""
        x: Any = data.x if self.loss.location_code is None else to_dense(data.x)
        if sparse.issparse(x) and not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        return sgd.rows(x, data.y)

    def _add_gradients(self, theta: np.ndarray, rows: sgd.Rows) -> np.ndarray:
        flat = np.ascontiguousarray(theta, dtype=float).reshape(-1, theta.shape[-1])
        out = np.empty(flat.shape, np.int64)
        per_unit, loss = 1.0 / self._grid.step, self.loss
        if loss.softmax:
            classes = self._problem.data.classes
            exact_sums.softmax_sum(rows, flat, classes, self._bound, per_unit, out)
        elif loss.location_code is not None:
            exact_sums.distance_sum(rows.x, flat, loss.location_code, self._bound, per_unit, out)
        else:
            exact_noise.gradient_sum(rows, flat, loss.code, loss.width, self._bound, per_unit, out)
        return (out.astype(float) * self._grid.step).reshape(theta.shape)

    x = y = property(_refuse)
    curvature_sum = moment_sum = potential = objective = _refuse
    minimiser = clipped_losses = map_rows = _refuse
