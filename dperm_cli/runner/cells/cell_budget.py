"""Compute the budget of a cell, and check that a plan keeps within it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.mechanisms.base import Mechanism, Plan
from dperm_cli.mechanisms.shared import inner_mechanism
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.generator_range import NEGLIGIBLE_DELTA_SHARE
from dperm_cli.privacy.budget import Budget, Guarantee
from dperm_cli.privacy.events import Approx
from dperm_cli.privacy.events import kind as kind_of_events
from dperm_cli.privacy.gate import range_delta
from dperm_cli.problem.problem import ProblemSpec
from dperm_cli.runner.cells.outside_plan import require_named

# What is held of delta for the bounded range, over what it adds: noise moves a little with delta.
RANGE_ROOM = 1.25
_LEAST_AUTO_DELTA = 1e-14
# What to put inside a combinator for a guarantee of this kind.
INSTEAD = {
    "pure": ("output_perturbation", "exponential"),
    "approx": ("noisy_gd", "noisy_sgd"),
    "local": ("local_sgd", "local_mirror_descent"),
}


def check(plan: Plan, budget: Budget, kind: str, unprotected: bool = False) -> Guarantee:
    """Recompute the guarantee from the plan's events; PrivacyError unless it fits the budget.

    A plan that says it protects nothing passes, labelled so, where the user asked for that
    (``unprotected``).
    """
    if plan.guarantee.kind == "none":
        return _accept_unprotected(plan, unprotected)
    require_named(plan.events)
    guarantee = ledger_totals.find_guarantee(plan.events, kind, budget, plan.guarantee.certificate)
    ledger_totals.require_within_budget(budget, guarantee, plan.guarantee)
    return guarantee


def _accept_unprotected(plan: Plan, unprotected: bool) -> Guarantee:
    """No guarantee, and events that say so too."""
    if not unprotected:
        raise PrivacyError(f"refused to release: {plan.guarantee.source} gives no guarantee")
    if kind_of_events(plan.events) != "none":
        raise PrivacyError("a plan without a guarantee needs an event that says so")
    return plan.guarantee


def plan_with_reserve(mechanism: Mechanism, spec: ProblemSpec, budget: Budget) -> Plan:
    """The plan under seeded noise, whose bounded range may show: what that adds to delta.

    Up to delta / 1000 it is let pass, of the delta that the plan spends; beyond, the budget's delta
    holds it, as an event of its own, and the mechanism gets the rest. ``Unsupported`` where it
    would take a quarter.
    """
    plan = mechanism.plan(spec, budget)
    added = range_delta(plan.events, budget.relation, spec.p)
    spent = 0.0 if plan.guarantee.kind == "pure" else budget.delta
    if not added > NEGLIGIBLE_DELTA_SHARE * spent:
        return plan
    held = RANGE_ROOM * added
    if held <= budget.delta / 4.0:
        plan = mechanism.plan(spec, replace(budget, delta=budget.delta - held))
        if range_delta(plan.events, budget.relation, spec.p) <= held:
            event = Approx(0.0, held, relation=budget.relation)
            return replace(plan, events=(*plan.events, event), reserve=held)
    if plan.guarantee.kind != "none" and not plan.guarantee.within(budget):
        return plan  # its own scale is too small: ``check`` refuses it
    raise Unsupported(
        f"epsilon {budget.epsilon:g} allows so little noise that the generator's bounded range "
        f"could add {added:.2g} to delta {budget.delta:.3g}; take less epsilon or more delta"
    )


def drop_reserve(plan: Plan) -> Plan:
    """The plan as its mechanism made it, without what ``plan_with_reserve`` kept for the range."""
    return replace(plan, events=plan.events[:-1], reserve=0.0) if plan.reserve else plan


def kind_of(name: str, mechanism: Any, privacy: str, delta: float | None, relation: str) -> str:
    """The kind of guarantee in question; Unsupported when the mechanism has no such."""
    can, kind = mechanism.guarantees, privacy
    if kind == "auto" and can == ("local",):
        kind = "local"
    elif kind == "auto":
        # a combinator may have no guarantee in common with what is inside
        kind = "pure" if delta == 0 else ("approx" if "approx" in can or not can else can[0])
    if kind not in can:
        raise Unsupported(_explain_missing(name, mechanism, kind))
    if relation not in mechanism.relations:
        known = " or ".join(mechanism.relations)
        raise Unsupported(f"{name} is proved for {known}, not {relation}")
    return kind


def _explain_missing(name: str, mechanism: Any, kind: str) -> str:
    """Why there is no guarantee of this kind, and which part of a combinator is at fault."""
    from dperm_cli.mechanisms.combinators.private_selection import PrivateSelection  # by need

    if kind == "local":
        apart = ", without tune=: nothing is chosen under local trust"
        end = apart if isinstance(mechanism, PrivateSelection) else ""
        return f"{name} gives no local guarantee; take mechanism={' or '.join(INSTEAD[kind])}{end}"
    key, inner = "mechanism", mechanism
    while kind in type(inner).guarantees and inner.inner is not None:
        # what tune= made a choice of was typed as the mechanism itself
        key = key if isinstance(inner, PrivateSelection) else f"{key}.inner"
        inner = inner.inner
    kinds = [word for word in inner.guarantees if word != "none"]
    fault = inner_mechanism.name_of(inner)
    gives = f"gives {' or '.join(kinds)} guarantees" if kinds else "gives no guarantee"
    if inner is mechanism:
        # delta would have no effect: tell the user instead of ignoring it
        pure = "pure" in inner.guarantees and kind == "approx"
        other = "; a pure guarantee is a stronger one: set privacy=pure" if pure else ""
        return f"{name} {gives}, not {kind}{other}" if kinds else f"{name} {gives}"
    instead = [word for word in INSTEAD[kind] if word != fault]
    return (
        f"{name} gives {kind} guarantees as its inner mechanism does, and {fault} gives "
        f"{' or '.join(kinds) or 'none'} only; set {key}={' or '.join(instead)}"
    )


def delta_of(delta: float | None, n: int) -> float:
    """``delta=auto`` (None) is 1/n^2, from ``_LEAST_AUTO_DELTA`` up to 1/4.

    For one record 1/n^2 would be 1, which promises nothing. For 10^8 records it would be less than
    what the bounded range of a noise generator adds to delta.
    """
    return min(0.25, max(1.0 / n**2, _LEAST_AUTO_DELTA)) if delta is None else delta
