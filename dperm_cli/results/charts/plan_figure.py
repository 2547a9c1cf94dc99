"""The figure of ``dperm plan``: foreseen risk against epsilon or n, with its band."""

from __future__ import annotations

from collections.abc import Sequence

from dperm_cli.results.charts.chart_model import Axis, Curve, Figure, Panel
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.figure_drawing import draw_files as draw_figure
from dperm_cli.results.charts.mechanism_looks import choose_looks
from dperm_cli.results.records.row_facts import Row, csv_lines, distinct, group_by

COLUMNS = (
    "mechanism",
    "axis",
    "value",
    "excess_risk_per_record",
    "median_low",
    "median_high",
    "q05",
    "q95",
)


def draw_files(points: Sequence[Row]) -> dict[str, bytes]:
    """Names and bytes: the points as CSV, and the figure in all formats."""
    table = csv_lines(COLUMNS, [[point[name] for name in COLUMNS] for point in points])
    drawn = draw_figure(build_figure(points))
    return {"plan.csv": table.encode()} | {f"plan.{end}": data for end, data in drawn.items()}


def build_figure(points: Sequence[Row]) -> Figure:
    """One curve for each mechanism; bands are 5 and 95 % of what is foreseen."""
    looks = choose_looks(distinct(points, "mechanism"))
    curves = tuple(
        Curve(name, tuple(_place(point) for point in group), looks[name])
        for name, group in group_by(points, lambda point: point["mechanism"]).items()
    )
    x, y = Axis(str(points[0]["axis"])), Axis("foreseen excess risk per record")
    return Figure((Panel("what is foreseen", x, y, curves),))


def _place(point: Row) -> Point:
    middle = point["excess_risk_per_record"]
    return Point(point["value"], middle, point["q05"], point["q95"], 0.0, 1)
