"""Lift a point v of Phi C back to C: the least gauge among all theta with Phi theta = v.

[KJ16, Mechanism 1, step 2]. The gauge is that of the set about its centre c: the least t with
theta - c in t (C - c). For sets around the origin it is the paper's Minkowski functional. For a set
such as the simplex, {gauge about 0 <= 1} is larger than the set, and only the gauge about a point
of the set brings theta back into it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass
from dperm_cli.problem import random_projection
from dperm_cli.problem.random_projection import Identity, Projection
from dperm_cli.sets.base import length
from dperm_cli.sets.shared import hull_quadratic
from dperm_cli.sets.shared.atomic_hull import Atomic
from dperm_cli.sets.shared.ball_image import Quadric
from dperm_cli.sets.shared.half_spaces import HalfSpaces
from dperm_cli.sets.shared.vertex_hull import solve_nonnegative
from dperm_cli.solvers import cone_programs
from dperm_cli.solvers.least_weights import find_weights

_ROUNDS = 100
_ENTER = 200  # columns that enter a linear program at a time
_MOST_AT_ONCE = 30_000_000  # numbers in all atoms of a hull whose program is solved at once: 240 MB
_TIGHT = 1e-9  # the violation of a dual constraint at which its column enters
_NEAR = 1e-6  # of the gauge: a proof this close is enough where a closer one takes hours
_LIGHT = 1e-12  # weights up to this are what rounding leaves
_CLOSE = 1e-9  # of the radius: a residual that a linear program may leave


@dataclass(frozen=True)
class Lifted:
    """theta [trials, d] in C, with what is known of each.

    Attributes
    ----------
    gauge : of theta about the centre, at most 1 but for rounding.
    lower : a lower bound on the least gauge of all theta with Phi theta = v; nan without one.
    residual : |Phi theta - v|.
    """

    theta: np.ndarray
    gauge: np.ndarray
    lower: np.ndarray
    residual: np.ndarray


def lift(constraint: Any, phi: Projection, projected: Any, v: np.ndarray) -> Lifted:
    """The lifted points of v [trials, m], points of ``projected`` = Phi C.

    Closed form for balls and ellipsoids; linear programs for the L1 ball, the simplex, boxes and
    polytopes (an interior point method, HiGHS where that does not end or is too large, its columns
    generated where there are many); a cone program for the others.
    """
    v = np.asarray(v, dtype=float)
    if isinstance(phi, Identity):
        nothing = np.zeros(len(v))
        return Lifted(v, np.full(len(v), np.nan), np.full(len(v), np.nan), nothing)
    closed = _closed_form(constraint, phi, v)
    if closed is None:
        rows = [_one(constraint, phi, projected, row) for row in v]
        theta = np.array([theta for theta, _, _ in rows])
        gauge, lower = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    else:
        theta, gauge = closed
        lower = gauge
    return Lifted(theta, gauge, lower, length(phi.apply(theta) - v))


def reason_against(constraint: Any) -> str | None:
    """Why points cannot be lifted to this set, or None."""
    body = constraint.inner_body
    if isinstance(body, HalfSpaces | Quadric) or constraint.is_ball:
        return None
    if constraint.half_side is not None or constraint.axis_hull is not None:
        return None
    if body.vertices() is not None:
        return None
    if constraint.add_cone_constraints is None:
        return "this set has no form that a conic solver takes: use a ball, a box or a polytope"
    return None


def _one(
    constraint: Any, phi: Projection, projected: Any, v: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """(theta, gauge, lower bound) of one point."""
    inner = constraint.inner_body
    hull = projected.mixtures
    if hull is not None:
        weights, gauge, lower = _mixture(hull, v)
        return _of_atoms(constraint, hull, *weights), gauge, lower
    if constraint.half_side is not None or isinstance(inner, HalfSpaces):
        return _in_half_spaces(constraint, inner, phi, v)
    return _in_cone(constraint, phi, v)


def _closed_form(
    constraint: Any, phi: Projection, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """theta [trials, d] of least gauge in a ball or an ellipsoid A B, and the gauges; else None.

    Phi^T (Phi Phi^T)^+ v in a ball, A u for the shortest u with Phi A u = v in an ellipsoid; both
    are drawn in by what rounding leaves outside.
    """
    inner = constraint.inner_body
    if constraint.is_ball:
        price = v @ np.linalg.pinv(random_projection.gram(phi), rcond=1e-13, hermitian=True)
        theta = phi.back(price)
        gauge = length(theta) / constraint.radius
    elif isinstance(inner, Quadric):
        root = inner.root()
        before = v @ np.linalg.pinv(phi.apply(root.T), rcond=1e-13)
        theta, gauge = before @ root.T, length(before)
    else:
        return None
    return theta / np.maximum(1.0, gauge)[:, None], gauge


# hulls ------------------------------------------------------------------------------------------


def _mixture(hull: Atomic, v: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], float, float]:
    """((labels, weights), gauge, lower): v - c = sum of weights (a - c) with the least sum.

    A linear program over all atoms finds it, and prices y prove it: <y, v - c> over the largest
    <y, a - c> is always a lower bound. Where the atoms are too many, or the prices prove less than
    that, a mixture that makes v is found by projecting it. It is the best one where a price with
    <y, a - c> = 1 on its atoms has <y, a - c> <= 1 on all; the shortest of these is looked for.
    Otherwise, and unless prices prove it to a millionth, programs over some of the atoms say which
    others to look at, until none is left that would lower the sum.

    The hull may remember another mixture of v, from the search that led there. That search saw the
    records, and which mixture it used is not released with v: theta has to follow from v alone.
    """
    centre, scale = hull.centre(), max(hull.radius, 1e-300)
    target = (v - centre) / scale
    if float(length(target)) <= 1e-15:
        nothing = np.zeros(0)
        return (nothing.astype(np.int64), nothing), 0.0, 0.0
    search = _Search(hull, centre, scale, target)
    search.solve_at_once()
    if not search.is_proved():
        search.project(v)
    if not search.is_proved(_NEAR):
        search.generate_columns()
    gauge = search.total()
    return search.best, gauge, min(search.lower, gauge)


class _Search:
    """The mixture of least sum: the best one so far, and what prices prove of every other."""

    def __init__(self, hull: Atomic, centre: np.ndarray, scale: float, target: np.ndarray) -> None:
        self._hull, self._centre, self._scale, self._target = hull, centre, scale, target
        self.best, self.lower = (np.zeros(0, dtype=np.int64), np.zeros(0)), 0.0
        self._labels = self.best[0]  # of the program's atoms
        self._price = np.zeros(len(target))

    def total(self) -> float:
        """The sum of the best weights; infinite before there are any."""
        return float(np.sum(self.best[1])) if len(self.best[1]) else np.inf

    def is_proved(self, apart: float = _TIGHT) -> bool:
        """Whether the best weights bring v into the set, and none has a sum that much smaller."""
        inside = (1.0 - _TIGHT) * self.total() <= 1.0
        return inside and (1.0 - apart) * self.total() <= self.lower

    def project(self, v: np.ndarray) -> None:
        """A mixture of sum 1 that makes v, or the point nearest to it, and its price."""
        _, known = hull_quadratic.solve(self._hull, None, v)
        if np.sum(known.weights) < self.total():
            self.best = (known.labels, known.weights)
        self._labels = np.union1d(self._labels, known.labels)
        self._find_price(known.labels[known.weights > _LIGHT])

    def _find_price(self, face: np.ndarray) -> None:
        """The shortest y with <y, a> = 1 on a face's atoms and <y, a> <= 1 on all, if there is one.

        Of the latter those are asked for that were found to be broken so far.
        """
        atoms = self._atoms(face)
        even, span = _even_price(atoms), np.linalg.qr(atoms.T)[0]
        self._price = price = even
        broken = face[:0]
        self._prove(price)
        for _ in range(_ROUNDS):
            if self.is_proved(_NEAR):
                return
            largest = _largest(self._hull, price, self._centre, self._scale)
            fresh = np.setdiff1d(largest, np.append(broken, face))
            if not len(fresh):
                return
            broken = np.append(broken, fresh)
            others = self._atoms(broken)
            step = _least_step(others - (others @ span) @ span.T, 1.0 - others @ even)
            if step is None:
                return
            price = even + step
            self._prove(price)

    def solve_at_once(self) -> None:
        """The program over all atoms, where they fit."""
        if self._hull.atoms.count * self._hull.p > _MOST_AT_ONCE:
            return
        atoms = self._atoms(np.arange(self._hull.atoms.count))
        found = find_weights(atoms, self._target, self._hull.symmetric)
        if found is None:
            return
        self._labels = found.labels
        self._prove(found.prices)
        self._keep(found.labels, found.weights)

    def generate_columns(self) -> None:
        """Programs over the atoms that the prices of the one before say to look at."""
        for round_ in range(_ROUNDS):
            largest = _largest(self._hull, self._price, self._centre, self._scale)
            fresh = np.setdiff1d(largest, self._labels)
            if round_ > 0 and not len(fresh):  # these prices are no program's before
                return
            self._labels = np.append(self._labels, fresh)
            solved = _program(self._atoms(self._labels), self._target)
            if solved is None:
                return
            weights, self._price = solved
            self._keep(self._labels, weights)
            self._prove(self._price)
            if self.is_proved():
                return

    def _atoms(self, labels: np.ndarray) -> np.ndarray:
        return (self._hull.atoms.take(labels) - self._centre) / self._scale

    def _prove(self, price: np.ndarray) -> None:
        score = _scores(self._hull, price, self._centre, self._scale)
        worth = float(price @ self._target) / max(float(np.max(score)), 1.0)
        self.lower = max(self.lower, worth)

    def _keep(self, labels: np.ndarray, weights: np.ndarray) -> None:
        """The weights, made exact, if their sum is less than the best one's."""
        used = labels[weights > _LIGHT]
        exact = _make_exact(self._atoms(used), self._target)
        if exact is not None and np.sum(exact) < self.total():
            kept = exact > 0.0
            self.best = (used[kept], exact[kept])


def _even_price(atoms: np.ndarray) -> np.ndarray:
    """The shortest y with <y, a> = 1 for the rows of atoms [k, m]."""
    price, *_ = np.linalg.lstsq(atoms, np.ones(len(atoms)), rcond=1e-12)
    return price


def _least_step(rows: np.ndarray, room: np.ndarray) -> np.ndarray | None:
    """The shortest z with rows z <= room; None where there is none, or where none is found.

    With u >= 0 of least |rows^T u|^2 + (<room, u> + 1)^2 it is along -rows^T u: the problem of a
    least distance, written as one of nonnegative least squares.
    """
    system = -np.vstack([rows.T, room])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    try:
        weights = solve_nonnegative(system, target)
    except RuntimeError:  # too many steps: a price is one way of several to a proof
        return None
    left = system @ weights - target
    return None if left[-1] > -_CLOSE else -left[:-1] / left[-1]


def _scores(hull: Atomic, price: np.ndarray, centre: np.ndarray, scale: float) -> np.ndarray:
    """<y, a - c> / scale for every atom, the better sign of each."""
    scores = hull.atoms.scores(price)
    scores = np.abs(scores) if hull.symmetric else scores
    return (scores - float(price @ centre)) / scale


def _largest(hull: Atomic, price: np.ndarray, centre: np.ndarray, scale: float) -> np.ndarray:
    """Labels of the atoms whose score is above 1, the largest 200."""
    score = _scores(hull, price, centre, scale)
    over = np.flatnonzero(score > 1.0 + _TIGHT)
    if len(over) > _ENTER:
        over = over[np.argpartition(-score[over], _ENTER)[:_ENTER]]
    if not hull.symmetric:
        return over
    negative = hull.atoms.scores(price)[over] < 0
    return np.where(negative, over + hull.atoms.count, over)


def _program(atoms: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights >= 0 of least sum that make the target from the rows of atoms, and the prices."""
    from scipy import optimize

    linprog: Any = optimize.linprog  # its type would be looked for in scipy's source, at length
    found = linprog(np.ones(len(atoms)), A_eq=atoms.T, b_eq=target, bounds=(0, None),
                    method="highs")  # fmt: skip
    if found.x is None:
        return None
    return np.maximum(found.x, 0.0), np.asarray(found.eqlin.marginals)


def _make_exact(atoms: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """Weights >= 0 of a program's atoms [k, m], to full precision; None if they do not make it.

    The prices are 1 on all of them, so that dependent atoms have the same sum in every mixture.
    """
    exact, *_ = np.linalg.lstsq(atoms.T, target, rcond=1e-13)
    if np.min(exact, initial=0.0) < 0.0:
        exact = solve_nonnegative(atoms.T, target)
    return exact if float(length(exact @ atoms - target)) <= _CLOSE else None


def _of_atoms(constraint: Any, hull: Atomic, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """c + sum of weights (vertex - c) in R^d, the weights' sum being at most 1 but for rounding."""
    weights = weights / max(1.0, float(np.sum(weights)))
    rest = 1.0 - float(np.sum(weights))
    theta = np.zeros(constraint.p)
    places, signs = labels % hull.atoms.count, np.where(labels >= hull.atoms.count, -1.0, 1.0)
    if constraint.axis_hull is not None:
        np.add.at(theta, places, weights * signs * constraint.axis_hull.radius)
    else:
        theta += weights @ constraint.vertices()[places]
    return theta if hull.symmetric else theta + rest * constraint.centre()


# linear and cone programs in R^d ------------------------------------------------------------------


def _in_half_spaces(
    constraint: Any, body: Any, phi: Projection, v: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """min t with A u <= t (b - A c) and Phi u = v - Phi c for u = theta - c, by HiGHS."""
    from scipy import optimize

    linprog: Any = optimize.linprog  # its type would be looked for in scipy's source, at length
    d, centre = constraint.p, constraint.centre()
    matrix = phi.columns(np.arange(d)).T
    if constraint.half_side is not None:
        normals, room = np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, constraint.size)
    else:
        normals, room = body.matrix, body.offset
    room = room - normals @ centre
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.column_stack([normals, -room]), b_ub=np.zeros(len(normals)),
        A_eq=np.column_stack([matrix, np.zeros(phi.m)]), b_eq=v - matrix @ centre,
        bounds=[(None, None)] * d + [(0, None)], method="highs",
    )  # fmt: skip
    if found.x is None:
        return _in_cone(constraint, phi, v)
    prices = np.asarray(found.eqlin.marginals)
    return _refine_solution(constraint, matrix, v, centre + found.x[:-1], prices)


def _in_cone(constraint: Any, phi: Projection, v: np.ndarray) -> tuple[np.ndarray, float, float]:
    """min t with s in t C and Phi (s - t c) = v - Phi c, a cone program; theta = s + (1 - t) c."""
    matrix, centre = phi.columns(np.arange(constraint.p)).T, constraint.centre()
    program = _Perspective(constraint)
    there = matrix @ centre
    terms = [(matrix, program.point), (-there[:, None], program.share)]
    equations = cone_programs.Program.add(program, "zero", terms, there - v)
    program.linear(program.share, 1.0)
    answer = program.solve()
    share = float(answer.point[program.share][0])
    theta = answer.point[program.point] + (1.0 - share) * centre
    prices = answer.multipliers[equations]
    return _refine_solution(constraint, matrix, v, theta, prices)


class _Perspective(cone_programs.Program):
    """The rows of ``s in t C``: those of C with every constant multiplied by the variable t."""

    def __init__(self, constraint: Any) -> None:
        super().__init__()
        self.share = self.variables(1)
        self.point = self.variables(constraint.p, constraint.radius)
        constraint.add_cone_constraints(self, self.point)

    def add(
        self, cone: str, terms: list[tuple[Any, np.ndarray]], constant: Any, power: float = 0.0
    ) -> slice:
        constant = np.atleast_1d(np.asarray(constant, dtype=float))
        terms = [*terms, (constant[:, None], self.share)]
        return super().add(cone, terms, np.zeros_like(constant), power)


def _refine_solution(
    constraint: Any, matrix: np.ndarray, v: np.ndarray, theta: np.ndarray, prices: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """A solver's point with its equations solved once more, put back into the set; its gauge about
    the centre, and the lower bound that the prices of the equations prove."""
    if not np.all(np.isfinite(theta)):
        theta = constraint.centre()
    rest, *_ = np.linalg.lstsq(matrix, v - matrix @ theta, rcond=1e-12)
    theta = constraint.project(theta + rest)
    centre = constraint.centre()
    gauge = float(_about(constraint, centre, theta))
    lower = np.nan
    if prices.size == matrix.shape[0]:
        slope = prices @ matrix
        reach = float(constraint.support(slope) - slope @ centre)
        worth = float(prices @ (v - matrix @ centre))
        lower = worth / reach if reach > 0 else np.nan
    return theta, gauge, lower


def _about(constraint: Any, centre: np.ndarray, theta: np.ndarray) -> float:
    """The gauge of C - c at theta - c."""
    if not np.any(centre):
        return float(constraint.gauge(theta))
    step, low, high = theta - centre, 0.0, 1.0
    if not np.any(step):
        return 0.0
    while high - low > 1e-10:  # t with c + step / t in C, by halving
        middle = 0.5 * (low + high)
        inside = bool(constraint.contains(centre + step / middle, 1e-12))
        low, high = (low, middle) if inside else (middle, high)
    return high
