"""Population risk of one pass of noisy SGD over disjoint batches (docs/proofs/one_pass_sgd.md).

Risks are means over records, for independent records from one distribution: each is used once, so
that every step sees fresh data and the bound is on the risk for that distribution. None is
claimed for the empirical risk of the records at hand.
"""

from __future__ import annotations

import math

from dperm_cli.bounds.base import (
    Bound,
    Setting,
    Theorem,
    check_mechanism,
    check_settings,
    find_reason,
)


def convex(diameter: float, gradient: float, batches: int) -> float:
    """D G / sqrt(k): mean of theta_1 .. theta_k, steps D / (G sqrt(k)), E |g_t|^2 <= G^2."""
    return diameter * gradient / math.sqrt(batches)


def strongly_convex(curvature: float, gradient: float, batches: int) -> float:
    """G^2 (1 + ln k) / (2 Delta k): mean of theta_1 .. theta_k, steps 1 / (Delta t)."""
    return gradient**2 * (1.0 + math.log(batches)) / (2.0 * curvature * batches)


def _covers(at: Setting, rate: str) -> str | None:
    return find_reason(
        check_mechanism(at, "one_pass_sgd"),
        check_settings(at, "batches", "gradient_bound"),
        None if at.settings.get("learning_rate") == rate else f"is for the {rate} learning rate",
        None if at.settings.get("output") == "average" else "is for the mean of the iterates",
        None if at.budget.relation == "replace_one" else "is for batches by place (replace_one)",
    )


def _facts(at: Setting) -> tuple[float, int]:
    return at.settings["gradient_bound"], at.settings["batches"]


BOUNDS: tuple[Bound, ...] = (
    Theorem(
        "one_pass_sgd Thm 2",
        "|C| G / sqrt(k), G^2 = L^2 + E|b|^2 / m^2, k batches of m records",
        "upper",
        "explicit",
        lambda at: _covers(at, "convex"),
        lambda at: convex(at.spec.constraint.diameter, *_facts(at)),
        "population_risk",
        "dperm",
    ),
    Theorem(
        "one_pass_sgd Thm 3",
        "G^2 (1 + ln k) / (2 Delta k), G^2 = L^2 + E|b|^2 / m^2, k batches of m records",
        "upper",
        "explicit",
        lambda at: _covers(at, "strongly_convex"),
        lambda at: strongly_convex(at.spec.strong_convexity, *_facts(at)),
        "population_risk",
        "dperm",
    ),
)
