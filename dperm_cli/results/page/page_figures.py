"""The figures of an experiment and its verdicts, as the page embeds them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.results.charts.curve_points import Point, points
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.page.page_views import fit_to_dict
from dperm_cli.results.records.row_facts import Row

SUMS = {"excess_risk": "excess_risk_per_record"}
_VERDICT = (
    "id", "text", "theorem", "kind", "quantity", "allowed", "expected", "verdict", "reason", "note",
)  # fmt: skip
_FINDING = ("curve", "measured")

Found = dict[str, Any]


def figures(records: Sequence[Row], about: Mapping[str, Any], places: Mapping[str, int]) -> list:
    """The panels of an experiment, JSON-able; ``places`` gives a cell's index in the summary.

    ``each`` has the curves per record where the panel is about sums over records.
    """
    rows = experiment_tables.rows_of(records, about)
    found = []
    for panel in about["plot"]:
        each = {**panel, "y": SUMS[panel["y"]]} if panel["y"] in SUMS else None
        curves = _curves(rows, panel, places)
        if curves:
            found.append({
                "title": experiment_tables.title(about, panel),
                "axis": panel["x"],
                "quantity": panel["y"],
                "statistic": experiment_tables.make_selection(panel).statistic,
                "curves": curves,
                "each": _curves(rows, each, places) if each else None,
            })  # fmt: skip
    return found


def parse_table(text: str) -> dict[str, Any]:
    """The experiment's ``table.csv`` as names and lines of text."""
    names, *lines = csv.reader(io.StringIO(text))
    return {"names": names, "lines": lines}


def verdicts(found: Any, about: Mapping[str, Any]) -> list[Found]:
    """What ``claims.json`` says, if it is this experiment's at this size; else nothing."""
    if not isinstance(found, dict):
        return []
    if (found.get("experiment"), found.get("size")) != (about["id"], about["size"]):
        return []
    entries = found.get("claims")
    if not isinstance(entries, list):
        return []
    return [_verdict(one) for one in entries if isinstance(one, dict)]


def _verdict(entry: Mapping[str, Any]) -> Found:
    listed = entry.get("findings")
    findings = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    said = [{**{name: str(one.get(name) or "") for name in _FINDING}, "holds": one.get("holds")}
            for one in findings]  # fmt: skip
    return {**{name: str(entry.get(name) or "") for name in _VERDICT}, "findings": said}


def _curves(
    rows: Sequence[Row], panel: Mapping[str, Any], places: Mapping[str, int]
) -> list[Found]:
    chosen = experiment_tables.make_selection(panel)
    bounds = {
        kind: points(rows, replace(chosen, bound=f"bound_{kind}")) for kind in ("upper", "lower")
    }
    found = []
    for label, curve in points(rows, chosen).items():
        sides = {kind: {p.x: p.bound for p in bounds[kind].get(label, ())} for kind in bounds}
        kept = [p for p in curve if math.isfinite(p.value)]
        found.append({
            "label": label,
            "points": [_point(p, sides, places) for p in kept],
            "fit": fit_to_dict(curve) if len({p.x for p in curve if p.x}) > 2 else None,
        })  # fmt: skip
    return [curve for curve in found if curve["points"]]


def _point(
    p: Point, sides: Mapping[str, Mapping[float | None, float | None]], places: Mapping[str, int]
) -> Found:
    return {
        "x": p.x,
        "value": p.value,
        "low": p.low if math.isfinite(p.low) else None,
        "high": p.high if math.isfinite(p.high) else None,
        "trials": p.trials,
        "floor": p.floor,
        "saturated": p.is_near_floor,
        "upper": sides["upper"].get(p.x),
        "lower": sides["lower"].get(p.x),
        "rows": [places[cell] for cell in p.cells if cell in places],
    }
