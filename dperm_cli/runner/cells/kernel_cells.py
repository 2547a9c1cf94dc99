"""Build the problems of a cell with a kernel: the kernel's own, and the one in coordinates.

Every release is a vector theta with f(x) = <theta, psi(x)>. Here psi is a finite feature map, or
for an exact kernel the projection on the span of the public queries. Objective, excess risk and
metrics are therefore those of an ordinary problem. Its rows are psi(x) and its set is a ball that
contains the minimiser.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.core import catalogue, registry
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.digests import hash_parts
from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.core.memo import GIB, Memo, measure_bytes
from dperm_cli.kernels.base import Kernel
from dperm_cli.kernels.shared import map_choice, mapped_rows
from dperm_cli.kernels.shared.feature_maps import Features
from dperm_cli.kernels.shared.kernel_problem import KernelProblem, map_name
from dperm_cli.kernels.shared.map_choice import MapRequest
from dperm_cli.kernels.shared.mapped_rows import FeatureRows
from dperm_cli.problem.data import Data, Matrix, pad_with_zeros
from dperm_cli.problem.problem import Problem
from dperm_cli.problem.public_facts import PublicFacts
from dperm_cli.runner.compose import cell_schema
from dperm_cli.sets import make_ball

DEFAULT_BALL = {"name": catalogue.defaults()["constraint"], "radius": 10}
_TASKS = ("binary", "regression")
# Mapped rows of data sets, of which each may take gigabytes.
_MAPPED_ROWS: Memo[str, tuple[Any, Any]] = Memo(2 * GIB)
# Problems with their bases and inverses; the data set beside them is not the memo's.
_PROBLEMS: Memo[tuple[Any, ...], tuple[Data, KernelCell]] = Memo(
    GIB, measure=lambda pair: measure_bytes(pair) - measure_bytes(pair[0])
)


@dataclass(frozen=True)
class PendingRows:
    """Rows psi(x) that are not computed yet. Their shape is public."""

    features: Features
    rows: Matrix
    extra: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.rows.shape[0]) + self.extra, self.features.dim

    def pad_with_zeros(self, extra: int) -> PendingRows:
        """The same with ``extra`` rows of zeros."""
        return replace(self, extra=extra)


@dataclass(frozen=True)
class KernelCell:
    """The problem in coordinates, and the kernel's own where its minimiser can be certified."""

    problem: Problem
    kernel: KernelProblem | None


def _whole(cell: cell_schema.Cell) -> bool:
    """Whether the mechanism needs only the kernel's minimiser, and no rows."""
    return cell.mechanism.space == "kernel" or cell.mechanism.is_unprotected


def require_map(cell: cell_schema.Cell) -> None:
    """``Unsupported`` for a mechanism that works on rows of a kernel's map, without a kernel."""
    if cell.kernel is not None:
        return
    if cell.mechanism.features is not None:
        raise Unsupported(
            f"{cell.mechanism_name} needs a kernel that is a function of x - z: set kernel=rbf or "
            "laplacian"
        )
    if cell.mechanism.on_queries:
        raise name_missing_kernel(cell)


def name_missing_kernel(cell: cell_schema.Cell) -> Unsupported:
    """What a mechanism that works on a kernel's minimiser needs."""
    return Unsupported(
        f"{cell.mechanism_name} works on a kernel's minimiser: set kernel=linear, polynomial, rbf "
        "or another, and ridge above 0"
    )


def prepare(cell: cell_schema.Cell, data: Data) -> KernelCell:
    """The two problems of a cell; InputError for what does not go with a kernel.

    Cells of one kernel and one data set share them: bases and inverses take longer than releases.
    """
    _check(cell, data.facts())
    key = (
        id(data),  # the entry keeps the data alive, so the id stays unique
        cell.mechanism.space, cell.mechanism.features, cell.mechanism.on_queries, _whole(cell),
        cell.population, cell.ridge,
        repr(cell.loss), repr(cell.kernel),
    )  # fmt: skip
    return _PROBLEMS.recall(key, lambda: (data, _prepare(cell, data)))[1]


def _prepare(cell: cell_schema.Cell, data: Data) -> KernelCell:
    kernel, facts = cell.kernel, data.facts(cell.population)
    wanted = MapRequest(
        cell.mechanism_name, _whole(cell), cell.mechanism.features, cell.mechanism.on_queries
    )
    features, queries = map_choice.make_map_and_queries(kernel, facts, wanted)
    own = None
    if cell.ridge > 0.0 and cell.loss.radial_slope_bound is not None and _holds_minimiser(kernel):
        own = KernelProblem(
            data, cell.loss, kernel, cell.ridge, queries, features, radius=kernel.radius
        )
    elif cell.mechanism.space == "kernel" or cell.mechanism.on_queries or features is None:
        raise _no_minimiser(cell)
    radius = own.spec().radius if own is not None else _radius(cell)
    basis: Features | None = features if own is None else own.spec().basis
    assert basis is not None
    ball = make_ball(radius, basis.dim)
    problem = Problem(_in_coordinates(data, kernel, basis), cell.loss, ball, cell.ridge)
    if not _whole(cell):
        map_choice.check_size(facts, basis.dim)
    return KernelCell(problem, own)


def make_feature_rows(
    cell: cell_schema.Cell, problem: Problem, own: KernelProblem | None
) -> KernelCell:
    """The problem with its rows computed; they are kept for the next cells of the problem."""
    x, x_test = _map_data(problem.data, dense=not _whole(cell), alone=maps_alone(cell, problem))
    if own is not None and own.features is not None:
        own = replace(own, rows=x)
    return KernelCell(replace(problem, data=problem.data.with_rows(x, x_test=x_test)), own)


def maps_alone(cell: cell_schema.Cell, problem: Problem) -> bool:
    """Whether each row is mapped by itself, as secure noise needs it, and can be."""
    x = problem.data.x
    possible = isinstance(x, PendingRows) and x.features.maps_alone
    return cell.noise == "secure" and possible and not _whole(cell)


def remember(problem: Problem, theta: np.ndarray) -> None:
    """Compute the margins of all points in one pass over the rows."""
    for x in (problem.data.x, problem.data.x_test):
        if isinstance(x, FeatureRows):
            x.remember(theta)


def pad_problem(problem: Problem, population: int) -> Problem:
    """The problem filled up with records that have no features."""
    return replace(problem, data=pad_with_zeros(problem.data, population))


def _holds_minimiser(kernel: Kernel) -> bool:
    """Whether the ball is known to hold the minimiser."""
    return kernel.radius in ("auto", "paper")


def _check(cell: cell_schema.Cell, facts: PublicFacts) -> None:
    if cell.constraint_config != DEFAULT_BALL:
        allowed = "is for models without a kernel; the ball of a kernel is kernel.radius"
        raise InputError("constraint", cell.constraint_config.get("name"), allowed)
    if cell.lasso:
        raise InputError("lasso", cell.lasso, "is for models without a kernel")
    if facts.task not in _TASKS or cell.loss.slope is None:
        raise InputError("kernel", cell.kernel.name, f"is not for {facts.task} data")


def _no_minimiser(cell: cell_schema.Cell) -> InputError:
    if not cell.ridge > 0.0:
        return InputError("ridge", cell.ridge, "must be above 0 with a kernel: it is its lambda")
    if cell.loss.radial_slope_bound is None:
        known = ", ".join(registry.list_offering("loss", "radial_slope_bound"))
        return InputError("loss", cell.loss.name, f"must be one of {known} with a kernel")
    allowed = "must be auto or paper here: the ball has to hold the minimiser"
    return InputError("kernel.radius", cell.kernel.radius, allowed)


def _radius(cell: cell_schema.Cell) -> float:
    """The ball's radius for mechanisms with parameters: given, or a bound on the minimiser."""
    if not _holds_minimiser(cell.kernel):
        return float(cell.kernel.radius)
    if not cell.ridge > 0.0:
        allowed = f"must be above 0 with kernel.radius={cell.kernel.radius}, which follows from "
        raise InputError("ridge", cell.ridge, f"{allowed}it; or set kernel.radius to a number")
    allowed = f"must be a number where the loss is {cell.loss.name}"
    raise InputError("kernel.radius", cell.kernel.radius, allowed)


def _in_coordinates(data: Data, kernel: Kernel, basis: Features) -> Data:
    """The data set with psi(x) for rows, still to be made; records keep their names."""
    name = map_name(kernel, basis)
    digest = hash_parts(f"{data.fingerprint} {name}")
    test = None if data.x_test is None else PendingRows(basis, data.x_test)
    return data.with_rows(
        PendingRows(basis, data.x), x_test=test, row_bound=basis.bound, fingerprint=digest,
        minimiser=None, entry_bound=None, phi=None, phi_row_bound=None,
    )  # fmt: skip


def _map_data(data: Data, dense: bool, alone: bool) -> tuple[Any, Any]:
    """psi of the training and of the held-out rows."""

    return _MAPPED_ROWS.recall(
        f"{data.fingerprint} {dense} {alone} {data.n}",
        lambda: (_map_rows(data.x, dense, alone), _map_rows(data.x_test, dense, alone)),
    )


def _map_rows(pending: PendingRows | None, dense: bool, alone: bool) -> Any:
    if pending is None:
        return None
    if alone:
        return pending.features.apply_alone(pending.rows)
    if dense:
        return pending.features.apply(pending.rows)
    return mapped_rows.map_rows(pending.features, pending.rows)


def basis_of(problem: Problem) -> Features | None:
    """The map that makes the rows of a problem in coordinates; None for ordinary ones."""
    x = problem.data.x
    return x.features if isinstance(x, PendingRows) else None


def describe_kernel(
    cell: cell_schema.Cell, problem: Problem, own: KernelProblem | None
) -> list[str]:
    """What the kernel did to the rows, for the record."""
    if cell.kernel is None:
        return []
    x, kind = problem.data.x, "features"
    if own is not None and own.features is None:
        kind = "exact, on the span of the queries"
    elif own is not None or isinstance(x, PendingRows):  # else the rows are made
        kind = type(x.features if own is None else own.features).__name__.lower()
    return [f"kernel {cell.kernel.name}: {kind}, {problem.p} coordinates, rows of norm at most "
            f"{problem.data.row_bound:.6g}"]  # fmt: skip


def answer_errors(
    own: KernelProblem | None, theta: np.ndarray | None, answers: Any
) -> list[dict[str, float | None]]:
    """How far each trial's answers on the queries are from the minimiser's predictions.

    Answers are those given, [trials, T], maybe to the first queries alone, or the predictions of
    theta [trials, dim].
    """
    assert own is not None
    spec = own.spec()
    given = theta @ spec.rows.T if theta is not None else np.asarray(answers)
    if not spec.count:
        return [{"max_error": None, "rms_error": None}] * len(given)
    off = np.abs(given - own.solve().values(spec.queries[: given.shape[1]]))
    return [
        {"max_error": float(np.max(one)), "rms_error": float(np.sqrt(np.mean(one**2)))}
        for one in off
    ]
