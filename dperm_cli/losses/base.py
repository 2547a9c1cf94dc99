"""The base class of losses: what a loss has to define, what it may define, and defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.fields import CheckedFields
from dperm_cli.core.registry import Plugin
from dperm_cli.problem.data import Bounds, Data, Minorant, sum_blocks
from dperm_cli.problem.row_products import add_rows, is_single, multiply_rows, slice_rows
from dperm_cli.problem.split_rows import count_entries, is_stored, sum_parts

_BLOCK_ENTRIES = 1_000_000


class PerRecord(Plugin, CheckedFields):
    """A convex loss of the parameters and one record.

    A subclass must define ``values`` (the loss of each record at each row of [..., p]),
    ``gradient`` (the sum over records of one subgradient each), ``dimension``, ``lipschitz`` and
    ``curvature_bound``. The last two are in the Euclidean norm of theta, and hold for every record
    within the bounds.

    The attributes from ``code`` on are optional capabilities. A loss that has one is handled by
    the faster or sharper method that needs it, and by a general method otherwise.

    Attributes:
        tasks: the kinds of data (tasks) that the loss is for.
        extra_tasks: further tasks, whose labels are taken as targets.
        default_of: tasks whose data sets use this loss if they name no other.
        audit_place: position in the order in which audits try losses, the least demanding first.
            Losses below 10 are in the declared grid, the others are tried by the fuzzer.
        by_parts: whether sums over records are made of sums over their parts, which other
            processes may make.
        code: the number of the compiled slope in ``loops.slopes``.
        location_code: the same for a loss of the distance to a record, in ``loops.local_learning``
            and ``loops.proximal_chain``.
        softmax: whether the slopes in a record's margins are those of a softmax, which
            ``loops.exact_sums`` computes.
        width: the one number that the compiled slope may need beside its code.
        transcendental: whether the compiled slope computes an exponential.
        smoothness: a bound on the second derivative in the record's margin, or margins.
        slope: the derivative in the margin (``margin_loss.Glm``).
        pieces: the two linear pieces of a loss with one kink in the margin (``margin_loss.Glm``).
        curvature: the second derivative in the margin.
        hessian: ``hessian(theta, data)``, the second derivative [p, p] of the summed loss.
        envelope_dual: ``envelope_dual(theta, data, width)``, for a loss with kinks: the dual point
            of its Moreau envelope with parameter ``width``.
        cone_cost: ``cone_cost(program, data, theta)`` adds the summed loss to the cost of a cone
            program, and returns how its multipliers become a dual point (``problem.cone_program``).
        distance_power: q of a loss |theta - x|_q.
        round_kink: ``round_kink(width)``, the loss with its kink rounded off.
        quadratic: whether the second derivative in the margin is ``smoothness`` everywhere.
        curvature_ratio: ``curvature_ratio(margin)``, a lower bound on the ratio of the least to the
            largest second derivative at margins up to ``margin``. It is for losses whose second
            derivative rises once and falls once.
        affine_margin: margins up to which the loss is affine.
        radial_slope_bound: ``radial_slope_bound(target)``, an upper bound on -z l'(z) over all
            margins z and all targets up to ``target``.
        wide_margin: the largest margin on the ball of ``constraint.radius=auto``, for a loss whose
            slopes are bounded whatever the margin.
        sign_mean: ``sign_mean(bias, z)``, the mean loss where y is 1 with probability
            (1 + bias) / 2 and else -1.
        best_mean: ``best_mean(bias)``, the z where that mean is least.
        odds_excess: ``odds_excess(points, best, dimension, radius)``: the expected losses at points
            [m, p] less that at ``best``, where the log odds of y = 1 are <x, best>, for a loss
            whose mean is least there. Rows x are coordinates of a point that is uniform on the
            sphere of that dimension and radius.
        noise_excess: ``noise_excess(off, width, dimension)``, the mean loss less its least value
            at distances z = off t >= 0 [m] from the middle of targets, which are uniform within
            ``width`` of it; t is the size of a coordinate on the unit sphere of that dimension.
        mirrored_excess: ``mirrored_excess(rows, to)``, the mean loss at ``to`` of each row and its
            mirror image about 0, less that at 0.
        cube_excess: ``cube_excess(half_side, off)``, the same for rows uniform in a cube.
        chances: ``chances(scores)``, the probability of the positive class [m] at scores [m], or of
            each class at [m, classes], for a loss that is the negative logarithm of a likelihood.

    >>> from dperm_cli.losses.hinge import Hinge
    >>> isinstance(Hinge(), PerRecord), Hinge().smoothness, Hinge().round_kink(0.1).smoothness
    (True, None, 5.0)
    """

    group: ClassVar[str] = "loss"
    tasks: ClassVar[tuple[str, ...]] = ()
    extra_tasks: ClassVar[tuple[str, ...]] = ()
    audit_place: ClassVar[int | None] = None
    default_of: ClassVar[tuple[str, ...]] = ()
    by_parts: Any = False
    code: ClassVar[int | None] = None
    location_code: ClassVar[int | None] = None
    softmax: ClassVar[bool] = False
    width: float = 0.0
    transcendental: ClassVar[bool] = False
    smoothness: Any = None
    slope: Any = None
    slope_bound: Any = None
    pieces: Any = None
    curvature: Any = None
    hessian: Any = None
    envelope_dual: Any = None
    cone_cost: Any = None
    distance_power: ClassVar[float | None] = None
    round_kink: Any = None
    quadratic: ClassVar[bool] = False
    curvature_ratio: Any = None
    affine_margin: ClassVar[float] = 0.0
    radial_slope_bound: Any = None
    wide_margin: ClassVar[float | None] = None
    sign_mean: Any = None
    best_mean: Any = None
    odds_excess: Any = None
    noise_excess: Any = None
    mirrored_excess: Any = None
    cube_excess: Any = None
    chances: Any = None
    values: Any
    gradient: Any
    lipschitz: Callable[[Bounds], float]

    @property
    def closes_gap(self) -> bool:
        """Whether solvers can make the duality gap as small as rounding allows."""
        return self.smoothness is not None or self.envelope_dual is not None

    def sum_values(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """The summed loss at each row of [..., p], shape [...]."""
        return sum_blocks(lambda block: np.sum(self.values(theta, block), axis=-1), data)

    def has_part_sums(self, data: Data) -> bool:
        """Whether ``gradient`` and ``sum_values`` take a part of the records at a time."""
        return self.by_parts and is_stored(data.x)

    def has_compiled_sums(self, data: Data) -> bool:
        """Whether ``gradient`` and ``sum_values`` are compiled, for rows such as these.

        They then take a block of records at a time, and what they give at a point does not depend
        on the other points.
        """
        return False

    def dual(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """The dual point that certifies theta [p]: here theta, since ``minorant`` is a tangent."""
        return np.array(theta, dtype=float)

    def minorant(self, dual: np.ndarray, data: Data) -> Minorant:
        """An affine lower bound on the summed loss: here its tangent at ``dual`` [p]."""
        slope, values = self.gradient(dual, data), self.values(dual, data)
        product, length = float(slope @ dual), float(np.linalg.norm(dual))
        one = self.lipschitz(data.facts().bounds(length))
        terms = math.fsum(np.abs(values)) + abs(product)
        return Minorant(slope, math.fsum(values) - product, data.n * one, terms)

    def dual_slope(self, dual: np.ndarray, data: Data) -> np.ndarray:
        """The slope [p] of ``minorant``."""
        return self.minorant(dual, data).slope

    def curvature_factor(self, data: Data) -> float:
        """The factor from ``smoothness``, or an envelope's curvature, to curvature in theta."""
        return largest_eigenvalue(data.x)

    def cone_entries(self, data: Data) -> int:
        """About how many entries the rows of ``cone_cost`` hold."""
        return count_entries(data.x) + 3 * data.n

    def hessian_rank(self, bounds: Bounds) -> int | None:
        """A bound on the rank of one record's Hessian; None where there is none below p."""
        return None

    def oscillation(self, bounds: Bounds, constraint: Any) -> float:
        """An upper bound on how far the difference of two records' losses ranges over the set.

        >= sup over records d, d' within the bounds of sup - inf over the set of l_d - l_d'.
        Here 2 L diameter, L being the Lipschitz constant on this set (``bounds.radius`` is not
        used).
        """
        return 2.0 * self.lipschitz(on(bounds, constraint)) * constraint.diameter

    def variation(self, bounds: Bounds, constraint: Any) -> float:
        """An upper bound on how far one record's loss ranges over the set.

        >= sup over records within the bounds of sup - inf over the set of l_d: L diameter.
        """
        return self.lipschitz(on(bounds, constraint)) * constraint.diameter

    def gradient_gap(self, bounds: Bounds) -> float:
        """An upper bound on the distance of two records' gradients at one point.

        >= sup over records d, d' and |theta| <= radius of |grad l_d - grad l_d'|_2: 2 L.
        """
        return 2.0 * self.lipschitz(bounds)


def on(bounds: Bounds, constraint: Any) -> Bounds:
    """The bounds with the radius replaced by that of this set."""
    return replace(bounds, radius=constraint.radius)


def row_norm(bounds: Bounds, norm: float) -> float:
    """sup of |x|_norm over rows of Euclidean norm at most ``bounds.row``; norm is 1, 2 or inf."""
    return bounds.row * norm_factor(bounds.columns, norm)


def norm_factor(length: int, norm: float) -> float:
    """sup of |v|_norm / |v|_2 over v of this length: sqrt(length) for norm 1, else 1."""
    if norm not in (1, 2, math.inf):
        raise ValueError(f"norm {norm}: must be 1, 2 or inf")
    return math.sqrt(length) if norm == 1 else 1.0


def largest_eigenvalue(x: Any) -> float:
    """The largest eigenvalue of X^T X, by power iteration, enlarged by a fifth to be safe.

    It is at most the squared Frobenius norm, and positive.
    """
    squares = sum_parts(x, _sum_squares)
    v = np.random.Generator(np.random.Philox(0)).standard_normal(x.shape[1])
    value = 0.0
    for _ in range(30):
        v = add_rows(x, multiply_rows(x, v))
        value = float(np.linalg.norm(v))
        if value == 0:
            break
        v /= value
    return max(min(1.2 * value, float(squares)), np.finfo(float).tiny)


def _sum_squares(x: Any) -> float:
    if not isinstance(x, np.ndarray):
        return float(x.multiply(x).sum())
    if not is_single(x):
        return np.sum(np.square(x))
    return math.fsum(np.sum(np.square(x[part], dtype=np.float64)) for part in slice_rows(x))


def gram(x: Any) -> np.ndarray:
    """X^T X as a dense array [p, p]."""
    return to_dense(sum_parts(x, _add_squares, entries=x.shape[1] ** 2))


def _add_squares(x: Any) -> Any:
    return weighted_gram(x, np.ones(len(x))) if is_single(x) else x.T @ x


def weighted_gram(x: Any, weights: np.ndarray) -> np.ndarray:
    """X^T diag(weights) X as a dense array [p, p], computed a block of rows at a time."""
    return sum_parts(x, _add_gram, weights, entries=x.shape[1] ** 2)


def _add_gram(x: Any, weights: np.ndarray) -> np.ndarray:
    n, p = x.shape
    step = max(1, _BLOCK_ENTRIES // p)
    total = np.zeros((p, p))
    for start in range(0, n, step):
        rows = to_dense(x[start : start + step]).astype(np.float64, copy=False)
        total += rows.T @ (rows * weights[start : start + step, None])
    return total


def to_dense(x: Any) -> np.ndarray:
    """Rows as a dense array, whether they are stored sparse or not."""
    return x.toarray() if sparse.issparse(x) else x
