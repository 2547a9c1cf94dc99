"""Points within a proved distance of the minimisers of strongly convex objectives.

Let F = f + h over C be m-strongly convex, f smooth and h an l1 norm.

 - Residual: theta in C with an element of norm at most g in grad f + subgradient of h + normal cone
   of C there is within g / m of the minimiser. Where normals are known exactly (``normal_cones``)
   the computed g and the proved rounding errors of ``rounding_bounds`` give a proof, and projected
   gradient steps in a number fixed from public facts get there in any case: nothing can fail.
 - Elsewhere (and h = 0) w = e - grad f(theta+) is only nearly normal, with e = tau (theta - theta+)
   + grad f(theta+) - grad f(theta): with eta = support(w) - <w, theta+>, theta+ being within z of C
   and G >= |grad f| the distance d obeys m d^2 <= |e| d + eta + G z. The accuracy z of projections
   and that of support functions are the sets' own word.
 - Gap: a point of certified gap t is within sqrt(2 t / m).

The last is used where h > 0 and its proximal step over C has no closed form, where the projection
itself is the outcome of many iterations (``intersection``), and for a start.
 - Bracket: in one dimension the subgradient grows with theta, and its sign says on which side of
   theta the minimiser is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dperm_cli.core import progress
from dperm_cli.problem.data import Data, Matrix, PublicFacts
from dperm_cli.problem.problem import Loss, Problem, ProblemSpec
from dperm_cli.problem.split_rows import SplitRows
from dperm_cli.solvers import first_order, linear_minimum, rounding_bounds
from dperm_cli.solvers.optimum import solve
from dperm_cli.solvers.rounding_bounds import RoundingBounds

_EPS = float(np.finfo(float).eps)
_NEAREST = 1e-11  # of the diameter: a distance that is as good as none, on a boundary as well
_LEAST_GAP = 1e-9  # of n * lipschitz * diameter
_LEAST_ETA = 1e4 * _EPS  # of the same
_START = 1e-4  # of the diameter, for a start
_CONDITION = 1e5  # up to which the first-order steps need no head start
_CHECK = 10  # steps from one look at the residual to the next
_HALVINGS = 1100  # about enough to tell apart any two doubles
_SECONDS = 120.0
_PATIENCE = 40.0  # times sqrt(condition): accelerated steps before the plain ones
_FEW = 2_000
_HALVED = 6  # times that the blocks of ``BlockSums`` are halved for other processes


def provable_distance(
    spec: ProblemSpec, modulus: float, tilt: float = 0.0, wanted: float = math.inf
) -> float:
    """A distance from the minimiser that arithmetic can prove; public facts only.

    ``wanted`` or 1e-11 of the diameter where that is enough. ``tilt`` bounds the norms of the
    linear terms. On the sets of ``normal_cones`` steps get there on every data set;
    ``Unsupported`` where they would be too many.
    """
    facts = rounding_bounds.rounding(spec, modulus, tilt)
    diameter = spec.constraint.diameter
    if rounding_bounds.has_exact_normals(spec):
        least = max(facts.stall_distance, facts.distance(0.0), _ends(spec))
        distance = max(min(_NEAREST * diameter, wanted), 2.0 * least)
        if spec.p > 1:
            rounding_bounds.steps(facts, diameter, distance)
        return distance
    slopes = spec.n * spec.lipschitz_total + modulus * diameter + tilt
    if not _gap_only(spec):
        return 2.0 * facts.distance(0.0) + 2.0 * math.sqrt(
            (_LEAST_ETA * slopes * diameter + _slack_error(spec, facts)) / modulus
        )
    # certified by its gap, which an active-set method leaves almost at 0
    least = (_LEAST_ETA if spec.constraint.by_gap else _LEAST_GAP) * slopes * diameter
    return math.sqrt(2.0 * (least + 2.0 * rounding_bounds.of_values(spec, modulus, tilt)) / modulus)


# A minimiser is found to within ``provable_distance`` on every data set of such a problem.
always_converges = rounding_bounds.has_exact_normals


def least_modulus(spec: ProblemSpec) -> float:
    """A strong convexity from which a minimiser is certain to be found; public facts only."""
    if spec.p == 1 or not rounding_bounds.has_exact_normals(spec):
        return 0.0
    curved = spec.n * (spec.smoothness or 0.0)
    return rounding_bounds.LEAST_CONVEXITY * curved / (1.0 - rounding_bounds.LEAST_CONVEXITY)


def gap_error(spec: ProblemSpec, modulus: float) -> float:
    """How much wider a duality gap may be than it is computed, on any data; public facts only."""
    return rounding_bounds.of_values(spec, modulus, 0.0)


def locate(
    problem: Problem, tilts: np.ndarray, modulus: float, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the objective with each linear term [trials, p] in turn.

    Returns points of the set [trials, p] and bounds [trials] on how far they are from the
    minimisers; where a bound exceeds ``distance`` the point is the best that could be had.
    ``modulus`` is the strong convexity of the objective.
    """
    spec = problem.spec()
    sizes = np.linalg.norm(tilts, axis=1)
    facts = rounding_bounds.rounding(spec, modulus, float(np.max(sizes, initial=0.0)))
    if spec.p == 1 and rounding_bounds.has_exact_normals(spec):
        return _bisect(problem, tilts, facts, distance)
    if _gap_only(spec):
        return _by_gap(problem, tilts, facts, distance)
    descent = TiltedDescent(problem, tilts, facts)
    starts = np.tile(spec.constraint.centre(), (len(tilts), 1))
    if not rounding_bounds.has_exact_normals(spec) or descent.condition > _CONDITION:
        starts = _by_gap(problem, tilts, facts, _START * spec.constraint.diameter)[0]
    points, bounds = descent.run(starts, distance)
    missed = np.flatnonzero(~(bounds <= distance))
    if missed.size and rounding_bounds.has_exact_normals(spec):
        points[missed], bounds[missed] = descent.plain(points[missed], missed, distance)
    return points, bounds


def _gap_only(spec: ProblemSpec) -> bool:
    """Whether first-order steps get no nearer than a certified gap does."""
    if rounding_bounds.has_exact_normals(spec):
        return False
    return spec.lasso > 0 or spec.constraint.iterative or spec.constraint.by_gap


def _slack_error(spec: ProblemSpec, facts: RoundingBounds) -> float:
    """What distances from the set, and the rounding of its support function, add to m d^2."""
    products = 8.0 * rounding_bounds.gam(spec.p + 16.0) * facts.length * spec.constraint.radius
    return products + facts.length * facts.off_set


def _ends(spec: ProblemSpec) -> float:
    """How near doubles are to one another at the ends of the set."""
    return 2.0 * _EPS * spec.constraint.radius + float(np.finfo(float).tiny)


def _by_gap(
    problem: Problem, tilts: np.ndarray, facts: RoundingBounds, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """To a duality gap that proves the distance, what rounding may do to the gap being paid."""
    spec, modulus = problem.spec(), facts.modulus
    points, bounds = [], []
    for trial, tilt in enumerate(tilts):
        lost = rounding_bounds.of_values(spec, modulus, float(np.linalg.norm(tilt)))
        gap = max(0.5 * modulus * distance**2 - lost, 0.0)
        # not the gap that is asked for: it follows from the tilt, and so from the noise
        progress.report(f"minimisers to a distance of {distance:.2g}", trial, len(tilts))
        found = solve(replace(problem, tilt=tilt), relative_gap=0.0, gap=gap, seconds=_SECONDS)
        points.append(found.theta)
        bounds.append(math.sqrt(2.0 * (found.gap + lost) / modulus))
    return np.array(points), np.array(bounds)


def _bisect(
    problem: Problem, tilts: np.ndarray, facts: RoundingBounds, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """In one dimension: halve a bracket of each minimiser, whatever the curvature."""
    radius, sums = problem.constraint.radius, BlockSums(problem)
    ends = problem.constraint.project(np.array([[-2.0 * radius], [2.0 * radius]]))
    low, high = (np.tile(end, (len(tilts), 1)) for end in ends)
    for _ in range(_HALVINGS):
        theta = 0.5 * (low + high)
        if np.all((high - low <= distance) | (theta <= low) | (theta >= high)):
            break
        slope = sums(theta) + problem.penalty.subgradient(theta) + tilts
        # where the sign is lost in rounding, the slope itself says that the minimiser is near
        lost, near = np.abs(slope) <= facts.slope, 2.0 * facts.slope / facts.modulus
        low, high = (
            np.where(lost, np.maximum(low, theta - near), np.where(slope < 0.0, theta, low)),
            np.where(lost, np.minimum(high, theta + near), np.where(slope > 0.0, theta, high)),
        )
        if np.all(lost | (high - low <= distance)):
            break
    return 0.5 * (low + high), (0.5 * (high - low))[:, 0] + _ends(problem.spec())


class BlockSums:
    """Sums of gradients in blocks, which keeps their rounding error from growing with n."""

    def __init__(self, problem: Problem) -> None:
        self._loss, self._data = problem.loss, problem.data
        self._size = rounding_bounds.block_size(problem.data.n)
        self._blocks = max(1, -(-problem.data.n // self._size))

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """At each row of [k, p]."""
        data, loss = self._data, self._loss
        if isinstance(data.x, SplitRows):
            facts = replace(data.facts(), points=None, phi=None)
            work = partial(_sum_blocks, loss, theta, facts, self._size)
            ranges = [(begin * self._size, min(end * self._size, data.n))
                      for begin, end in _list_parts(0, self._blocks, _HALVED)]  # fmt: skip
            found = iter(data.x.map_parts(work, data.y, parts=ranges))
            return _add_halves(lambda *_: next(found), 0, self._blocks, _HALVED)
        return _add_blocks(loss, theta, data, self._size, 0, self._blocks)


def _list_parts(begin: int, end: int, times: int) -> list[tuple[int, int]]:
    """The parts of some blocks when they are halved so many times, as ``_add_halves`` does."""
    if times == 0 or end - begin == 1:
        return [(begin, end)]
    middle = (begin + end) // 2
    return [*_list_parts(begin, middle, times - 1), *_list_parts(middle, end, times - 1)]


def _add_halves(
    find: Callable[[int, int], np.ndarray], begin: int, end: int, times: int
) -> np.ndarray:
    """The sum of what is found of the parts of some blocks, added as they were halved."""
    if times == 0 or end - begin == 1:
        return find(begin, end)
    middle = (begin + end) // 2
    first = _add_halves(find, begin, middle, times - 1)
    return first + _add_halves(find, middle, end, times - 1)


def _add_blocks(
    loss: Loss, theta: np.ndarray, data: Data, size: int, begin: int, end: int
) -> np.ndarray:
    """The sum of blocks, of which each goes through the log of their number of additions."""

    def find(block: int, _: int) -> np.ndarray:
        whole = data.n <= size
        own = data if whole else data.take(slice(block * size, (block + 1) * size))
        return loss.gradient(theta, own)

    return _add_halves(find, begin, end, -1)


def _sum_blocks(
    loss: Loss, theta: np.ndarray, facts: PublicFacts, size: int, x: Matrix, y: np.ndarray
) -> np.ndarray:
    """The same of all blocks of one part."""
    data = Data.of_part(facts, x, y)
    return _add_blocks(loss, theta, data, size, 0, -(-data.n // size))


class TiltedDescent:
    """Accelerated proximal steps, all linear terms at once, each restarted on its own."""

    def __init__(self, problem: Problem, tilts: np.ndarray, facts: RoundingBounds) -> None:
        self._problem, self._tilts, self._facts = problem, tilts, facts
        self._sums, self._normals = BlockSums(problem), problem.constraint.normals
        flat = self._normals is not None and self._normals.constant_l1
        self._lasso = 0.0 if flat else problem.penalty.lasso
        self._steep = first_order.steepness(problem)
        root = math.sqrt(min(facts.modulus / self._steep, 1.0))
        self._momentum = (1.0 - root) / (1.0 + root)

    @property
    def condition(self) -> float:
        return self._steep / self._facts.modulus

    def run(self, start: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Points [trials, p] and bounds [trials], the best of a number of steps that is public."""
        best, bound = start.copy(), np.full(len(start), np.inf)
        left = np.arange(len(start))  # trials that are not there yet; others are left alone
        theta = ahead = start
        for step in range(_FEW + math.ceil(_PATIENCE * math.sqrt(self._facts.condition))):
            check = step % _CHECK == 0
            slope = self._slope(ahead, left) if check else self._guess_slope(ahead, left)
            moved = self._step(ahead, slope, self._steep)
            if check:
                near = self._distance(ahead, moved, slope, left)
                better = near < bound[left]
                best[left[better]], bound[left[better]] = moved[better], near[better]
                keep = ~(near <= distance)
                left, theta, ahead, moved = left[keep], theta[keep], ahead[keep], moved[keep]
                self._tell(distance)
                if not left.size:
                    break
            uphill = np.sum((ahead - moved) * (moved - theta), axis=1) > 0
            push = np.where(uphill, 0.0, self._momentum)[:, None]
            theta, ahead = moved, moved + push * (moved - theta)
        return best, bound

    def plain(
        self, start: np.ndarray, trials: np.ndarray, distance: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Projected steps of a fixed length, in the number that gets there on every data set."""
        facts, diameter = self._facts, self._problem.constraint.diameter
        theta, bound = start, np.full(len(start), diameter)
        halfway = 0.5 * (facts.steep + facts.modulus)
        for step in range(rounding_bounds.steps(facts, diameter, distance)):
            theta = self._step(theta, self._slope(theta, trials), halfway)
            if step % _CHECK == 0:
                self._tell(distance)
                near = self._proof(theta, self._slope(theta, trials))
                if np.all(near <= distance):
                    return theta, near
        # q^T D + where rounding stops them, which ``provable_distance`` allows for
        bound = 0.5 * distance + np.minimum(bound, facts.stall_distance)
        return theta, np.minimum(bound, self._proof(theta, self._slope(theta, trials)))

    def _tell(self, distance: float) -> None:
        """Report that the solver runs. Its progress depends on the records and is not told."""
        progress.report(f"minimisers to a distance of {distance:.2g}", 0.0, 0.0)

    def _slope(self, theta: np.ndarray, trials: np.ndarray) -> np.ndarray:
        """Gradients of the smooth part, at points of the set or beside it."""
        smooth = self._sums(theta) + self._problem.penalty.ridge * theta
        return smooth + self._tilts[trials]

    def _guess_slope(self, theta: np.ndarray, trials: np.ndarray) -> np.ndarray:
        """The same by one sum over all records: faster, for steps that prove nothing."""
        smooth = self._problem.loss.gradient(theta, self._problem.data)
        return smooth + self._problem.penalty.ridge * theta + self._tilts[trials]

    def _step(self, theta: np.ndarray, slope: np.ndarray, steep: float) -> np.ndarray:
        point = theta - slope / steep
        cut = self._lasso / steep
        if cut > 0:
            point = np.sign(point) * np.maximum(np.abs(point) - cut, 0.0)
        return (self._normals or self._problem.constraint).project(point)

    def _proof(self, theta: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Bounds [trials] on the distances of points of ``normal_cones`` to the minimisers."""
        left = self._normals.residual(theta, slope, self._lasso)
        return np.array([self._facts.distance(float(size)) for size in left])

    def _distance(
        self, theta: np.ndarray, moved: np.ndarray, slope: np.ndarray, trials: np.ndarray
    ) -> np.ndarray:
        """Bounds [trials] on the distances of ``moved`` to the minimisers."""
        there = self._slope(moved, trials)
        if self._normals is not None:
            return self._proof(moved, there)
        facts = self._facts
        normal = self._steep * (theta - moved) - slope
        residual = np.linalg.norm(normal + there, axis=1)
        # of the second slope as well: the normal is made of the first one
        residual = residual + 2.0 * facts.slope + facts.steep * facts.off_set
        eta = [self._slack(w, point) for w, point in zip(normal, moved, strict=True)]
        square = residual**2 + 4.0 * facts.modulus * np.array(eta)
        return facts.off_set + (residual + np.sqrt(square)) / (2.0 * facts.modulus)

    def _slack(self, w: np.ndarray, point: np.ndarray) -> float:
        """support(w) - <w, point> and what ``point`` may be off the set, not less than it is."""
        support = linear_minimum.support(self._problem.constraint, w, point)
        error = _slack_error(self._problem.spec(), self._facts)
        return max(support - float(w @ point), 0.0) + error
