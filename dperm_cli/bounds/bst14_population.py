"""Bounds on the population risk, from those on the empirical risk [BST14, Appendix F].

Risks here are means over records. Statements "with probability 1 - gamma" take gamma = 0.1 and poly
log(1/gamma) as ln(1/gamma).
"""

from __future__ import annotations

import math
from functools import partial

from dperm_cli.bounds import bst14_combined
from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_guarantee,
    check_mechanism,
    check_strong_convexity,
    find_least,
    lipschitz_times_diameter,
    list_bounds,
    risk_range,
    upper_bound,
    upper_order,
)
from dperm_cli.losses.shared.margin_loss import Glm

GAMMA = 0.1
_TAIL = math.log(1.0 / GAMMA)


def stability_gap(epsilon: float, delta: float, spread: float) -> float:
    """Lemma F.5 with a constant: population less empirical risk is at most TV * spread.

    TV = (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) bounds the total variation distance of the
    outputs on neighbours (replace-one). The paper prints, up to a constant,
    L |C| epsilon + |C|^2 delta; the second term should be L |C| delta.

    Args:
        epsilon, delta: the guarantee, epsilon in nats.
        spread: a bound on the range of one record's loss over the set.
    """
    if epsilon > 700.0:
        return spread
    tv = (math.expm1(epsilon) + 2.0 * delta) / (math.exp(epsilon) + 1.0)
    return min(1.0, tv) * spread


def strongly_convex_population(
    excess: float, n: int, lipschitz: float, curvature: float, gamma: float = GAMMA
) -> float:
    """Thm F.1: sqrt(2 L^2 / (n Delta)) sqrt(excess) + 4 L^2 / (gamma Delta n).

    It holds with probability 1 - gamma over the data. ``excess`` is the empirical excess risk,
    summed over records; ``curvature`` is Delta.
    """
    square = lipschitz**2 / (n * curvature)
    return math.sqrt(2.0 * square * excess) + 4.0 * square / gamma


def regularized_population(excess: float, strength: float, diameter: float) -> float:
    """Eq. (17): the excess for l + (Delta/2) |theta|^2, plus Delta |C|^2 / 2, bounds that for l."""
    return excess + strength * diameter**2 / 2.0


def _strongly_convex_unit(at: Setting) -> float:
    """L^2 / (Delta n epsilon gamma)."""
    spec = at.spec
    below = spec.strong_convexity * spec.n * at.budget.epsilon * GAMMA
    return spec.lipschitz_total**2 / below


def _lipschitz_unit(at: Setting) -> float:
    """(L + |C|) |C| / sqrt(n epsilon gamma), as printed: its units assume Delta = 1."""
    diameter = at.spec.constraint.diameter
    top = (at.spec.lipschitz_total + diameter) * diameter
    return top / math.sqrt(at.spec.n * at.budget.epsilon * GAMMA)


def _sampling_unit(at: Setting) -> float:
    """L |C| / sqrt(n)."""
    return lipschitz_times_diameter(at) / math.sqrt(at.spec.n)


def _log_n_delta(at: Setting) -> float:
    return math.log(at.spec.n / at.budget.delta)


def _check_linear_model(kind: str) -> tuple[Condition, ...]:
    """The conditions of Thm F.4: a loss of the margin, and enough records."""
    power = 2.0 if kind == "pure" else 1.0
    return (
        check_guarantee(kind),
        check(lambda at: isinstance(at.spec.form, Glm), "is for losses of the margin"),
        check(
            lambda at: at.spec.n >= at.spec.p**power / at.budget.epsilon**2,
            "needs more records than the private part of the risk asks for",
        ),
    )


def _check_own_epsilon(at: Setting) -> str | None:
    """The condition that epsilon is within a factor 2 of the one for which F.6 is stated."""
    spec = at.spec
    own = math.sqrt(spec.p / spec.n)
    if at.kind == "approx":
        own = spec.p**0.25 * _log_n_delta(at) / math.sqrt(spec.n)
    near = own / 2.0 <= at.budget.epsilon <= 2.0 * own
    return None if near else f"is for epsilon near {own:.3g}"


# explicit bounds on the empirical excess risk, summed over records
EMPIRICAL = [
    *bst14_combined.INNER,
    *(b for b in list_bounds(bst14_combined) if b.constant == "explicit"),
]


@upper_bound(
    "BST14 Lemma F.5 (constants)",
    check(
        lambda at: find_least(EMPIRICAL, at) is not None,
        "needs an explicit bound on the empirical risk",
    ),
    quantity="population_risk",
)
def population(at: Setting) -> float:
    """Empirical bound / n, a share of range(l), and the range of the regulariser.

    The share is (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    It bounds the population risk without the regulariser.
    """
    spec, (epsilon, delta) = at.spec, (at.budget.epsilon, at.budget.delta)
    if at.budget.relation != "replace_one":  # a replacement is a removal and an addition
        epsilon, delta = 2.0 * epsilon, (1.0 + math.exp(min(epsilon, 700.0))) * delta
    whole = risk_range(at)
    regular = whole / spec.n - spec.variation
    gap = stability_gap(epsilon, delta, spec.variation)
    empirical = find_least(EMPIRICAL, at)
    least = whole if empirical is None else min(empirical, whole)
    return least / spec.n + gap + regular


_order = partial(upper_order, quantity="population_risk")

# the mechanisms that the theorems are about, for pure and for (epsilon, delta) guarantees
_PURE = (check_mechanism("localization"), check_guarantee("pure"))
_APPROX = (check_mechanism("noisy_sgd", "localization"), check_guarantee("approx"))


@_order("BST14 Thm F.2(1)", *_PURE, check_strong_convexity)
def strongly_convex_pure(at: Setting) -> float:
    """L^2 p sqrt(ln n poly log(1/gamma)) / (Delta n epsilon gamma)."""
    return _strongly_convex_unit(at) * at.spec.p * math.sqrt(math.log(at.spec.n) * _TAIL)


@_order("BST14 Thm F.2(2)", *_APPROX, check_strong_convexity)
def strongly_convex_approx(at: Setting) -> float:
    """L^2 sqrt(p) ln^2(n/delta) poly log(1/gamma) / (Delta n epsilon gamma)."""
    return _strongly_convex_unit(at) * math.sqrt(at.spec.p) * _log_n_delta(at) ** 2 * _TAIL


@_order("BST14 Thm F.3(1)", *_PURE, check_strong_convexity)
def lipschitz_pure(at: Setting) -> float:
    """sqrt(p) (L + |C|) |C| (ln n poly log(1/gamma))^{1/4} / sqrt(n epsilon gamma)."""
    return _lipschitz_unit(at) * math.sqrt(at.spec.p) * (math.log(at.spec.n) * _TAIL) ** 0.25


@_order("BST14 Thm F.3(2)", *_APPROX, check_strong_convexity)
def lipschitz_approx(at: Setting) -> float:
    """p^{1/4} (L + |C|) |C| ln(n/delta) poly log(1/gamma) / sqrt(n epsilon gamma)."""
    return _lipschitz_unit(at) * at.spec.p**0.25 * _log_n_delta(at) * _TAIL


@_order(
    "BST14 Thm F.4(1)", check_mechanism("localization", "exponential"), *_check_linear_model("pure")
)
def linear_model_pure(at: Setting) -> float:
    """L |C| sqrt(ln(1/gamma)) / sqrt(n), n above (p / epsilon)^2."""
    return _sampling_unit(at) * math.sqrt(_TAIL)


@_order(
    "BST14 Thm F.4(2)", check_mechanism("noisy_sgd", "localization"), *_check_linear_model("approx")
)
def linear_model_approx(at: Setting) -> float:
    """L |C| sqrt(ln(1/gamma)) ln^2(n/delta) / sqrt(n), n above p / epsilon^2."""
    return _sampling_unit(at) * math.sqrt(_TAIL) * _log_n_delta(at) ** 2


@_order(
    "BST14 Thm F.6(1)", check_mechanism("exponential"), check_guarantee("pure"), _check_own_epsilon
)
def own_epsilon_pure(at: Setting) -> float:
    """L |C| sqrt(p / n) at epsilon = sqrt(p / n)."""
    return _sampling_unit(at) * math.sqrt(at.spec.p)


@_order(
    "BST14 Thm F.6(2)", check_mechanism("noisy_sgd"), check_guarantee("approx"), _check_own_epsilon
)
def own_epsilon_approx(at: Setting) -> float:
    """L |C| p^{1/4} ln(n/delta) / sqrt(n) at epsilon = p^{1/4} ln(n/delta) / sqrt(n)."""
    return _sampling_unit(at) * at.spec.p**0.25 * _log_n_delta(at)
