"""The view of a mechanism with a trusted holder of the data: sums, batches and minimisers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.core import progress
from dperm_cli.core.errors import PrivacyError
from dperm_cli.datasets.shared.row_rules import bound_rows
from dperm_cli.loops import box_muller, exact_noise, sgd
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.privacy.streams import LawStream
from dperm_cli.problem.data import Matrix
from dperm_cli.problem.problem import Constraint, Loss, Problem, ProblemSpec
from dperm_cli.problem.record_names import NO_RECORD, batch_of
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.solvers import optimum, perturbed_minimiser

_FIRST_BLOCK, _LARGEST_BLOCK = 64, 4096
_FIRST_GAP, _SECONDS = 1e-6, (60.0, 120.0, 600.0)  # of a minimiser


class CentralView:
    """The trusted curator's view: sums of gradients, the records for compiled loops, potentials.

    It offers no test data, a minimiser for mechanisms that add noise to it, and loss values to
    samplers and selections alone (``potential``, ``objective``): whatever is made of these passes
    the gate.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> view = CentralView(linear_pair("replace_one", n=4, radius=1.0)[0])
    >>> view.gradient_sum(np.zeros((3, 1))).tolist()
    [[-4.0], [-4.0], [-4.0]]
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @property
    def spec(self) -> ProblemSpec:
        """The public facts of the problem."""
        return self._problem.spec()

    @property
    def x(self) -> Matrix:
        return self._problem.data.x

    @property
    def y(self) -> np.ndarray:
        return self._problem.data.y

    @property
    def loss(self) -> Loss:
        return self._problem.loss

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """Sum over all records of the loss's subgradient at each row of [..., p], no ridge."""
        return self._problem.data_gradient(theta)

    def batch_gradient(self, theta: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Sum over the records ``batch`` ([b]) of the subgradient at each row of [..., p]."""
        if not len(batch):
            return np.zeros(np.shape(theta))
        return self.loss.gradient(theta, self._problem.data.take(batch))

    def parts(self, batches: int, *, by_content: bool) -> list[np.ndarray]:
        """The indices of disjoint batches that hold every record once.

        By place: batch t of k holds the records t, t + k, ..; n is public and nothing else enters.
        By content: a record's name, which was made when it was read, says which batch it is in, so
        that a record comes or goes without moving another one. Rows of zeros that fill the data up
        are no records and in no batch.
        """
        data = self._problem.data
        if not by_content:
            return [np.arange(start, data.n, batches) for start in range(batches)]
        records = np.flatnonzero(data.names != NO_RECORD)
        batch = batch_of(data.names[records], batches)
        order = np.argsort(batch, kind="stable")
        ends = np.searchsorted(batch[order], np.arange(1, batches))
        return np.split(records[order], ends)

    def curvature_sum(self, theta: np.ndarray) -> np.ndarray:
        """Sum over records of a bound on each one's Hessian, at each row of [..., p]: [..., p, p].

        Every record adds a positive semidefinite matrix of norm at most ``spec.smoothness``.
        """
        return self.loss.majorant(theta, self._problem.data)

    def objective(self, theta: np.ndarray) -> np.ndarray:
        """The summed loss with its regulariser at each row of [..., p], for a law of the gate."""
        return self._problem.objective(theta)

    def minimiser(self, gap: float) -> np.ndarray:
        """A point of the set, [p], proved to be within ``gap`` of the least objective.

        PrivacyError where that cannot be proved: noise made for this gap would not protect it.
        """
        return find_certified_minimiser(self._problem, gap)

    def find_perturbed_minimisers(
        self, tilts: np.ndarray, added: float, distance: float
    ) -> np.ndarray:
        """Minimisers of the sum + (added / 2) |theta|^2 + <tilt, theta>, for each tilt [trials, p].

        Each is proved to be within ``distance`` of the exact one; PrivacyError where it is not.
        """
        problem = self._problem
        problem = replace(problem, ridge=problem.ridge + added / problem.data.n)
        points, errors = perturbed_minimiser.locate(problem, tilts, problem.penalty.ridge, distance)
        if not np.all(errors <= distance):
            # not how far it is: that follows from the records
            raise PrivacyError(
                f"a minimiser was not proved to be found to {distance:.3g}, as is needed; nothing "
                "is released, and that this happened is not a private outcome"
            )
        return points

    def replace_set(
        self, *, constraint: Constraint | None = None, loss: Loss | None = None
    ) -> CentralView:
        """The same records with another (public) set or another loss."""
        problem = self._problem
        constraint, loss = constraint or problem.constraint, loss or problem.loss
        return self._make_view(replace(problem, constraint=constraint, loss=loss))

    def map_rows(
        self, rows: Callable[[Matrix], Matrix], row_bound: float, constraint: Constraint
    ) -> CentralView:
        """The same records with other rows, on a set that fits them.

        ``rows`` is a public map that takes each row by itself, [n, p] to [n, m]; what comes out is
        shortened to norm ``row_bound`` here, so that the bound holds whatever the map is.
        """
        data = self._problem.data
        x = clip_rows(rows(data.x), row_bound)
        data = data.with_rows(
            x, row_bound=row_bound, entry_bound=None, minimiser=None, phi=None,
            phi_row_bound=None, x_test=None, y_test=None,
        )  # fmt: skip
        return self._make_view(replace(self._problem, data=data, constraint=constraint))

    def _make_view(self, problem: Problem) -> CentralView:
        """A view of this kind of another problem."""
        return CentralView(problem)

    def potential(self, target: Target) -> Records:
        """f of the law exp(-f), for a sampler whose random numbers come from the gate."""
        return Records(self.loss, self._problem.data, target)


def clip_rows(rows: Matrix, bound: float) -> Matrix:
    """Rows [n, m] with those longer than ``bound`` shortened to it."""
    return bound_rows(rows, "clip", bound)


def find_certified_minimiser(problem: Problem, gap: float) -> np.ndarray:
    """A point [p] whose duality gap is proved to be at most ``gap``; PrivacyError without one."""
    relative = _FIRST_GAP
    for seconds in _SECONDS:
        found = optimum.solve(
            problem, relative_gap=relative, seconds=seconds, progress=_report_progress
        )
        if found.gap <= gap:
            return found.theta
        start = float(problem.objective(problem.constraint.centre()))
        relative = 0.5 * gap / max(start - found.lower, gap)
    raise PrivacyError(
        f"the minimiser was not proved to be found to a gap of {gap:.3g}, which the noise is made "
        "for; nothing is released, and that this happened is not a private outcome"
    )


def _report_progress(*_: float) -> None:
    """Report that the solver is running. Its progress depends on the records and is not told."""
    progress.report("the mechanism's minimiser", 0.0, 0.0)


class TrialNumbers:
    """The random numbers of one trial of a law, in the order they are asked for.

    They are taken from the stream in blocks; how large these are does not change a number.

    >>> from types import SimpleNamespace
    >>> count_up = lambda trial, step, count, start: np.arange(start, start + count) / 100
    >>> numbers = TrialNumbers(SimpleNamespace(uniforms=count_up), trial=0)
    >>> numbers.uniform(2).tolist(), numbers.uniform(1, 3).tolist()
    ([0.0, 0.01], [[0.02, 0.03, 0.04]])
    """

    def __init__(self, stream: LawStream, trial: int, step: int = 0) -> None:
        self._stream, self._trial, self._step = stream, trial, step
        self._block, self._next, self._used = np.empty(0), 0, 0

    def uniform(self, *shape: int) -> np.ndarray:
        """Independent uniforms in (0, 1)."""
        return self._take(math.prod(shape)).reshape(shape)

    def normal(self, *shape: int) -> np.ndarray:
        """Independent standard normals."""
        count = math.prod(shape)
        return box_muller.normals(self._take(count + count % 2))[:count].reshape(shape)

    def _take(self, count: int) -> np.ndarray:
        end = self._used + count
        if end > self._block.size:
            start = self._next - (self._block.size - self._used)
            size = max(count, min(max(2 * self._block.size, _FIRST_BLOCK), _LARGEST_BLOCK))
            self._block = self._stream.uniforms(self._trial, self._step, size, start)
            self._next, self._used, end = start + size, 0, count
        taken = self._block[self._used : end]
        self._used = end
        return taken


def _refuse(*_: Any, **__: Any) -> Any:
    raise PrivacyError("on a grid, records are seen through gradient_sum alone")


class GridView(CentralView):
    """The view of a release on a grid. Sums are exact and do not depend on the order of addition.

    Every record's gradient is shortened to norm ``spec.lipschitz`` and rounded to the grid, and the
    rounded ones are added as integers. So the sums of neighbouring data sets differ by one record's
    multiples of the grid and by nothing else. Needs a loss with a compiled slope.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> GridView(linear_pair("replace_one")[0], Grid(-10)).x
    Traceback (most recent call last):
    dperm_cli.core.errors.PrivacyError: on a grid, records are seen through gradient_sum alone
    """

    def __init__(self, problem: Problem, grid: Grid) -> None:
        super().__init__(problem)
        self._grid, self._bound = grid, problem.spec().lipschitz
        x = problem.data.x
        if sparse.issparse(x) and not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        self._rows = sgd.rows(x, problem.data.y)

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """Sum over records of the rounded subgradients at each row of [..., p], no ridge.

        Exact multiples of the grid, at most 2^50 of its steps.
        """
        flat = np.ascontiguousarray(theta, dtype=float).reshape(-1, theta.shape[-1])
        out = np.empty(flat.shape, np.int64)
        per_unit = 1.0 / self._grid.step
        exact_noise.gradient_sum(
            self._rows, flat, self.loss.code, self.loss.width, self._bound, per_unit, out
        )
        return (out.astype(float) * self._grid.step).reshape(theta.shape)

    x = y = property(_refuse)
    batch_gradient = parts = curvature_sum = potential = objective = minimiser = _refuse
    find_perturbed_minimisers = replace_set = map_rows = _refuse
