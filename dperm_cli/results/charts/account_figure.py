"""The figure of ``dperm account``: epsilon against noise, certified against nominal epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dperm_cli.results.charts.panel_drawing import GREY, HUES, MARKS, format_major_ticks
from dperm_cli.results.charts.study_figure import FORMATS, figure_style, image_bytes
from dperm_cli.results.records.row_facts import Row, csv_lines, distinct, group_by, number

COLUMNS = (
    "panel", "mechanism", "calibration", "relation", "n", "delta", "noise_scale", "epsilon",
    "epsilon_accounted",
)  # fmt: skip
_CALIBRATIONS = {"tight": "-", "paper": "--"}


def draw_files(rows: Sequence[Row], points: Sequence[Row]) -> dict[str, bytes]:
    """Names and bytes: the points as CSV and, where there are any, the figure in all formats."""
    found = {"account.csv": _csv(points)}
    if points:
        with figure_style():
            drawn = _draw(rows, points)
            found |= {f"account.{ending}": image_bytes(drawn, ending) for ending in FORMATS}
    return found


def _csv(points: Sequence[Row]) -> bytes:
    rows = [["" if point[k] is None else point[k] for k in COLUMNS] for point in points]
    return csv_lines(COLUMNS, rows).encode()


def _draw(rows: Sequence[Row], points: Sequence[Row]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(7.0, 3.3))
    FigureCanvasAgg(drawn)
    left, right = drawn.subplots(1, 2)
    # placed by hand: a layout engine would double the time of the whole command
    drawn.subplots_adjust(left=0.09, right=0.985, bottom=0.145, top=0.90, wspace=0.26)
    names = distinct([*rows, *points], "mechanism")
    _noise(left, [p for p in points if p["panel"] == "noise"], rows, names)
    _draw_certified(right, [p for p in points if p["panel"] == "certified"], names)
    first = points[0]
    drawn.suptitle(
        f"n = {number(first['n'])}, delta = {number(first['delta'], 3)}, {first['relation']}",
        fontsize=9,
    )
    return drawn


def _noise(place: Any, points: Sequence[Row], rows: Sequence[Row], names: list[str]) -> None:
    """One curve per mechanism; the rows of the table as markers on it."""
    for name, group in group_by(points, lambda point: point["mechanism"]).items():
        color, mark = _look(names, name)
        xs = [point["noise_scale"] for point in group]
        place.plot(xs, [point["epsilon_accounted"] for point in group], color=color, label=name)
        asked = [r for r in rows if r["mechanism"] == name and r["n"] == group[0]["n"]]
        asked = [r for r in asked if r["status"] == "ok" and r["epsilon_accounted"]]
        place.plot(
            [row["noise_scale"] for row in asked],
            [row["epsilon_accounted"] for row in asked],
            mark, color=color, label="_asked",
        )  # fmt: skip
    _dress(place, "noise scale (mechanism's unit)", "certified epsilon")


def _draw_certified(place: Any, points: Sequence[Row], names: list[str]) -> None:
    """One line per mechanism and calibration; the diagonal is where nothing is lost."""
    for (name, how), group in group_by(
        points, lambda p: (p["mechanism"], p["calibration"])
    ).items():
        color, mark = _look(names, name)
        xs, ys = ([p[k] for p in group] for k in ("epsilon", "epsilon_accounted"))
        # calibrations that lose nothing lie on one another: the lower ones show as a rim
        rim = 1.1 * (len(names) - 1 - names.index(name)) if how == "tight" else 0.0
        place.plot(
            xs, ys, _CALIBRATIONS.get(how, ":"), marker=mark, color=color, label=f"{name}, {how}",
            linewidth=1.4 + rim, markersize=4.6 + 2.0 * rim,
        )  # fmt: skip
    ends = [f([p["epsilon"] for p in points], default=1.0) for f in (min, max)]
    place.plot(ends, ends, color=GREY, linewidth=4, alpha=0.25, zorder=1, label="nominal")
    _dress(place, "nominal epsilon", "certified epsilon")


def _look(names: list[str], name: str) -> tuple[str, str]:
    at = names.index(name)
    return HUES[at % len(HUES)], MARKS[at % len(MARKS)]


def _dress(place: Any, x: str, y: str) -> None:
    place.set_xscale("log")
    place.set_yscale("log")
    for side in (place.xaxis, place.yaxis):
        format_major_ticks(side)
    place.set_xlabel(x)
    place.set_ylabel(y)
    place.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    place.set_axisbelow(True)
    place.legend(frameon=False)
