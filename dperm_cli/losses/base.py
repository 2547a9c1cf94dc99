"""The base class of losses: what a loss may offer, and constants computed from its others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.fields import CheckedFields
from dperm_cli.core.registry import Plugin
from dperm_cli.problem.data import Bounds, Data, Minorant

_BLOCK_ENTRIES = 1_000_000


class PerRecord(Plugin, CheckedFields):
    """A convex loss of one record; a subclass gives ``values`` (of each record at rows [..., p]),
    ``gradient`` (the sum over records of one subgradient each), ``dimension``, ``lipschitz`` and
    ``curvature_bound`` (Euclidean, in theta, for every record within the bounds).

    What follows ``tasks`` are capabilities: a loss that offers one is served by the faster or
    sharper method that needs it, and by the general one otherwise.

    Attributes:
        tasks: the tasks of data that it is for.
        also: tasks whose labels it takes for targets.
        default_of: tasks whose data sets take it where they name no other.
        audit_place: among those that audits try, the least demanding first; below 10 in the
            declared grid, from there on by the fuzzer.
        code: of the compiled slope in ``loops.slopes``; ``location_code`` in
        ``loops.local_learning`` and
            ``loops.proximal_chain``, of a loss of the distance to a record.
        width: the one number that the compiled slope may need beside its code.
        transcendental: whether the compiled slope takes an exponential.
        smoothness: a bound on the second derivative in the record's margin, or margins.
        slope: the derivative in the margin (``margin_loss.Glm``).
        pieces: of a loss with one kink in the margin (``margin_loss.Glm``).
        curvature: the second derivative in the margin.
        hessian: ``hessian(theta, data)``, the sum's second derivative [p, p].
        envelope_dual: ``envelope_dual(theta, data, width)``, the dual point of the Moreau envelope
            of this parameter, of a loss with kinks.
        cone_cost: ``cone_cost(program, data, theta)`` adds the summed loss to the cost of a cone
            program and says how its multipliers become a dual point (``problem.cone_rows``).
        distance_power: q of a loss |theta - x|_q.
        round_kink: ``round_kink(width)``, the loss with its kink rounded off.
        quadratic: whether the second derivative in the margin is ``smoothness`` everywhere.
        curvature_ratio: ``curvature_ratio(margin)`` is at most the least over the largest second
            derivative up to that margin, of one that rises once and falls once.
        affine_margin: margins up to which the loss is affine.
        most_pull: ``most_pull(target)`` bounds -z l'(z) over all margins and targets up to that.
        sign_mean: ``sign_mean(bias, z)``, the mean loss where y is 1 with chance (1 + bias) / 2;
        best_mean: ``best_mean(bias)``, the z where that is least.
        odds_mean: ``odds_mean(z, likely)``, the mean loss where y is 1 with chance ``likely``, of a
            loss that is least at the log odds.
        noise_excess: ``noise_excess(off, width)``, the mean loss above its least, ``off`` from the
            middle of targets that are uniform within ``width`` of it.
        mirrored_excess: ``mirrored_excess(rows, to)``, the mean loss of each row and its mirror
            image above that at 0, their middle.
        cube_excess: ``cube_excess(half_side, off)``, the same of rows uniform in a cube.

    >>> from dperm_cli.losses.hinge import Hinge
    >>> isinstance(Hinge(), PerRecord), Hinge().smoothness, Hinge().round_kink(0.1).smoothness
    (True, None, 5.0)
    """

    group: ClassVar[str] = "loss"
    tasks: ClassVar[tuple[str, ...]] = ()
    also: ClassVar[tuple[str, ...]] = ()
    audit_place: ClassVar[int | None] = None
    default_of: ClassVar[tuple[str, ...]] = ()
    code: ClassVar[int | None] = None
    location_code: ClassVar[int | None] = None
    width: float = 0.0
    transcendental: ClassVar[bool] = False
    smoothness: Any = None
    slope: Any = None
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
    most_pull: Any = None
    sign_mean: Any = None
    best_mean: Any = None
    odds_mean: Any = None
    noise_excess: Any = None
    mirrored_excess: Any = None
    cube_excess: Any = None
    values: Any
    gradient: Any
    lipschitz: Callable[[Bounds], float]

    @property
    def closes_gap(self) -> bool:
        """Whether duality gaps can be made as small as rounding allows."""
        return self.smoothness is not None or self.envelope_dual is not None

    def dual(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """The dual point that certifies theta [p]: theta, where ``minorant`` is a tangent."""
        return np.array(theta, dtype=float)

    def minorant(self, dual: np.ndarray, data: Data) -> Minorant:
        """The tangent of the summed loss at a point [p]: below it, since it is convex."""
        slope, values = self.gradient(dual, data), self.values(dual, data)
        product, length = float(slope @ dual), float(np.linalg.norm(dual))
        one = self.lipschitz(data.facts().bounds(length))
        terms = math.fsum(np.abs(values)) + abs(product)
        return Minorant(slope, math.fsum(values) - product, data.n * one, terms)

    def dual_slope(self, dual: np.ndarray, data: Data) -> np.ndarray:
        """The slope [p] of ``minorant``."""
        return self.minorant(dual, data).slope

    def spread(self, data: Data) -> float:
        """What ``smoothness``, or an envelope's curvature, is multiplied by in theta."""
        return largest_eigenvalue(data.x)

    def cone_entries(self, data: Data) -> int:
        """How many entries the rows of ``cone_cost`` hold, about."""
        stored = data.x.nnz if sparse.issparse(data.x) else data.n * data.p
        return int(stored) + 3 * data.n

    def hessian_rank(self, bounds: Bounds) -> int | None:
        """A bound on the rank of one record's Hessian, where it has one below the dimension."""
        return None

    def oscillation(self, bounds: Bounds, constraint: Any) -> float:
        """>= sup over records d, d' within the bounds of sup - inf over the set of l_d - l_d'.

        2 L diameter, L being the Lipschitz constant on this set (``bounds.radius`` is not used).
        """
        return 2.0 * self.lipschitz(on(bounds, constraint)) * constraint.diameter

    def variation(self, bounds: Bounds, constraint: Any) -> float:
        """>= sup over records within the bounds of sup - inf over the set of l_d: L diameter."""
        return self.lipschitz(on(bounds, constraint)) * constraint.diameter

    def gradient_gap(self, bounds: Bounds) -> float:
        """>= sup over records d, d' and |theta| <= radius of |grad l_d - grad l_d'|_2: 2 L."""
        return 2.0 * self.lipschitz(bounds)


def on(bounds: Bounds, constraint: Any) -> Bounds:
    """The bounds with the radius of this set."""
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
    """Of X^T X, by power iteration, with a margin of a fifth; at most the Frobenius bound."""
    squares = x.multiply(x).sum() if sparse.issparse(x) else np.sum(np.square(x))
    v = np.random.Generator(np.random.Philox(0)).standard_normal(x.shape[1])
    value = 0.0
    for _ in range(30):
        v = x.T @ (x @ v)
        value = float(np.linalg.norm(v))
        if value == 0:
            break
        v /= value
    return max(min(1.2 * value, float(squares)), np.finfo(float).tiny)


def weighted_gram(x: Any, weights: np.ndarray) -> np.ndarray:
    """X^T diag(weights) X, dense, a block of rows at a time."""
    n, p = x.shape
    step = max(1, _BLOCK_ENTRIES // p)
    total = np.zeros((p, p))
    for start in range(0, n, step):
        rows = to_dense(x[start : start + step])
        total += rows.T @ (rows * weights[start : start + step, None])
    return total


def to_dense(x: Any) -> np.ndarray:
    """Rows as an array."""
    return x.toarray() if sparse.issparse(x) else x
