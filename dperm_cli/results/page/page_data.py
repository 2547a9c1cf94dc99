"""The data inside a study's page: records in columns, curves, ranking, ledger, provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.results.charts.curve_points import DRAWN
from dperm_cli.results.page import page_figures, page_views
from dperm_cli.results.records import given_names
from dperm_cli.results.records.row_facts import Row, distinct
from dperm_cli.results.records.schema import BY_NAME
from dperm_cli.results.records.summary import DIAGNOSTIC, SUMMARY
from dperm_cli.results.tables import summary_table

VARIANT = ("variant", "text", "", "Settings that set the cell apart and have no column.")
# Columns of the table that are always there, and those that are only where their values differ.
_SHOWN = (
    "dataset", "mechanism", "variant", "calibration", "status", "loss", "constraint",
    "constraint_radius", "n", "p", "ridge", "lasso", "relation", "guarantee", "epsilon",
    "epsilon_accounted", "delta", "noise_scale", "steps", "trials", "excess_risk_median",
    "excess_risk_q05", "excess_risk_q95", "excess_risk_per_record_median", "floor_excess_risk",
    "bound_upper", "bound_lower", "train_metric", "test_metric", "baseline_metric",
    "optimum_metric", "floor_metric", "no_better_than",
)  # fmt: skip
_ALWAYS = ("mechanism", "epsilon", "epsilon_accounted")
_WHEN_KNOWN = (
    "dataset", "noise_scale", "excess_risk_median", "excess_risk_per_record_median", "bound_upper",
    "bound_lower", "train_metric", "test_metric", "floor_excess_risk", "excess_risk_q05",
    "excess_risk_q95", "steps", "baseline_metric", "optimum_metric", "floor_metric",
    "no_better_than",
)  # fmt: skip
# Null where nothing ran: that alone is no difference worth a column.
_OF_A_RUN = ("guarantee", "trials", "delta", "relation", "constraint_radius", "n", "p")
_RELEASE = (
    "cell", "statement", "mechanism", "calibration", "trials", "relation", "noise", "arithmetic",
    "seed", "version", "settings", "not_covered",
)  # fmt: skip
_EVENT = ("event", "words")

Made = dict[str, Any]


def build_payload(
    rows: Sequence[Row],
    records: Sequence[Row],
    manifest: Mapping[str, Any],
    about: Mapping[str, Any] | None,
    csv_text: str,
    ledger: Mapping[str, Any] | None,
    faults: Sequence[str] = (),
    gaps: Sequence[str] = (),
    claims: Any = None,
    caption: Sequence[str] = (),
) -> Made:
    """All that the page shows, JSON-able. ``rows`` are the summary of ``records``.

    Diagnostics (times) stay out, so that equal runs give equal pages.
    """
    found, full = page_views.select_drawn(rows), _with_variants(rows)
    places = {row["cell"]: i for i, row in enumerate(rows)}
    return {
        "title": _title(rows, manifest, about),
        "about": None if about is None else _about(about),
        "columns": _columns(),
        "rows": pack_rows(full),
        "shown": _select_columns(full),
        "notes": _notes(rows, about),
        "caption": list(caption),
        "gaps": list(gaps),
        "problems": page_views.name_problems(found),
        "axes": _axes(found),
        "ranking": page_views.rank_mechanisms(found),
        "chart": page_figures.describe_charts(),
        "figures": [] if about is None else page_figures.figures(records, about, places),
        "table": None if about is None else page_figures.parse_table(csv_text),
        "claims": [] if about is None else page_figures.verdicts(claims, about),
        "ledger": None if ledger is None else _ledger(ledger, given_names.read_names(manifest)),
        "faults": list(faults),
        "provenance": _provenance(manifest, rows),
    }


def encode_payload(made: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: ASCII, no ``<``, ``>`` or ``&``."""
    text = json.dumps(_finite(made), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def pack_rows(rows: Sequence[Mapping[str, Any]]) -> Made:
    """Rows by column: ``one`` value for all, places ``at`` in a list ``of`` values, or ``all``."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return {"count": len(rows), "columns": columns}


def _column(values: Sequence[Any]) -> Made:
    words = [_mark(value) for value in values]
    index = {word: i for i, word in enumerate(dict.fromkeys(words))}
    if len(index) == 1:
        return {"one": values[0]}
    if len(index) * 2 > len(values):
        return {"all": list(values)}
    first: dict[Any, Any] = {}
    for word, value in zip(words, values, strict=True):
        first.setdefault(word, value)
    return {"of": list(first.values()), "at": [index[word] for word in words]}


def _mark(value: Any) -> Any:
    """A hashable stand-in, apart for 1, 1.0 and True."""
    plain = value is None or isinstance(value, (str, int, float))
    return (type(value), value) if plain else json.dumps(_finite(value), sort_keys=True)


def _columns() -> dict[str, Made]:
    kept = [(c.name, c.kind, c.unit, c.doc) for c in SUMMARY if c.name not in DIAGNOSTIC]
    return {
        name: {"kind": kind, "unit": unit, "doc": doc} for name, kind, unit, doc in (*kept, VARIANT)
    }


def _with_variants(rows: Sequence[Row]) -> list[Made]:
    return [
        {**{name: row[name] for name in row if name not in DIAGNOSTIC}, "variant": tag}
        for row, tag in zip(rows, page_views.tags_of(rows), strict=True)
    ]


def _select_columns(full: Sequence[Row]) -> list[str]:
    ran = [row for row in full if row["status"] in DRAWN] or full

    def is_varying(name: str) -> bool:
        return len(distinct(ran if name in _OF_A_RUN else full, name)) > 1

    def is_known(name: str) -> bool:
        return any(row[name] is not None for row in full)

    return [
        name
        for name in _SHOWN
        if name in _ALWAYS or (is_known(name) if name in _WHEN_KNOWN else is_varying(name))
    ]


def _axes(found: page_views.DrawnRows) -> list[Made]:
    named = []
    for name in page_views.list_axes(found):
        curves = page_views.curves(found, name)
        if curves:
            doc = BY_NAME[name].doc if name in BY_NAME else ""
            named.append({"name": name, "doc": doc, "curves": curves})
    return named


def _title(
    rows: Sequence[Row], manifest: Mapping[str, Any], about: Mapping[str, Any] | None
) -> str:
    name = about["id"] if about else manifest.get("study")
    if isinstance(name, str) and name:
        return name
    return ", ".join(str(name) for name in distinct(rows, "dataset")) or "study"


def _about(about: Mapping[str, Any]) -> Made:
    parts = [{name: part[name] for name in ("name", "text", "absent")} for part in about["parts"]]
    said = {name: about[name] for name in ("id", "paper", "text", "size")}
    return {**said, "parts": parts}


def _notes(rows: Sequence[Row], about: Mapping[str, Any] | None) -> list[str]:
    if about is None:
        return [" ".join(note.split()) for note in summary_table.build(rows).notes]
    return [f"{part['name']}: not run: {part['absent']}" for part in about["parts"]
            if part["absent"]]  # fmt: skip


def _ledger(found: Mapping[str, Any], names: Mapping[str, given_names.Names]) -> Made:
    releases = []
    for entry in found["releases"]:
        asked, accounted, data = entry["asked"], entry["accounted"], entry["data"]
        given = names.get(entry["cell"], {})
        releases.append({
            **{name: entry[name] for name in _RELEASE},
            "mechanism": given.get("mechanism", entry["mechanism"]),
            "data": given.get("dataset", data["name"]),
            "fingerprint": data["fingerprint"],
            "epsilon": asked.get("epsilon"),  # None where information was asked for
            "delta": asked["delta"],
            "kind": accounted["kind"],
            "epsilon_accounted": accounted["epsilon"],
            "delta_accounted": accounted["delta"],
            "accountant": accounted["accountant"],
            "certificate": accounted["certificate"],
            "events": [{name: event.get(name) for name in _EVENT} for event in entry["events"]],
        })  # fmt: skip
    kept = ("title", "warnings", "notes", "totals", "choices", "not_released")
    return {
        **{name: found[name] for name in kept},
        "relations": {entry["relation"]: entry["relation_means"] for entry in found["releases"]},
        "releases": pack_rows(releases),
    }


def _provenance(manifest: Mapping[str, Any], rows: Sequence[Row]) -> Made:
    versions = manifest.get("versions")
    return {
        "argv": _words(manifest.get("argv")),
        "seed_scheme": str(manifest.get("seed_scheme") or ""),
        "versions": {str(k): str(v) for k, v in versions.items() if v is not None}
        if isinstance(versions, dict)
        else {},
        "git": str(manifest.get("git") or ""),
        "written_by": [str(v) for v in distinct(rows, "version") if v is not None],
        "merged": _format_origins(manifest.get("merged")),
    }


def _format_origins(origins: Any) -> list[str]:
    """Of a merged study, where its records come from."""
    if not isinstance(origins, list):
        return []
    named = [origin for origin in origins if isinstance(origin, Mapping)]
    return [f"{o.get('folder')}: {o.get('cells')} cells, {' '.join(_words(o.get('argv')))}"
            for o in named]  # fmt: skip


def _words(argv: Any) -> list[str]:
    return [str(word) for word in argv] if isinstance(argv, list) else []


def _finite(value: Any) -> Any:
    """Infinities and nan as words, since JSON has no such numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
