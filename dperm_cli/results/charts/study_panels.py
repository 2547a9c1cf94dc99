"""Turn summary rows into what a figure draws: panels, curves, floor and bound lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.results.charts.chart_model import (
    AXIS_WORDS,
    LINE_STYLES,
    NO_GUARANTEE,
    Axis,
    Curve,
    Panel,
    ReferenceLine,
)
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.records.row_facts import (
    Row,
    distinct,
    find_partial_keys,
    find_variants,
    group_by,
    is_curve_key,
    name_of,
    number,
    title_of,
)


def axis_of(rows: Sequence[Row]) -> str:
    """The horizontal axis: epsilon, unless it has one value while n or p has several."""
    for name in ("epsilon", "n", "p"):
        if len(distinct(rows, name)) > 1:
            return name
    return "epsilon"


def panels(rows: Sequence[Row]) -> list[Panel]:
    """One panel per problem and relation, in the order of the rows; cells that ran only."""
    ran = drawn_rows(rows)
    axis = axis_of(ran)
    some = find_partial_keys(ran)
    tagged = [_tag_row(row, tags, some) for row, tags in zip(ran, find_variants(ran), strict=True)]
    groups = group_by(tagged, lambda row: _problem(row, axis)).values()
    parts = [part for group in groups for part in _by_delta(group, axis)]
    # both calibrations of a mechanism share a colour and a mark, in all panels
    looks = distinct([row for part in parts for row in part], "_look")
    return [_panel(part, axis, looks) for part in parts]


def drawn_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows that have something to draw."""
    return [row for row in rows if row["status"] == "ok" and row["excess_risk_median"] is not None]


def _tag_row(row: Row, tags: dict[str, str], some: frozenset[str]) -> Row:
    """A row with its name, and its settings parted into the curve's and the problem's."""
    mine = {key: value for key, value in tags.items() if is_curve_key(key) or key in some}
    rest = {key: value for key, value in tags.items() if key not in mine}
    tagged = {**row, "_name": name_of(row), "_mine": mine, "_rest": rest}
    return {**tagged, "_look": (tagged["_name"], _variant(tagged))}


def _by_delta(rows: list[Row], axis: str) -> list[list[Row]]:
    """The rows of one problem by delta, but pure and approximate mechanisms side by side.

    Whoever compares them asked for one delta, which pure ones do not use. Where one mechanism
    has several deltas, they were asked for and have a panel each. n moves delta (1/n^2).
    """
    if axis == "n":
        return [rows]
    curves = group_by(rows, _curve_key).values()
    several = any(len(distinct(group, "delta")) > 1 for group in curves)
    if several or len({row["delta"] for row in rows if row["delta"]}) > 1:
        return list(group_by(rows, lambda row: row["delta"]).values())
    return [rows]


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


def _problem(row: Row, axis: str) -> tuple[Any, ...]:
    names = ["dataset", "loss", "constraint", "constraint_radius", "relation", "ridge", "lasso"]
    names += ["preprocessing", "n", "p"]
    # n and p may move whatever a data set derives from its size.
    follows = {"n": {"n", "preprocessing"}, "p": {"p", "preprocessing"}}.get(axis, set())
    return (*(row[name] for name in names if name not in follows), *row["_rest"].items())


def _curve_key(row: Row) -> tuple[str, str, str, bool]:
    """What the points of one curve share: name, calibration, settings, guarantee or none."""
    none = row["guarantee"] == "none"
    return row["_name"], str(row["calibration"] or ""), row["_look"][1], none


def _panel(rows: Sequence[Row], axis: str, looks: list[tuple[str, str]]) -> Panel:
    first = rows[0]
    deltas = [delta for delta in distinct(rows, "delta") if delta] or distinct(rows, "delta")
    facts = [f"{name} = {number(first[name])}" for name in ("n", "p") if _same(rows, name)]
    facts += [str(first["relation"])]
    facts += _local_words(rows)
    facts += [f"delta = {number(deltas[0], 3)}"] if len(deltas) == 1 and deltas != [None] else []
    facts += [f"{k} = {value}" for k, value in first["_rest"].items() if k != "kernel.name"]
    places = distinct(rows, axis)
    single = len(places) == 1
    label = f"{AXIS_WORDS[axis]} = {number(places[0])}" if single else AXIS_WORDS[axis]
    names = [name for name, _ in looks]
    lines = _list_lines(rows, axis)
    return Panel(
        title=title_of(rows),
        x=Axis(label, "names" if single else "log"),
        y=Axis("excess risk (sum over records)"),
        curves=tuple(
            _curve(group, axis, _note(group, rows), looks)
            for group in group_by(rows, _curve_key).values()
        ),
        lines=tuple(
            line if line.mechanism is None else replace(line, look=names.index(line.mechanism))
            for line in lines
        ),
        details=(", ".join(facts),),
        n=first["n"] if _same(rows, "n") else None,
    )


def _local_words(rows: Sequence[Row]) -> list[str]:
    """What a panel of local guarantees says; mixed with others, its curves say it."""
    if not _are_all_local(rows):
        return []
    asked = distinct(rows, "information")
    value = f" = {number(asked[0])}" if len(asked) == 1 else ""
    return ["local privacy", *[f"epsilon implied by information{value}"] * (None not in asked)]


def _note(mine: Sequence[Row], rows: Sequence[Row]) -> str:
    """How the guarantee of one curve's rows differs from that of others in the panel."""
    if _are_all_local(mine):
        return "" if _are_all_local(rows) else "local"
    several = len(distinct(rows, "delta")) > 1
    return "delta 0" if several and not any(row["delta"] for row in mine) else ""


def _are_all_local(rows: Sequence[Row]) -> bool:
    return all(row["guarantee"] == "local" for row in rows)


def _variant(row: Row) -> str:
    """Values of the mechanism's own settings that set this curve apart."""
    short = ((key.partition(".")[2] if is_curve_key(key) else key, key) for key in row["_mine"])
    return ", ".join(f"{name or key} {row['_mine'][key]}" for name, key in short)


def _same(rows: Sequence[Row], name: str) -> bool:
    return rows[0][name] is not None and len(distinct(rows, name)) == 1


def _curve(rows: Sequence[Row], axis: str, note: str, looks: list[tuple[str, str]]) -> Curve:
    name, calibration, variant, none = _curve_key(rows[0])
    return Curve(
        name,
        tuple(sorted((_point(row, axis) for row in rows), key=lambda point: point.x or 0.0)),
        looks.index((name, variant)),
        calibration,
        variant,
        NO_GUARANTEE if none else note,
        dashed=calibration == "paper",
    )


def _point(row: Row, axis: str) -> Point:
    median = row["excess_risk_median"]
    low, high = row["excess_risk_q05"], row["excess_risk_q95"]
    return Point(
        x=float(row[axis]),
        value=median,
        low=median if low is None else low,
        high=median if high is None else high,
        error=0.0,
        trials=row["trials"],
        floor=row["floor_excess_risk"],
        cells=(row["cell"],),
        gap=row["optimum_gap"] or 0.0,
        epsilon_accounted=row["epsilon_accounted"],
    )


def _list_lines(rows: Sequence[Row], axis: str) -> list[ReferenceLine]:
    """The floor, explicit bounds, and bounds up to a constant, which is fitted.

    An upper bound is one of a mechanism, whose constant it has; the constant of a lower one is that
    of all curves.
    """
    floors = [row for row in rows if row["floor_excess_risk"]]
    lines = [_line("floor", LINE_STYLES["floor"].words, floors, axis)] if floors else []
    several = len(distinct(rows, "_name")) > 1
    for kind in ("bound_upper", "bound_lower", "order_lower"):
        lines += _list_bounds(rows, axis, kind, several and kind != "order_lower")
    for mine in group_by(rows, lambda row: row["_name"]).values():
        lines += _list_bounds(mine, axis, "order_upper", True)
    return lines


def _list_bounds(rows: Sequence[Row], axis: str, kind: str, owned: bool) -> list[ReferenceLine]:
    """The lines of one kind; ``owned`` ones name their mechanism where they have a single one."""
    what, side = kind.split("_")
    name = _make_bound_namer(rows, axis, kind)
    known = [row for row in rows if row[kind] is not None and row[kind] > 0]
    lines = []
    for theorem, group in group_by(known, name).items():
        whose = ", worst data set" if side == "lower" else ""
        constant = fit_order(_fit_points(group, axis, kind), side == "upper")
        if what == "bound":
            line = _line(kind, f"{side} bound {theorem}{whose}", group, axis)
        elif constant is not None:
            comma = "," if whose else ""
            line = _line(kind, f"{side} order {theorem}{whose}{comma}", group, axis, constant)
        else:
            continue
        of = distinct(group, "_name")
        lines.append(replace(line, mechanism=of[0]) if owned and len(of) == 1 else line)
    return lines


def _line(
    kind: str, label: str, rows: Sequence[Row], axis: str, constant: float | None = None
) -> ReferenceLine:
    column = "floor_excess_risk" if kind == "floor" else kind
    series = {float(row[axis]): (constant or 1.0) * row[column] for row in rows}
    xs = tuple(sorted(series))
    # the same theorem at the larger noise of the paper is drawn faintly
    faint, fitted = label.endswith("paper)"), "" if constant is None else number(constant, 2)
    return ReferenceLine(
        kind, label, xs, tuple(series[x] for x in xs), constant=fitted, faint=faint
    )


def _make_bound_namer(rows: Sequence[Row], axis: str, column: str) -> Callable[[Row], str]:
    """Names a bound by its theorem, and by its curve too where curves disagree on its value."""
    values = group_by(
        [row for row in rows if row[column] is not None],
        lambda row: (row[f"{column}_id"], row[axis]),
    )
    torn = {key[0] for key, group in values.items() if len(distinct(group, column)) > 1}

    def name(row: Row) -> str:
        theorem = row[f"{column}_id"] or "unnamed"
        who = f" ({row['_name']}, {row['calibration']})" if row[f"{column}_id"] in torn else ""
        return f"{theorem}{who}"

    return name


def _fit_points(rows: Sequence[Row], axis: str, column: str) -> list[tuple[float, float, float]]:
    """Unsaturated points of the tight curves, or of all curves where none is tight."""
    rows = [row for row in rows if row["calibration"] == "tight"] or list(rows)
    return [
        (float(row[axis]), row["excess_risk_median"], row[column])
        for row in rows
        if not row["saturated"] and row["excess_risk_median"] > 0
    ]
