"""What no private mechanism can do better than [BST14, Section 5], with constants where proved.

Each is a statement about the worst data set of losses as Lipschitz as the problem's (linear ones),
under its ridge: a run on a kind data set may lie below. |C| is the diameter, R the radius of a
ball, L one record's Lipschitz constant, Delta one record's strong convexity. The proofs of the
explicit ones are in docs/proofs/_lower_bounds.md.
"""

from __future__ import annotations

import math

import numpy as np

from dperm_cli.bounds import random_directions
from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_guarantee,
    check_unregularised,
    lower_bound,
    lower_order,
)
from dperm_cli.core.memo import MIB, memoise
from dperm_cli.core.spaced_numbers import list_integers_by_ratio

_check_lasso = check(lambda at: not at.spec.lasso > 0, "is for losses without a lasso")
_check_ridge = check(
    lambda at: at.spec.constraint.is_ball or not at.spec.ridge > 0,
    "is for a Euclidean ball where there is a ridge",
)


@lower_bound("two-point", check_unregularised)
def two_points(at: Setting) -> float:
    """Group privacy on two linear data sets that differ in k records (any p, any mechanism).

    With k records equal to +d or to -d and the rest neutral, the two minimisers lie at the
    ends of a diameter, and the outputs' total variation distance is at most
    (e^{k eps} - 1 + 2 delta_k) / (e^{k eps} + 1): some data set has expected excess risk at
    least k L |C| (1 - TV) / 2. The best k is taken; the proof is in docs/proofs/_lower_bounds.md.
    """
    spec, budget = at.spec, at.budget
    # replacing a record is a removal and an addition
    step = 1 if budget.relation == "replace_one" else 2
    # k (1 - TV_k) falls once k epsilon is past about 1.3, and grows until then
    last = max(1, math.ceil(min(spec.n, 2.0 / (budget.epsilon * step))))
    best = max(
        k * (1.0 - _total_variation(k * step, budget.epsilon, budget.delta))
        for k in _candidates(last)
    )
    return max(0.0, best) * spec.lipschitz * spec.constraint.least_diameter / 2.0


@lower_bound(
    "caps",
    check_guarantee("pure"),
    check(
        lambda at: random_directions.choose_gain(at.spec.constraint) is not None,
        "is for l2_ball or box or l1_ball",
    ),
    _check_lasso,
    _check_ridge,
)
def caps(at: Setting) -> float:
    """Pure privacy: k equal linear losses -L <u, theta>, u any of the set's directions.

    On a ball of radius R these are the unit sphere, on a box and on an l1 ball the corners of the
    cube and the axes (``random_directions``), without a ridge there. The output laws of two such
    data sets differ by a factor e^{k eps} at most, so that on average over u the output's inner
    product with u is at most rho_p(k eps) R, rho_p the correlation of the best reweighting of the
    directions. With m = min(R, k L / (n Delta)) and t = min(R, k L rho / (n Delta)) some data set
    has expected excess risk at least

        [k L m - n Delta m^2 / 2] - [k L rho t - n Delta t^2 / 2],

    which is k L R (1 - rho) without a ridge. The best k is taken. For large p it is about
    .103 L R p / epsilon on a ball, .081 on a box (R half its diagonal), and with a ridge .0677 L^2
    p^2 / (n Delta epsilon^2) on a ball; on an l1 ball it grows as ln p.
    """
    spec, epsilon = at.spec, at.budget.epsilon
    gain_of = random_directions.choose_gain(spec.constraint) or random_directions.log_gain
    last = math.ceil(min(spec.n, (3.0 * spec.p + 20.0) / epsilon))
    k = list_integers_by_ratio(1, last, 160).astype(float)
    if at.budget.relation == "replace_one":
        rho = random_directions.bound_correlation(spec.p, k * epsilon, gain_of)
    else:
        rho = random_directions.bound_correlation(spec.p, 2.0 * k * epsilon, gain_of)
        if spec.ridge == 0:
            rho = np.minimum(
                rho, random_directions.bound_one_sided_correlation(spec.p, k * epsilon, gain_of)
            )
    pull, bend, radius = k * spec.lipschitz, spec.n * spec.ridge, spec.constraint.radius
    gained = _depth(pull, bend, radius) - _depth(pull * rho, bend, radius)
    return max(0.0, float(np.max(gained)))


@lower_bound(
    "tracing",
    check(
        lambda at: at.spec.constraint.is_ball or at.spec.constraint.half_side is not None,
        "is for l2_ball or box",
    ),
    _check_lasso,
    _check_ridge,
)
def tracing_bound(at: Setting) -> float:
    """Any guarantee on a ball or a box: m records of a fingerprinting code, the rest neutral.

    Signs X_i of mean P, the coordinates of P of density (1 - t^2)^{a-1} on [-1, 1], and losses
    -L <theta, X_i> / sqrt(p). With T the sum of the X_i / sqrt(p), privacy gives
    E <theta, T> <= c s + d for s^2 = E |theta|^2,

        c = (1 + m / (2 a)) m sinh(eps) / sqrt(p),  d = (1 + m / (2 a)) m (1 + e^-eps) 2 R delta,

    and F* <= -L E|T| r + n Delta r^2 / 2 for every r <= R. The best m and a are taken. Without a
    ridge and for n >> p / epsilon^2 it is about L R sqrt(p) / (4 epsilon), with one
    L^2 p / (8 n Delta epsilon^2). On a box (no ridge, R half its diagonal) E|T| is that of one
    column.
    """
    spec, epsilon, delta = at.spec, at.budget.epsilon, at.budget.delta
    if at.budget.relation != "replace_one" and spec.ridge > 0:
        # a replacement is a removal and an addition; without a ridge a removal will do
        epsilon, delta = 2.0 * epsilon, (1.0 + math.exp(min(epsilon, 700.0))) * delta
    if epsilon > 20.0:
        return 0.0
    reach = 2.0 * math.sqrt(spec.p) / epsilon
    last = math.ceil(min(spec.n, 2.0 + reach * reach))
    m, more, length, square = _list_codes(last, spec.p if spec.constraint.is_ball else 1)
    c = more * math.sinh(epsilon) / math.sqrt(spec.p)
    radius, bend, pull = spec.constraint.radius, spec.n * spec.ridge, spec.lipschitz
    d = more * (1.0 + math.exp(-epsilon)) * 2.0 * radius * delta
    deep = _depth(pull * length, bend, radius)
    if bend > 0:
        # T within the set's reach: F* is known exactly
        inside = pull * m <= bend * radius
        deep = np.where(inside, np.maximum(deep, pull**2 * square / (2.0 * bend)), deep)
    gained = deep - _depth(pull * c, bend, radius) - pull * d
    return max(0.0, float(np.max(gained)))


@memoise(8 * MIB)
def _list_codes(last: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Numbers m of code words [c, 1], (1 + m / (2 a)) m [c, a] and ``code_length`` of them."""
    m = list_integers_by_ratio(1, last, 160).astype(float)[:, None]
    a = np.geomspace(0.05, 1e5, 60)
    return m, (1.0 + m / (2.0 * a)) * m, *code_length(p, m, a)


def code_length(p: int, m: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A lower bound of E |T|, and E |T|^2, for the sum T of m code words / sqrt(p).

    E |T| >= (E |T|^2)^{3/2} / (E |T|^4)^{1/2} (Hoelder), with P of E P^2 = 1 / (2 a + 1) and
    E P^4 = 3 / ((2 a + 1) (2 a + 3)).
    """
    two, four = 1.0 / (2.0 * a + 1.0), 3.0 / ((2.0 * a + 1.0) * (2.0 * a + 3.0))
    square = m + m * (m - 1) * two
    fourth = m * (m - 1) * (m - 2) * (m - 3) * four + 3 * m * (m - 1) + m
    fourth = fourth + (6 * m * (m - 1) * (m - 2) + 4 * m * (m - 1)) * two
    kurtosis = fourth / square**2
    return np.sqrt(square / (1.0 + np.maximum(kurtosis - 1.0, 0.0) / p)), square


def marginals_pure(n: int, p: int, epsilon: float) -> tuple[int, float]:
    """[BST14, Lemma 5.1, part 1] with its constants: M and the error of the mean.

    M = min(n, p / (20 epsilon)), rounded down; with probability 1/2 at least the error of the mean
    of unit vectors is at least M / (16 n). It needs p >= 3: 2^{p/2 - 1} > e^{p/20}.
    """
    signal = min(n, math.floor(p / (20.0 * epsilon)))
    return signal, signal / (16.0 * n)


_PACKING: tuple[Condition, ...] = (
    check_guarantee("pure"),
    check(lambda at: not at.spec.p < 3, "needs p >= 3"),
    check(lambda at: at.budget.relation == "replace_one", "is for replace_one"),
    check(lambda at: at.spec.constraint.is_ball, "is for l2_ball"),
    _check_lasso,
)


@lower_bound("BST14 Thm 5.2 (constants)", *_PACKING, check_unregularised)
def packing(at: Setting) -> float:
    """L R M / 1024, M = min(n, p / (20 epsilon)).

    |theta - theta*| >= 1/16 with probability 1/2, on M equal linear losses.
    """
    signal, _ = marginals_pure(at.spec.n, at.spec.p, at.budget.epsilon)
    return at.spec.lipschitz * at.spec.constraint.radius * signal / 1024.0


@lower_bound(
    "BST14 Thm 5.4 (constants)", *_PACKING, check(lambda at: at.spec.ridge > 0, "needs a ridge")
)
def packing_strongly_convex(at: Setting) -> float:
    """n Delta m^2 / 1024, m = min(R, M L / (n Delta)) the norm of the minimiser.

    It is (n Delta / 2) (m / 16)^2 / 2, with M as in ``packing``.
    """
    spec = at.spec
    signal, _ = marginals_pure(spec.n, spec.p, at.budget.epsilon)
    bend = spec.n * spec.strong_convexity
    norm = min(spec.constraint.radius, signal * spec.lipschitz / bend)
    return bend * norm**2 / 1024.0


@lower_order("BST14 Thm 5.2", check_guarantee("pure"), check_unregularised)
def pure_order(at: Setting) -> float:
    """L |C| min(n, p / epsilon)."""
    return _convex_scale(at) * min(at.spec.n, at.spec.p / at.budget.epsilon)


@lower_order("BST14 Thm 5.3", check_unregularised, check_guarantee("approx"))
def approx_order(at: Setting) -> float:
    """L |C| min(n, sqrt(p) / epsilon): every (epsilon, delta) mechanism, on its worst data set."""
    return _convex_scale(at) * min(at.spec.n, math.sqrt(at.spec.p) / at.budget.epsilon)


# the paper's assumption that Delta |C| / L is of order one, read as at least 1/2
_check_curvature = check(
    lambda at: (
        at.spec.strong_convexity * at.spec.constraint.least_diameter
        >= at.spec.lipschitz_total / 2.0
    ),
    "needs Delta |C| of the order of L",
)


@lower_order("BST14 Thm 5.4", check_guarantee("pure"), _check_lasso, _check_curvature)
def strongly_convex_pure_order(at: Setting) -> float:
    """(L^2 / Delta) min(n, p^2 / (n epsilon^2))."""
    private = (at.spec.p / at.budget.epsilon) ** 2
    return _curved_scale(at) * min(at.spec.n, private / at.spec.n)


@lower_order("BST14 Thm 5.5", check_guarantee("approx"), _check_lasso, _check_curvature)
def strongly_convex_approx_order(at: Setting) -> float:
    """(L^2 / Delta) min(n, p / (n epsilon^2))."""
    private = at.spec.p / at.budget.epsilon**2
    return _curved_scale(at) * min(at.spec.n, private / at.spec.n)


def _curved_scale(at: Setting) -> float:
    return at.spec.lipschitz_total**2 / at.spec.strong_convexity


def _convex_scale(at: Setting) -> float:
    return at.spec.lipschitz * at.spec.constraint.least_diameter


def _depth(pull: np.ndarray, bend: float, radius: float) -> np.ndarray:
    """max over 0 <= t <= radius of pull t - bend t^2 / 2."""
    reach = np.full_like(pull, radius) if bend == 0 else np.minimum(radius, pull / bend)
    return pull * reach - bend * reach**2 / 2.0


def _total_variation(k: int, epsilon: float, delta: float) -> float:
    """Total variation distance allowed by (epsilon, delta) over k changes of one record."""
    power = k * epsilon
    if power > 700:
        return 1.0
    group = delta * math.expm1(power) / math.expm1(epsilon) if delta else 0.0
    return min(1.0, (math.expm1(power) + 2.0 * group) / (math.exp(power) + 1.0))


def _candidates(last: int) -> range:
    return range(1, last + 1) if last <= 4096 else range(1, last + 1, last // 2048)
