"""From a cell with a kernel to its problems: the kernel's own, and the one in coordinates.

Every release is a vector theta with f(x) = <theta, psi(x)>, where psi is a finite map, or for an
exact kernel the projection on the span of the public queries. So that objective, excess risk and
metrics are those of an ordinary problem whose rows are psi(x), in a ball that holds the minimiser.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dperm_cli.core.errors import InputError
from dperm_cli.problem import kernel_problem
from dperm_cli.problem._kernel_dual import shuffled
from dperm_cli.problem.constraints.l2_ball import L2Ball
from dperm_cli.problem.data import Data, Matrix, padded
from dperm_cli.problem.kernel_problem import KernelProblem, map_name
from dperm_cli.problem.kernels import _rows
from dperm_cli.problem.kernels._features import Explicit, Features, Fourier, Landmarks
from dperm_cli.problem.kernels._files import array_of
from dperm_cli.problem.kernels._kernel import Kernel
from dperm_cli.problem.kernels._rows import FeatureRows
from dperm_cli.problem.problem import Problem
from dperm_cli.runner import schema

EXACT = 20_000  # records up to which auto keeps the kernel as it is
MONOMIALS = 2_000  # features up to which auto takes the explicit map
LANDMARKS, FREQUENCIES, QUERIES = 500, 250, 500  # of size=auto and queries=auto
DEFAULT_BALL = {"name": "l2_ball", "radius": 10}
_TASKS = ("binary", "regression")
_MADE: dict[str, tuple[Any, Any]] = {}
_KEPT = 2


@dataclass(frozen=True)
class Pending:
    """Rows psi(x) that are not made yet: their shape is public."""

    features: Features
    rows: Matrix
    extra: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.rows.shape[0]) + self.extra, self.features.dim


@dataclass(frozen=True)
class Kernelled:
    """The problem in coordinates, and the kernel's own where its minimiser can be certified."""

    problem: Problem
    kernel: KernelProblem | None


_KEPT = 4
_PREPARED: dict[tuple[Any, ...], tuple[Data, Kernelled]] = {}


def space_of(mechanism: Any) -> str:
    """``kernel`` for mechanisms that work on a kernel's minimiser, else ``parameters``."""
    return getattr(mechanism, "space", "parameters")


def _whole(cell: schema.Cell) -> bool:
    """Whether the mechanism asks for the kernel's minimiser alone, and for no rows."""
    return space_of(cell.mechanism) == "kernel" or getattr(cell.mechanism, "unprotected", False)


def prepare(cell: schema.Cell, data: Data) -> Kernelled:
    """The two problems of a cell; InputError for what does not go with a kernel.

    Cells of one kernel and one data set share them: bases and inverses take longer than releases.
    """
    _check(cell, data)
    space, only = space_of(cell.mechanism), getattr(cell.mechanism, "features", None)
    key = (
        space,
        only,
        _whole(cell),
        cell.population,
        cell.ridge,
        repr(cell.loss),
        repr(cell.kernel),
    )
    known = _PREPARED.get(key)
    if known is None or known[0] is not data:
        while len(_PREPARED) >= _KEPT:
            _PREPARED.pop(next(iter(_PREPARED)))
        known = _PREPARED[key] = (data, _prepare(cell, data))
    return known[1]


def _prepare(cell: schema.Cell, data: Data) -> Kernelled:
    kernel = cell.kernel
    shuffled = _held_out(kernel, data)
    features = _features(cell, data, shuffled)
    queries = _queries(kernel, data, shuffled, features)
    own = None
    if cell.ridge > 0.0 and cell.loss.name in kernel_problem.LOSSES and _certain(kernel):
        own = KernelProblem(
            data, cell.loss, kernel, cell.ridge, queries, features, radius=kernel.radius
        )
    elif space_of(cell.mechanism) == "kernel" or features is None:
        raise _no_minimiser(cell)
    radius = own.spec().radius if own is not None else _radius(cell)
    basis: Features | None = features if own is None else own.spec().basis
    assert basis is not None
    ball: Any = L2Ball(radius, basis.dim)
    problem = Problem(_in_coordinates(data, kernel, basis), cell.loss, ball, cell.ridge)
    if not _whole(cell):
        _check_size(problem.data, data.n if cell.population is None else cell.population)
    return Kernelled(problem, own)


def opened(cell: schema.Cell, found: Kernelled) -> Kernelled:
    """The same with the rows made; they are kept for the next cells of the problem."""
    data = found.problem.data
    x, x_test = _made(data, dense=not _whole(cell))
    own = found.kernel
    if own is not None and own.features is not None:
        own = replace(own, rows=x)
    problem = replace(found.problem, data=replace(data, x=x, x_test=x_test))
    return Kernelled(problem, own)


def forget() -> None:
    """Let go of what was made for earlier cells of this process."""
    _MADE.clear()
    _PREPARED.clear()


def remember(problem: Problem, theta: np.ndarray) -> None:
    """Form the margins of all points at once, where rows are many: each is read once."""
    for x in (problem.data.x, problem.data.x_test):
        if isinstance(x, FeatureRows):
            x.remember(theta)


def released(problem: Problem, population: int) -> Problem:
    """The problem filled up with records that have no features."""
    data = problem.data
    if isinstance(data.x, Pending):
        extra = population - data.n
        more = np.append(data.y, np.ones(extra))
        return replace(problem, data=replace(data, x=replace(data.x, extra=extra), y=more))
    return replace(problem, data=padded(data, population))


def _certain(kernel: Kernel) -> bool:
    """Whether the ball is known to hold the minimiser."""
    return kernel.radius in ("auto", "paper")


def _check(cell: schema.Cell, data: Data) -> None:
    if cell.constraint_config != DEFAULT_BALL:
        allowed = "is for models without a kernel; the ball of a kernel is kernel.radius"
        raise InputError("constraint", cell.constraint_config.get("name"), allowed)
    if cell.lasso:
        raise InputError("lasso", cell.lasso, "is for models without a kernel")
    if data.task not in _TASKS or not hasattr(cell.loss, "slope"):
        raise InputError("kernel", cell.kernel.name, f"is not for {data.task} data")


def _no_minimiser(cell: schema.Cell) -> InputError:
    if not cell.ridge > 0.0:
        return InputError("ridge", cell.ridge, "must be above 0 with a kernel: it is its lambda")
    if cell.loss.name not in kernel_problem.LOSSES:
        known = ", ".join(kernel_problem.LOSSES)
        return InputError("loss", cell.loss.name, f"must be one of {known} with a kernel")
    allowed = "must be auto or paper here: the ball has to hold the minimiser"
    return InputError("kernel.radius", cell.kernel.radius, allowed)


def _radius(cell: schema.Cell) -> float:
    """Of mechanisms that work on parameters: as given, or that of the minimiser."""
    if not _certain(cell.kernel):
        return float(cell.kernel.radius)
    if not cell.ridge > 0.0:
        allowed = f"must be above 0 with kernel.radius={cell.kernel.radius}, which follows from "
        raise InputError("ridge", cell.ridge, f"{allowed}it; or set kernel.radius to a number")
    allowed = f"must be a number where the loss is {cell.loss.name}"
    raise InputError("kernel.radius", cell.kernel.radius, allowed)


def _held_out(kernel: Kernel, data: Data) -> Matrix:
    """The held-out inputs in an order of their own: the public points that come with the data."""
    if data.x_test is None:
        return np.zeros((0, data.p))
    return data.x_test[shuffled(np.arange(data.x_test.shape[0]), kernel.seed)]


def _features(cell: schema.Cell, data: Data, shuffled: Matrix) -> Features | None:
    """The finite map in the kernel's place, or None for the kernel itself."""
    kernel, bound = cell.kernel, cell.kernel.bound(data.row_bound)
    kind = _kind(cell, data, shuffled)
    if kind == "exact":
        return None
    if kind == "explicit":
        return Explicit(kernel, data.p, bound)
    if kind == "fourier":
        size = FREQUENCIES if kernel.size == "auto" else int(kernel.size)
        return Fourier(kernel, data.p, size, bound)
    size = LANDMARKS if kernel.size == "auto" else int(kernel.size)
    points = _public(kernel.landmarks, "kernel.landmarks", data, shuffled)[:size]
    if not points.shape[0]:
        allowed = "needs public points: held-out inputs (dataset.test_fraction), or a file of rows"
        raise InputError("kernel.landmarks", kernel.landmarks, allowed)
    return Landmarks(kernel, points, bound)


def _kind(cell: schema.Cell, data: Data, shuffled: Matrix) -> str:
    kernel, shape = cell.kernel, cell.kernel.monomials(data.p)
    only = getattr(cell.mechanism, "features", None)
    if only is not None and kernel.features not in ("auto", only):
        allowed = f"must be {only} with {cell.mechanism_name}, or auto"
        raise InputError("kernel.features", kernel.features, allowed)
    whole = _whole(cell)
    kind = kernel.features if only is None else only
    if kind == "auto":
        count = data.n if cell.population is None else cell.population
        if whole and count <= EXACT:
            return "exact"
        if shape is not None and shape <= MONOMIALS:
            return "explicit"
        if kernel.shifts and not whole:
            return "fourier"
        return "landmarks"
    if kind == "exact" and not whole:
        allowed = f"{cell.mechanism_name} works on parameters: it needs a finite map, "
        allowed += "kernel.features=auto, explicit, landmarks or fourier"
        raise InputError("kernel.features", kind, allowed)
    if kind == "explicit" and (shape is None or shape > 10 * MONOMIALS):
        size = "has no finite map" if shape is None else f"has {shape} features here"
        raise InputError("kernel.features", kind, f"{kernel.name} {size}; take landmarks")
    if kind == "fourier" and not kernel.shifts:
        allowed = f"{kernel.name} is no function of x - z; take landmarks"
        raise InputError("kernel.features", kind, allowed)
    return kind


def _queries(kernel: Kernel, data: Data, shuffled: Matrix, features: Features | None) -> Matrix:
    """Z: held-out inputs that are no landmarks, as far as they go, or the rows of a file."""
    if isinstance(kernel.queries, str) and kernel.queries != "auto":
        return _public(kernel.queries, "kernel.queries", data, shuffled)
    count = QUERIES if kernel.queries == "auto" else int(kernel.queries)
    have = int(shuffled.shape[0])
    if kernel.queries != "auto" and count > have:
        raise InputError("kernel.queries", count, f"must be at most {have}, the held-out inputs")
    used = 0
    if isinstance(features, Landmarks) and kernel.landmarks == "auto":
        used = int(features.points.shape[0])
    first = used if have - used >= count else 0
    found = shuffled[first : first + count]
    if features is None and not found.shape[0]:
        allowed = "needs public points: held-out inputs (dataset.test_fraction), or a file of rows"
        raise InputError("kernel.queries", kernel.queries, allowed)
    return found


def _public(word: str, key: str, data: Data, shuffled: Matrix) -> Matrix:
    """Held-out inputs, or rows from a file, held to the row bound as records are."""
    if word == "auto":
        return shuffled
    rows = array_of(key, word, "x")
    if rows.ndim != 2 or rows.shape[1] != data.p or not len(rows):
        allowed = f"must hold rows of {data.p} columns, and holds an array of shape {rows.shape}"
        raise InputError(key, word, allowed)
    norms = np.linalg.norm(rows, axis=1)
    scale = np.minimum(1.0, data.row_bound / np.maximum(norms, 1e-300))
    return rows * scale[:, None]


def _in_coordinates(data: Data, kernel: Kernel, basis: Features) -> Data:
    """The data set with psi(x) for rows, still to be made."""
    name = map_name(kernel, basis)
    digest = hashlib.blake2b(f"{data.fingerprint} {name}".encode(), digest_size=16).hexdigest()
    test = None if data.x_test is None else Pending(basis, data.x_test)
    return replace(
        data, x=Pending(basis, data.x), x_test=test, row_bound=basis.bound, fingerprint=digest,
        minimiser=None, entry_bound=None, phi=None, phi_row_bound=None,
    )  # fmt: skip


def _check_size(data: Data, n: int) -> None:
    """``n`` is the public count: with a declared population the number of records is not."""
    need = 8 * n * data.p
    if need > _rows.MOST:
        allowed = f"makes {n} rows of {data.p} features, {need / 2**30:.1f} GiB; at most "
        allowed += f"{_rows.MOST / 2**30:.0f} GiB for a mechanism that works on parameters"
        raise InputError("kernel.size", data.p, allowed)


def _made(data: Data, dense: bool) -> tuple[Any, Any]:
    """psi of the training and of the held-out rows."""
    name = f"{data.fingerprint} {dense} {data.n}"
    if name not in _MADE:
        while len(_MADE) >= _KEPT:
            _MADE.pop(next(iter(_MADE)))
        test = None if data.x_test is None else _rows_of(data.x_test, dense)
        _MADE[name] = (_rows_of(data.x, dense), test)
    return _MADE[name]


def _rows_of(pending: Pending, dense: bool) -> Any:
    if dense:
        return pending.features.apply(pending.rows)
    return _rows.mapped(pending.features, pending.rows)


def basis_of(problem: Problem) -> Features | None:
    """The map that makes the rows of a problem in coordinates; None for ordinary ones."""
    x = problem.data.x
    return x.features if isinstance(x, Pending) else None


def words(cell: schema.Cell, problem: Problem, own: KernelProblem | None) -> list[str]:
    """What the kernel did to the rows, for the record."""
    if cell.kernel is None:
        return []
    x, kind = problem.data.x, "features"
    if own is not None and own.features is None:
        kind = "exact, on the span of the queries"
    elif own is not None or isinstance(x, Pending):  # else the rows are made
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
