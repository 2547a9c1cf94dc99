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
    Condition,
    Setting,
    check,
    check_guarantee,
    check_mechanism,
    check_settings,
    check_strong_convexity,
    find_least,
    list_bounds,
    risk_range,
    upper_bound,
    upper_order,
)
from dperm_cli.bounds.bst14_upper import curved_unit, localized_risk, log_delta
from dperm_cli.sets.shared.localized_set import Localised

INNER = [b for b in list_bounds(bst14, bst14_upper) if b.constant == "explicit"]


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
    return None if inner_of(at.settings) is None else find_least(INNER, inner_setting(at))


def miss_probability(at: Setting) -> float:
    """Probability that C_0 does not hold the minimiser: the first noise is longer than allowed."""
    from scipy.special import gammaincc

    spec, facts = at.spec, at.settings
    error = math.sqrt(2.0 * facts["minimiser_gap"] / (spec.n * spec.strong_convexity))
    length = max(0.0, facts["radius"] - error) / facts["first_noise_scale"]
    if at.kind == "pure":
        return float(gammaincc(spec.p, length))
    return float(gammaincc(spec.p / 2.0, length**2 / 2.0))


_check_inner_bound = check(
    lambda at: inner_risk(at) is not None, "needs an inner mechanism with a bound"
)


def _check_inner(*names: str) -> Condition:
    """The condition that the inner mechanism is one of these."""
    return check(lambda at: inner_of(at.settings) in names, f"is for inner={' or '.join(names)}")


@upper_bound(
    "localization Thm 2",
    check_mechanism("localization"),
    _check_inner("exponential", "noisy_sgd", "noisy_gd"),
    _check_inner_bound,
    check_strong_convexity,
    check_settings("radius", "first_noise_scale", "minimiser_gap"),
)
def localization(at: Setting) -> float:
    """Inner bound on C_0 + Pr[minimiser not in C_0] n range(l)."""
    return localized_risk(inner_risk(at) or 0.0, miss_probability(at), risk_range(at))


@upper_bound(
    "high_probability Thm 2",
    check_mechanism("high_probability"),
    _check_inner_bound,
    check_settings("runs", "selection_epsilon"),
)
def high_probability(at: Setting) -> float:
    """Inner bound of a run + ln(k) osc / epsilon of the choice."""
    spec, replaced = at.spec, at.budget.relation == "replace_one"
    moves = spec.oscillation if replaced else spec.variation
    chosen = math.log(at.settings["runs"]) * moves / at.settings["selection_epsilon"]
    return (inner_risk(at) or 0.0) + chosen


@upper_bound("huberized Thm 1", check_mechanism("huberized"), _check_inner_bound)
def huberized_risk(at: Setting) -> float:
    """Inner bound on the rounded loss + n h / 4."""
    return (inner_risk(at) or 0.0) + at.spec.n * (at.settings["width"] or 0.0) / 4.0


def _check_stages(kind: str, inner: str) -> tuple[Condition, ...]:
    """The conditions of a localization around this mechanism, under this kind of guarantee."""
    return (
        check_mechanism("localization"),
        check_guarantee(kind),
        check_strong_convexity,
        _check_inner(inner),
    )


@upper_order("BST14 Thm 4.3", *_check_stages("pure", "exponential"))
def localized_exponential_order(at: Setting) -> float:
    """L^2 p^2 ln(n) / (n Delta epsilon^2)."""
    return curved_unit(at) * at.spec.p**2 * math.log(at.spec.n)


@upper_order("BST14 Thm B.2", *_check_stages("approx", "noisy_sgd"))
def localized_sgd_order(at: Setting) -> float:
    """L |C_0| ln^{3/2}(n/delta) sqrt(p ln(1/delta)) / epsilon, the diameter of C_0 being

    |C_0| = L sqrt(p ln(1/delta) ln(n)) / (n Delta epsilon).
    """
    logs = math.sqrt(math.log(at.spec.n)) * math.log(at.spec.n / at.budget.delta) ** 1.5
    return curved_unit(at) * at.spec.p * log_delta(at) * logs
