"""From empirical to population risk [BST14, Appendix F]. Risks here are means over records.

Statements "with probability 1 - gamma" take gamma = 0.1 and poly log(1/gamma) as ln(1/gamma).
"""

from __future__ import annotations

import math

from dperm_cli.bounds import bst14_combined
from dperm_cli.bounds.base import (
    Bound,
    Setting,
    Theorem,
    check_guarantee,
    check_mechanism,
    check_strong_convexity,
    find_reason,
    risk_range,
)
from dperm_cli.losses.shared.margin_loss import Glm

GAMMA = 0.1


def stability_gap(epsilon: float, delta: float, spread: float) -> float:
    """Lemma F.5 with a constant: population less empirical risk is at most TV * spread.

    ``spread`` bounds the range of one record's loss over the set; TV = (e^epsilon - 1 + 2 delta) /
    (e^epsilon + 1) bounds the total variation distance of the outputs on neighbours (replace-one).
    Printed, up to a constant: L |C| epsilon + |C|^2 delta, whose second term wants L |C| delta.
    """
    if epsilon > 700.0:
        return spread
    tv = (math.expm1(epsilon) + 2.0 * delta) / (math.exp(epsilon) + 1.0)
    return min(1.0, tv) * spread


def strongly_convex_population(
    excess: float, n: int, lipschitz: float, curvature: float, gamma: float = GAMMA
) -> float:
    """Thm F.1: sqrt(2 L^2 / (n Delta)) sqrt(excess) + 4 L^2 / (gamma Delta n).

    ``excess`` is the empirical one, a sum over records; with probability 1 - gamma over the data.
    """
    square = lipschitz**2 / (n * curvature)
    return math.sqrt(2.0 * square * excess) + 4.0 * square / gamma


def regularized_population(excess: float, strength: float, diameter: float) -> float:
    """Eq. (17): the excess for l is that for l + (Delta/2) |theta|^2 plus Delta |C|^2 / 2."""
    return excess + strength * diameter**2 / 2.0


def _strongly_convex_unit(at: Setting) -> float:
    """L^2 / (Delta n epsilon gamma)."""
    spec = at.spec
    below = spec.strong_convexity * spec.n * at.budget.epsilon * GAMMA
    return spec.lipschitz_total**2 / below


def _lipschitz_unit(at: Setting) -> float:
    """(L + |C|) |C| / sqrt(n epsilon gamma), as printed (units: L Delta |C| at Delta = 1)."""
    diameter = at.spec.constraint.diameter
    top = (at.spec.lipschitz_total + diameter) * diameter
    return top / math.sqrt(at.spec.n * at.budget.epsilon * GAMMA)


def _sampling_unit(at: Setting) -> float:
    """L |C| / sqrt(n)."""
    spec = at.spec
    return spec.lipschitz_total * spec.constraint.diameter / math.sqrt(spec.n)


def _tail() -> float:
    return math.log(1.0 / GAMMA)


def _log_n_delta(at: Setting) -> float:
    return math.log(at.spec.n / at.budget.delta)


def _glm(at: Setting, kind: str) -> str | None:
    power = 2.0 if kind == "pure" else 1.0
    enough = at.spec.n >= at.spec.p**power / at.budget.epsilon**2
    return find_reason(
        check_guarantee(at, kind),
        None if isinstance(at.spec.form, Glm) else "is for losses of the margin",
        None if enough else "needs more records than the private part of the risk asks for",
    )


def _own_epsilon(at: Setting, kind: str) -> str | None:
    """F.6 holds at an epsilon of its own, read as within a factor 2."""
    spec = at.spec
    own = math.sqrt(spec.p / spec.n)
    if kind == "approx" and at.kind == "approx":
        own = spec.p**0.25 * _log_n_delta(at) / math.sqrt(spec.n)
    near = own / 2.0 <= at.budget.epsilon <= 2.0 * own
    return find_reason(
        check_guarantee(at, kind), None if near else f"is for epsilon near {own:.3g}"
    )


EMPIRICAL: tuple[Bound, ...] = (
    *bst14_combined.INNER,
    *(bound for bound in bst14_combined.BOUNDS if bound.constant == "explicit"),
)


def _empirical(at: Setting) -> list[float]:
    """The explicit bounds on the empirical excess risk, a sum, that apply."""
    return [bound.value(at) for bound in EMPIRICAL if bound.applies(at) is None]


def _population_risk(at: Setting) -> float:
    """Empirical bound / n + stability gap + the regulariser's range, for the risk without it."""
    spec, (epsilon, delta) = at.spec, (at.budget.epsilon, at.budget.delta)
    if at.budget.relation != "replace_one":  # a replacement is a removal and an addition
        epsilon, delta = 2.0 * epsilon, (1.0 + math.exp(min(epsilon, 700.0))) * delta
    whole = risk_range(at)
    regular = whole / spec.n - spec.variation
    gap = stability_gap(epsilon, delta, spec.variation)
    return min([*_empirical(at), whole]) / spec.n + gap + regular


def _upper(name: str, statement: str, covers, formula) -> Theorem:
    return Theorem(
        f"BST14 Thm {name}", statement, "upper", "order", covers, formula, "population_risk"
    )


PURE, APPROX = ("localization",), ("noisy_sgd", "localization")

BOUNDS: tuple[Bound, ...] = (
    Theorem(
        "BST14 Lemma F.5 (constants)",
        "empirical bound / n + (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) range(l) + range of "
        "the regulariser",
        "upper",
        "explicit",
        lambda at: None if _empirical(at) else "needs an explicit bound on the empirical risk",
        _population_risk,
        "population_risk",
    ),
    _upper(
        "F.2(1)",
        "L^2 p sqrt(ln n poly log(1/gamma)) / (Delta n epsilon gamma)",
        lambda at: find_reason(
            check_mechanism(at, *PURE), check_guarantee(at, "pure"), check_strong_convexity(at)
        ),
        lambda at: _strongly_convex_unit(at) * at.spec.p * math.sqrt(math.log(at.spec.n) * _tail()),
    ),
    _upper(
        "F.2(2)",
        "L^2 sqrt(p) ln^2(n/delta) poly log(1/gamma) / (Delta n epsilon gamma)",
        lambda at: find_reason(
            check_mechanism(at, *APPROX), check_guarantee(at, "approx"), check_strong_convexity(at)
        ),
        lambda at: (
            _strongly_convex_unit(at) * math.sqrt(at.spec.p) * _log_n_delta(at) ** 2 * _tail()
        ),
    ),
    _upper(
        "F.3(1)",
        "sqrt(p) (L + |C|) |C| (ln n poly log(1/gamma))^{1/4} / sqrt(n epsilon gamma)",
        lambda at: find_reason(
            check_mechanism(at, *PURE), check_guarantee(at, "pure"), check_strong_convexity(at)
        ),
        lambda at: (
            _lipschitz_unit(at) * math.sqrt(at.spec.p) * (math.log(at.spec.n) * _tail()) ** 0.25
        ),
    ),
    _upper(
        "F.3(2)",
        "p^{1/4} (L + |C|) |C| ln(n/delta) poly log(1/gamma) / sqrt(n epsilon gamma)",
        lambda at: find_reason(
            check_mechanism(at, *APPROX), check_guarantee(at, "approx"), check_strong_convexity(at)
        ),
        lambda at: _lipschitz_unit(at) * at.spec.p**0.25 * _log_n_delta(at) * _tail(),
    ),
    _upper(
        "F.4(1)",
        "L |C| sqrt(ln(1/gamma)) / sqrt(n), n above (p / epsilon)^2",
        lambda at: find_reason(check_mechanism(at, *PURE, "exponential"), _glm(at, "pure")),
        lambda at: _sampling_unit(at) * math.sqrt(_tail()),
    ),
    _upper(
        "F.4(2)",
        "L |C| sqrt(ln(1/gamma)) ln^2(n/delta) / sqrt(n), n above p / epsilon^2",
        lambda at: find_reason(check_mechanism(at, *APPROX), _glm(at, "approx")),
        lambda at: _sampling_unit(at) * math.sqrt(_tail()) * _log_n_delta(at) ** 2,
    ),
    _upper(
        "F.6(1)",
        "L |C| sqrt(p / n) at epsilon = sqrt(p / n)",
        lambda at: find_reason(check_mechanism(at, "exponential"), _own_epsilon(at, "pure")),
        lambda at: _sampling_unit(at) * math.sqrt(at.spec.p),
    ),
    _upper(
        "F.6(2)",
        "L |C| p^{1/4} ln(n/delta) / sqrt(n) at epsilon = p^{1/4} ln(n/delta) / sqrt(n)",
        lambda at: find_reason(check_mechanism(at, "noisy_sgd"), _own_epsilon(at, "approx")),
        lambda at: _sampling_unit(at) * at.spec.p**0.25 * _log_n_delta(at),
    ),
)
