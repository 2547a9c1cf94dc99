"""The figures of an experiment and its verdicts, as the page embeds them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from dperm_cli.results.charts import chart_model, experiment_figure
from dperm_cli.results.charts.curve_points import ROUNDING, Point
from dperm_cli.results.charts.marks import MARKS
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.page.page_views import fit_to_dict
from dperm_cli.results.records.row_facts import Row
from dperm_cli.results.records.summary import BAND_WORDS

SUMS = {"excess_risk": "excess_risk_per_record"}
_VERDICT = (
    "id", "text", "theorem", "kind", "quantity", "allowed", "expected", "verdict", "reason", "note",
)  # fmt: skip
_FINDING = ("curve", "measured")

Found = dict[str, Any]


def describe_charts() -> Found:
    """What the page's script must know of all charts: styles, words and how far axes reach."""
    return {
        "room": chart_model.ROOM,
        "reach": chart_model.REACH,
        "depth": chart_model.DEPTH,
        "rounding": ROUNDING,
        "lines": {kind: asdict(style) for kind, style in chart_model.LINE_STYLES.items()},
        "marks": [mark.path for mark in MARKS],
        "dashes": chart_model.DASHES,
        "fills": chart_model.FILLS,
        "axes": chart_model.AXIS_WORDS,
        "risk": [experiment_figure.label_column(name) for name in next(iter(SUMS.items()))],
        "saturated": chart_model.SATURATED_WORDS,
        "band": BAND_WORDS,
    }


def figures(records: Sequence[Row], about: Mapping[str, Any], places: Mapping[str, int]) -> list:
    """The panels of an experiment, JSON-able; ``places`` gives a cell's index in the summary.

    ``each`` is the panel per record where it is about sums over records. The page offers the
    floor and explicit bounds of every panel, also where the figure leaves them out.
    """
    rows, found = experiment_tables.rows_of(records, about), []
    sums = [_add_lines(panel) for panel in about["plot"]]
    eaches = [{**panel, "y": SUMS.get(panel["y"], panel["y"])} for panel in sums]
    drawn, drawn_each = (
        [_panel(made, places) for made in experiment_figure.panels(rows, {**about, "plot": plot})]
        for plot in (sums, eaches)
    )
    for panel, made, each in zip(sums, drawn, drawn_each, strict=True):
        if made["curves"]:
            found.append({
                **made,
                "axis": panel["x"],
                "quantity": panel["y"],
                "statistic": experiment_tables.make_selection(panel).statistic,
                "each": each if panel["y"] in SUMS else None,
            })  # fmt: skip
    return found


def _add_lines(panel: Mapping[str, Any]) -> Found:
    more = ("floor", "bound_upper", "bound_lower") if panel["y"].startswith("excess_risk") else ()
    return {**panel, "lines": list(dict.fromkeys([*panel["lines"], *more]))}


def _panel(panel: chart_model.Panel, places: Mapping[str, int]) -> Found:
    made = asdict(panel)
    for curve, entry in zip(panel.curves, made["curves"], strict=True):
        mine: Found = {line.kind: dict(zip(line.xs, line.ys, strict=True))
                       for line in panel.lines if line.look == curve.look}  # fmt: skip
        entry["label"] = curve.label
        entry["mark"] = chart_model.index_mark(curve.look)
        entry["points"] = [_point(p, mine, places) for p in curve.points if math.isfinite(p.value)]
        several = len({p.x for p in curve.points if p.x}) > 2
        entry["fit"] = fit_to_dict(curve.points) if several else None
    made["curves"] = [entry for entry in made["curves"] if entry["points"]]
    return made


def _point(p: Point, lines: Found, places: Mapping[str, int]) -> Found:
    return {
        **asdict(replace(p, cells=())),
        "saturated": p.is_near_floor,
        "upper": lines.get("bound_upper", {}).get(p.x),
        "lower": lines.get("bound_lower", {}).get(p.x),
        "rows": [places[cell] for cell in p.cells if cell in places],
    }


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
