"""From summary rows to what a figure draws: panels, curves, floor and bound lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dperm_cli.results.facts import Row, constraint, distinct, grouped, number, variants

AXIS_WORDS = {"epsilon": "epsilon", "n": "number of records n", "p": "number of parameters p"}


@dataclass(frozen=True)
class Point:
    """One cell: median and band of the excess risk (sums), and what goes with it."""

    x: float
    median: float
    low: float
    high: float
    gap: float
    trials: int
    epsilon_accounted: float | None
    saturated: bool


@dataclass(frozen=True)
class Curve:
    """The cells of one mechanism under one calibration, by ascending x."""

    mechanism: str
    calibration: str
    variant: str
    points: tuple[Point, ...]

    @property
    def hue(self) -> tuple[str, str]:
        """What gives a curve its colour: both calibrations of a mechanism share it."""
        return self.mechanism, self.variant

    @property
    def label(self) -> str:
        """How the legend names the curve."""
        return ", ".join(word for word in (self.mechanism, self.calibration, self.variant) if word)


@dataclass(frozen=True)
class Line:
    """A reference line: ``kind`` is floor, upper, lower, order_upper or order_lower.

    ``mechanism`` is set when the line speaks of that mechanism only, ``constant`` where one was
    fitted.
    """

    kind: str
    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    mechanism: str | None = None
    constant: str = ""


@dataclass(frozen=True)
class Panel:
    """One problem: its curves and lines; ``n`` is None where it varies."""

    title: str
    detail: str
    n: int | None
    curves: tuple[Curve, ...]
    lines: tuple[Line, ...]


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
    tagged = [{**row, "_variant": tags} for row, tags in zip(ran, variants(ran), strict=True)]
    groups = grouped(tagged, lambda row: _problem(row, axis))
    return [_panel(group, axis) for group in groups.values()]


def drawn_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows that have something to draw."""
    return [row for row in rows if row["status"] == "ok" and row["excess_risk_median"] is not None]


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
    names += ["preprocessing", "n", "p", "delta"]
    # n moves delta (1/n^2) and may move whatever a data set derives from its size.
    follows = {"n": {"n", "delta", "preprocessing"}, "p": {"p", "preprocessing"}}.get(axis, set())
    tags = tuple((k, v) for k, v in row["_variant"].items() if not _of_mechanism(k))
    return (*(row[name] for name in names if name not in follows), tags)


def _of_mechanism(key: str) -> bool:
    return key.startswith("mechanism.")


def _panel(rows: Sequence[Row], axis: str) -> Panel:
    first = rows[0]
    groups = grouped(rows, lambda row: (row["mechanism"], row["calibration"], _variant(row)))
    facts = [f"{name} = {number(first[name])}" for name in ("n", "p") if _same(rows, name)]
    facts += [str(first["relation"])]
    facts += [f"delta = {number(first['delta'], 3)}"] if _same(rows, "delta") else []
    facts += [
        f"{key} = {value}" for key, value in first["_variant"].items() if not _of_mechanism(key)
    ]
    return Panel(
        title=f"{first['dataset']}, {first['loss']}, {constraint(first)}",
        detail=", ".join(facts),
        n=first["n"] if _same(rows, "n") else None,
        curves=tuple(_curve(key, group, axis) for key, group in groups.items()),
        lines=(*_floor(rows, axis), *_explicit(rows, axis), *_order(rows, axis)),
    )


def _variant(row: Row) -> str:
    """Values of the mechanism's own settings that set this curve apart."""
    mine = ((k, v) for k, v in row["_variant"].items() if _of_mechanism(k))
    return ", ".join(f"{key.partition('.')[2]} {value}" for key, value in mine)


def _same(rows: Sequence[Row], name: str) -> bool:
    return rows[0][name] is not None and len(distinct(rows, name)) == 1


def _curve(key: tuple[Any, ...], rows: Sequence[Row], axis: str) -> Curve:
    points = sorted((_point(row, axis) for row in rows), key=lambda point: point.x)
    return Curve(str(key[0]), str(key[1] or ""), key[2], tuple(points))


def _point(row: Row, axis: str) -> Point:
    median = row["excess_risk_median"]
    low, high = row["excess_risk_q05"], row["excess_risk_q95"]
    return Point(
        x=float(row[axis]),
        median=median,
        low=median if low is None else low,
        high=median if high is None else high,
        gap=row["optimum_gap"] or 0.0,
        trials=row["trials"],
        epsilon_accounted=row["epsilon_accounted"],
        saturated=bool(row["saturated"]),
    )


def _reference(
    rows: Sequence[Row], axis: str, name: str, label: Callable[[Row], str]
) -> list[tuple[str, dict[float, float]]]:
    """The different series x -> value that a column takes, by label."""
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        if row[name] is not None and row[name] > 0:
            found.setdefault(label(row), {})[float(row[axis])] = row[name]
    return list(found.items())


def _line(kind: str, label: str, series: dict[float, float]) -> Line:
    xs = tuple(sorted(series))
    return Line(kind, label, xs, tuple(series[x] for x in xs))


def _floor(rows: Sequence[Row], axis: str) -> list[Line]:
    series = _reference(rows, axis, "floor_excess_risk", lambda _: "data-free floor")
    return [_line("floor", label, values) for label, values in series]


def _named(rows: Sequence[Row], axis: str, column: str) -> Callable[[Row], str]:
    """Names a bound by its theorem, and by its curve too where curves disagree on its value."""
    values = grouped(
        [row for row in rows if row[column] is not None],
        lambda row: (row[f"{column}_id"], row[axis]),
    )
    torn = {key[0] for key, group in values.items() if len(distinct(group, column)) > 1}

    def name(row: Row) -> str:
        theorem = row[f"{column}_id"] or "unnamed"
        who = f" ({row['mechanism']}, {row['calibration']})" if row[f"{column}_id"] in torn else ""
        return f"{theorem}{who}"

    return name


def _explicit(rows: Sequence[Row], axis: str) -> list[Line]:
    lines = []
    for side in ("upper", "lower"):
        name = _named(rows, axis, f"bound_{side}")
        for label, series in _reference(rows, axis, f"bound_{side}", name):
            whose = ", worst data set" if side == "lower" else ""
            lines.append(_line(side, f"{side} bound {label}{whose}", series))
    return lines


def _order(rows: Sequence[Row], axis: str) -> list[Line]:
    """Order bounds with fitted constants: upper ones per mechanism, lower ones for all curves."""
    lines = _fitted(rows, axis, "lower", None)
    for mechanism in distinct(rows, "mechanism"):
        mine = [row for row in rows if row["mechanism"] == mechanism]
        lines += _fitted(mine, axis, "upper", mechanism)
    return lines


def _fitted(rows: Sequence[Row], axis: str, side: str, mechanism: str | None) -> list[Line]:
    lines = []
    column = f"order_{side}"
    name = _named(rows, axis, column)
    for label, series in _reference(rows, axis, column, name):
        mine = [row for row in rows if row[column] is not None and name(row) == label]
        constant = fit_order(_fit_points(mine, axis, column), upper=side == "upper")
        if constant is not None:
            whose = ", worst data set," if side == "lower" else ""
            scaled = {x: constant * value for x, value in series.items()}
            line = _line(column, f"{side} order {label}{whose}", scaled)
            lines.append(replace(line, mechanism=mechanism, constant=number(constant, 2)))
    return lines


def _fit_points(rows: Sequence[Row], axis: str, column: str) -> list[tuple[float, float, float]]:
    """Unsaturated points of the tight curves, or of all curves where none is tight."""
    rows = [row for row in rows if row["calibration"] == "tight"] or list(rows)
    return [
        (float(row[axis]), row["excess_risk_median"], row[column])
        for row in rows
        if not row["saturated"] and row["excess_risk_median"] > 0 and row[column] > 0
    ]
