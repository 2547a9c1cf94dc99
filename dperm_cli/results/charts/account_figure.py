"""The figure of ``dperm account``: epsilon against noise, certified against nominal epsilon."""

from __future__ import annotations

from collections.abc import Sequence

from dperm_cli.results.charts.chart_model import Axis, Curve, Figure, Panel, ReferenceLine
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.figure_drawing import draw_files as draw_figure
from dperm_cli.results.charts.mechanism_looks import choose_looks
from dperm_cli.results.records.row_facts import Row, csv_lines, distinct, group_by, number

COLUMNS = (
    "panel", "mechanism", "calibration", "relation", "n", "delta", "noise_scale", "epsilon",
    "epsilon_accounted",
)  # fmt: skip


def draw_files(rows: Sequence[Row], points: Sequence[Row]) -> dict[str, bytes]:
    """Names and bytes: the points as CSV and, where there are any, the figure in all formats."""
    found = {"account.csv": _csv(points)}
    if points:
        drawn = draw_figure(_build_figure(rows, points))
        found |= {f"account.{ending}": data for ending, data in drawn.items()}
    return found


def _csv(points: Sequence[Row]) -> bytes:
    rows = [["" if point[k] is None else point[k] for k in COLUMNS] for point in points]
    return csv_lines(COLUMNS, rows).encode()


def _build_figure(rows: Sequence[Row], points: Sequence[Row]) -> Figure:
    looks = choose_looks(distinct([*rows, *points], "mechanism"))
    noise = _plot_noise([p for p in points if p["panel"] == "noise"], rows, looks)
    certified = _plot_calibrations([p for p in points if p["panel"] == "certified"], looks)
    first = points[0]
    title = f"n = {number(first['n'])}, delta = {number(first['delta'], 3)}, {first['relation']}"
    return Figure(tuple(panel for panel in (noise, certified) if panel.xs), title)


def _plot_noise(points: Sequence[Row], rows: Sequence[Row], looks: dict[str, int]) -> Panel:
    """One curve per mechanism; the rows of the table as markers on it."""
    curves = []
    for name, group in group_by(points, lambda point: point["mechanism"]).items():
        asked = [r for r in rows if r["mechanism"] == name and r["n"] == group[0]["n"]]
        asked = [r for r in asked if r["status"] == "ok" and r["epsilon_accounted"]]
        look = looks[name]
        curves.append(Curve(name, _points(group, "noise_scale"), look, marked=False))
        curves.append(Curve(name, _points(asked, "noise_scale"), look, joined=False))
    x, y = Axis("noise scale (mechanism's unit)"), Axis("certified epsilon")
    return Panel("what a noise certifies", x, y, tuple(curves))


def _plot_calibrations(points: Sequence[Row], looks: dict[str, int]) -> Panel:
    """One line per mechanism and calibration, below the diagonal where calibration loses
    epsilon.
    """
    curves, order = [], distinct(points, "mechanism")
    for (name, how), group in group_by(
        points, lambda p: (p["mechanism"], p["calibration"])
    ).items():
        look, above = looks[name], len(order) - 1 - order.index(name)
        # calibrations that lose nothing coincide: lower curves are drawn wider, to show as a rim
        rim = 1.1 * above if how == "tight" else 0.0
        placed = _points(group, "epsilon")
        curves.append(Curve(name, placed, look, how or "", pattern=int(how != "tight"), rim=rim))
    ends = tuple(f([p["epsilon"] for p in points], default=1.0) for f in (min, max))
    nominal = ReferenceLine("nominal", "nominal", ends, ends)
    x, y = Axis("nominal epsilon"), Axis("certified epsilon")
    return Panel("what a calibration certifies", x, y, tuple(curves), (nominal,))


def _points(rows: Sequence[Row], axis: str) -> tuple[Point, ...]:
    values = [(row[axis], row["epsilon_accounted"]) for row in rows]
    return tuple(Point(x, value, value, value, 0.0, 1) for x, value in values)
