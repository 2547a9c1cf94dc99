"""Rates of learning from the answers of a local channel [DJW12], with constants.

Risks are expected losses of a fresh record above the least on the set (``population_risk``), for n
independent records that each answer once. L bounds a record's subgradient in the channel's norm
(l_inf or l_1). M = M_inf / L or M_1 / L is the channel's multiplier and I* its information in nats.

Lower bounds are for the worst loss and distribution of the class of L-Lipschitz losses: a run on
easier data may have a smaller risk. The proofs are in docs/proofs/_djw12.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import betainc, gammaln

from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_mechanism,
    check_settings,
    check_unregularised,
    lower_bound,
    upper_bound,
)
from dperm_cli.core.memo import MIB, memoise

ASSOUAD, FANO = 163.0, 17.0  # the reciprocals of the paper's constants
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
    """Cor. 3, its remainder corrected: the largest term is -d^2 (d - 3) / (24 M^4) for M > d."""
    return -(d**2) * (d - 3.0) / (24.0 * multiplier**4)


def majority_error(n: int, bias: np.ndarray) -> np.ndarray:
    """The chance that the majority of n signs of mean ``bias`` >= 0 is wrong; ties count half, [k].

    It equals (1 - TV) / 2, TV being the total variation distance of the laws of n such signs of
    mean +bias and of mean -bias.
    """
    wrong = 0.5 * (1.0 - np.asarray(bias, dtype=float))
    half = n // 2
    if n % 2:  # P(more than half wrong), as a beta integral
        return betainc(half + 1.0, half + 1.0, wrong)
    tie = gammaln(n + 1.0) - 2.0 * gammaln(half + 1.0)
    with np.errstate(divide="ignore"):
        tie = tie + half * (np.log(wrong) + np.log1p(-wrong))
    return betainc(half + 1.0, float(half), wrong) + 0.5 * np.exp(tie)


@memoise(MIB)
def corners(n: int, multiplier: float) -> float:
    """max over delta <= 1 of delta (1 - TV) / 2, TV of n signs of mean +-delta / M.

    Multiplied by L r d, this is the least risk of any method on the corners of a cube with
    independent biases +-delta. It is 0.17 M / sqrt(n) for n well above M^2.
    """
    bias = _biases(n, 1.0 / multiplier)
    return float(np.max(multiplier * bias * majority_error(n, bias)))


@memoise(MIB)
def cross(n: int, multiplier: float, d: int) -> float:
    """As ``corners``, on the 2 d corners of the l_1 ball; TV is bounded by Hellinger's distance.

    It is 0.135 M sqrt(d / n) for n well above d M^2.
    """
    bias = _biases(max(1.0, n / d), 1.0 / multiplier)
    kept = n * np.log1p(-(1.0 - np.sqrt(1.0 - bias**2)) / d)
    missed = 0.5 * (1.0 - np.sqrt(-np.expm1(2.0 * kept)))
    return float(np.max(multiplier * bias * missed))


@memoise(MIB)
def one_corner(n: int, multiplier: float, d: int) -> float:
    """max over delta <= 1 of delta (1 - (n k + ln 2) / ln 2d) / 2, k = KL(delta / M).

    Multiplied by L r, this is the least risk on the l_1 ball where one of 2 d directions is
    favoured (Fano's inequality). ``corners``, for two directions, is taken where it is larger.
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
    """Biases up to ``most`` to search, densest around 1 / sqrt(n), where the best is."""
    around = np.geomspace(0.02, 5.0, 400) / math.sqrt(n)
    return np.append(around[around < most], most)


def sgd_risk(
    radius: float, diameter: float, square: float, step: float, t: int, rule: str
) -> float:
    """Upper bound on E F(mean of theta_1 .. theta_T) - F(best) of projected subgradient steps.

    Constant steps a from the centre of a ball of radius R: R^2 / (2 a T) + a G^2 / 2. Steps
    a / sqrt(t): (D^2 / (2 a) + a G^2) / sqrt(T), D the diameter.

    Args:
        radius, diameter: R and D.
        square: G^2, a bound on E |Z|_2^2 of an answer Z.
        step: a.
        t: the number T of steps.
        rule: ``constant``, or another word for decreasing steps.
    """
    if rule == "constant":
        return radius**2 / (2.0 * step * t) + step * square / 2.0
    return (diameter**2 / (2.0 * step) + step * square) / math.sqrt(t)


def mirror_risk(distance: float, gradient: float, step: float, t: int) -> float:
    """K / (a T) + a G^2 / 2: upper bound on the risk of mirror descent with constant steps a.

    Args:
        distance: K, a bound on the Bregman divergence B(u, centre). B is 1-strongly convex in the
            norm whose dual norm is |.|_*.
        gradient: G with E |Z|_*^2 <= G^2.
        step: a.
        t: the number T of steps.

    On the l_1 ball of radius r, B is the relative entropy of weights on its 2 d corners, with
    K = r^2 ln 2d and G = M_inf.
    """
    return distance / (step * t) + step * gradient**2 / 2.0


# --- at a setting


_lower = partial(lower_bound, quantity="population_risk")
_upper = partial(upper_bound, quantity="population_risk")


def _check_channel(*names: str) -> tuple[Condition, ...]:
    """The conditions that the plan sends one answer a record through one of these channels."""
    return (
        check(
            lambda at: at.settings.get("channel") in names,
            f"is for the {' or '.join(names)} channel",
        ),
        check_settings("channel_bound", "multiplier"),
        check(lambda at: at.settings.get("answers", 1) == 1, "is for one answer a record"),
        check_unregularised,
    )


def _facts(at: Setting) -> tuple[float, float]:
    """L and M."""
    return float(at.settings["channel_bound"]), float(at.settings["multiplier"])


def _gradient(at: Setting) -> float:
    """M_inf or M_1: the norm of an answer, in the units of the subgradients."""
    lipschitz, multiplier = _facts(at)
    return lipschitz * multiplier


def _is_l1_ball(at: Setting) -> bool:
    hull = at.spec.constraint.axis_hull
    return hull is not None and hull.signed


def _check_records(least_of: Callable[[Setting], float]) -> Condition:
    """The condition that n is not far below M^2.

    There the printed bounds would exceed the range of the loss, since no bias is above 1.
    """

    def condition(at: Setting) -> str | None:
        least = least_of(at)
        return None if at.spec.n >= least else f"is proved for n >= {least:.3g}"

    return condition


def _check_multiplier(multiple_of: Callable[[Setting], float]) -> Condition:
    """The condition that M is at least this multiple of L."""

    def condition(at: Setting) -> str | None:
        multiple = multiple_of(at)
        enough = _facts(at)[1] >= multiple * (1.0 - 1e-12)
        return None if enough else f"needs M >= {multiple:g} L"

    return condition


_HOLDS_CUBE = check(
    lambda at: bool(at.spec.constraint.inner_cube), "is for a box, a ball or an l1 ball around 0"
)
_ON_L1_BALL = check(_is_l1_ball, "is for the l1 ball")
_CUBE, _CROSS = (*_check_channel("l_inf"), _HOLDS_CUBE), (*_check_channel("l_1"), _HOLDS_CUBE)
_CORNERS = (*_check_channel("l_inf"), _ON_L1_BALL)
# where the printed forms of Thm 1 and Thm 2 are proved
_PRINTED_1A = (*_CUBE, _check_records(lambda at: LEAST_ASSOUAD * _facts(at)[1] ** 2))
_PRINTED_1B = (
    *_CORNERS,
    _check_records(lambda at: LEAST_FANO * math.log(2.0 * at.spec.p) * _facts(at)[1] ** 2),
)
_PRINTED_2 = (*_CROSS, _check_records(lambda at: LEAST_ASSOUAD * at.spec.p * _facts(at)[1] ** 2))


def _scale_by_inner_cube(at: Setting, value: float) -> float:
    """``value`` times the half side of the largest cube around 0 in the set."""
    radius = at.spec.constraint.inner_cube
    assert radius is not None
    return radius * value


@_lower("DJW12 Thm 1(a)", *_PRINTED_1A)
def printed_cube(at: Setting) -> float:
    """M_inf r d / (163 sqrt n), Theta holds the l_inf ball of radius r."""
    return _scale_by_inner_cube(at, assouad_as_printed(1.0, _gradient(at), at.spec.p, at.spec.n))


@_lower("DJW12 Thm 1(b)", *_PRINTED_1B)
def printed_corners(at: Setting) -> float:
    """r M_inf sqrt(ln 2d) / (17 sqrt n), Theta the l_1 ball of radius r."""
    return fano_as_printed(at.spec.constraint.size, _gradient(at), at.spec.p, at.spec.n)


@_lower("DJW12 Thm 2", *_PRINTED_2)
def printed_cross(at: Setting) -> float:
    """r L sqrt d / (163 sqrt n Delta(gamma)), Theta holds the l_inf ball of radius r."""
    return _scale_by_inner_cube(at, cross_as_printed(1.0, *_facts(at), at.spec.p, at.spec.n))


@_lower("DJW12 Thm 1(a) (sharp)", *_CUBE)
def cube_sharp(at: Setting) -> float:
    """L r d max over delta of delta (1 - TV_n(delta / M)) / 2, about 0.17 M_inf r d / sqrt n."""
    lipschitz, multiplier = _facts(at)
    return _scale_by_inner_cube(at, lipschitz * at.spec.p * corners(at.spec.n, multiplier))


@_lower("DJW12 Thm 1(b) (sharp)", *_CORNERS)
def corners_sharp(at: Setting) -> float:
    """L r max over delta of delta (1 - (n k(delta / M) + ln 2) / ln 2d) / 2."""
    lipschitz, multiplier = _facts(at)
    return at.spec.constraint.size * lipschitz * one_corner(at.spec.n, multiplier, at.spec.p)


@_lower("DJW12 Thm 2 (sharp)", *_CROSS)
def cross_sharp(at: Setting) -> float:
    """L r max over delta of delta (1 - sqrt(1 - rho^2n)) / 2, about 0.135 M_1 r sqrt(d / n)."""
    lipschitz, multiplier = _facts(at)
    return _scale_by_inner_cube(at, lipschitz * cross(at.spec.n, multiplier, at.spec.p))


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
    """The condition that the plan's step is the best constant one, within 1 %."""
    best = _best_step(at)
    return None if abs(at.settings["step"] / best - 1.0) <= 0.01 else f"is for steps of {best:.3g}"


def _best_step(at: Setting) -> float:
    """The constant step that minimises the upper bound."""
    spec, gradient = at.spec, _gradient(at)
    if at.mechanism == "local_mirror_descent":
        log = math.log(2.0 * spec.p)
        return math.sqrt(2.0 * log / spec.n) * spec.constraint.size / gradient
    return _reach(at) / (math.sqrt(_square(at)) * math.sqrt(spec.n))


def _square(at: Setting) -> float:
    """E |Z|_2^2 of an answer Z; the multiplier is a root mean square where lengths vary."""
    return _gradient(at) ** 2 * (at.spec.p if at.settings["channel"] == "l_inf" else 1.0)


def _reach(at: Setting) -> float:
    """The largest distance of a point of the set from its centre."""
    shape = at.spec.constraint
    return shape.radius if shape.inner_cube else shape.diameter


_AVERAGE = check(
    lambda at: at.settings.get("output") == "average",
    "is for the average of the points where answers were asked",
)
_CONSTANT_STEPS = check(
    lambda at: at.settings.get("step_rule") == "constant", "is for constant steps"
)
_ANSWERS = ("l_inf", "l_1", "l_2", "privunit", "privunit_g")
_SGD = (
    check_mechanism("local_sgd"),
    *_check_channel(*_ANSWERS),
    check_settings("step"),
    _AVERAGE,
    check(
        lambda at: at.settings.get("step_rule") in ("constant", "decreasing"),
        "is for its step rules",
    ),
)
_MIRROR = (
    check_mechanism("local_mirror_descent"),
    *_check_channel(*_ANSWERS),
    check_settings("step", "distance", "gradient_norm"),
    _AVERAGE,
    _CONSTANT_STEPS,
)
_ENTROPY = (
    *_MIRROR,
    *_CORNERS,
    check(lambda at: at.settings.get("map") == "entropy", "is for the entropic map"),
)
_BEST_STEPS = (
    check_settings("information"),
    _check_multiplier(lambda at: 2.0),
    check(
        lambda at: at.settings.get("step_rule") == "constant",
        "is for the average of constant steps",
    ),
    _check_best_step,
)


@_lower(
    "DJW12 Cor 1 (lower)",
    *_PRINTED_1B,
    check_settings("information"),
    _check_multiplier(lambda at: 2.0),
)
def corners_by_information(at: Setting) -> float:
    """(sqrt(1/2) / 17) r L sqrt(d ln 2d / (n I*)), M_inf >= 2 L."""
    return math.sqrt(SPREAD_LOW) / FANO * _corner_1(at)


@_upper("DJW12 Cor 1 (upper)", *_ENTROPY, *_BEST_STEPS)
def entropy_by_information(at: Setting) -> float:
    """1.024 r L sqrt(d ln 2d / (n I*)), M_inf >= 2 L, mirror descent with its best step."""
    return math.sqrt(2.0 * SPREAD_HIGH) * _corner_1(at)


@_lower(
    "DJW12 Cor 2 (lower)",
    *_PRINTED_2,
    check_settings("information"),
    _check_multiplier(lambda at: max(2.0, at.spec.p)),
)
def cross_by_information(at: Setting) -> float:
    """(0.683 / 163) r L d / sqrt(n I*), M_1 >= max(2, d) L."""
    return math.sqrt(SPREAD_LOW_L1) / ASSOUAD * _scale_by_inner_cube(at, _corner_2(at, 1.0))


@_upper("DJW12 Cor 2 (upper)", *_SGD, *_check_channel("l_1"), *_BEST_STEPS)
def sgd_by_information(at: Setting) -> float:
    """0.724 r L d / sqrt(n I*), M_1 >= 2 L, SGD with its best step, Theta in [-r, r]^d."""
    return math.sqrt(SPREAD_HIGH) * _corner_2(at, _reach(at) / math.sqrt(at.spec.p))


@_upper("DJW12 SGD", *_SGD)
def local_sgd(at: Setting) -> float:
    """R^2 / (2 a T) + a G^2 / 2, G^2 = E |Z|_2^2: d M_inf^2 or M_1^2; steps a from the centre."""
    across, facts = at.spec.constraint.diameter, at.settings
    return sgd_risk(_reach(at), across, _square(at), facts["step"], at.steps, facts["step_rule"])


@_upper("DJW12 mirror descent", *_MIRROR)
def local_mirror_descent(at: Setting) -> float:
    """K / (a T) + a G^2 / 2; on the l_1 ball with the entropy K = r^2 ln 2d and G = M_inf."""
    facts = at.settings
    return mirror_risk(facts["distance"], facts["gradient_norm"], facts["step"], at.steps)
