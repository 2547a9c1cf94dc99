"""Risk bounds of the other mechanisms of [BST14]: Sections 3 and 4, Appendices B and E.

The explicit ones are proved in docs/proofs/_upper_bounds.md, and hold for the plan at hand: its
exponent, its noise, its regulariser. The others are the theorems' orders, constants taken as one.
|C| is the diameter, L one record's Lipschitz constant, Delta one record's strong convexity.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dperm_cli.bounds.base import (
    Bound,
    Setting,
    Theorem,
    check_guarantee,
    check_mechanism,
    check_settings,
    check_smoothness,
    check_strong_convexity,
    find_reason,
)

EXPONENTIAL = ("exponential", "regularized_exponential")
PERTURBED = ("objective_perturbation", "approximate_minima_perturbation")


def exponential_risk(p: int, exponent: float, quadratic: float = 0.0, distance: float = 0.0):
    """(p + quadratic) / c >= E [F - F*] under exp(-c F - q), q from 0 to ``quadratic``.

    For convex f, t^p times the integral of exp(-t f) grows with t, so that E f - f* <= p under
    exp(-f). A law within ``distance`` of it in sup |log ratio| costs a factor e^distance.
    """
    return math.exp(distance) * (p + quadratic) / exponent


def exponential_quantile(p: int, exponent: float, failure: float, distance: float = 0.0) -> float:
    """What F - F* exceeds with probability ``failure`` at most, under exp(-c F).

    Pr[c (F - F*) >= x] <= (x / p)^p e^{p - x} for x >= p, which is below ``failure`` at the x
    returned (divided by c): p + sqrt(2 p l) + l <= x with l = ln(1 / failure) + distance.
    """
    level = math.log(1.0 / failure) + distance
    low, high = float(p), p + math.sqrt(2.0 * p * level) + level + 1.0
    while p * math.log(high / p) + p - high > -level:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        enough = p * math.log(middle / p) + p - middle <= -level
        low, high = (low, middle) if enough else (middle, high)
    return high / exponent


def paper_quantile(p: int, exponent: float, t: float) -> float:
    """[BST14, Thm 3.2]: F - F* exceeds this with probability e^-t at most, under exp(-c F).

    (4 / c) ((p + 1) ln 3 + t), the printed (8 L |C| / epsilon)(..) at c = epsilon / (2 L |C|).
    """
    return 4.0 / exponent * ((p + 1) * math.log(3.0) + t)


def paper_exponential_risk(p: int, exponent: float) -> float:
    """(4 / c) ((p + 1) ln 3 + 1), the tail of [BST14, Thm 3.2] integrated over t."""
    return paper_quantile(p, exponent, 1.0)


def net_risk(points: float, exponent: float, discretisation: float, distance: float = 0.0) -> float:
    """e^distance ln(points) / c + discretisation >= E [F - F*] under exp(-c F) on so many points.

    ``discretisation`` bounds how much more than F* the least value of F on the net is.
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
    """E |b|^2 / (2 strength) + (added / 2) reach^2 >= E excess of a perturbed minimiser.

    The minimiser of F + (added / 2) |theta - c|^2 + <b, theta>, that sum being strength-strongly
    convex, and ``reach`` >= the distance of the minimiser of F to c.
    """
    return moment / (2.0 * strength) + added * reach**2 / 2.0


def localized_risk(inner: float, failure: float, whole: float) -> float:
    """[BST14, Lemma 4.2]: inner + failure * whole.

    ``inner`` bounds the risk of the second stage on the set C_0, which misses the minimiser with
    probability ``failure``; ``whole`` is what no risk exceeds, n L |C|.
    """
    return inner + failure * whole


# --- the formulas at a setting


def _law(at: Setting) -> dict[str, Any]:
    found = at.settings.get("sampler")
    return dict(found) if isinstance(found, dict) else dict(at.settings)


def _check_draw(at: Setting, *names: str, net: bool = False) -> str | None:
    """A reason unless this is a draw from a law whose exponent and distance are in the plan.

    ``net`` says whether that law lives on a finite net or on the whole set: what is proved of the
    one does not hold on the other.
    """
    law = _law(at)
    other = None
    if ("discretisation_risk" in law) != net:
        other = "is for a law on a finite net" if net else "is for a law on the whole set"
    numbers = isinstance(law.get("exponent"), int | float) and law.get("exponent", 0.0) > 0
    proved = isinstance(law.get("dist_inf"), int | float)
    return find_reason(
        check_mechanism(at, *names),
        None if numbers else "needs the plan's exponent",
        None if proved else "needs a sampler with a certificate",
        other,
    )


def _exponential(at: Setting) -> float:
    law, radius = _law(at), at.spec.constraint.radius
    quadratic = law.get("kappa", 0.0) * radius**2 / 2.0
    return exponential_risk(at.spec.p, law["exponent"], quadratic, law["dist_inf"])


def _exponential_as_printed(at: Setting) -> float:
    law = _law(at)
    return paper_exponential_risk(at.spec.p, law["exponent"]) * math.exp(law["dist_inf"])


def _on_net(at: Setting) -> float:
    law = _law(at)
    facts = law["points_at_most"], law["exponent"], law["discretisation_risk"]
    return net_risk(*facts, law["dist_inf"])


def noise_of(at: Setting) -> str:
    """``gamma`` or ``gaussian``, as the plan says; gamma where it does not say."""
    return str(at.settings.get("noise", "gamma"))


def _moments(at: Setting) -> tuple[float, float]:
    """Of the noise vector; that of a Gamma norm where a plan does not say, which is more."""
    return (gaussian_moments if noise_of(at) == "gaussian" else gamma_moments)(
        at.spec.p, at.noise_scale
    )


def _interior(at: Setting) -> bool:
    """Whether every data set's minimiser is that over all of R^p: |theta*| <= L / ridge."""
    spec = at.spec
    ball = spec.constraint.is_ball and spec.lasso == 0
    return ball and spec.lipschitz <= spec.ridge * spec.constraint.radius


def _output(at: Setting) -> float:
    """n L E |b|, or n (beta + Delta) E |b|^2 / 2 where the minimiser cannot be on the boundary."""
    spec, (mean, square) = at.spec, _moments(at)
    off = math.sqrt(2.0 * at.settings.get("minimiser_gap", 0.0) / (spec.n * spec.strong_convexity))
    value = spec.n * spec.lipschitz_total * (mean + off)
    if spec.smoothness is not None and _interior(at):
        bend = spec.n * (spec.smoothness + spec.ridge)
        value = min(value, bend / 2.0 * (square + 2.0 * off * mean + off**2))
    return value


def _objective(at: Setting) -> float:
    spec, facts = at.spec, at.settings
    reach = spec.constraint.radius + float(np.linalg.norm(spec.constraint.centre()))
    value = perturbed_risk(_moments(at)[1], facts["strength"], facts["added"], reach)
    off = facts["distance"] + _moments(replace(at, noise_scale=facts["second_scale"]))[0]
    return value + spec.n * spec.lipschitz_total * off


def _unit(at: Setting) -> float:
    return at.spec.lipschitz_total * at.spec.constraint.diameter


def curved_unit(at: Setting) -> float:
    """L^2 / (n Delta epsilon^2)."""
    spec = at.spec
    bend = spec.n * spec.strong_convexity * at.budget.epsilon**2
    return spec.lipschitz_total**2 / bend


def log_delta(at: Setting) -> float:
    """ln(1/delta)."""
    return math.log(1.0 / at.budget.delta)


_STRENGTHS = ("strength", "added", "distance", "second_scale")


def _objective_covers(at: Setting, noise: str, curved: bool) -> str | None:
    """The orders of App. E are of a noise, whichever guarantee is in force."""
    return find_reason(
        check_mechanism(at, "objective_perturbation"),
        None if noise_of(at) == noise else f"is for {noise} noise",
        check_guarantee(at, "approx") if noise == "gaussian" else None,
        check_smoothness(at),
        check_strong_convexity(at) if curved else None,
    )


BOUNDS: tuple[Bound, ...] = (
    Theorem(
        "exponential Thm 2",
        "(p + kappa R^2 / 2) / c, exp(-c F - (kappa / 2) |theta|^2) sampled to sup |log ratio| 0",
        "upper",
        "explicit",
        lambda at: _check_draw(at, *EXPONENTIAL),
        _exponential,
        paper="dperm",
    ),
    Theorem(
        "BST14 Thm 3.2 (constants)",
        "(8 L |C| / epsilon) ((p + 1) ln 3 + 1), at the exponent used",
        "upper",
        "explicit",
        lambda at: _check_draw(at, "exponential"),
        _exponential_as_printed,
    ),
    Theorem(
        "exponential net",
        "ln(N) / c + n L covering, exp(-c F) on a net of N points",
        "upper",
        "explicit",
        lambda at: _check_draw(at, "exponential", net=True),
        _on_net,
        paper="dperm",
    ),
    Theorem(
        "output_perturbation Thm 2",
        "n L E|b|; n (beta + Delta) E|b|^2 / 2 if no minimiser is on the boundary",
        "upper",
        "explicit",
        lambda at: find_reason(
            check_mechanism(at, "output_perturbation"), check_strong_convexity(at)
        ),
        _output,
        paper="dperm",
    ),
    Theorem(
        "objective_perturbation Thm 2",
        "E|b|^2 / (2 Lam) + (added / 2) reach^2 + n L (distance + E|b2|)",
        "upper",
        "explicit",
        lambda at: find_reason(check_mechanism(at, *PERTURBED), check_settings(at, *_STRENGTHS)),
        _objective,
        paper="dperm",
    ),
    Theorem(
        "BST14 Thm 3.2",
        "L |C| p / epsilon",
        "upper",
        "order",
        lambda at: _check_draw(at, "exponential"),
        lambda at: _unit(at) * at.spec.p / at.budget.epsilon,
    ),
    Theorem(
        "BST14 Thm E.1(1)",
        "L |C| p / epsilon",
        "upper",
        "order",
        lambda at: _objective_covers(at, "gamma", False),
        lambda at: _unit(at) * at.spec.p / at.budget.epsilon,
    ),
    Theorem(
        "BST14 Thm E.1(2)",
        "L |C| sqrt(p ln(1/delta)) / epsilon",
        "upper",
        "order",
        lambda at: _objective_covers(at, "gaussian", False),
        lambda at: _unit(at) * math.sqrt(at.spec.p * log_delta(at)) / at.budget.epsilon,
    ),
    Theorem(
        "BST14 Thm E.2(1)",
        "L^2 p^2 / (n Delta epsilon^2)",
        "upper",
        "order",
        lambda at: _objective_covers(at, "gamma", True),
        lambda at: curved_unit(at) * at.spec.p**2,
    ),
    Theorem(
        "BST14 Thm E.2(2)",
        "L^2 p ln(1/delta) / (n Delta epsilon^2)",
        "upper",
        "order",
        lambda at: _objective_covers(at, "gaussian", True),
        lambda at: curved_unit(at) * at.spec.p * log_delta(at),
    ),
)
