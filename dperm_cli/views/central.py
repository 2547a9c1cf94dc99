"""The view of a mechanism with a trusted holder of the data: sums, batches and minimisers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core import progress
from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.symmetric import pack_symmetric
from dperm_cli.datasets.shared.row_rules import bound_rows, take_columns
from dperm_cli.loops import box_muller, exact_scores, sgd
from dperm_cli.losses.base import gram
from dperm_cli.losses.shared.score_units import ScoreUnits
from dperm_cli.privacy.streams import LawStream
from dperm_cli.problem.data import Matrix
from dperm_cli.problem.problem import Constraint, Loss, Problem, ProblemSpec
from dperm_cli.problem.record_names import NO_RECORD, batch_of
from dperm_cli.problem.row_products import add_rows, slice_rows
from dperm_cli.problem.split_rows import join_parts
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.potential import Records
from dperm_cli.solvers import optimum, perturbed_minimiser

_FIRST_BLOCK, _LARGEST_BLOCK = 64, 4096  # how many random numbers are fetched at once
_POINTS = 8  # at which a sum over records is made at once
# the relative gap that is tried first for a minimiser, and the time limits of the attempts
_FIRST_GAP, _SECONDS = 1e-6, (60.0, 120.0, 600.0)


class CentralView:
    """The trusted curator's view of a problem.

    It offers sums of gradients, the records for compiled loops, and the potential of a law. It does
    not offer test data. Minimisers are for mechanisms that add noise to them, and loss values
    (``potential``, ``objective``) for samplers and selections. All results computed from these must
    pass the gate before they are released.

    >>> from dperm_cli.mechanisms.adversary import linear_pair
    >>> view = CentralView(linear_pair("replace_one", n=4, radius=1.0)[0])
    >>> view.gradient_sum(np.zeros((3, 1))).tolist()
    [[-4.0], [-4.0], [-4.0]]
    """

    maps_alone: ClassVar[bool] = False  # whether rows are mapped one by one, by ``map_each_row``

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @property
    def spec(self) -> ProblemSpec:
        """The public facts of the problem."""
        return self._problem.spec()

    @property
    def x(self) -> Matrix:
        """The rows of the records, [n, p], dense or sparse."""
        return self._problem.data.x

    @property
    def y(self) -> np.ndarray:
        """The labels or targets of the records, [n]."""
        return self._problem.data.y

    @property
    def loss(self) -> Loss:
        """The loss of the problem."""
        return self._problem.loss

    @property
    def gradient_error(self) -> float:
        """A bound on how far ``gradient_sum`` is from a subgradient, from public facts."""
        return 0.0

    def gradient_sum(self, theta: np.ndarray) -> np.ndarray:
        """The sum over records of the loss's subgradient at each row of [..., p], without ridge."""
        problem = self._problem
        if self.loss.has_compiled_sums(problem.data):
            return problem.data_gradient(theta)
        return map_points(problem.data_gradient, theta)

    def batch_gradient(self, theta: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Sum over the records ``batch`` ([b]) of the subgradient at each row of [..., p]."""
        if not len(batch):
            return np.zeros(np.shape(theta))
        return self.loss.gradient(theta, self._problem.data.take(batch))

    def parts(self, batches: int, *, by_content: bool) -> list[np.ndarray]:
        """Divide the records into disjoint batches; every record is in exactly one.

        By place, batch t of k holds the records t, t + k, ..: this depends on n alone, which is
        public. By content, a record's name (a hash made when it was read) says which batch it is
        in, so that adding or removing a record does not move others. Empty records, rows of zeros
        that fill up the data, are in no batch.

        Args:
            batches: the number k of batches.
            by_content: whether to divide by content.

        Returns:
            The indices of the records of each batch.
        """
        data = self._problem.data
        if not by_content:
            return [np.arange(start, data.n, batches) for start in range(batches)]
        records = np.flatnonzero(data.names != NO_RECORD)
        batch = batch_of(data.names[records], batches)
        order = np.argsort(batch, kind="stable")
        ends = np.searchsorted(batch[order], np.arange(1, batches))
        return np.split(records[order], ends)

    def restrict(self, records: np.ndarray) -> CentralView:
        """A view of these records alone.

        Args:
            records: their numbers.
        """
        return self._make_view(replace(self._problem, data=self._problem.data.take(records)))

    def curvature_sum(self, theta: np.ndarray) -> np.ndarray:
        """Upper bound [..., p, p] on the summed Hessian at each row of [..., p].

        Every record adds a positive semidefinite matrix of norm at most ``spec.smoothness``.
        """
        return self.loss.majorant(theta, self._problem.data)

    def packed_curvature(self, theta: np.ndarray) -> np.ndarray:
        """``curvature_sum`` at one point [p], packed: its upper triangle [p (p + 1) / 2], off the
        diagonal times sqrt(2)."""
        return pack_symmetric(self.curvature_sum(theta))

    def packed_moments(self, target: float) -> np.ndarray:
        """The sums over records of x x^T and of t x, t = -l'(0; y), in one vector.

        Args:
            target: the bound on |t|; 0 leaves t out.

        Returns:
            The upper triangle of the first over the square of the row bound, off-diagonal entries
            times sqrt(2); then the second over both bounds: [p (p + 1) / 2 + p].
        """
        unit = np.full(self.spec.p + 1, 1.0 / self.spec.row_bound)
        unit[-1] = 1.0 / target if target > 0.0 else 0.0
        whole = self.moment_sum() * unit * unit[:, None]
        return np.append(pack_symmetric(whole[:-1, :-1]), whole[:-1, -1])

    def packed_joint_moments(self, target: float, share: float) -> np.ndarray:
        """The sum over records of v v^T, v = (x, sqrt(share) t), both over their bounds, packed.

        Args:
            target: the bound on |t|, t = -l'(0; y); 0 leaves t out.
            share: the weight of t squared.

        Returns:
            The upper triangle, off-diagonal entries times sqrt(2): [(p + 1) (p + 2) / 2].
        """
        unit = np.full(self.spec.p + 1, 1.0 / self.spec.row_bound)
        unit[-1] = math.sqrt(share) / target if target > 0.0 else 0.0
        return pack_symmetric(self.moment_sum() * unit * unit[:, None])

    def moment_sum(self) -> np.ndarray:
        """The sum [p + 1, p + 1] over records of v v^T, v = (x, -l'(0; y)), l the loss of a margin.

        For the squared loss -l'(0; y) is y. A row of zeros, whose loss depends on no theta, counts
        for nothing whatever its label is: it stands for a record that is not there.
        """
        x, t = self.x, -self.loss.slope(np.zeros(len(self.y)), self.y)
        t = np.where(has_entries(x), t, 0.0)
        cross = add_rows(x, t)[:, None]
        squares = gram(x)
        return np.block([[squares, cross], [cross.T, np.sum(t * t)]])

    def objective(self, theta: np.ndarray) -> np.ndarray:
        """The summed loss with its regulariser at each row of [..., p], for laws of the gate."""
        return self._problem.objective(theta)

    def score_sum(self, theta: np.ndarray, units: ScoreUnits) -> np.ndarray:
        """The sum over records of their losses at each row of [m, p], in whole units: int64 [m].

        Every record's loss is rounded by itself, and integers are added, so that neighbouring data
        sets differ by one record's rounded losses (or two, if one is replaced). For choices from a
        list. The loss needs a compiled value.
        """
        x = self._problem.data.x
        if sparse.issparse(x) and not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        out = np.empty(len(theta), np.int64)
        exact_scores.score_sum(
            sgd.rows(x, self._problem.data.y), np.ascontiguousarray(theta, dtype=float),
            self.loss.code, self.loss.width, units.most, 1.0 / units.size, out,
        )  # fmt: skip
        return out

    def clipped_losses(self, theta: np.ndarray, bound: float) -> np.ndarray:
        """The sum over records of their loss at each row of [..., p], less that at the centre.

        Each difference is held to ``bound`` in size, so that one record moves a sum by no more.
        """
        problem = self._problem
        at_centre = self.loss.values(problem.constraint.centre(), problem.data)

        def add(points: np.ndarray) -> np.ndarray:
            moved = self.loss.values(points, problem.data) - at_centre
            return np.sum(np.clip(moved, -bound, bound), axis=-1)

        return map_points(add, theta)

    def minimiser(self, gap: float) -> np.ndarray:
        """A point of the set, [p], close to the minimiser.

        Args:
            gap: how far its objective may be above the least one.

        Raises:
            PrivacyError: this gap cannot be proved. Noise made for it would not suffice.
        """
        return find_certified_minimiser(self._problem, gap)

    def find_perturbed_minimisers(
        self, tilts: np.ndarray, added: float, distance: float
    ) -> np.ndarray:
        """Minimisers of the objective + (added / 2) |theta|^2 + <tilt, theta>.

        Args:
            tilts: one tilt for each trial, [trials, p].
            added: the weight of the added squared norm.
            distance: how far a point may be from the exact minimiser, in L2 norm.

        Returns:
            The points [trials, p].

        Raises:
            PrivacyError: this distance cannot be proved for one of them.
        """
        problem = self._problem
        problem = replace(problem, ridge=problem.ridge + added / problem.data.n)
        points, errors = perturbed_minimiser.locate(problem, tilts, problem.penalty.ridge, distance)
        if not np.all(errors <= distance):
            # the message leaves out the distance reached: it depends on the records
            raise PrivacyError(
                f"a minimiser was not proved to be found to {distance:.3g}, as is needed; nothing "
                "is released, and that this happened is not a private outcome"
            )
        return points

    def replace_set(
        self,
        *,
        constraint: Constraint | None = None,
        loss: Loss | None = None,
        ridge: float | None = None,
    ) -> CentralView:
        """A view of the same records with another (public) set, another loss or another ridge."""
        problem = self._problem
        constraint, loss = constraint or problem.constraint, loss or problem.loss
        ridge = problem.ridge if ridge is None else ridge
        return self._make_view(replace(problem, constraint=constraint, loss=loss, ridge=ridge))

    def map_rows(
        self, rows: Callable[[Matrix], Matrix], row_bound: float, constraint: Constraint
    ) -> CentralView:
        """A view of the same records with mapped rows, on another set.

        Args:
            rows: a public map, [n, p] to [n, m], that treats each row by itself.
            row_bound: mapped rows are shortened to this norm, so that the bound holds for any map.
            constraint: the set of parameters for the mapped rows.
        """
        x = clip_rows(rows(self._problem.data.x), row_bound)
        return self._show_rows(x, row_bound, constraint)

    def _show_rows(
        self, x: Matrix, row_bound: float, constraint: Constraint, entry_bound: float | None = None
    ) -> CentralView:
        """A view of the same records with other rows, on another set."""
        data = self._problem.data.with_rows(
            x, row_bound=row_bound, entry_bound=entry_bound, minimiser=None, phi=None,
            phi_row_bound=None, x_test=None, y_test=None,
        )  # fmt: skip
        return self._make_view(replace(self._problem, data=data, constraint=constraint))

    def take_columns(self, columns: slice, row_bound: float, constraint: Constraint) -> CentralView:
        """A view of the same records with some of their columns, on another set.

        Args:
            columns: which ones, a public choice.
            row_bound: rows of these columns are shortened to this norm, whatever they were.
            constraint: the set of parameters for these columns.
        """
        rows = take_columns(self._problem.data.x, columns, row_bound)
        return self._show_rows(rows, row_bound, constraint, self._problem.data.entry_bound)

    def map_each_row(
        self, rows: Callable[[Matrix, float], Matrix], row_bound: float, constraint: Constraint
    ) -> CentralView:
        """As ``map_rows``, by a map of rows and bound that takes each row by itself."""
        return self._show_rows(rows(self._problem.data.x, row_bound), row_bound, constraint)

    def _make_view(self, problem: Problem) -> CentralView:
        """A view of the same kind for another problem."""
        return CentralView(problem)

    def potential(self, target: Target) -> Records:
        """f of the law exp(-f), for a sampler whose random numbers come from the gate."""
        return Records(self.loss, self._problem.data, target)


def map_points(function: Callable[[np.ndarray], np.ndarray], theta: np.ndarray) -> np.ndarray:
    """The function's result at each row of ``theta`` [..., p], whatever other rows there are.

    A product of matrices may round a column by how many others there are. So the function sees
    the same number of rows each time, the last of them filled up with zeros.
    """
    theta = np.asarray(theta, dtype=float)
    flat, found = theta.reshape(-1, theta.shape[-1]), []
    for start in range(0, len(flat), _POINTS):
        block = flat[start : start + _POINTS]
        filled = np.zeros((_POINTS, flat.shape[1]))
        filled[: len(block)] = block
        found.append(function(filled)[: len(block)])
    whole = np.concatenate(found)
    return whole.reshape(*theta.shape[:-1], *whole.shape[1:])


def has_entries(x: Matrix) -> np.ndarray:
    """Whether a row has an entry that is not zero: [n]."""
    return join_parts(x, _find_entries)


def _find_entries(x: Matrix) -> np.ndarray:
    if sparse.issparse(x):
        return np.asarray((x != 0.0).sum(axis=1)).ravel() > 0
    found = np.zeros(x.shape[0], bool)
    for part in slice_rows(x):
        found[part] = np.any(x[part] != 0.0, axis=1)
    return found


def clip_rows(rows: Matrix, bound: float) -> Matrix:
    """Rows [n, m], with those longer than ``bound`` shortened to it."""
    return bound_rows(rows, "clip", bound)


def find_certified_minimiser(problem: Problem, gap: float) -> np.ndarray:
    """A point [p] whose duality gap is proved to be at most ``gap``.

    Raises:
        PrivacyError: no attempt within the time limits proves this gap.
    """
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
    """Report that the solver is running, but not how far it is: that depends on the records."""
    progress.report("the mechanism's minimiser", 0.0, 0.0)


class TrialNumbers:
    """The random numbers of one trial of a law, in the order in which they are asked for.

    They are fetched from the stream in blocks. The size of the blocks does not change any number.

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
        """The next ``count`` uniforms of the stream."""
        end = self._used + count
        if end > self._block.size:
            start = self._next - (self._block.size - self._used)
            size = max(count, min(max(2 * self._block.size, _FIRST_BLOCK), _LARGEST_BLOCK))
            self._block = self._stream.uniforms(self._trial, self._step, size, start)
            self._next, self._used, end = start + size, 0, count
        taken = self._block[self._used : end]
        self._used = end
        return taken
