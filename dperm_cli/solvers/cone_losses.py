"""The losses with kinks as rows of a cone program, and the duals its multipliers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.problem.problem import Problem
from dperm_cli.solvers.cone_programs import Program

# From the program's multipliers to a dual point of the loss
ToDual = Callable[[np.ndarray], np.ndarray]


def add_loss(program: Program, problem: Problem, theta: np.ndarray) -> ToDual:
    """Add the summed loss of v[theta] to the cost; KeyError for a loss without such a form."""
    name = "pieces" if hasattr(problem.loss, "pieces") else problem.loss.name
    return _FORMS[name](program, problem, theta)


def count_entries(problem: Problem) -> int:
    """How many entries the rows of ``add_loss`` hold; -1 for a loss without such a form."""
    data, name = problem.data, problem.loss.name
    if name in ("l1_median", "l2_median"):
        return 4 * data.n * data.p
    known = hasattr(problem.loss, "pieces") or name in _FORMS
    return int(getattr(data.x, "nnz", data.n * data.p)) + 3 * data.n if known else -1


def _add_linear(program: Program, problem: Problem, theta: np.ndarray) -> ToDual:
    data, loss = problem.data, problem.loss
    slopes: np.ndarray = loss.slope(np.zeros(data.n), data.y)  # type: ignore[attr-defined]
    program.linear(theta, data.x.T @ slopes)
    return lambda multipliers: slopes


def _add_piecewise(program: Program, problem: Problem, theta: np.ndarray) -> ToDual:
    """r = sign z + offset = above - below: cost up * above + down * below."""
    sign, offset, up, down = problem.loss.pieces(problem.data.y)  # type: ignore[attr-defined]
    n = problem.data.n
    above, below = program.variables(n), program.variables(n)
    program.linear(above, up)
    program.linear(below, down)
    eye = sparse.eye_array(n)
    terms = [(_scaled_rows(problem, sign), theta), (-eye, above), (eye, below)]
    equal = program.add("zero", terms, offset)
    _nonnegative(program, above, below)
    return lambda multipliers: sign * np.clip(-multipliers[equal], -down, up)


def _add_huberized(program: Program, problem: Problem, theta: np.ndarray) -> ToDual:
    """A positive part rounded on [-h, h] around its kink, r = sign z + offset.

    It is the least w^2 / (4 h) + e over w, e >= 0 with w + e >= r + h.
    """
    data, loss = problem.data, problem.loss
    width = 1.0 / (2.0 * float(loss.smoothness))  # type: ignore[attr-defined]
    hinge = loss.name == "huberized_hinge"
    sign = -data.y if hinge else -np.ones(data.n)
    offset = np.ones(data.n) if hinge else data.y
    bent, straight = program.variables(data.n), program.variables(data.n)
    program.quadratic(bent, np.full(data.n, 0.5 / width))
    program.linear(straight, 1.0)
    eye = sparse.eye_array(data.n)
    terms = [(eye, bent), (eye, straight), (_scaled_rows(problem, -sign), theta)]
    above = program.add("nonnegative", terms, -offset - width)
    _nonnegative(program, bent, straight)
    return lambda multipliers: sign * np.clip(multipliers[above], 0.0, 1.0)


def _add_l1_median(program: Program, problem: Problem, theta: np.ndarray) -> ToDual:
    x, (n, p) = _dense(problem.data.x), problem.data.x.shape
    above, below = program.variables(n * p), program.variables(n * p)
    program.linear(above, 1.0)
    program.linear(below, 1.0)
    eye = sparse.eye_array(n * p)
    copies = sparse.vstack([sparse.eye_array(p)] * n)
    equal = program.add("zero", [(copies, theta), (-eye, above), (eye, below)], -x.ravel())
    _nonnegative(program, above, below)
    return lambda multipliers: np.clip(-multipliers[equal], -1.0, 1.0).reshape(n, p)


def _add_l2_median(program: Program, problem: Problem, theta: np.ndarray) -> ToDual:
    x, (n, p) = _dense(problem.data.x), problem.data.x.shape
    lengths = program.variables(n)
    program.linear(lengths, 1.0)
    first = sparse.coo_array(([1.0], ([0], [0])), shape=(p + 1, 1))
    rest = sparse.coo_array((np.ones(p), (1 + np.arange(p), np.arange(p))), shape=(p + 1, p))
    groups = []
    for row, length in zip(x, lengths, strict=True):
        terms = [(first, np.array([length])), (rest, theta)]
        groups.append(program.add("second_order", terms, np.concatenate([[0.0], -row])))

    def to_dual(multipliers: np.ndarray) -> np.ndarray:
        slopes = -multipliers[groups[0].start : groups[-1].stop].reshape(n, p + 1)[:, 1:]
        return slopes / np.maximum(1.0, np.linalg.norm(slopes, axis=1, keepdims=True))

    return to_dual


def _nonnegative(program: Program, *columns: np.ndarray) -> None:
    for each in columns:
        program.add("nonnegative", [(sparse.eye_array(each.size), each)], np.zeros(each.size))


def _scaled_rows(problem: Problem, factors: np.ndarray) -> Any:
    return sparse.coo_array(sparse.diags_array(factors) @ sparse.csr_array(problem.data.x))


def _dense(x: Any) -> np.ndarray:
    return x.toarray() if sparse.issparse(x) else x


_FORMS = {
    "linear": _add_linear,
    "pieces": _add_piecewise,
    "huberized_hinge": _add_huberized,
    "huberized_positive_part": _add_huberized,
    "l1_median": _add_l1_median,
    "l2_median": _add_l2_median,
}
