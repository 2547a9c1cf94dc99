"""The non-private minimiser over the set, with a certified duality gap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import field, replace
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

from dperm_cli.core import npy_files
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.files import open_atomically
from dperm_cli.losses.shared import long_sums
from dperm_cli.problem.data import Minorant
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import (
    conic,
    dual_points,
    first_order,
    free_minimum,
    hull_newton,
    interior_point,
    linear_minimum,
    sorted_medians,
)

_EPS = float(np.finfo(float).eps)
_PATIENCE = 25
_NO_RANGE = 1e-12
SECONDS = 60.0
_NUMBERS = 1e8
_SURE = "interior_point"  # each iteration of it takes as long, and shrinks the gap by a factor
_SURE_TIMES, _WALL_TIMES = 5.0, 10.0
RELATIVE_GAP = 1e-6  # of what the minimiser gains over the centre, unless told else
_LAST_PATIENCE = 1000

Candidates = Generator[tuple[np.ndarray, np.ndarray], float, None]
# From the best point so far and the seconds left
Method = Callable[[Problem, np.ndarray, float], Candidates]


@dataclass(frozen=True)
class Optimum:
    """A feasible point and what is proved about it.

    Attributes
    ----------
    theta : the best feasible point found, [p].
    value : the objective there (summed over records).
    lower : a lower bound on the objective over the whole set (see ``certificate``).
    gap : value - lower, >= 0: theta's excess risk is at most this.
    seconds, iterations : what it took.
    method : ``interior_point``, ``conic``, ``atoms``, ``vertex``, ``sorted``, ``first_order``: that
        which closed the gap.
    converged : whether the gap asked for was reached.
    dual : the dual point that proves ``lower``, in the loss's own shape ([n] for a GLM loss).
    """

    theta: np.ndarray
    value: float
    lower: float
    gap: float
    seconds: float
    method: str
    iterations: int
    converged: bool
    dual: np.ndarray = field(repr=False)


def certificate(problem: Problem, theta: np.ndarray, dual: np.ndarray) -> float:
    """A lower bound on the objective over the set, from any dual point of the loss.

    Fenchel's inequality l(z) >= a z - l*(a) for each record gives, for every feasible theta,
    objective >= -sum l*(a_i) + min over the set of <X^T a + b, theta> + n r(theta), r the
    regulariser and b the tilt; see ``linear_minimum`` for that minimum. A dual outside the
    conjugate's domain proves nothing: the bound is -inf. The bound holds for any ``theta``; one
    near a minimiser makes it tight.

    An allowance for rounding is subtracted: the sum over records is rounded once, each term and
    each inner product is given the error of a random-sign rounding model, (sqrt(length) + 16) units
    in the last place of the sum of moduli.
    """
    below = problem.loss.minorant(dual, problem.data)
    return _bound_below(problem, theta, below, float(problem.objective(theta)))


def rounding_allowance(problem: Problem, theta: np.ndarray, dual: np.ndarray) -> float:
    """Bound on the rounding error of the objective at ``theta`` and of the bound from ``dual``."""
    below = problem.loss.minorant(dual, problem.data)
    return _allow_rounding(problem, below, float(problem.objective(theta)))


def negligible(problem: Problem, theta: np.ndarray, dual: np.ndarray) -> float:
    """The gap below which there is nothing to gain: twice the rounding allowance, or 1e-12 of the
    range n * lipschitz * diameter that the objective could have on the set."""
    below = problem.loss.minorant(dual, problem.data)
    return _find_negligible(problem, below, float(problem.objective(theta)))


def _bound_below(problem: Problem, theta: np.ndarray, below: Minorant, value: float) -> float:
    """``certificate`` from the loss's minorant and the objective at ``theta``."""
    if not math.isfinite(below.constant):
        return -math.inf
    least = linear_minimum.lower_bound(problem, below.slope + problem.slant, theta)
    return least + below.constant - _allow_rounding(problem, below, value)


def _allow_rounding(problem: Problem, below: Minorant, value: float) -> float:
    """``rounding_allowance`` from the same."""
    radius, penalty = problem.constraint.radius, problem.penalty
    terms = below.terms + abs(value)
    terms += penalty.ridge * radius**2 + penalty.lasso * math.sqrt(problem.p) * radius
    products = radius * (below.slopes + float(np.linalg.norm(problem.slant)))
    length = max(problem.data.n, problem.p)
    return _EPS * ((math.sqrt(length) + 16.0) * 2.0 * products + 16.0 * terms)


def _find_negligible(problem: Problem, below: Minorant, value: float) -> float:
    """``negligible`` from the same."""
    span = problem.data.n * problem.spec().lipschitz_total * problem.constraint.diameter
    return max(2.0 * _allow_rounding(problem, below, value), _NO_RANGE * span)


def is_vast(problem: Problem, relative_gap: float) -> bool:
    """Whether the set is so wide that ``negligible`` is coarser than the gap asked for.

    That is told at the centre, where the objective is taken for the most that there is to gain.
    """
    centre = problem.constraint.centre()
    dual = dual_points.make_dual_point(problem, centre)
    most = abs(float(problem.objective(centre)))
    return negligible(problem, centre, dual) > relative_gap * most


def solve(
    problem: Problem,
    *,
    relative_gap: float = RELATIVE_GAP,
    gap: float = 0.0,
    seconds: float = SECONDS,
    progress: Callable[[int, float], None] | None = None,
) -> Optimum:
    """Minimise the objective until gap <= relative_gap * (objective(centre) - value), or ``gap``.

    When that cannot be had (out of ``seconds``, or the objective's rounding is coarser), the gap
    reached is reported as it is; ``converged`` is also true where the gap is ``negligible``, as
    when the centre is itself the minimiser. ``progress`` is called with (iteration, gap).

    Seconds are those of the clock or of the processors, whichever are fewer, so that a busy machine
    gives up no earlier. Interior points, which are certain to arrive, get five times as many, and
    rows of more than ``_NUMBERS`` numbers get more in proportion.
    """
    entries = problem.data.n * problem.p
    clock = _Clock(seconds * max(1.0, entries / _NUMBERS))
    best = _Best(problem, relative_gap, gap)
    with _blas().limit(limits=1, user_api="blas"):
        for iteration in _steps(problem, best, clock):
            if progress is not None:
                progress(iteration, best.gap)
            if best.has_converged or clock.find_left(best.method_now) < 0.0:
                break
    return best.result(clock.wall)


class _Clock:
    """How long a solve has taken, and how long it may still take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._wall, self._processors = time.perf_counter(), time.process_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    def find_left(self, method: str) -> float:
        """Seconds that a method still has, below 0 when its time is over."""
        spent = min(self.wall, time.process_time() - self._processors)
        allowed = self._seconds * (_SURE_TIMES if method == _SURE else 1.0)
        return min(allowed - spent, _WALL_TIMES * self._seconds - self.wall)


@cache
def _blas() -> ThreadpoolController:
    # finding the libraries takes longer than many a solve
    return ThreadpoolController()


def solve_or_load(
    problem: Problem,
    folder: Path,
    *,
    relative_gap: float = RELATIVE_GAP,
    seconds: float = SECONDS,
    progress: Callable[[int, float], None] | None = None,
) -> Optimum:
    """Load the optimum from ``folder``, or solve and store it there.

    A stored point is believed only as far as its certificate, which is computed anew from the
    stored dual. A file that cannot be read, that does not fit the problem, or that was made in less
    time for a gap now too wide is replaced.
    """
    path = folder / f"optimum-{problem.fingerprint()}.npz"
    stored = _read(path, problem, relative_gap, seconds)
    if stored is not None:
        return stored
    found = solve(problem, relative_gap=relative_gap, seconds=seconds, progress=progress)
    _write(path, found, relative_gap, seconds)
    return canonical_optimum(problem, found, relative_gap=relative_gap)


def canonical_optimum(
    problem: Problem, found: Optimum, *, relative_gap: float = RELATIVE_GAP
) -> Optimum:
    """Recompute the certificate as a cache read does, so that both give the same bits.

    A projection may move a point that is in the set by a rounding error, and the certificate is
    computed anew. Without this the result would depend on which process solved it first.
    """
    again = _certify(problem, found.theta, found.dual, relative_gap, found.iterations)
    return replace(again, method=found.method, seconds=found.seconds)


class _Best:
    """The best point and the best bound seen; they may come from different iterations."""

    def __init__(self, problem: Problem, relative_gap: float, gap: float = 0.0) -> None:
        self._problem, self._relative, self._asked = problem, relative_gap, gap
        self.theta = problem.constraint.centre()
        self._dual = dual_points.make_dual_point(problem, self.theta)
        self._start = self._value = float(problem.objective(self.theta))
        self._vast = is_vast(problem, relative_gap)
        self._lower, self._floor = -math.inf, 0.0
        self._iteration = self._improved = 0
        self._last_gap = math.inf
        self._method = self._current = ""

    @property
    def gap(self) -> float:
        return max(self._value - self._lower, 0.0)

    @property
    def has_converged(self) -> bool:
        excess = max(self._start - self._value, 0.0)
        return self.gap <= max(self._relative * excess, self._asked, self._floor)

    @property
    def method_now(self) -> str:
        return self._current

    @property
    def is_vast(self) -> bool:
        """Whether bounds without the set's radius are looked at."""
        return self._vast

    def begin(self, method: str, iteration: int) -> None:
        """Candidates of this method follow."""
        self._method = self._method or method
        self._current, self._improved = method, iteration

    def offer(self, theta: np.ndarray, dual: np.ndarray, iteration: int) -> None:
        theta = self._problem.constraint.project(theta)
        value = float(self._problem.objective(theta))
        if value < self._value:
            self.theta, self._value = theta, value
        # where the bound is built on the point itself, on the one that the dual belongs to
        own = theta if self._problem.constraint.by_gap else self.theta
        # one pass over the records for the bound and what is negligible
        below = self._problem.loss.minorant(dual, self._problem.data)
        own_value = value if own is theta else self._value
        lower = _bound_below(self._problem, own, below, own_value)
        free, rounding = -math.inf, 0.0
        if self._vast:
            free, rounding = free_minimum.lower_bound(self._problem, theta)
        if max(lower, free) > self._lower:
            self._lower, self._dual = max(lower, free), dual
            self._floor = 2.0 * rounding
            if lower >= free:
                self._floor = _find_negligible(self._problem, below, self._value)
        self._iteration = iteration
        if self.gap < 0.9 * self._last_gap:
            self._last_gap, self._improved = self.gap, iteration
            self._method = self._current

    def idle(self, iteration: int) -> int:
        """Iterations since the gap last fell by a tenth."""
        return iteration - self._improved

    def result(self, seconds: float) -> Optimum:
        return Optimum(
            theta=self.theta,
            value=self._value,
            lower=self._lower,
            gap=self.gap,
            seconds=seconds,
            method=self._method,
            iterations=self._iteration,
            converged=self.has_converged,
            dual=self._dual,
        )


def _steps(problem: Problem, best: _Best, clock: _Clock) -> Iterator[int]:
    """Offer every method's candidates; the next method begins where the last one got stuck."""
    methods, iteration = _methods(problem, best.is_vast), 0
    for method, make in methods:
        first = make is methods[0][1]
        patience = _LAST_PATIENCE if first and method == "first_order" else _PATIENCE
        best.begin(method, iteration)
        candidates = make(problem, best.theta, clock.find_left(method))
        for theta, dual in _feed_gaps(candidates, lambda: best.gap):
            best.offer(theta, dual, iteration)
            yield iteration
            iteration += 1
            if best.idle(iteration) > patience:
                break


def _feed_gaps(candidates: Candidates, gap: Callable[[], float]) -> Iterator[tuple]:
    """Run a method, sending it the gap that each of its candidates left."""
    message: float | None = None
    while True:
        try:
            yield candidates.send(message)  # type: ignore[arg-type]
        except StopIteration:
            return
        message = gap()


def _methods(problem: Problem, vast: bool) -> list[tuple[str, Method]]:
    """Those within whose reach the problem is, the best one first."""
    found: list[tuple[str, Method]] = [("first_order", first_order.iterate)]
    if conic.applies(problem):
        found.insert(0, ("conic", conic.iterate))
    if interior_point.applies(problem):
        # with very many records its many arrays of a number a record no longer fit into memory
        later = conic.applies(problem) and long_sums.has_many_records(problem.data)
        place = 1 if later and problem.loss.hessian is not None else 0
        found.insert(place, (_SURE, lambda problem, *_: interior_point.iterate(problem)))
    if hull_newton.applies(problem):
        found.insert(0, ("atoms", hull_newton.iterate))
    if _at_a_vertex(problem):
        found.insert(0, ("vertex", _vertex))
    if sorted_medians.applies(problem):
        found.insert(0, ("sorted", sorted_medians.iterate))
    if vast and free_minimum.applies(problem):
        found.insert(0, ("newton", free_minimum.iterate))
    return found


def needs_whole_rows(problem: Problem) -> bool:
    """Whether a method of ``solve`` takes the rows one by one, and not by sums over them."""
    name, _ = _methods(problem, is_vast(problem, RELATIVE_GAP))[0]
    return name == "conic" and conic.takes_rows(problem)


def _at_a_vertex(problem: Problem) -> bool:
    """Whether the objective is linear and the set has few vertices next to which to look."""
    plain = problem.loss.affine_margin == math.inf and problem.ridge == problem.lasso == 0.0
    return plain and problem.constraint.axis_hull is not None


def _vertex(problem: Problem, start: np.ndarray, seconds: float) -> Candidates:
    """The vertex of a linear objective: its gap is rounding."""
    theta = problem.constraint.lmo(problem.gradient(start))
    yield theta, dual_points.make_dual_point(problem, theta)


def _read(path: Path, problem: Problem, relative_gap: float, seconds: float) -> Optimum | None:
    """The stored optimum with a fresh certificate, or None when it is of no use."""
    start = time.perf_counter()
    try:
        file = npy_files.read_archive(path, kinds=npy_files.LABELS)
        theta, dual, effort = file["theta"], file["dual"], file["effort"]
        method = str(file["method"])
    except (OSError, KeyError, ValueError):
        return None
    if not _fits(theta, (problem.p,)) or not _fits(dual, _dual_shape(problem)):
        return None
    if not _fits(effort, (4,)) or not bool(problem.constraint.contains(theta)):
        return None
    asked_gap, asked_seconds, asked_times, iterations = effort
    found = _certify(problem, theta, dual, relative_gap, int(iterations))
    found = replace(found, method=method, seconds=time.perf_counter() - start)
    as_long = asked_seconds >= seconds and asked_times >= _SURE_TIMES
    as_hard = asked_gap <= relative_gap and as_long
    return found if found.converged or (as_hard and math.isfinite(found.gap)) else None


def _certify(
    problem: Problem, theta: np.ndarray, dual: np.ndarray, relative_gap: float, iterations: int
) -> Optimum:
    """The optimum with a certificate computed from the point and the dual."""
    best = _Best(problem, relative_gap)
    best.begin("", 0)
    best.offer(theta, dual, iterations)
    return best.result(0.0)


def _dual_shape(problem: Problem) -> tuple[int, ...]:
    return np.shape(dual_points.make_dual_point(problem, problem.constraint.centre()))


def _fits(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    return array.shape == shape and array.dtype == np.float64 and bool(np.all(np.isfinite(array)))


def _write(path: Path, found: Optimum, relative_gap: float, seconds: float) -> None:
    effort = np.array([relative_gap, seconds, _SURE_TIMES, found.iterations], dtype=float)
    with open_atomically(path, sync=False, private=True) as file:
        np.savez(file, theta=found.theta, dual=found.dual, effort=effort, method=found.method)
