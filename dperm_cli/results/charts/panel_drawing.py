"""Drawing one panel of the figure on matplotlib axes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dperm_cli.results.charts.study_panels import (
    AXIS_WORDS,
    NO_GUARANTEE,
    Curve,
    Panel,
    Point,
    ReferenceLine,
)
from dperm_cli.results.records.row_facts import number

INK, GREY = "#222222", "#6E6E6E"
# Okabe and Ito's palette without its yellow: told apart by colour-blind readers.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5A4FCF", "#8C510A")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<")
MIN_VISIBLE_GAP = 0.01  # share of the plotted excess from which the optimum's gap is an error bar
_LINES: dict[str, dict[str, Any]] = {
    "floor": {"color": GREY, "linestyle": "-", "linewidth": 2.0, "alpha": 0.75},
    "upper": {"color": INK, "linestyle": (0, (6, 1.5, 1, 1.5)), "linewidth": 1.0},
    "lower": {"color": INK, "linestyle": (0, (1, 1.2)), "linewidth": 1.2},
    "order_upper": {"linestyle": (0, (6, 1.5, 1, 1.5, 1, 1.5)), "linewidth": 0.9},
    "order_lower": {"color": GREY, "linestyle": (0, (1, 2.4)), "linewidth": 1.2},
}

BATCHED_MARKS = 50


def draw_panel(
    place: Any, panel: Panel, axis: str, hues: list[tuple[str, str]], alone: bool
) -> None:
    """Draw a panel; ``alone`` where it has the figure's whole width."""
    xs = sorted({point.x for curve in panel.curves for point in curve.points})
    single = len(xs) == 1
    place.set_yscale("log")
    if not single:
        place.set_xscale("log")
    low, high = _limits(panel)
    place.set_ylim(low, high)
    inches = 5.7 if alone else 2.4
    numbered = single and fit_labels(panel, inches) is None
    for i, curve in enumerate(panel.curves):
        color, mark = _look(hues, curve)
        if numbered:
            label = f"{i + 1}: {', '.join(_place_words(curve))}".replace(", (", " (")
            place.plot([], [], color=color, linestyle="none", marker=mark, label=label)
        if _is_below_axis(curve, low):
            xs_here = [float(i)] if single else [point.x for point in curve.points]
            label = "" if single else f"{curve.label} (below the axis)"
            style = {"color": color, "marker": 11, "linestyle": "none", "clip_on": False}
            place.plot(xs_here, [low] * len(xs_here), label=label or None, **style)
        elif single:
            _draw_bars(place, curve, float(i), color, mark)
        else:
            _draw_curve(place, curve, color, mark)
    for line in panel.lines:
        _draw_line(place, line, (low, high), hues, alone, single)
    _dress(place, panel, alone)
    if single:
        _name_places(place, panel, axis, xs[0], inches)
    else:
        place.set_xlabel(AXIS_WORDS[axis])
        _ticks(place, xs)
        _paper_strip(place, panel, hues, alone)


def _look(hues: list[tuple[str, str]], curve: Curve) -> tuple[str, str]:
    at = hues.index(curve.hue)
    return HUES[at % len(HUES)], MARKS[(at + at // len(HUES)) % len(MARKS)]


def height_of(point: Point) -> float:
    """The height a point is drawn at: never under the gap, below which nothing is resolved."""
    return max(point.median, point.gap)


def _is_unresolved(curve: Curve) -> bool:
    """Whether a curve without a guarantee is the optimum itself, and no use to scale an axis."""
    return curve.note == NO_GUARANTEE and all(point.median <= point.gap for point in curve.points)


def _is_below_axis(curve: Curve, low: float) -> bool:
    return _is_unresolved(curve) and max(map(height_of, curve.points)) < low


def _limits(panel: Panel) -> tuple[float, float]:
    """Room for the curves and the floor; bounds widen it by a decade and a half at most."""
    seen = [curve for curve in panel.curves if not _is_unresolved(curve)] or panel.curves
    points = [point for curve in seen for point in curve.points if height_of(point) > 0]
    floors = [y for line in panel.lines if line.kind == "floor" for y in line.ys]
    heights = [y for p in points for y in (height_of(p), p.high) if y > 0] + floors
    heights += [max(point.low, point.gap) for point in points if max(point.low, point.gap) > 0]
    low, high = min(heights), max(heights)
    others = [y for line in panel.lines for y in line.ys if low / 30 <= y <= high * 30]
    return min([low, *others]) / 1.6, max([high, *others]) * 1.6


def _draw_curve(place: Any, curve: Curve, color: str, mark: str) -> None:
    points = [point for point in curve.points if height_of(point) > 0]
    xs, ys = [point.x for point in points], [height_of(point) for point in points]
    tight = curve.calibration != "paper"
    style = "-" if tight else (0, (4, 1.6))
    if any(point.trials > 1 for point in points):
        lows = [max(point.low, point.gap) or height_of(point) for point in points]
        highs = [max(point.high, point.gap) for point in points]
        place.fill_between(
            xs, lows, highs, color=color, alpha=0.20 if tight else 0.10, linewidth=0, zorder=2
        )
    place.plot(xs, ys, color=color, linestyle=style, zorder=3)
    place.plot([], [], color=color, linestyle=style, marker=mark, label=curve.label)
    marked = [(point.x, point) for point in points]
    # one by one they cost more than everything else in the figure of a large study
    for batch in [marked] if len(marked) > BATCHED_MARKS else [[each] for each in marked]:
        _marks(place, batch, color, mark)


def _draw_bars(place: Any, curve: Curve, x: float, color: str, mark: str) -> None:
    for point in curve.points:
        if height_of(point) <= 0:
            continue
        low, high = max(point.low, point.gap), max(point.high, point.gap)
        if point.trials > 1 and low > 0:
            place.plot(
                [x, x],
                [low, high],
                color=color,
                linewidth=5,
                alpha=0.25,
                zorder=2,
                solid_capstyle="butt",
            )
        _mark(place, x, point, color, mark)


def _mark(place: Any, x: float, point: Point, color: str, mark: str) -> None:
    _marks(place, [(x, point)], color, mark)


def _marks(place: Any, points: Sequence[tuple[float, Point]], color: str, mark: str) -> None:
    """Markers: hollow when saturated, pointing down when the gap hides the true value."""
    looks: dict[tuple[bool, bool], list[tuple[float, float]]] = {}
    for x, point in points:
        look = point.median <= point.gap, point.saturated
        looks.setdefault(look, []).append((x, height_of(point)))
    for (hidden, saturated), places in looks.items():
        place.plot(
            *zip(*places, strict=True),
            marker=11 if hidden else mark,
            linestyle="none",
            color=color,
            markerfacecolor="white" if saturated else color,
            markeredgewidth=1.1,
            zorder=4,
        )
    for x, point in points:
        _gap_bar(place, x, point, color)


def _gap_bar(place: Any, x: float, point: Point, color: str) -> None:
    y = height_of(point)
    if point.gap > MIN_VISIBLE_GAP * y:
        # the optimum may be lower by the gap, and the true excess risk higher by as much
        place.plot(
            [x, x],
            [y, max(y, point.median + point.gap)],
            color=color,
            linewidth=1.0,
            zorder=4,
            marker="_",
            markevery=[1],
            markersize=5,
        )


def _draw_line(
    place: Any,
    line: ReferenceLine,
    limits: tuple[float, float],
    hues: list[tuple[str, str]],
    alone: bool,
    single: bool,
) -> None:
    style = dict(_LINES[line.kind])
    if line.label.endswith("paper)"):
        # the same theorem at the larger noise of the paper
        style["alpha"] = 0.45
    if line.mechanism is not None:
        names = [mechanism for mechanism, _ in hues]
        style["color"] = HUES[names.index(line.mechanism) % len(HUES)]
    label = line.label
    if line.constant:
        label += f" x {line.constant} (fitted)" if alone else ", fitted (constant over the panel)"
    if min(line.ys) > limits[1]:
        label += " (above the axis)"
    if max(line.ys) < limits[0]:
        label += " (below the axis)"
    if single:
        place.axhline(line.ys[0], label=label, zorder=1.5, **style)
    elif len(line.xs) == 1:  # known at one place only: it says nothing of the others
        style |= {"marker": "_", "markersize": 14, "markeredgewidth": 1.4, "linestyle": "none"}
        place.plot(line.xs, line.ys, label=label, zorder=1.5, **style)
    else:
        place.plot(line.xs, line.ys, label=label, zorder=1.5, **style)


def _dress(place: Any, panel: Panel, alone: bool) -> None:
    """Titles, grid, the label of the left axis, and the right axis per record."""
    records = f"over n = {panel.n} records" if panel.n and alone else "over records"
    place.set_ylabel(f"excess risk (sum {records})")
    details = [panel.detail] if alone else [_constants(panel), panel.detail]
    details = [line for text in details for line in reversed(_lines(text, 100 if alone else 52))]
    title = "\n".join(_lines(panel.title, 64 if alone else 34))
    place.set_title(title, loc="left", fontweight="bold", pad=4 + 10 * len(details))
    for i, text in enumerate(details):
        written = place.annotate(
            text,
            (0, 1),
            (0, 4 + 10 * i),
            "axes fraction",
            fontsize=6.8,
            textcoords="offset points",
            color=GREY,
        )
        written.set_in_layout(False)  # the title above it keeps the room; its length takes none
    place.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    place.set_axisbelow(True)
    if panel.n:
        n = panel.n
        twin = place.secondary_yaxis("right", functions=(lambda y: y / n, lambda y: y * n))
        twin.set_ylabel("per record")
        twin.spines["right"].set_color(GREY)
        format_axis_numbers(twin.yaxis, place.get_ylim())
    else:
        place.spines["right"].set_visible(False)
    format_axis_numbers(place.yaxis, place.get_ylim())


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width)


def format_axis_numbers(side: Any, limits: tuple[float, float]) -> None:
    """Numbers on a logarithmic axis written as in the tables; 2 and 5 too where room is left."""
    from matplotlib.ticker import LogLocator

    format_major_ticks(side)
    if limits[1] < 60 * limits[0]:
        side.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        side.set_minor_formatter(side.get_major_formatter())


def format_major_ticks(side: Any) -> None:
    """Numbers as in the tables at the powers of ten, and none between them.

    Matplotlib's own formatter writes formulas, which the style of the figures does not parse.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    side.set_major_formatter(FuncFormatter(lambda y, _: number(float(y), 3)))
    side.set_minor_formatter(NullFormatter())


def _constants(panel: Panel) -> str:
    """The fitted constants of a panel's order bounds, in words short enough for its width."""
    words = [
        f"{line.kind.partition('_')[2]}{f' {line.mechanism}' if line.mechanism else ''} "
        f"{line.constant}"
        for line in panel.lines
        if line.constant
    ]
    return f"order constants: {', '.join(words)}" if words else ""


def _ticks(place: Any, xs: list[float]) -> None:
    """Ticks at the values that were run, where they are few and apart."""
    span = math.log(xs[-1] / xs[0])
    apart = min(math.log(b / a) for a, b in pairwise(xs))
    format_major_ticks(place.xaxis)
    if len(xs) <= 9 and apart > span / 14:
        place.set_xticks(xs, labels=[number(x, 3) for x in xs], minor=False)
        place.tick_params(axis="x", which="minor", length=0)
    place.set_xlim(xs[0] * math.exp(-0.05 * span), xs[-1] * math.exp(0.05 * span))


def _name_places(place: Any, panel: Panel, axis: str, x: float, inches: float) -> None:
    """One place per curve on the axis, for a study with a single epsilon.

    Each has its label where there is room, and else the number it has in the legend.
    """
    found = fit_labels(panel, inches)
    labels = [str(i + 1) for i in range(len(panel.curves))] if found is None else found[0]
    size = 7.5 if found is None else found[1]
    place.set_xticks(range(len(labels)), labels=labels, fontsize=size)
    place.set_xlim(-0.6, len(labels) - 0.4)
    place.set_xlabel(f"{AXIS_WORDS[axis]} = {number(x)}")


def fit_labels(panel: Panel, inches: float) -> tuple[list[str], float] | None:
    """The labels of a panel's bars, broken to the room each has, and their size in points."""
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
    words = [curve.mechanism, curve.calibration, curve.variant]
    if curve.calibration == "paper" and accounted is not None:
        words.append(f"accounted {number(accounted, 3)}")
    words += [f"({curve.note})"] if curve.note else []
    return [word for word in words if word]


def select_paper_curves(panel: Panel) -> list[Curve]:
    """The curves whose accounted epsilon is worth a line of its own under the axis."""
    xs = {point.x for curve in panel.curves for point in curve.points}
    if len(xs) < 2:
        return []
    return [
        curve
        for curve in panel.curves
        if curve.calibration == "paper"
        and any(point.epsilon_accounted is not None for point in curve.points)
    ]


def _paper_strip(place: Any, panel: Panel, hues: list[tuple[str, str]], named: bool) -> None:
    """Accounted epsilon of each paper-calibrated curve, under the axis in the curve's colour."""
    curves = select_paper_curves(panel)
    for i, curve in enumerate(curves):
        style = {"fontsize": 6.6, "color": _look(hues, curve)[0], "annotation_clip": False}
        style |= {"va": "top", "textcoords": "offset points", "xycoords": "axes fraction"}
        down, last = -18 - 10 * i, -math.inf
        for point in curve.points:
            across = _locate_on_axis(place, point.x)
            if point.epsilon_accounted is not None and across - last > (0.085 if named else 0.15):
                text = number(point.epsilon_accounted, 3)
                place.annotate(text, (across, 0), (0, down), ha="center", **style)
                last = across
        if named:
            place.annotate(_short(curve), (0, 0), (-9, down), ha="right", **style)
    place.xaxis.labelpad = 2 + 10 * len(curves)


def _locate_on_axis(place: Any, x: float) -> float:
    """Where x lies on the axis, as a fraction of its length."""
    low, high = (math.log(limit) for limit in place.get_xlim())
    return (math.log(x) - low) / (high - low)


def _short(curve: Curve) -> str:
    name = ", ".join(word for word in (curve.mechanism, curve.variant) if word)
    return name if len(name) <= 16 else name[:14] + ".."
