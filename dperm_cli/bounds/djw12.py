"""Rates of learning from the answers of a local channel [DJW12], with constants.

Risks are expected losses of a fresh record above the least on the set (``population_risk``), for n
independent records that each answer once. L bounds a record's subgradient in the channel's norm
(l_inf or l_1), M = M_inf / L or M_1 / L is the channel's multiplier and I* its information in nats.
Lower bounds are about the worst loss and distribution of the (L, p) class: a run on a kind one may
lie below. The proofs are in docs/proofs/_djw12.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammaln

from dperm_cli.bounds.base import Bound, Setting, Theorem, check_settings, find_reason

ASSOUAD, FANO = 163.0, 17.0  # the paper's constants, one over them
# c such that the printed bounds are proved for n >= c (M / L)^2 times d (Thm 2) or ln(2 d)
LEAST_ASSOUAD, LEAST_FANO = 1.0 / 80.0**2, 0.07
# I* M^2 / d of the l_inf channel lies between these for M >= 2, and of the l_1 channel for M >= d
SPREAD_LOW, SPREAD_HIGH, SPREAD_LOW_L1 = 0.5, 0.52325, 0.467


# --- formulas


def assouad_as_printed(radius: float, gradient: float, d: int, n: int) -> float:
    """Thm 1(a): M_inf r d / (163 sqrt n), Theta holds the l_inf ball of this radius."""
    return gradient * radius * d / (ASSOUAD * math.sqrt(n))


def fano_as_printed(radius: float, gradient: float, d: int, n: int) -> float:
    """Thm 1(b): r M_inf sqrt(ln 2d) / (17 sqrt n), Theta the l_1 ball of this radius."""
    return radius * gradient * math.sqrt(math.log(2.0 * d)) / (FANO * math.sqrt(n))


def cross_as_printed(radius: float, lipschitz: float, multiplier: float, d: int, n: int) -> float:
    """Thm 2: r L sqrt d / (163 sqrt n Delta(gamma)), Theta holds the l_inf ball of this radius."""
    share = delta_of(gamma_of(multiplier, d), d)
    return radius * lipschitz * math.sqrt(d) / (ASSOUAD * math.sqrt(n) * share)


def gamma_of(multiplier: float, d: int) -> float:
    """Eq. (9): gamma of the l_1 channel with M > 1; M -> 1 gives inf."""
    rest = 2.0 * d - 2.0
    root = math.sqrt(rest**2 + 4.0 * (multiplier**2 - 1.0))
    return math.log((rest + root) / (2.0 * (multiplier - 1.0))) if multiplier > 1.0 else math.inf


def delta_of(gamma: float, d: int) -> float:
    """Eq. (9): (e^gamma - e^-gamma) / (e^gamma + e^-gamma + 2 (d - 1)), which is 1 / M."""
    if gamma > 700.0:
        return 1.0
    return math.sinh(gamma) / (math.cosh(gamma) + d - 1.0)


def leading_information(multiplier: float, d: int) -> float:
    """Cor. 3, and the remark after Prop. 1 corrected: d / (2 M^2), in nats."""
    return d / (2.0 * multiplier**2)


def next_information(multiplier: float, d: int) -> float:
    """Cor. 3, its remainder corrected: -d^2 (d - 3) / (24 M^4) leads it, once M is above d."""
    return -(d**2) * (d - 3.0) / (24.0 * multiplier**4)


def majority_error(n: int, bias: np.ndarray) -> np.ndarray:
    """How often most of n signs of mean ``bias`` >= 0 are wrong, ties counting half, [k].

    (1 - TV) / 2 for the laws of n such signs of mean +bias and of mean -bias.
    """
    wrong = 0.5 * (1.0 - np.asarray(bias, dtype=float))
    half = n // 2
    if n % 2:  # P(more than half wrong), as a beta integral
        return betainc(half + 1.0, half + 1.0, wrong)
    tie = gammaln(n + 1.0) - 2.0 * gammaln(half + 1.0)
    with np.errstate(divide="ignore"):
        tie = tie + half * (np.log(wrong) + np.log1p(-wrong))
    return betainc(half + 1.0, float(half), wrong) + 0.5 * np.exp(tie)


@lru_cache(maxsize=256)
def corners(n: int, multiplier: float) -> float:
    """max over delta <= 1 of delta (1 - TV) / 2, TV of n signs of mean +-delta / M.

    The share of L r d that any method loses on a cube's corners with independent biases +-delta:
    0.17 M / sqrt(n) for n well above M^2.
    """
    bias = _biases(n, 1.0 / multiplier)
    return float(np.max(multiplier * bias * majority_error(n, bias)))


@lru_cache(maxsize=256)
def cross(n: int, multiplier: float, d: int) -> float:
    """The same on the 2 d corners of the l_1 ball, TV by Hellinger's distance.

    0.135 M sqrt(d / n) for n well above d M^2.
    """
    bias = _biases(max(1.0, n / d), 1.0 / multiplier)
    kept = n * np.log1p(-(1.0 - np.sqrt(1.0 - bias**2)) / d)
    missed = 0.5 * (1.0 - np.sqrt(-np.expm1(2.0 * kept)))
    return float(np.max(multiplier * bias * missed))


@lru_cache(maxsize=256)
def one_corner(n: int, multiplier: float, d: int) -> float:
    """max over delta <= 1 of delta (1 - (n k + ln 2) / ln 2d) / 2, k = KL(delta / M).

    Share of L r on the l_1 ball where one of 2 d directions is favoured, by Fano; or, if that is
    more, by two directions alone (``corners``).
    """
    bias = _biases(n / math.log(2.0 * d) if d > 1 else n, 1.0 / multiplier)
    each = 0.5 * ((1.0 + bias) * np.log1p(bias) + _log_term(bias))
    left = 1.0 - (n * each + math.log(2.0)) / math.log(2.0 * d)
    return max(float(np.max(multiplier * bias * left / 2.0)), corners(n, multiplier))


def _log_term(bias: np.ndarray) -> np.ndarray:
    """(1 - a) ln(1 - a), 0 at a = 1."""
    rest = 1.0 - bias
    return np.where(rest > 0.0, rest * np.log(np.where(rest > 0.0, rest, 1.0)), 0.0)


def _biases(n: float, most: float) -> np.ndarray:
    """Biases up to ``most``, fine around 1 / sqrt(n), where the best one is."""
    around = np.geomspace(0.02, 5.0, 400) / math.sqrt(n)
    return np.append(around[around < most], most)


def sgd_risk(
    radius: float, diameter: float, square: float, step: float, t: int, rule: str
) -> float:
    """E F(mean of theta_1 .. theta_T) - F(best) for projected steps, E |Z|_2^2 <= square.

    R^2 / (2 a T) + a G^2 / 2 with constant steps a from the centre of a ball of radius R;
    (D^2 / (2 a) + a G^2) / sqrt(T) with steps a / sqrt(t), D the diameter.
    """
    if rule == "constant":
        return radius**2 / (2.0 * step * t) + step * square / 2.0
    return (diameter**2 / (2.0 * step) + step * square) / math.sqrt(t)


def mirror_risk(distance: float, gradient: float, step: float, t: int) -> float:
    """K / (a T) + a G^2 / 2: constant steps a, K >= B(u, centre), E |Z|_*^2 <= G^2.

    B is 1-strongly convex in the norm whose dual is |.|_*: on the l_1 ball of radius r the relative
    entropy of weights on its 2 d corners, with K = r^2 ln 2d and G = M_inf.
    """
    return distance / (step * t) + step * gradient**2 / 2.0


def best_sgd(radius: float, gradient: float, n: int) -> float:
    """R G / sqrt(n): ``sgd_risk`` at its best constant step, G^2 = E |Z|_2^2."""
    return radius * gradient / math.sqrt(n)


def best_entropy(radius: float, gradient: float, d: int, n: int) -> float:
    """r M_inf sqrt(2 ln(2d) / n): ``mirror_risk`` of the entropy at its best step."""
    return radius * gradient * math.sqrt(2.0 * math.log(2.0 * d) / n)


# --- at a setting


def _check_channel(at: Setting, *names: str) -> str | None:
    """A reason unless the plan sends one answer a record through one of these channels."""
    if at.settings.get("channel") not in names:
        return f"is for the {' or '.join(names)} channel"
    return find_reason(
        check_settings(at, "channel_bound", "multiplier"),
        None if at.settings.get("answers", 1) == 1 else "is for one answer a record",
        None if at.spec.regulariser.vanishes else "is for losses without a regulariser",
    )


def _facts(at: Setting) -> tuple[float, float]:
    """L and M."""
    return float(at.settings["channel_bound"]), float(at.settings["multiplier"])


def _gradient(at: Setting) -> float:
    """M_inf or M_1, in the units of the subgradients."""
    lipschitz, multiplier = _facts(at)
    return lipschitz * multiplier


def _check_inner_box(at: Setting) -> str | None:
    return None if at.spec.constraint.inner_cube else "is for a box, a ball or an l1 ball around 0"


def _check_l1_ball(at: Setting) -> str | None:
    hull = at.spec.constraint.axis_hull
    return None if hull is not None and hull.signed else "is for the l1 ball"


def _check_records(at: Setting, least: float) -> str | None:
    """The printed bounds exceed the loss's range when n is far below M^2: no bias is above 1."""
    return None if at.spec.n >= least else f"is proved for n >= {least:.3g}"


def _check_multiplier(at: Setting, multiple: float) -> str | None:
    return None if _facts(at)[1] >= multiple * (1.0 - 1e-12) else f"needs M >= {multiple:g} L"


def _check_theorem_1a(at: Setting) -> str | None:
    reason = find_reason(_check_channel(at, "l_inf"), _check_inner_box(at))
    return reason or _check_records(at, LEAST_ASSOUAD * _facts(at)[1] ** 2)


def _check_theorem_1b(at: Setting) -> str | None:
    reason = find_reason(_check_channel(at, "l_inf"), _check_l1_ball(at))
    if reason:
        return reason
    return _check_records(at, LEAST_FANO * math.log(2.0 * at.spec.p) * _facts(at)[1] ** 2)


def _check_theorem_2(at: Setting) -> str | None:
    reason = find_reason(_check_channel(at, "l_1"), _check_inner_box(at))
    return reason or _check_records(at, LEAST_ASSOUAD * at.spec.p * _facts(at)[1] ** 2)


def _box_times(at: Setting, value: float) -> float:
    radius = at.spec.constraint.inner_cube
    assert radius is not None
    return radius * value


def _corner_1(at: Setting) -> float:
    """r L sqrt(d ln 2d / (n I*)), the unit of Corollary 1."""
    spec, lipschitz = at.spec, _facts(at)[0]
    spread = spec.p * math.log(2.0 * spec.p) / (spec.n * at.settings["information"])
    return spec.constraint.size * lipschitz * math.sqrt(spread)


def _corner_2(at: Setting, radius: float) -> float:
    """r L d / sqrt(n I*), the unit of Corollary 2."""
    information = at.settings["information"]
    return radius * _facts(at)[0] * at.spec.p / math.sqrt(at.spec.n * information)


def _check_best_step(at: Setting) -> str | None:
    """A reason unless the plan's step is the best constant one, within 1 %."""
    rule = at.settings.get("step_rule")
    if rule != "constant" or at.settings.get("output") != "average":
        return "is for the average of constant steps"
    reason = check_settings(at, "step")
    if reason:
        return reason
    best = _best_step(at)
    return None if abs(at.settings["step"] / best - 1.0) <= 0.01 else f"is for steps of {best:.3g}"


def _best_step(at: Setting) -> float:
    spec, gradient = at.spec, _gradient(at)
    if at.mechanism == "local_mirror_descent":
        log = math.log(2.0 * spec.p)
        return math.sqrt(2.0 * log / spec.n) * spec.constraint.size / gradient
    return _reach(at) / (math.sqrt(_square(at)) * math.sqrt(spec.n))


def _square(at: Setting) -> float:
    """E |Z|_2^2: the answers' lengths do not vary."""
    return _gradient(at) ** 2 * (at.spec.p if at.settings["channel"] == "l_inf" else 1.0)


def _sgd(at: Setting) -> str | None:
    reason = find_reason(
        _check_mechanism(at, "local_sgd"),
        _check_channel(at, "l_inf", "l_1", "l_2"),
        check_settings(at, "step"),
        _check_average(at),
    )
    rule = at.settings.get("step_rule")
    return reason or (None if rule in ("constant", "decreasing") else "is for its step rules")


def _mirror(at: Setting) -> str | None:
    reason = find_reason(
        _check_mechanism(at, "local_mirror_descent"), _check_channel(at, "l_inf", "l_1", "l_2")
    )
    reason = reason or find_reason(
        check_settings(at, "step", "distance", "gradient_norm"), _check_average(at)
    )
    constant = at.settings.get("step_rule") == "constant"
    return reason or (None if constant else "is for constant steps")


def _entropy(at: Setting) -> str | None:
    entropy = at.settings.get("map") == "entropy"
    return find_reason(_mirror(at), _check_channel(at, "l_inf"), _check_l1_ball(at)) or (
        None if entropy else "is for the entropic map"
    )


def _check_mechanism(at: Setting, mechanism: str) -> str | None:
    return None if at.mechanism == mechanism else f"is about {mechanism}"


def _check_average(at: Setting) -> str | None:
    average = at.settings.get("output") == "average"
    return None if average else "is for the average of the points where answers were asked"


def _reach(at: Setting) -> float:
    """How far the set's points are from its centre, at most."""
    shape = at.spec.constraint
    return shape.radius if shape.inner_cube else shape.diameter


def _sgd_value(at: Setting) -> float:
    across, facts = at.spec.constraint.diameter, at.settings
    return sgd_risk(_reach(at), across, _square(at), facts["step"], at.steps, facts["step_rule"])


def _mirror_value(at: Setting) -> float:
    facts = at.settings
    return mirror_risk(facts["distance"], facts["gradient_norm"], facts["step"], at.steps)


def _bound(
    name: str,
    statement: str,
    kind: str,
    covers: Callable[[Setting], str | None],
    formula: Callable[[Setting], float],
    paper: str = "DJW12",
) -> Theorem:
    return Theorem(name, statement, kind, "explicit", covers, formula, "population_risk", paper)


def _check_information(at: Setting) -> str | None:
    return check_settings(at, "information")


BOUNDS: tuple[Bound, ...] = (
    _bound(
        "DJW12 Thm 1(a)",
        "M_inf r d / (163 sqrt n), Theta holds the l_inf ball of radius r",
        "lower",
        _check_theorem_1a,
        lambda at: _box_times(at, assouad_as_printed(1.0, _gradient(at), at.spec.p, at.spec.n)),
    ),
    _bound(
        "DJW12 Thm 1(b)",
        "r M_inf sqrt(ln 2d) / (17 sqrt n), Theta the l_1 ball of radius r",
        "lower",
        _check_theorem_1b,
        lambda at: fano_as_printed(at.spec.constraint.size, _gradient(at), at.spec.p, at.spec.n),
    ),
    _bound(
        "DJW12 Thm 2",
        "r L sqrt d / (163 sqrt n Delta(gamma)), Theta holds the l_inf ball of radius r",
        "lower",
        _check_theorem_2,
        lambda at: _box_times(at, cross_as_printed(1.0, *_facts(at), at.spec.p, at.spec.n)),
    ),
    _bound(
        "DJW12 Thm 1(a) (sharp)",
        "L r d max over delta of delta (1 - TV_n(delta / M)) / 2, about 0.17 M_inf r d / sqrt n",
        "lower",
        lambda at: find_reason(_check_channel(at, "l_inf"), _check_inner_box(at)),
        lambda at: _box_times(at, _facts(at)[0] * at.spec.p * corners(at.spec.n, _facts(at)[1])),
        "dperm",
    ),
    _bound(
        "DJW12 Thm 1(b) (sharp)",
        "L r max over delta of delta (1 - (n k(delta / M) + ln 2) / ln 2d) / 2",
        "lower",
        lambda at: find_reason(_check_channel(at, "l_inf"), _check_l1_ball(at)),
        lambda at: (
            at.spec.constraint.size
            * _facts(at)[0]
            * one_corner(at.spec.n, _facts(at)[1], at.spec.p)
        ),
        "dperm",
    ),
    _bound(
        "DJW12 Thm 2 (sharp)",
        "L r max over delta of delta (1 - sqrt(1 - rho^2n)) / 2, about 0.135 M_1 r sqrt(d / n)",
        "lower",
        lambda at: find_reason(_check_channel(at, "l_1"), _check_inner_box(at)),
        lambda at: _box_times(at, _facts(at)[0] * cross(at.spec.n, _facts(at)[1], at.spec.p)),
        "dperm",
    ),
    _bound(
        "DJW12 Cor 1 (lower)",
        "(sqrt(1/2) / 17) r L sqrt(d ln 2d / (n I*)), M_inf >= 2 L",
        "lower",
        lambda at: (
            find_reason(_check_theorem_1b(at), _check_information(at)) or _check_multiplier(at, 2.0)
        ),
        lambda at: math.sqrt(SPREAD_LOW) / FANO * _corner_1(at),
    ),
    _bound(
        "DJW12 Cor 1 (upper)",
        "1.024 r L sqrt(d ln 2d / (n I*)), M_inf >= 2 L, mirror descent with its best step",
        "upper",
        lambda at: (
            find_reason(_entropy(at), _check_information(at))
            or _check_multiplier(at, 2.0)
            or _check_best_step(at)
        ),
        lambda at: math.sqrt(2.0 * SPREAD_HIGH) * _corner_1(at),
    ),
    _bound(
        "DJW12 Cor 2 (lower)",
        "(0.683 / 163) r L d / sqrt(n I*), M_1 >= max(2, d) L",
        "lower",
        lambda at: (
            find_reason(_check_theorem_2(at), _check_information(at))
            or _check_multiplier(at, max(2.0, at.spec.p))
        ),
        lambda at: math.sqrt(SPREAD_LOW_L1) / ASSOUAD * _box_times(at, _corner_2(at, 1.0)),
    ),
    _bound(
        "DJW12 Cor 2 (upper)",
        "0.724 r L d / sqrt(n I*), M_1 >= 2 L, SGD with its best step, Theta in [-r, r]^d",
        "upper",
        lambda at: (
            find_reason(_sgd(at), _check_channel(at, "l_1"), _check_information(at))
            or _check_multiplier(at, 2.0)
            or _check_best_step(at)
        ),
        lambda at: math.sqrt(SPREAD_HIGH) * _corner_2(at, _reach(at) / math.sqrt(at.spec.p)),
    ),
    _bound(
        "DJW12 SGD",
        "R^2 / (2 a T) + a G^2 / 2, G^2 = E |Z|_2^2: d M_inf^2 or M_1^2; steps a from the centre",
        "upper",
        _sgd,
        _sgd_value,
        "dperm",
    ),
    _bound(
        "DJW12 mirror descent",
        "K / (a T) + a G^2 / 2; on the l_1 ball with the entropy K = r^2 ln 2d and G = M_inf",
        "upper",
        _mirror,
        _mirror_value,
        "dperm",
    ),
)
