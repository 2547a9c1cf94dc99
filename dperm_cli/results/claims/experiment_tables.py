"""Table and figure of an experiment, from its records and what its manifest says to show.

``about`` is the manifest's ``experiment``: ``id``, ``paper``, ``text``, ``size``, ``parts`` (each
with its ``name``, ``text`` and ``cells``, or why it is ``absent``), ``table`` (columns) and
``plot`` (panels).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.curve_points import Point, PointSelection, extend_row, points
from dperm_cli.results.claims import claims, intervals
from dperm_cli.results.records.references import tell_references
from dperm_cli.results.records.row_facts import (
    Row,
    csv_lines,
    format_constraint,
    format_count,
    format_value,
    group_by,
    group_cells,
)
from dperm_cli.results.records.summary import BAND_WORDS, SUMMARY_NAMES, summarise_cell
from dperm_cli.results.tables import summary_table
from dperm_cli.results.tables.chosen_table import (
    ChosenTable,
    Column,
    Group,
    write_value,
)
from dperm_cli.results.tables.rounded_numbers import round_number, round_pair
from dperm_cli.results.tables.summary_table import Field, Section, Table, format_exact

POINTS = (
    "part", "curve", "axis", "x", "quantity", "value", "q05", "q95", "trials", "floor", "saturated",
    "slope", "slope_error", "bound_upper", "bound_lower",
)  # fmt: skip
_PANEL = {item.name for item in fields(PointSelection)}


@dataclass(frozen=True)
class Curve:
    """A panel's curve: points, the fitted slope if asked for, and lines by kind."""

    label: str
    points: tuple[Point, ...]
    fit: intervals.Fit | None
    lines: Mapping[str, tuple[tuple[float, float], ...]]


def read_about(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a manifest says of an experiment, or None where it is a plain study's or not whole."""
    about = manifest.get("experiment")
    try:
        rows_of([], about)  # type: ignore[arg-type]
        for part in about["parts"]:  # type: ignore[index]
            " ".join((part["name"], part["text"], part["absent"] or "", *part["cells"]))
        for panel in about["plot"]:  # type: ignore[index]
            title(about, panel)  # type: ignore[arg-type]
            points([], make_selection(panel))
            sorted([*panel["lines"], panel["x"], panel["y"]])
        " ".join(about[name] for name in ("id", "paper", "text", "size"))  # type: ignore[index]
        return about if all(isinstance(name, str) for name in about["table"]) else None  # type: ignore[index]
    except (TypeError, KeyError, AttributeError, IndexError):
        return None


def rows_of(records: Sequence[Row], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Records with their configuration and the parts of the experiment they belong to."""
    parts: dict[str, list[str]] = {}
    for part in about["parts"]:
        for cell in part["cells"]:
            parts.setdefault(cell, []).append(part["name"])
    return [extend_row(row, parts.get(row["cell"], ())) for row in records]


def make_selection(panel: Mapping[str, Any], bound: str | None = None) -> PointSelection:
    """The selection that a panel draws."""
    chosen: dict[str, Any] = {key: panel[key] for key in panel if key in _PANEL}
    chosen = {key: tuple(v) if isinstance(v, list) else v for key, v in chosen.items()}
    chosen |= {"quantity": panel["y"], "axis": panel["x"], "group": tuple(panel["curve"])}
    return PointSelection(**chosen, bound=bound)


def curves(rows: Sequence[Row], panel: Mapping[str, Any]) -> list[Curve]:
    """The curves of a panel, in the order of the rows."""
    found = []
    by_line = {kind: points(rows, make_selection(panel, kind)) for kind in panel["lines"]
               if kind != "floor"}  # fmt: skip
    for label, curve in points(rows, make_selection(panel)).items():
        lines = {kind: _line(by_line[kind].get(label, [])) for kind in by_line}
        if "floor" in panel["lines"]:
            lines["floor"] = tuple((p.x or 0.0, p.floor) for p in curve if p.floor)
        fitted = intervals.fit_points(curve) if panel.get("slope") else None
        found.append(Curve(label, tuple(curve), fitted, lines))
    return found


def _line(curve: Sequence[Point]) -> tuple[tuple[float, float], ...]:
    return tuple((p.x or 0.0, p.bound) for p in curve if p.bound)


def format_tables(records: Sequence[Row], about: Mapping[str, Any]) -> dict[str, str]:
    """The complete table as ``csv``, ``md`` and for the ``terminal``."""
    rows = rows_of(records, about)
    names, body, sections = _by_cell(rows, about) if about["table"] else _by_point(rows, about)
    csv = csv_lines(names, ([format_exact(value) for value in line] for line in body))
    return summary_table.format_tables(csv, Table(sections, tuple(_notes(rows, about))))


def choose_table(records: Sequence[Row], about: Mapping[str, Any]) -> ChosenTable:
    """The table of an experiment for a column of a page, a group for each part or panel."""
    rows = rows_of(records, about)
    columns, groups = _choose_cells(rows, about) if about["table"] else _choose_points(rows, about)
    caption, *notes = _notes(rows, about)
    shared = [i for i, column in enumerate(columns) if _is_constant(groups, i)]
    lines = [line for group in groups for line in group.lines]
    told = [f"{columns[i].head} {lines[0][i]}" for i in shared if lines]
    made = ChosenTable(caption, tuple(columns), tuple(groups), ())
    kept = [i for i in range(len(columns)) if i not in shared] or list(range(len(columns)))
    remarks = [f"In all lines: {', '.join(told)}", *notes] if told else notes
    return replace(made.keep_columns(kept), remarks=tuple((note, "") for note in remarks))


def _is_constant(groups: Sequence[Group], place: int) -> bool:
    """Whether more than one line has the same in a column, so that a note can say it."""
    texts = [line[place] for group in groups for line in group.lines]
    return len(texts) > 1 and len(set(texts)) == 1


def _choose_cells(
    rows: Sequence[Row], about: Mapping[str, Any]
) -> tuple[list[Column], list[Group]]:
    names = list(about["table"])
    groups, left = [], set()
    for part in about["parts"]:
        mine = [row for row in rows if part["name"] in row["_parts"]]
        found = [[_cell(group, name) for name in names] for group in group_cells(mine).values()]
        left |= {i for line in found for i, value in enumerate(line) if isinstance(value, str)}
        if found:
            texts = tuple(
                tuple(write_value(*pair) for pair in zip(names, line, strict=True))
                for line in found
            )
            groups.append(Group(part["text"] or part["name"], texts))
    heads = [" ".join(name.replace(".", " ").split("_")) for name in names]
    pairs = enumerate(zip(names, heads, strict=True))
    return [Column(name, head, i in left) for i, (name, head) in pairs], groups


POINT_COLUMNS = (
    Column("curve", "curve", left=True, needed=True), Column("at", "at", left=True, needed=True),
    Column("value", "value"), Column("slope", "slope"), Column("band", BAND_WORDS),
    Column("bound_upper", "upper bound"), Column("bound_lower", "lower bound"),
    Column("floor", "floor"),
)  # fmt: skip


def _choose_points(
    rows: Sequence[Row], about: Mapping[str, Any]
) -> tuple[list[Column], list[Group]]:
    groups = []
    for panel in about["plot"]:
        texts = [
            write_point(line, first=place == 0)
            for curve in curves(rows, panel)
            for place, line in enumerate(_lines(panel, curve))
        ]
        if texts:
            what = f"{make_selection(panel).statistic} {panel['y'].replace('_', ' ')}"
            groups.append(Group(f"{title(about, panel)}; {what}", tuple(texts)))
    every = [line for group in groups for line in group.lines]
    kept = [i for i in range(len(POINT_COLUMNS)) if any(line[i] not in ("-", "") for line in every)]
    made = ChosenTable("", POINT_COLUMNS, tuple(groups), ()).keep_columns(kept)
    return list(made.columns), list(made.groups)


def write_point(line: Sequence[Any], first: bool) -> tuple[str, ...]:
    """The cells of a point in ``POINT_COLUMNS``; the first of a curve has the slope of all.

    Args:
        line: The values that ``table.csv`` has of it, in the order of ``POINTS``.
        first: Whether it is the first of its curve.
    """
    point = dict(zip(POINTS, line, strict=True))
    low, high = point["q05"], point["q95"]
    half = (high - low) / 2 if None not in (low, high) and point["trials"] > 1 else None
    band = f"{round_number(low, half, 3)} .. {round_number(high, half, 3)}" if half else "-"
    slope, error = point["slope"] if first else None, point["slope_error"]
    told = "" if slope is None else round_pair(slope, error)
    at = f"{str(point['axis']).rpartition('.')[2]} {format_value(point['x'])}"
    bounds = [round_number(point[name]) for name in ("bound_upper", "bound_lower", "floor")]
    return (point["curve"], at, round_number(point["value"], half, 3), told, band, *bounds)


def _by_cell(
    rows: Sequence[Row], about: Mapping[str, Any]
) -> tuple[Sequence[str], list[list[Any]], tuple[Section, ...]]:
    """One line a cell, with the columns the experiment names."""
    names, body, sections = list(about["table"]), [], []
    for part in about["parts"]:
        mine = [row for row in rows if part["name"] in row["_parts"]]
        lines = [[_cell(group, name) for name in names] for group in group_cells(mine).values()]
        body += [[part["name"], *line] for line in lines]
        if lines:
            sections.append(_section(part["text"] or part["name"], names, lines))
    return ["part", *names], body, tuple(sections)


def _cell(rows: Sequence[Row], name: str) -> Any:
    found = summarise_cell(rows) if name in SUMMARY_NAMES and name not in rows[0] else rows[0]
    return found.get(name)


def _by_point(
    rows: Sequence[Row], about: Mapping[str, Any]
) -> tuple[Sequence[str], list[list[Any]], tuple[Section, ...]]:
    """One line a point of the figure: families and repetitions are already taken together."""
    body, sections = [], []
    for panel in about["plot"]:
        lines = [line for curve in curves(rows, panel) for line in _lines(panel, curve)]
        body += lines
        if lines:
            statistic = make_selection(panel).statistic
            kept = [i for i in range(1, len(POINTS)) if any(line[i] is not None for line in lines)
                    and POINTS[i] != statistic]  # fmt: skip
            heads = [_head(POINTS[i], statistic) for i in kept]
            shown = [[line[i] for i in kept] for line in lines]
            sections.append(_section(title(about, panel), heads, shown))
    return POINTS, body, tuple(sections)


def _head(name: str, statistic: str) -> str:
    """A column's name for people: the value is the panel's statistic, and is judged as such."""
    if name == "value":
        return statistic
    return f"saturated at {statistic}" if name == "saturated" and statistic != "median" else name


def _lines(panel: Mapping[str, Any], curve: Curve) -> list[list[Any]]:
    slope, half = (curve.fit.slope, curve.fit.half) if curve.fit else (None, None)
    upper, lower = (_bounds(curve, side) for side in ("upper", "lower"))
    return [
        ["+".join(panel["part"]), curve.label, panel["x"], p.x, panel["y"], p.value, p.low, p.high,
         p.trials, p.floor, p.is_near_floor, slope, half, upper.get(p.x or 0.0),
         lower.get(p.x or 0.0)]
        for p in curve.points
    ]  # fmt: skip


def _bounds(curve: Curve, side: str) -> dict[float, float]:
    """The explicit bound that the panel draws, on whichever risk, by place."""
    drawn = curve.lines.get(f"bound_{side}") or curve.lines.get(f"population_bound_{side}", ())
    return dict(drawn)


def _section(title: str, names: Sequence[str], lines: Sequence[Sequence[Any]]) -> Section:
    heads = []
    for place, name in enumerate(names):
        top, _, low = name.rpartition(".")
        left = any(isinstance(line[place], str) for line in lines)
        words = (top or low).replace("_", " "), low.replace("_", " ") if top else ""
        heads.append(Field(*words, lambda row: "", left))
    body = tuple(tuple(_word(value) for value in line) for line in lines)
    return Section((title,), tuple(heads), body)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_value(value, 5)


def title(about: Mapping[str, Any], panel: Mapping[str, Any]) -> str:
    """A panel's title, by default what its parts are about."""
    words = {part["name"]: part["text"] or part["name"] for part in about["parts"]}
    return panel["title"] or "; ".join(words[name] for name in panel["part"] or words)


def _notes(rows: Sequence[Row], about: Mapping[str, Any]) -> list[str]:
    notes = [f"{about['id']} {about['paper']}, size={about['size']}: {about['text']}".strip()]
    for part in about["parts"]:
        if part["absent"]:
            notes.append(f"{part['name']}: not run: {part['absent']}")
    left = [row for row in rows if row["status"] in ("unsupported", "failed")]
    by_reason = group_by(left, lambda row: (row["status"], row["mechanism"], row["reason"]))
    for (status, mechanism, reason), group in by_reason.items():
        cells = format_count(len(group), "cell")
        notes.append(f"{status}: {mechanism}, {cells}: {' '.join(str(reason).split())}")
    notes += _list_references(rows, about)
    if any(row["status"] == "ok" for row in rows):
        notes.append("Statistics over trials are a simulation on the same data, not a release.")
    if any(row["guarantee"] == "none" for row in rows):
        notes.append("guarantee none: those rows are NOT private.")
    return notes


def _list_references(rows: Sequence[Row], about: Mapping[str, Any]) -> list[str]:
    """What the metrics that a table shows are judged by, a line for each problem that ran."""
    names = {"train_metric", "test_metric"}
    shown = [panel["part"] for panel in about["plot"] if panel["y"] in names]
    every = names & set(about["table"]) or any(not parts for parts in shown)
    asked = {name for parts in shown for name in parts}
    found: dict[str, None] = {}
    for part in about["parts"]:
        mine = [row for row in rows if row["status"] == "ok" and part["name"] in row["_parts"]]
        if not (every or part["name"] in asked):
            continue
        for problem, group in group_by(mine, _name_problem).items():
            told = tell_references(group)
            found |= {f"{problem}: {told}": None} if told else {}
    return list(found)


def _name_problem(row: Row) -> str:
    words = [row["dataset"], row["loss"], format_constraint(row)]
    return ", ".join(words + ([f"ridge {format_value(row['ridge'])}"] if row["ridge"] else []))


def verdicts_text(verdicts: Sequence[claims.Verdict]) -> str:
    """A line per claim for people, with the numbers below it where they decide."""
    lines = []
    for verdict in verdicts:
        claim = verdict.claim
        word, note = verdict.verdict, f" ({verdict.note})" if verdict.note else ""
        about = f" ({claim.tolerance_text})" if claim.tolerance_text and verdict.findings else ""
        lines.append(f"{word:<15} {claim.id}: {claim.text} [{claim.theorem}]{about}{note}")
        lines += [f"{'':<16}{text}" for text in evidence(verdict)]
    return "\n".join(lines) + "\n"


def evidence(verdict: claims.Verdict, most: int = 6) -> list[str]:
    """What was measured; of many findings those that fail first."""
    ranked = sorted(verdict.findings, key=lambda f: {False: 0, None: 1, True: 2}[f.holds])
    words = {True: "holds", False: "does not", None: "undecided"}
    lines = [": ".join(filter(None, (f.label, f"{f.measured} ({words[f.holds]})")))
             for f in ranked[:most]]  # fmt: skip
    more = len(ranked) - most
    return [*lines, *([f"and {more} more"] if more > 0 else [])]


def verdicts_json(verdicts: Sequence[claims.Verdict], about: Mapping[str, Any]) -> bytes:
    """The bytes of ``claims.json``."""
    found = {
        "experiment": about["id"],
        "size": about["size"],
        "claims": [verdict.plain() for verdict in verdicts],
    }
    return json.dumps(found, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"
