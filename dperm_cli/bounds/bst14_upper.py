"""Risk bounds of the other mechanisms of [BST14]: Sections 3 and 4, Appendices B and E.

The explicit bounds are proved in docs/proofs/_upper_bounds.md, and hold for the exponent, noise and
regulariser of the plan. The others are the orders of the theorems, with constants taken as one.
|C| is the diameter, L one record's Lipschitz constant, Delta one record's strong convexity.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_guarantee,
    check_mechanism,
    check_settings,
    check_smoothness,
    check_strong_convexity,
    lipschitz_times_diameter,
    upper_bound,
    upper_order,
)


def exponential_risk(p: int, exponent: float, quadratic: float = 0.0, distance: float = 0.0):
    """(p + quadratic) / c >= E [F - F*] under exp(-c F - q), q from 0 to ``quadratic``.

    For convex f, t^p times the integral of exp(-t f) grows with t, so that E f - f* <= p under
    exp(-f). A law within ``distance`` of it in sup |log ratio| costs a factor e^distance.
    """
    return math.exp(distance) * (p + quadratic) / exponent


def paper_quantile(p: int, exponent: float, t: float) -> float:
    """[BST14, Thm 3.2]: F - F* exceeds this with probability e^-t at most, under exp(-c F).

    (4 / c) ((p + 1) ln 3 + t), the printed (8 L |C| / epsilon)(..) at c = epsilon / (2 L |C|).
    """
    return 4.0 / exponent * ((p + 1) * math.log(3.0) + t)


def paper_exponential_risk(p: int, exponent: float) -> float:
    """(4 / c) ((p + 1) ln 3 + 1), the tail of [BST14, Thm 3.2] integrated over t."""
    return paper_quantile(p, exponent, 1.0)


def net_risk(points: float, exponent: float, discretisation: float, distance: float = 0.0) -> float:
    """e^distance ln(points) / c + discretisation >= E [F - F*] under exp(-c F) on a finite net.

    Args:
        points: the number of points of the net.
        exponent: c.
        discretisation: a bound on the least value of F on the net, less F*.
        distance: sup |log ratio| between the law that is drawn from and exp(-c F).
    """
    return math.exp(distance) * math.log(points) / exponent + discretisation


def gamma_moments(p: int, scale: float) -> tuple[float, float]:
    """E |b| and E |b|^2 for a norm of law Gamma(p, scale)."""
    return p * scale, p * (p + 1.0) * scale**2


def gaussian_moments(p: int, scale: float) -> tuple[float, float]:
    """E |b| and E |b|^2 for N(0, scale^2 I)."""
    log = math.lgamma((p + 1) / 2.0) - math.lgamma(p / 2.0)
    return scale * math.sqrt(2.0) * math.exp(log), p * scale**2


def perturbed_risk(moment: float, strength: float, added: float, reach: float) -> float:
    """E |b|^2 / (2 strength) + (added / 2) reach^2: upper bound on the expected excess risk of the
    minimiser of F + (added / 2) |theta - c|^2 + <b, theta>.

    That sum is strength-strongly convex, and ``reach`` bounds the distance of the minimiser of F
    from c. ``moment`` is E |b|^2.
    """
    return moment / (2.0 * strength) + added * reach**2 / 2.0


def localized_risk(inner: float, failure: float, whole: float) -> float:
    """[BST14, Lemma 4.2]: inner + failure * whole.

    Args:
        inner: a bound on the risk of the second stage on the smaller set C_0.
        failure: the probability that C_0 does not contain the minimiser.
        whole: a bound on every risk, n L |C|.
    """
    return inner + failure * whole


# --- the formulas at a setting


def _law(at: Setting) -> dict[str, Any]:
    """The settings of the law that the plan draws from: those of its sampler, if it has one."""
    found = at.settings.get("sampler")
    return dict(found) if isinstance(found, dict) else dict(at.settings)


def _check_draw(*names: str, net: bool = False) -> tuple[Condition, ...]:
    """The conditions of a draw from a law whose exponent and distance are in the plan.

    ``net`` says whether the law is on a finite net or on the whole set: a bound that is proved for
    one of them does not hold for the other.
    """

    def has_exponent(at: Setting) -> bool:
        exponent = _law(at).get("exponent")
        return isinstance(exponent, int | float) and exponent > 0

    return (
        check_mechanism(*names),
        check(has_exponent, "needs the plan's exponent"),
        check(
            lambda at: isinstance(_law(at).get("dist_inf"), int | float),
            "needs a sampler with a certificate",
        ),
        check(
            lambda at: ("discretisation_risk" in _law(at)) == net,
            "is for a law on a finite net" if net else "is for a law on the whole set",
        ),
    )


@upper_bound("exponential Thm 2", *_check_draw("exponential", "regularized_exponential"))
def exponential(at: Setting) -> float:
    """(p + kappa R^2 / 2) / c, exp(-c F - (kappa / 2) |theta|^2) sampled to sup |log ratio| 0."""
    law, radius = _law(at), at.spec.constraint.radius
    quadratic = law.get("kappa", 0.0) * radius**2 / 2.0
    return exponential_risk(at.spec.p, law["exponent"], quadratic, law["dist_inf"])


@upper_bound("BST14 Thm 3.2 (constants)", *_check_draw("exponential"))
def exponential_as_printed(at: Setting) -> float:
    """(8 L |C| / epsilon) ((p + 1) ln 3 + 1), at the exponent used."""
    law = _law(at)
    return paper_exponential_risk(at.spec.p, law["exponent"]) * math.exp(law["dist_inf"])


@upper_bound("exponential net", *_check_draw("exponential", net=True))
def exponential_on_net(at: Setting) -> float:
    """ln(N) / c + n L covering, exp(-c F) on a net of N points."""
    law = _law(at)
    facts = law["points_at_most"], law["exponent"], law["discretisation_risk"]
    return net_risk(*facts, law["dist_inf"])


@upper_order("BST14 Thm 3.2", *_check_draw("exponential"))
def exponential_order(at: Setting) -> float:
    """L |C| p / epsilon."""
    return lipschitz_times_diameter(at) * at.spec.p / at.budget.epsilon


def noise_of(at: Setting) -> str:
    """``gamma`` or ``gaussian``, as the plan says; gamma where it does not say."""
    return str(at.settings.get("noise", "gamma"))


def _moments(at: Setting) -> tuple[float, float]:
    """E |b| and E |b|^2 of the noise vector b.

    Gamma noise is assumed where a plan does not say: its moments are the larger ones.
    """
    return (gaussian_moments if noise_of(at) == "gaussian" else gamma_moments)(
        at.spec.p, at.noise_scale
    )


def _is_minimiser_interior(at: Setting) -> bool:
    """Whether every data set's minimiser is that over all of R^p: |theta*| <= L / ridge."""
    spec = at.spec
    ball = spec.constraint.is_ball and spec.lasso == 0
    return ball and spec.lipschitz <= spec.ridge * spec.constraint.radius


@upper_bound(
    "output_perturbation Thm 2", check_mechanism("output_perturbation"), check_strong_convexity
)
def output_perturbation(at: Setting) -> float:
    """n L E |b|, or n (beta + Delta) E |b|^2 / 2 where the minimiser cannot be on the boundary."""
    spec, (mean, square) = at.spec, _moments(at)
    off = math.sqrt(2.0 * at.settings.get("minimiser_gap", 0.0) / (spec.n * spec.strong_convexity))
    value = spec.n * spec.lipschitz_total * (mean + off)
    if spec.smoothness is not None and _is_minimiser_interior(at):
        bend = spec.n * (spec.smoothness + spec.ridge)
        value = min(value, bend / 2.0 * (square + 2.0 * off * mean + off**2))
    return value


@upper_bound(
    "objective_perturbation Thm 2",
    check_mechanism("objective_perturbation", "approximate_minima_perturbation"),
    check_settings("strength", "added", "distance", "second_scale"),
)
def objective_perturbation(at: Setting) -> float:
    """E|b|^2 / (2 Lam) + (added / 2) reach^2 + n L (distance + E|b2|)."""
    spec, facts = at.spec, at.settings
    reach = spec.constraint.radius + float(np.linalg.norm(spec.constraint.centre()))
    value = perturbed_risk(_moments(at)[1], facts["strength"], facts["added"], reach)
    off = facts["distance"] + _moments(replace(at, noise_scale=facts["second_scale"]))[0]
    return value + spec.n * spec.lipschitz_total * off


# Each order of App. E is for one kind of noise. Gamma noise serves under either guarantee.
_GAMMA = (
    check_mechanism("objective_perturbation"),
    check(lambda at: noise_of(at) == "gamma", "is for gamma noise"),
    check_smoothness,
)
_GAUSSIAN = (
    check_mechanism("objective_perturbation"),
    check(lambda at: noise_of(at) == "gaussian", "is for gaussian noise"),
    check_guarantee("approx"),
    check_smoothness,
)


@upper_order("BST14 Thm E.1(1)", *_GAMMA)
def objective_order(at: Setting) -> float:
    """L |C| p / epsilon."""
    return lipschitz_times_diameter(at) * at.spec.p / at.budget.epsilon


@upper_order("BST14 Thm E.1(2)", *_GAUSSIAN)
def objective_order_gaussian(at: Setting) -> float:
    """L |C| sqrt(p ln(1/delta)) / epsilon."""
    return lipschitz_times_diameter(at) * math.sqrt(at.spec.p * log_delta(at)) / at.budget.epsilon


@upper_order("BST14 Thm E.2(1)", *_GAMMA, check_strong_convexity)
def curved_objective_order(at: Setting) -> float:
    """L^2 p^2 / (n Delta epsilon^2)."""
    return curved_unit(at) * at.spec.p**2


@upper_order("BST14 Thm E.2(2)", *_GAUSSIAN, check_strong_convexity)
def curved_objective_order_gaussian(at: Setting) -> float:
    """L^2 p ln(1/delta) / (n Delta epsilon^2)."""
    return curved_unit(at) * at.spec.p * log_delta(at)


def curved_unit(at: Setting) -> float:
    """L^2 / (n Delta epsilon^2)."""
    spec = at.spec
    bend = spec.n * spec.strong_convexity * at.budget.epsilon**2
    return spec.lipschitz_total**2 / bend


def log_delta(at: Setting) -> float:
    """ln(1/delta)."""
    return math.log(1.0 / at.budget.delta)
