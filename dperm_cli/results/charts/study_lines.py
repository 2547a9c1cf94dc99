"""The lines of a study's panel that are no curves: floor, bounds, what a metric is judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dperm_cli.results.charts.chart_model import LINE_STYLES, ReferenceLine
from dperm_cli.results.charts.study_view import Quantity
from dperm_cli.results.records.references import COLUMNS, find_references
from dperm_cli.results.records.row_facts import Row, distinct, group_by, number


def list_lines(rows: Sequence[Row], quantity: Quantity) -> list[ReferenceLine]:
    """The floor, explicit bounds, and bounds up to a constant, which is fitted.

    An upper bound is one of a mechanism, whose constant it has; the constant of a lower one is that
    of all curves. A metric has its baseline and that of the non-private optimum; another quantity
    has no lines. ``_x`` of a row is its place.
    """
    if quantity.column in ("test_metric", "train_metric"):
        return _list_references(rows, quantity.column)
    if not quantity.is_risk:
        return []
    if quantity.is_per_record:
        rows = [_divide(row) for row in rows]
    floors = [row for row in rows if row["floor_excess_risk"]]
    lines = _list_floors(floors)
    several = len(distinct(rows, "_name")) > 1
    for kind in ("bound_upper", "bound_lower", "order_lower"):
        lines += _list_bounds(rows, kind, several and kind != "order_lower")
    for mine in group_by(rows, lambda row: row["_name"]).values():
        lines += _list_bounds(mine, "order_upper", True)
    return lines


def _list_references(rows: Sequence[Row], column: str) -> list[ReferenceLine]:
    """What a metric is judged by, where all rows share it and it is of the same records."""
    if any((row.get("test_metric") is None) != (column == "train_metric") for row in rows):
        return []
    first = find_references(rows)
    if first is None:
        return []
    labels = {"baseline_metric": f"baseline ({first['baseline']})"}
    return [
        ReferenceLine(name.partition("_")[0], labels.get(name, COLUMNS[name]), (), (first[name],))
        for name in ("optimum_metric", "baseline_metric")
        if first[name] is not None and math.isfinite(first[name])
    ]


def _list_floors(rows: Sequence[Row]) -> list[ReferenceLine]:
    """The floor, or that of each curve where curves of one panel have several."""
    words, places = LINE_STYLES["floor"].words, group_by(rows, lambda row: row["_x"]).values()
    if all(len(distinct(group, "floor_excess_risk")) == 1 for group in places):
        return [_line("floor", words, rows)] if rows else []
    curves = group_by(rows, lambda row: row["_curve"])
    return [replace(_line("floor", f"{words}, {name}", group), mechanism=name)
            for name, group in curves.items()]  # fmt: skip


def fit_order(points: Sequence[tuple[float, float, float]], upper: bool) -> float | None:
    """The constant with which an order bound is drawn.

    ``points`` holds (x, measured, bound with constant one) of the points that are not
    saturated. The constant is the largest ratio of measured to bound (for a lower bound the
    smallest), so that the line touches the data from its side and its slope can be compared.
    It is a drawing aid and no test of the theorem. None with fewer than three places on the axis.
    """
    if len({x for x, _, _ in points}) < 3:
        return None
    ratios = [measured / bound for _, measured, bound in points]
    return max(ratios) if upper else min(ratios)


def _divide(row: Row) -> Row:
    """A row with its sums over the records divided by their number."""
    names = ("excess_risk_median", "floor_excess_risk", *_BOUNDS)
    return {**row, **{k: row[k] / row["n"] for k in names if row.get(k) is not None}}


_BOUNDS = ("bound_upper", "bound_lower", "order_upper", "order_lower")


def _list_bounds(rows: Sequence[Row], kind: str, owned: bool) -> list[ReferenceLine]:
    """The lines of one kind; ``owned`` ones name their mechanism where they have a single one."""
    what, side = kind.split("_")
    name = _make_bound_namer(rows, kind)
    known = [row for row in rows if row[kind] is not None and row[kind] > 0]
    lines = []
    for theorem, group in group_by(known, name).items():
        whose = ", worst data set" if side == "lower" else ""
        constant = fit_order(_fit_points(group, kind), side == "upper")
        if what == "bound":
            line = _line(kind, f"{side} bound {theorem}{whose}", group)
        elif constant is not None:
            line = _line(kind, f"{side} order {theorem}{whose}", group, constant)
        else:
            continue
        of = distinct(group, "_name")
        lines.append(replace(line, mechanism=of[0]) if owned and len(of) == 1 else line)
    return lines


def _line(
    kind: str, label: str, rows: Sequence[Row], constant: float | None = None
) -> ReferenceLine:
    column = "floor_excess_risk" if kind == "floor" else kind
    series = {float(row["_x"]): (constant or 1.0) * row[column] for row in rows}
    xs = tuple(sorted(series))
    # the same theorem at the larger noise of the paper is drawn faintly
    faint, fitted = label.endswith("paper)"), "" if constant is None else number(constant, 2)
    return ReferenceLine(
        kind, label, xs, tuple(series[x] for x in xs), constant=fitted, faint=faint
    )


def _make_bound_namer(rows: Sequence[Row], column: str) -> Callable[[Row], str]:
    """Names a bound by its theorem, and by its curve too where curves disagree on its value."""
    values = group_by(
        [row for row in rows if row[column] is not None],
        lambda row: (row[f"{column}_id"], row["_x"]),
    )
    torn = {key[0] for key, group in values.items() if len(distinct(group, column)) > 1}

    def name(row: Row) -> str:
        theorem = row[f"{column}_id"] or "unnamed"
        who = f" ({row['_name']}, {row['calibration']})" if row[f"{column}_id"] in torn else ""
        return f"{theorem}{who}"

    return name


def _fit_points(rows: Sequence[Row], column: str) -> list[tuple[float, float, float]]:
    """Unsaturated points of the tight curves, or of all curves where none is tight."""
    rows = [row for row in rows if row["calibration"] == "tight"] or list(rows)
    return [
        (float(row["_x"]), row["excess_risk_median"], row[column])
        for row in rows
        if not row["saturated"] and row["excess_risk_median"] > 0
    ]
