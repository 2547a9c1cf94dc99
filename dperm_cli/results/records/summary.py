"""The summary: one row per cell, from its trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dperm_cli.results.ledger.remarks import list_remarks
from dperm_cli.results.records.references import find_unbeaten_baseline
from dperm_cli.results.records.row_facts import group_cells
from dperm_cli.results.records.schema import BY_NAME, read_columns

BAND = (0.05, 0.95)
BAND_WORDS = "-".join(f"{100 * level:g}" for level in BAND) + " %"

# A line of the file with nothing but a name is a column that a record has as well.
SUMMARY = tuple(
    column if column.kind else BY_NAME[column.name]
    for column in read_columns("summary_columns.csv")
)
SUMMARY_NAMES: tuple[str, ...] = tuple(column.name for column in SUMMARY)
DIAGNOSTIC: frozenset[str] = frozenset(c.name for c in SUMMARY if c.role == "diagnostic")


def summarise(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One JSON-able dict per cell, in the order the cells first appear.

    A trial whose risk is not a number counts as infinitely bad, never as missing; whatever
    comes out infinite is null, since JSON has no word for it.
    """
    return [summarise_cell(group) for group in group_cells(rows).values()]


def summarise_cell(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary row of one cell's trials."""
    first = next((row for row in rows if row["status"] != "ok"), rows[0])
    ran = [row for row in rows if row["status"] == "ok"]
    found: dict[str, Any] = {name: first.get(name) for name in SUMMARY_NAMES}
    found["trials"] = len(ran)
    found["remarks"] = "; ".join(list_remarks(first)) or None
    found.update(_risk(ran, first.get("n")))
    found["saturated"] = is_saturated(found["excess_risk_median"], found["floor_excess_risk"])
    for name in ("train_metric", "test_metric"):
        found[name] = quantile(_values(ran, name), 0.5)
    found["no_better_than"] = find_unbeaten_baseline(found) if ran else None
    found["bound_released"] = _mean(_values(ran, "bound_released"))
    found["seconds"] = _mean(_values(ran, "seconds"))
    found["seconds_optimum"] = max(_values(rows, "seconds_optimum"), default=None)
    return {name: _json_number(found[name]) for name in SUMMARY_NAMES}


def is_saturated(risk: float | None, floor: float | None) -> bool | None:
    """True when the risk is within a factor 2 of the data-free floor, or above it.

    Such a point depends on the size of the set, not on the mechanism. None when unknown.
    """
    if risk is None or floor is None:
        return None
    return bool(risk >= floor / 2)


def _risk(ran: Sequence[Mapping[str, Any]], n: int | None) -> dict[str, Any]:
    sums = [math.inf if math.isnan(v) else v for v in _values(ran, "excess_risk")]
    each = [math.inf if math.isnan(v) else v for v in _values(ran, "excess_risk_per_record")]
    floor = next(iter(_values(ran, "floor_excess_risk")), None)
    return {
        "excess_risk_median": quantile(sums, 0.5),
        "excess_risk_q05": quantile(sums, BAND[0]),
        "excess_risk_q95": quantile(sums, BAND[1]),
        "excess_risk_per_record_median": quantile(each, 0.5),
        "floor_excess_risk_per_record": floor / n if floor is not None and n else None,
    }


def _values(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [row[name] for row in rows if row.get(name) is not None]


def quantile(values: Sequence[float], level: float) -> float | None:
    """Linear interpolation between order statistics; an infinite neighbour gives infinity.

    numpy's own quantile gives nan as soon as an infinity stands beside the place asked for.
    """
    if not values or any(map(math.isnan, values)):
        return None
    ranked = sorted(values)
    place = level * (len(ranked) - 1)
    low = math.floor(place)
    share = place - low
    if share == 0 or ranked[low] == ranked[low + 1]:
        return ranked[low]
    return ranked[low] + share * (ranked[low + 1] - ranked[low])


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _json_number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
