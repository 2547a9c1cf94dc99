"""The constraint sets as rows of a cone program."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dperm_cli.solvers.cone_programs import Program

_MOST_ATOMS = 500_000  # numbers in all atoms of a hull that are written out


def add_set(program: Program, constraint: Any, theta: np.ndarray) -> None:
    """Add the rows for v[theta] in the set; KeyError for a set without such a form."""
    _FORMS[_kind(constraint)](program, constraint, theta)


def has_conic_form(constraint: Any) -> bool:
    """Whether the set, and the sets it is made of, have conic forms."""
    kind = _kind(constraint)
    if _FORMS.get(kind) is _of_body:
        return has_conic_form(constraint.body)
    if _FORMS.get(kind) is _atomic:
        return constraint.atoms.count * constraint.p <= _MOST_ATOMS
    return kind in _FORMS and (kind not in _COMPOSED or has_conic_form(constraint.inner))


def _kind(constraint: Any) -> str:
    """The set's name or, for the sets that polytopes and images turn into, that of their class."""
    return getattr(constraint, "name", type(constraint).__name__)


def _l2_ball(program: Program, constraint: Any, theta: np.ndarray) -> None:
    _ball(program, theta, constraint.size)


def _box(program: Program, constraint: Any, theta: np.ndarray) -> None:
    eye = sparse.eye_array(theta.size)
    program.add("nonnegative", [(eye, theta)], np.full(theta.size, constraint.size))
    program.add("nonnegative", [(-eye, theta)], np.full(theta.size, constraint.size))


def _l1_ball(program: Program, constraint: Any, theta: np.ndarray) -> None:
    moduli = program.variables(theta.size, constraint.size)
    eye = sparse.eye_array(theta.size)
    program.add("nonnegative", [(eye, moduli), (eye, theta)], np.zeros(theta.size))
    program.add("nonnegative", [(eye, moduli), (-eye, theta)], np.zeros(theta.size))
    program.add("nonnegative", [(-_ones(theta.size), moduli)], constraint.size)


def _lp_ball(program: Program, constraint: Any, theta: np.ndarray) -> None:
    """|theta_j| <= t_j^(1/q) size^(1 - 1/q) with sum t = size, for the exponent q."""
    exponent, size = float(constraint.power), constraint.size
    if exponent in _SPECIAL:
        return _SPECIAL[exponent](program, constraint, theta)
    shares = program.variables(theta.size, size)
    program.add("zero", [(_ones(theta.size), shares)], -size)
    for one, t in zip(theta, shares, strict=True):
        terms = [(_entry(3, 0), np.array([t])), (_entry(3, 2), np.array([one]))]
        program.add("power", terms, np.array([0.0, size, 0.0]), 1.0 / exponent)
    return None


def _quadric(program: Program, constraint: Any, theta: np.ndarray) -> None:
    """theta = A u with |u| <= 1."""
    root = constraint.root()
    unit = program.variables(root.shape[1])
    _equal(program, theta, root, unit)
    _ball(program, unit, 1.0)


def _hull(program: Program, constraint: Any, theta: np.ndarray) -> None:
    """theta = V^T w with w >= 0, sum w = 1."""
    points = constraint.points
    weights = program.variables(len(points))
    _equal(program, theta, points.T, weights)
    program.add("nonnegative", [(sparse.eye_array(weights.size), weights)], 0.0 * weights)
    program.add("zero", [(_ones(weights.size), weights)], -1.0)


def _atomic(program: Program, constraint: Any, theta: np.ndarray) -> None:
    """theta = V^T w with w >= 0, sum w = 1, over all atoms and their mirror images."""
    atoms = constraint.atoms
    points = atoms.take(np.arange((2 if atoms.signed else 1) * atoms.count))
    weights = program.variables(len(points))
    _equal(program, theta, points.T, weights)
    program.add("nonnegative", [(sparse.eye_array(weights.size), weights)], 0.0 * weights)
    program.add("zero", [(_ones(weights.size), weights)], -1.0)


def _half_spaces(program: Program, constraint: Any, theta: np.ndarray) -> None:
    program.add("nonnegative", [(-constraint.matrix, theta)], constraint.offset)


def _intersection(program: Program, constraint: Any, theta: np.ndarray) -> None:
    add_set(program, constraint.inner, theta)
    _ball(program, theta, constraint.ball)


def _add_localised(program: Program, constraint: Any, theta: np.ndarray) -> None:
    """v[theta] in the inner set, and |v[theta] - point| <= reach."""
    add_set(program, constraint.inner, theta)
    rows = sparse.vstack([sparse.coo_array((1, theta.size)), sparse.eye_array(theta.size)])
    constants = np.concatenate([[constraint.reach], -constraint.point])
    program.add("second_order", [(rows, theta)], constants)


def _linear_image(program: Program, constraint: Any, theta: np.ndarray) -> None:
    before = program.variables(constraint.inner.p, constraint.inner.radius)
    _equal(program, theta, constraint.matrix, before)
    add_set(program, constraint.inner, before)


def _of_body(program: Program, constraint: Any, theta: np.ndarray) -> None:
    add_set(program, constraint.body, theta)


def _simplex(program: Program, constraint: Any, theta: np.ndarray) -> None:
    program.add("nonnegative", [(sparse.eye_array(theta.size), theta)], np.zeros(theta.size))
    program.add("zero", [(_ones(theta.size), theta)], -constraint.size)


def _ball(program: Program, theta: np.ndarray, radius: float, matrix: Any = None) -> None:
    """|matrix v[theta]| <= radius."""
    matrix = sparse.eye_array(theta.size) if matrix is None else sparse.coo_array(matrix)
    count = matrix.shape[0]
    rows = sparse.vstack([sparse.coo_array((1, theta.size)), matrix])
    program.add("second_order", [(rows, theta)], np.concatenate([[radius], np.zeros(count)]))


def _equal(program: Program, theta: np.ndarray, matrix: Any, other: np.ndarray) -> None:
    """v[theta] = matrix v[other]."""
    terms = [(sparse.eye_array(theta.size), theta), (-matrix, other)]
    program.add("zero", terms, np.zeros(theta.size))


def _ones(count: int) -> sparse.coo_array:
    return sparse.coo_array(np.ones((1, count)))


def _entry(length: int, row: int) -> sparse.coo_array:
    return sparse.coo_array(([1.0], ([row], [0])), shape=(length, 1))


_SPECIAL: dict[float, Any] = {1.0: _l1_ball, 2.0: _l2_ball, float("inf"): _box}
_FORMS: dict[str, Any] = {
    "l2_ball": _l2_ball,
    "box": _box,
    "l1_ball": _l1_ball,
    "lp_ball": _lp_ball,
    "simplex": _simplex,
    "ellipsoid": _quadric,
    "polytope": _of_body,
    "image": _of_body,
    "intersection": _intersection,
    "localised": _add_localised,
    "Quadric": _quadric,
    "Hull": _hull,
    "Atomic": _atomic,
    "HalfSpaces": _half_spaces,
    "LinearImage": _linear_image,
}
_COMPOSED = ("intersection", "localised", "LinearImage")
