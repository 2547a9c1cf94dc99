"""Risk bounds of the combinators: [BST14, Sec. 4 and App. A, B, D] around an inner mechanism.

The inner mechanism's name is in the plan; its own explicit bounds are taken at its plan,
on the set it works on. Proofs: docs/proofs/_upper_bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dperm_cli.bounds import bst14, bst14_upper
from dperm_cli.bounds.base import (
    Bound,
    Setting,
    Theorem,
    check_guarantee,
    check_mechanism,
    check_settings,
    check_strong_convexity,
    find_reason,
    risk_range,
)
from dperm_cli.bounds.bst14_upper import curved_unit, localized_risk, log_delta
from dperm_cli.sets.shared.localized_set import Localised

INNER: tuple[Bound, ...] = tuple(
    bound
    for bound in (*bst14.BOUNDS, *bst14_upper.BOUNDS)
    if bound.kind == "upper" and bound.constant == "explicit"
)


def inner_of(settings: Mapping[str, Any]) -> str | None:
    """The inner mechanism's name, or None where there is none."""
    inner = settings.get("inner")
    return inner.get("name") if isinstance(inner, Mapping) else None


def inner_setting(at: Setting) -> Setting:
    """The inner mechanism's own plan, on its own set."""
    steps, spec = at.steps, at.spec
    if at.mechanism == "localization":
        centre, steps = spec.constraint.centre(), steps - 1
        spec = replace(spec, constraint=Localised(spec.constraint, centre, at.settings["radius"]))
    if at.mechanism == "high_probability":
        steps = (steps - 1) // at.settings["runs"]
    name = inner_of(at.settings) or ""
    return replace(at, spec=spec, mechanism=name, steps=steps, settings=at.settings["inner"])


def inner_risk(at: Setting) -> float | None:
    """The smallest explicit bound on one run of the inner mechanism, if there is one."""
    if inner_of(at.settings) is None:
        return None
    inside = inner_setting(at)
    values = [b.value(inside) for b in INNER if b.applies(inside) is None]
    return min(values) if values else None


def miss_probability(at: Setting) -> float:
    """Probability that C_0 does not hold the minimiser: the first noise is longer than allowed."""
    from scipy.special import gammaincc

    spec, facts = at.spec, at.settings
    error = math.sqrt(2.0 * facts["minimiser_gap"] / (spec.n * spec.strong_convexity))
    length = max(0.0, facts["radius"] - error) / facts["first_noise_scale"]
    if at.kind == "pure":
        return float(gammaincc(spec.p, length))
    return float(gammaincc(spec.p / 2.0, length**2 / 2.0))


def _check_inner_bound(at: Setting, name: str, *allowed: str) -> str | None:
    if check_mechanism(at, name):
        return check_mechanism(at, name)
    inner = inner_of(at.settings)
    if allowed and inner not in allowed:
        return f"is for inner={' or '.join(allowed)}"
    return None if inner_risk(at) is not None else "needs an inner mechanism with a bound"


def _localization_risk(at: Setting) -> float:
    return localized_risk(inner_risk(at) or 0.0, miss_probability(at), risk_range(at))


def _repetition_risk(at: Setting) -> float:
    spec, replaced = at.spec, at.budget.relation == "replace_one"
    moves = spec.oscillation if replaced else spec.variation
    chosen = math.log(at.settings["runs"]) * moves / at.settings["selection_epsilon"]
    return (inner_risk(at) or 0.0) + chosen


def _huberized_risk(at: Setting) -> float:
    return (inner_risk(at) or 0.0) + at.spec.n * (at.settings["width"] or 0.0) / 4.0


def _second_stage(at: Setting, kind: str, name: str) -> str | None:
    other = None if inner_of(at.settings) == name else f"is for inner={name}"
    return find_reason(
        check_mechanism(at, "localization"),
        check_guarantee(at, kind),
        check_strong_convexity(at),
        other,
    )


def _localized_sgd_order(at: Setting) -> float:
    logs = math.sqrt(math.log(at.spec.n)) * math.log(at.spec.n / at.budget.delta) ** 1.5
    return curved_unit(at) * at.spec.p * log_delta(at) * logs


BOUNDS: tuple[Bound, ...] = (
    Theorem(
        "localization Thm 2",
        "inner bound on C_0 + Pr[minimiser not in C_0] n range(l)",
        "upper",
        "explicit",
        lambda at: find_reason(
            _check_inner_bound(at, "localization", "exponential", "noisy_sgd", "noisy_gd"),
            check_strong_convexity(at),
            check_settings(at, "radius", "first_noise_scale", "minimiser_gap"),
        ),
        _localization_risk,
    ),
    Theorem(
        "high_probability Thm 2",
        "inner bound of a run + ln(k) osc / epsilon of the choice",
        "upper",
        "explicit",
        lambda at: find_reason(
            _check_inner_bound(at, "high_probability"),
            check_settings(at, "runs", "selection_epsilon"),
        ),
        _repetition_risk,
    ),
    Theorem(
        "huberized Thm 1",
        "inner bound on the rounded loss + n h / 4",
        "upper",
        "explicit",
        lambda at: _check_inner_bound(at, "huberized"),
        _huberized_risk,
    ),
    Theorem(
        "BST14 Thm 4.3",
        "L^2 p^2 ln(n) / (n Delta epsilon^2)",
        "upper",
        "order",
        lambda at: _second_stage(at, "pure", "exponential"),
        lambda at: curved_unit(at) * at.spec.p**2 * math.log(at.spec.n),
    ),
    Theorem(
        "BST14 Thm B.2",
        "L |C_0| ln^{3/2}(n/delta) sqrt(p ln(1/delta)) / epsilon, "
        "|C_0| = L sqrt(p ln(1/delta) ln(n)) / (n Delta epsilon)",
        "upper",
        "order",
        lambda at: _second_stage(at, "approx", "noisy_sgd"),
        _localized_sgd_order,
    ),
)
