"""All bounds, and the best of each kind at one setting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dperm_cli.bounds import (
    bst14,
    bst14_combined,
    bst14_lemmas,
    bst14_lower,
    bst14_population,
    bst14_upper,
    djw12,
    kj16,
    one_pass,
    ttz14,
)
from dperm_cli.bounds.base import Bound, Setting, risk_range

ALL: tuple[Bound, ...] = (
    *bst14.BOUNDS,
    *bst14_upper.BOUNDS,
    *bst14_combined.BOUNDS,
    *bst14_lower.BOUNDS,
    *bst14_lemmas.BOUNDS,
    *bst14_population.BOUNDS,
    *kj16.BOUNDS,
    *one_pass.BOUNDS,
    *ttz14.BOUNDS,
    *djw12.BOUNDS,
)


RANGE = "range of the objective"  # what bounds the risk where a theorem's bound is more


def choose_best_bounds(at: Setting) -> dict[str, object]:
    """The record's bound columns: smallest upper and largest lower bound of each sort.

    Explicit bounds fill ``bound_*``; bounds whose constant is open fill ``order_*`` with the
    constant taken as one, for figures that fit it and say so. An explicit upper bound is never more
    than the range of the objective. Explicit bounds on the population risk, per record, fill
    ``population_bound_*``; bounds on other quantities do not count. ``bound_factor`` is the
    explicit upper bound over the explicit lower one: within it the mechanism's worst case lies of
    what any mechanism with the same guarantee can promise for losses as Lipschitz as these, since
    the lower bounds are about linear ones.
    """
    row: dict[str, object] = {}
    for kind, pick in (("upper", min), ("lower", max)):
        for constant, prefix in (("explicit", "bound"), ("order", "order")):
            fitting = [b for b in ALL if b.kind == kind and b.constant == constant]
            values = [found for b in fitting if (found := _value(b, at)) is not None]
            if values:
                row[f"{prefix}_{kind}"], row[f"{prefix}_{kind}_id"] = pick(values)
    row |= _population(at)
    row["bound_constant"] = "explicit" if "bound_upper" in row else "none"
    factor = _ratio(row.get("bound_upper"), row.get("bound_lower"))
    return row if factor is None else row | {"bound_factor": factor}


def _population(at: Setting) -> dict[str, object]:
    """The explicit bounds on the expected loss of a fresh record above its least on the set."""
    row: dict[str, object] = {}
    for kind, pick in (("upper", min), ("lower", max)):
        fitting = [b for b in ALL if (b.kind, b.constant) == (kind, "explicit")]
        values = [found for b in fitting if (found := _value(b, at, "population_risk")) is not None]
        if values:
            name = f"population_bound_{kind}"
            row[name], row[f"{name}_id"] = pick(values)
    return row


def _ratio(upper: Any, lower: Any) -> float | None:
    """upper / lower where both are there and a float holds it."""
    if upper is None or not lower:
        return None
    found = upper / lower
    return found if math.isfinite(found) else None


def _value(bound: Bound, at: Setting, quantity: str = "excess_risk") -> tuple[float, str] | None:
    """A bound on the quantity and its id; None where it says nothing that a float can hold."""
    if at.spec.space != "parameters" or bound.quantity != quantity or bound.applies(at) is not None:
        return None
    try:
        with np.errstate(all="ignore"):
            value = bound.value(at)
    except (OverflowError, ZeroDivisionError):
        return None
    whole = risk_range(at) / (at.spec.n if quantity == "population_risk" else 1)
    if (bound.kind, bound.constant) == ("upper", "explicit") and value > whole:
        return whole, RANGE
    return (value, bound.id) if math.isfinite(value) else None
