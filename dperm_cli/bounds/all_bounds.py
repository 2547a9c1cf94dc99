"""The list of all bounds, and the best bound of each kind at one setting."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    fkt20,
    hidden_lower,
    kj16,
    noisy_moments,
    one_pass,
    population_lower,
    ttz14,
)
from dperm_cli.bounds.base import Bound, Setting, list_bounds, risk_range
from dperm_cli.bounds.minimax_gap import find_lipschitz_upper
from dperm_cli.core import plugin_sources

ALL = list_bounds(
    bst14,
    bst14_upper,
    bst14_combined,
    bst14_lower,
    hidden_lower,
    bst14_lemmas,
    bst14_population,
    kj16,
    noisy_moments,
    population_lower,
    one_pass,
    fkt20,
    ttz14,
    djw12,
)
plugin_sources.reserve_names("bound", lambda: [one.id for one in ALL])
# The name of the trivial bound, which is taken where a theorem's bound is larger.
RANGE = "range of the objective"
# Each column holds the best bound of this kind, constant and quantity (fields of ``Bound``).
COLUMNS = {
    "bound_upper": ("upper", "explicit", "excess_risk"),
    "order_upper": ("upper", "order", "excess_risk"),
    "bound_lower": ("lower", "explicit", "excess_risk"),
    "bound_lower_gaussian": ("lower", "explicit", "gaussian_excess_risk"),
    "order_lower": ("lower", "order", "excess_risk"),
    "population_bound_upper": ("upper", "explicit", "population_risk"),
    "population_bound_lower": ("lower", "explicit", "population_risk"),
}
_KEPT = frozenset(COLUMNS.values())


def choose_best_bounds(at: Setting) -> dict[str, object]:
    """The bound columns of a result row: the smallest upper and the largest lower bounds.

    Explicit bounds fill ``bound_*``. Bounds whose constant is open fill ``order_*``, with the
    constant taken as one: figures fit this constant and say so. An explicit upper bound is never
    more than the range of the objective. Explicit bounds on the population risk, per record, fill
    ``population_bound_*``. Bounds on other quantities are left out. Bounds from outside the package
    stand beside its own.

    ``bound_factor`` is the explicit upper bound over the explicit lower one. The mechanism's worst
    case is within this factor of what any mechanism with the same guarantee can promise for
    losses with the same Lipschitz constant: the lower bounds are about linear losses.
    ``bound_lower_gaussian`` and ``bound_factor_gaussian`` are the same among mechanisms that are as
    private as the plan by Gaussian events alone; they are left out for plans with other events.
    ``minimax_factor`` is the gap of the problem itself, whatever the mechanism: the best proved
    upper bound of any over the lower one.

    Args:
        at: the problem's public facts, the budget and the plan.

    Returns:
        Values by column. A column without a bound is left out.
    """
    row, at = dict[str, Any](), at.find_chosen()
    found: dict[tuple[str, str, str], list[tuple[float, str]]] = {}
    every: list[Bound] = [*ALL, *plugin_sources.classes("bound").values()]
    with np.errstate(all="ignore"):
        for one in every:
            kept = (one.kind, one.constant, one.quantity)
            if kept in _KEPT and (value := _find_value(one, at)) is not None:
                found.setdefault(kept, []).append(value)
    for name, kept in COLUMNS.items():
        if kept in found:
            row[name], row[f"{name}_id"] = (min if kept[0] == "upper" else max)(found[kept])
    row["bound_constant"] = "explicit" if "bound_upper" in row else "none"
    if "bound_lower_gaussian" in row and row.get("bound_lower", 0.0) > row["bound_lower_gaussian"]:
        row["bound_lower_gaussian"] = row["bound_lower"]
        row["bound_lower_gaussian_id"] = row["bound_lower_id"]
    upper = row.get("bound_upper")
    for among in ("", "_gaussian"):
        lower = row.get(f"bound_lower{among}")
        # below 1 the loss is easier than linear ones, and the ratio says nothing of it
        if upper is not None and lower and 1.0 <= upper / lower < math.inf:
            row[f"bound_factor{among}"] = upper / lower
    return row | _find_gap(row, at)


def _find_gap(row: Mapping[str, Any], at: Setting) -> dict[str, Any]:
    """``minimax_*``: the best proved upper bound of any mechanism, and its ratio to the lower one.

    Upper bounds count that hold for all losses as Lipschitz, as the lower ones do: the row's own
    may rest on what this loss alone has. Left out under local trust, where mechanisms with a
    curator are no rivals, and without a lower bound.
    """
    lower = row.get("bound_lower")
    if at.spec.space != "parameters" or at.kind not in ("pure", "approx") or not lower:
        return {}
    best = find_lipschitz_upper(at.spec, at.budget)
    factor = best.value / lower
    if not math.isfinite(factor):
        return {}
    return {"minimax_upper": best.value, "minimax_upper_id": best.name, "minimax_factor": factor}


def _find_value(bound: Bound, at: Setting) -> tuple[float, str] | None:
    """A bound's value and id; None where it does not apply or is not a finite number."""
    if at.spec.space != "parameters" or bound.applies(at) is not None:
        return None
    try:
        value = bound.value(at)
    except (OverflowError, ZeroDivisionError):
        return None
    if (bound.kind, bound.constant) == ("upper", "explicit"):
        whole = risk_range(at) / (at.spec.n if bound.quantity == "population_risk" else 1)
        if value > whole:
            return whole, RANGE
    return (value, bound.id) if math.isfinite(value) else None
