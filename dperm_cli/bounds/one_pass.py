"""Population risk of one pass of noisy SGD over disjoint batches (docs/proofs/one_pass_sgd.md).

Risks are means over records, for independent records from one distribution: each is used once, so
that every step sees fresh data and the bound is on the risk for that distribution. None is
claimed for the empirical risk of the records at hand.
"""

from __future__ import annotations

import math

from dperm_cli.bounds.base import (
    Condition,
    Setting,
    check,
    check_mechanism,
    check_settings,
    upper_bound,
)


def convex(diameter: float, gradient: float, batches: int) -> float:
    """D G / sqrt(k): mean of theta_1 .. theta_k, steps D / (G sqrt(k)), E |g_t|^2 <= G^2."""
    return diameter * gradient / math.sqrt(batches)


def strongly_convex(curvature: float, gradient: float, batches: int) -> float:
    """G^2 (1 + ln k) / (2 Delta k): mean of theta_1 .. theta_k, steps 1 / (Delta t)."""
    return gradient**2 * (1.0 + math.log(batches)) / (2.0 * curvature * batches)


def _check_pass(rate: str) -> tuple[Condition, ...]:
    """The conditions of one pass with this learning rate, whose batches are by place."""
    return (
        check_mechanism("one_pass_sgd"),
        check_settings("batches", "gradient_bound"),
        check(
            lambda at: at.settings.get("learning_rate") == rate, f"is for the {rate} learning rate"
        ),
        check(lambda at: at.settings.get("output") == "average", "is for the mean of the iterates"),
        check(
            lambda at: at.budget.relation == "replace_one",
            "is for batches by place (replace_one)",
        ),
    )


def _facts(at: Setting) -> tuple[float, int]:
    return at.settings["gradient_bound"], at.settings["batches"]


@upper_bound("one_pass_sgd Thm 2", *_check_pass("convex"), quantity="population_risk")
def one_pass_convex(at: Setting) -> float:
    """|C| G / sqrt(k), G^2 = L^2 + E|b|^2 / m^2, k batches of m records."""
    return convex(at.spec.constraint.diameter, *_facts(at))


@upper_bound("one_pass_sgd Thm 3", *_check_pass("strongly_convex"), quantity="population_risk")
def one_pass_strongly_convex(at: Setting) -> float:
    """G^2 (1 + ln k) / (2 Delta k), G^2 = L^2 + E|b|^2 / m^2, k batches of m records."""
    return strongly_convex(at.spec.strong_convexity, *_facts(at))
