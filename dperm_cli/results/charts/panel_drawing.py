"""Draw one panel of a figure on matplotlib axes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dperm_cli.results.charts.chart_model import (
    GREY,
    Axis,
    Curve,
    Panel,
    ReferenceLine,
    is_unresolved,
)
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.records.row_facts import number

MIN_VISIBLE_GAP = 0.01  # share of the plotted excess from which the optimum's gap is an error bar
_BELOW = 11  # matplotlib's marker that points down: the true value lies lower
_WIDE = 5.0  # inches from which a panel has room for more words
# Characters an inch of words above a panel, and inches beside it that they may reach over.
_TITLE = {"bold": (9.5, 1.2), "normal": (14.5, 0.5)}
_DETAIL = (14.5, 1.2)


def draw_panel(place: Any, panel: Panel, inches: float) -> None:
    """Draw a panel on axes that are so many inches wide.

    An axis of names has one place for each curve: its label where there is room, else its number.
    """
    place.set_yscale(panel.y.scale)
    low, high = panel.limits
    place.set_ylim(low, high)
    names = panel.x.scale == "names"
    if not names:
        place.set_xscale(panel.x.scale)
    fitted = fit_labels(panel, inches) if names else None
    for i, curve in enumerate(panel.curves):
        points = [(float(i) if names else p.x or 0.0, p) for p in panel.select_points(curve)]
        if names and fitted is None:
            style = {"color": curve.hue, "linestyle": "none", "marker": curve.mark}
            place.plot([], [], label=f"{i + 1}: {curve.label}", **style)
        if points and is_unresolved(curve) and max(p.height for _, p in points) < low:
            label = None if names else f"{curve.label} (below the axis)"
            style = {"color": curve.hue, "marker": _BELOW, "linestyle": "none", "clip_on": False}
            place.plot([x for x, _ in points], [low] * len(points), label=label, **style)
        elif points:
            _draw_curve(place, panel, curve, points)
    for line in panel.lines:
        draw_line(place, line, panel, inches)
    _dress(place, panel, inches)
    if names:
        labels, size = fitted or ([str(i + 1) for i in range(len(panel.curves))], 7.5)
        place.set_xticks(range(len(labels)), labels=labels, fontsize=size)
        place.set_xlim(-0.6, len(labels) - 0.4)
    else:
        _ticks(place, panel, inches)
        _paper_strip(place, panel, inches)


def _draw_curve(
    place: Any, panel: Panel, curve: Curve, points: Sequence[tuple[float, Point]]
) -> None:
    """Band, line and marks of a curve, at the places given."""
    xs, ys = [x for x, _ in points], [panel.height_of(p) for _, p in points]
    names, linear = panel.x.scale == "names", panel.y.scale == "linear"
    if any(p.trials > 1 for _, p in points):
        end = place.get_ylim()[0]  # a band that reaches 0 runs off a logarithmic axis
        lows = [p.low if linear else p.shown_low or end for _, p in points]
        highs = [max(p.high, p.gap) for _, p in points]
        if names:
            bar = {"linewidth": 5, "alpha": 0.25, "zorder": 2}
            place.vlines(xs, lows, highs, color=curve.hue, **bar)
        else:
            band = {"alpha": 0.10 if curve.dashed else 0.20, "linewidth": 0, "zorder": 2}
            place.fill_between(xs, lows, highs, color=curve.hue, **band)
    look: dict[str, Any] = {
        "color": curve.hue,
        "linestyle": (0, (4, 1.6)) if curve.dashed else "-",
        "linewidth": 1.4 + curve.rim,
    }
    size = 4.6 + 2.0 * curve.rim
    if curve.joined and not names:
        place.plot(xs, ys, zorder=3, **look)
        mark = {"marker": curve.mark, "markersize": size} if curve.marked else {}
        place.plot([], [], label=curve.legend or None, **look, **mark)
    if curve.marked:
        draw_marks(place, panel, curve, points, size)


def draw_marks(
    place: Any,
    panel: Panel,
    curve: Curve,
    points: Sequence[tuple[float, Point]],
    size: float = 4.6,
) -> None:
    """Markers: hollow when saturated, pointing down when the gap hides the true value."""
    looks: dict[tuple[bool, bool], list[tuple[float, float]]] = {}
    for x, p in points:
        looks.setdefault((p.is_hidden, p.is_near_floor), []).append((x, panel.height_of(p)))
    for (hidden, saturated), places in looks.items():
        place.plot(
            *zip(*places, strict=True),
            marker=_BELOW if hidden else curve.mark,
            linestyle="none",
            color=curve.hue,
            markersize=size,
            markerfacecolor="white" if saturated else curve.hue,
            markeredgewidth=1.1,
            zorder=4,
        )
    for x, p in points:
        if has_visible_gap(p):
            # the optimum may be lower by the gap, and the true excess risk higher by as much
            ends = [p.height, max(p.height, p.value + p.gap)]
            style = {"marker": "_", "markevery": [1], "markersize": 5, "linewidth": 1.0}
            place.plot([x, x], ends, color=curve.hue, zorder=4, **style)


def has_visible_gap(point: Point) -> bool:
    """Whether the optimum's gap is drawn as a bar above the point."""
    return max(point.height - point.value, MIN_VISIBLE_GAP * point.height) < point.gap


def draw_line(place: Any, line: ReferenceLine, panel: Panel, inches: float) -> None:
    style: dict[str, Any] = {
        "color": line.color,
        "linestyle": (0, line.style.dashes) if line.style.dashes else "-",
        "linewidth": line.style.width,
        "alpha": 0.45 if line.faint else line.style.alpha,
        "zorder": 1.5,
        "label": line.label,
    }
    if line.constant:
        wide = inches > _WIDE
        more = f" x {line.constant} (fitted)" if wide else ", fitted (constant over the panel)"
        style["label"] += more
    low, high = place.get_ylim()
    if min(line.ys) > high:
        style["label"] += " (above the axis)"
    if max(line.ys) < low:
        style["label"] += " (below the axis)"
    if not line.xs or panel.x.scale == "names":
        place.axhline(line.ys[0], **style)
        return
    if len(line.xs) == 1:  # known at one place only: it says nothing of the others
        style |= {"marker": "_", "markersize": 14, "markeredgewidth": 1.4, "linestyle": "none"}
    place.plot(line.xs, line.ys, **style)


def _dress(place: Any, panel: Panel, inches: float) -> None:
    """Add titles, grid, axis names, and the right axis per record."""
    place.set_xlabel(panel.x.label)
    place.set_ylabel(panel.y.label)
    details = [line for text in panel.details for line in reversed(_wrap(text, _DETAIL, inches))]
    place.set_title(wrap_title(panel, inches), loc="left", pad=4 + 10 * len(details))
    style: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": 6.8}
    for i, text in enumerate(details):
        written = place.annotate(text, (0, 1), (0, 4 + 10 * i), color=GREY, **style)
        written.set_in_layout(False)  # the title above it keeps the room; its length takes none
    place.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    place.set_axisbelow(True)
    place.spines["right"].set_visible(False)
    if panel.n:
        n = panel.n
        twin = place.secondary_yaxis("right", functions=(lambda y: y / n, lambda y: y * n))
        twin.set_ylabel("per record")
        twin.spines["right"].set_color(GREY)
        _format_numbers(twin.yaxis, panel.y, place.get_ylim())
    _format_numbers(place.yaxis, panel.y, place.get_ylim())


def wrap_title(panel: Panel, inches: float) -> str:
    """The title of a panel, broken into lines for axes of this width."""
    from matplotlib import rcParams

    return "\n".join(_wrap(panel.title, _TITLE[rcParams["axes.titleweight"]], inches))


def _wrap(text: str, room: tuple[float, float], inches: float) -> list[str]:
    return textwrap.wrap(text, round(room[0] * (inches + room[1])))


def _format_numbers(side: Any, axis: Axis, limits: tuple[float, float]) -> None:
    """Numbers on a logarithmic axis written as in the tables; 2 and 5 too where room is left.

    Matplotlib's own formatter writes formulas, which the style of the figures does not parse.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if axis.scale != "log":
        return
    side.set_major_formatter(FuncFormatter(lambda y, _: number(float(y), 3)))
    side.set_minor_formatter(NullFormatter())
    if limits[1] < 60 * limits[0]:
        side.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        side.set_minor_formatter(side.get_major_formatter())


def _ticks(place: Any, panel: Panel, inches: float) -> None:
    """Ticks at the values that were run, where they are few and apart."""
    xs = panel.xs
    if panel.x.scale == "linear" or not xs:
        return
    span = math.log(xs[-1] / xs[0]) or 1.0
    place.set_xlim(xs[0] * math.exp(-0.05 * span), xs[-1] * math.exp(0.05 * span))
    apart = min((math.log(b / a) for a, b in pairwise(xs)), default=span)
    _format_numbers(place.xaxis, panel.x, (xs[0], xs[-1]))
    if len(xs) > 9 or apart <= span / 14:
        return
    # a label has half an inch; of a crowded axis every other one stays, the last among them
    every = 1 if apart / span * inches > 0.3 and len(xs) <= 3.2 * inches else 2
    labels = [number(x, 3) if (len(xs) - 1 - i) % every == 0 else "" for i, x in enumerate(xs)]
    place.set_xticks(xs, labels=labels, minor=False)
    place.set_xticks([], minor=True)


def fit_labels(panel: Panel, inches: float) -> tuple[list[str], float] | None:
    """The labels of a panel's places, broken to the room each has, and their size in points."""
    room = 72 * inches / (len(panel.curves) + 0.2)
    for size in (7.5, 7.0, 6.5):
        width = int(room / (0.62 * size))
        labels = [_break_label(_place_words(curve), width) for curve in panel.curves]
        if width and all(len(line) <= width for text in labels for line in text.split("\n")):
            return labels, size
    return None


def _break_label(words: list[str], width: int) -> str:
    """Words one below the other, each broken where a name has a joint."""
    lines = []
    for word in words:
        line = ""
        for piece in re.findall(r"[^_(/ ]*[_(/ ]?", word):
            if line and len((line + piece).rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece
        lines.append(line.rstrip())
    return "\n".join(lines)


def _place_words(curve: Curve) -> list[str]:
    accounted = curve.points[0].epsilon_accounted
    words = [curve.name, curve.calibration, curve.variant]
    if curve.calibration == "paper" and accounted is not None:
        words.append(f"accounted {number(accounted, 3)}")
    words += [f"({curve.note})"] if curve.note else []
    return [word for word in words if word]


def select_paper_curves(panel: Panel) -> list[Curve]:
    """The curves whose accounted epsilon is worth a line of its own under the axis."""
    if panel.x.scale == "names":
        return []
    return [curve for curve in panel.curves if curve.calibration == "paper"
            and any(point.epsilon_accounted is not None for point in curve.points)]  # fmt: skip


def _paper_strip(place: Any, panel: Panel, inches: float) -> None:
    """Accounted epsilon of each paper-calibrated curve, under the axis in the curve's colour."""
    curves = select_paper_curves(panel)
    place.xaxis.labelpad = 2 + 10 * len(curves)
    if not curves:
        return
    wide = inches > _WIDE
    low, high = place.get_xlim()
    apart = (high / low) ** (0.085 if wide else 0.15)  # factor between numbers with room for both
    for i, curve in enumerate(curves):
        style: Any = {"fontsize": 6.6, "color": curve.hue, "annotation_clip": False, "va": "top"}
        style |= {"textcoords": "offset points", "xycoords": place.get_xaxis_transform()}
        down, last = -18 - 10 * i, 0.0
        for point in curve.points:
            if point.epsilon_accounted is not None and point.x and point.x > last * apart:
                text = number(point.epsilon_accounted, 3)
                place.annotate(text, (point.x, 0), (0, down), ha="center", **style)
                last = point.x
        if wide:
            place.annotate(_short(curve), (low, 0), (-9, down), ha="right", **style)


def _short(curve: Curve) -> str:
    name = ", ".join(word for word in (curve.name, curve.variant) if word)
    return name if len(name) <= 16 else name[:14] + ".."
