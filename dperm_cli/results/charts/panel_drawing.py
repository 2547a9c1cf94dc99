"""Draw one panel of a figure on matplotlib axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.chart_model import (
    DASHES,
    GREY,
    LINEAR,
    Curve,
    Panel,
    ReferenceLine,
    is_unresolved,
    widen_ends,
)
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.text_fitting import measure, split_joints, wrap
from dperm_cli.results.charts.themes import Theme
from dperm_cli.results.charts.tick_places import choose_ticks
from dperm_cli.results.records.row_facts import number

MIN_VISIBLE_GAP = 0.01  # share of the plotted excess from which the optimum's gap is an error bar
_BELOW = 11  # matplotlib's marker that points down: the true value lies lower
_HALF = 0.4  # of the room of a place on an axis of names
_MOST_LABEL_LINES = 4


@dataclass(frozen=True)
class PanelSize:
    """Inches of a panel's axes, and the theme of its letters and lines."""

    width: float
    height: float
    theme: Theme


def draw_panel(
    place: Any,
    panel: Panel,
    size: PanelSize,
    labelled: bool = True,
    shows_accounted: bool = False,
    told_patterns: frozenset[int] = frozenset(),
) -> None:
    """Draw a panel on axes.

    Args:
        place: The axes of matplotlib.
        panel: What to draw.
        size: How large the axes are.
        labelled: Whether the places of an axis of names may have the names of curves, instead of
            entries in the legend.
        shows_accounted: Whether accounted epsilons of paper calibrations stand under the axis.
        told_patterns: Patterns that have entries in the legend themselves.
    """
    place.set_yscale(panel.y.scale)
    low, high = panel.limits
    place.set_ylim(low, high)
    names = panel.x.scale == "names"
    if not names:
        place.set_xscale(panel.x.scale)
    _limit_places(place, panel)  # before anything is drawn: matplotlib warns of a single place
    fitted = fit_labels(panel, size) if names and labelled else None
    in_legend = not names or fitted is None or bool(panel.x.names)
    shifts = _spread_curves(panel)
    for i, curve in enumerate(panel.curves):
        points = [(_find_place(panel, i, p) + shifts.get((i, p.x), 0.0), p)
                  for p in panel.select_points(curve)]  # fmt: skip
        entry = curve.legend or None if in_legend else None
        if points and is_unresolved(curve) and max(p.height for _, p in points) < low:
            label = entry and f"{entry} (below the axis)"
            style = {"color": curve.hue, "marker": _BELOW, "linestyle": "none", "clip_on": False}
            place.plot([x for x, _ in points], [low] * len(points), label=label, **style)
        elif points:
            _draw_curve(place, panel, curve, points, size.theme)
            if entry:
                shown = 0 if curve.pattern in told_patterns else curve.pattern
                shows_line = is_line(panel, curve)
                _enter_curve(place, curve, entry, shown, size.theme, shows_line)
    drawn: list[tuple[str, str]] = []
    for line in panel.lines:
        kind = (line.kind, line.color)
        draw_line(place, line, panel, stretch=1.0 + 1.5 * drawn.count(kind))
        drawn.append(kind)
    _dress(place, panel, size)
    if names:
        _name_places(place, panel, size, fitted)
    else:
        _number_places(place, panel, size)
        _write_accounted(place, panel, size, shows_accounted)


def _find_place(panel: Panel, i: int, point: Point) -> float:
    """Where a point of the curve with index i lies on the horizontal axis."""
    return float(i) if panel.x.scale == "names" and not panel.x.names else point.x or 0.0


def _spread_curves(panel: Panel) -> dict[tuple[int, float | None], float]:
    """How far each curve's mark stands beside its name: those of one name side by side."""
    if not panel.x.names:
        return {}
    there: dict[float | None, list[int]] = {}
    for i, curve in enumerate(panel.curves):
        for x in {point.x for point in panel.select_points(curve)}:
            there.setdefault(x, []).append(i)
    room = 0.6 / max(map(len, there.values()), default=1)
    return {(i, x): room * (place - (len(curves) - 1) / 2)
            for x, curves in there.items() for place, i in enumerate(curves)}  # fmt: skip


def is_line(panel: Panel, curve: Curve) -> bool:
    """Whether a line is drawn through the curve's marks, and not only these."""
    shown = panel.select_points(curve)
    return curve.joined and panel.x.scale != "names" and len(shown) > 1


def _draw_curve(
    place: Any, panel: Panel, curve: Curve, points: Sequence[tuple[float, Point]], theme: Theme
) -> None:
    """Band, line and marks of a curve, at the places given."""
    xs, ys = [x for x, _ in points], [panel.height_of(p) for _, p in points]
    names, linear = panel.x.scale == "names", panel.y.scale == LINEAR
    if any(p.trials > 1 for _, p in points):
        end = panel.limits[0]  # a band that reaches 0 runs off a logarithmic axis
        lows = [p.low if linear else p.shown_low or end for _, p in points]
        highs = [p.high if linear else max(p.high, p.gap) for _, p in points]
        if names or len(points) == 1:
            bar = {"linewidth": 3.2 * theme.line, "alpha": 0.25, "zorder": 2}
            place.vlines(xs, lows, highs, color=curve.hue, **bar)
        else:
            # bands of many curves lie on each other
            strength = 0.20 if len(panel.curves) <= 4 else 0.08
            band = {"alpha": strength / (2 if curve.pattern else 1), "linewidth": 0, "zorder": 2}
            place.fill_between(xs, lows, highs, color=curve.hue, **band)
    size = theme.mark + 2.0 * curve.rim
    alike = len({(p.is_hidden, p.is_near_floor) for _, p in points}) == 1
    if curve.joined and not names:
        look = _style_line(curve, curve.pattern, theme)
        if alike and curve.marked:
            # one line with its marks: as one object it is also easy to change
            look |= _style_mark(curve, points[0][1], size, curve.fill)
            place.plot(xs, ys, zorder=3, **look)
            _draw_gaps(place, curve, points)
            return
        place.plot(xs, ys, zorder=3, **look)
    if curve.marked:
        draw_marks(place, panel, curve, points, size)


def _style_line(curve: Curve, pattern: int, theme: Theme) -> dict[str, Any]:
    dashes = DASHES[pattern % len(DASHES)]
    return {
        "color": curve.hue,
        "linestyle": (0, dashes) if dashes else "-",
        "linewidth": theme.line + curve.rim,
    }


def _style_mark(curve: Curve, point: Point, size: float, fill: str) -> dict[str, Any]:
    """Hollow when saturated, pointing down when the gap hides the true value."""
    saturated = point.is_near_floor
    return {
        "marker": _BELOW if point.is_hidden else curve.mark,
        "markersize": size,
        "fillstyle": "full" if saturated else fill,
        "markerfacecolor": "white" if saturated else curve.hue,
        "markerfacecoloralt": "white",
        "markeredgecolor": curve.hue,
        "markeredgewidth": 0.24 * size,
    }


def _enter_curve(
    place: Any, curve: Curve, entry: str, pattern: int, theme: Theme, shows_line: bool
) -> None:
    """Give a curve its entry in the legend: filled marks, whatever its own points are."""
    look = _style_line(curve, pattern, theme)
    if not shows_line and curve.marked:
        look["linestyle"] = "none"
    if curve.marked:
        plain = replace(curve, pattern=pattern)
        look |= {"marker": curve.mark, "markersize": theme.mark + 2.0 * curve.rim}
        look |= {"fillstyle": plain.fill, "markerfacecoloralt": "white"}
    place.plot([], [], label=entry, **look)


def draw_marks(
    place: Any,
    panel: Panel,
    curve: Curve,
    points: Sequence[tuple[float, Point]],
    size: float = 4.6,
) -> None:
    """Markers: hollow when saturated, pointing down when the gap hides the true value."""
    looks: dict[tuple[bool, bool], list[tuple[float, Point]]] = {}
    for x, p in points:
        looks.setdefault((p.is_hidden, p.is_near_floor), []).append((x, p))
    for found in looks.values():
        xs, ys = [x for x, _ in found], [panel.height_of(p) for _, p in found]
        look = _style_mark(curve, found[0][1], size, curve.fill)
        place.plot(xs, ys, linestyle="none", color=curve.hue, zorder=4, **look)
    _draw_gaps(place, curve, points)


def _draw_gaps(place: Any, curve: Curve, points: Sequence[tuple[float, Point]]) -> None:
    for x, p in points:
        if has_visible_gap(p):
            # the optimum may be lower by the gap, and the true excess risk higher by as much
            ends = [p.height, max(p.height, p.value + p.gap)]
            style = {"marker": "_", "markevery": [1], "markersize": 5, "linewidth": 1.0}
            place.plot([x, x], ends, color=curve.hue, zorder=4, **style)


def has_visible_gap(point: Point) -> bool:
    """Whether the optimum's gap is drawn as a bar above the point."""
    return max(point.height - point.value, MIN_VISIBLE_GAP * point.height) < point.gap


def draw_line(place: Any, line: ReferenceLine, panel: Panel, stretch: float = 1.0) -> None:
    """A reference line; one of a single height reaches over the whole axis.

    ``stretch`` makes dashes longer, to tell lines of one kind and colour apart.
    """
    dashes = tuple(stretch * dash for dash in line.style.dashes)
    style: dict[str, Any] = {
        "color": line.color,
        "linestyle": (0, dashes) if dashes else "-",
        "linewidth": line.style.width,
        "alpha": 0.45 if line.faint else line.style.alpha,
        "zorder": 1.5,
        "label": line.label,
    }
    if line.constant:
        style["label"] += ", fitted"
    low, high = place.get_ylim()
    if min(line.ys) > high:
        style["label"] += " (above the axis)"
    if max(line.ys) < low:
        style["label"] += " (below the axis)"
    level = len(set(line.ys)) == 1 and line.kind in ("floor", "gap", "baseline", "optimum")
    if panel.x.scale == "names" and len(line.xs) > 1 and not level:  # each place has its own
        pieces = [(x + side, y) for x, y in zip(line.xs, line.ys, strict=True)
                  for side in (-_HALF, _HALF, math.nan)]  # fmt: skip
        place.plot(*zip(*pieces, strict=True), **style)
        return
    if not line.xs or panel.x.scale == "names" or level:
        place.axhline(line.ys[0], **style)
        return
    if len(line.xs) == 1:  # known at one place only: it says nothing of the others
        style |= {"marker": "_", "markersize": 14, "markeredgewidth": 1.4, "linestyle": "none"}
    place.plot(line.xs, line.ys, **style)


def _dress(place: Any, panel: Panel, size: PanelSize) -> None:
    """Add title, grid, axis names, and the right axis per record."""
    theme, tall = size.theme, 72 * size.height
    place.set_xlabel("\n".join(wrap(panel.x.label, 72 * size.width + 20, theme.title)))
    place.set_ylabel("\n".join(wrap(panel.y.label, tall + 10, theme.title)))
    title = wrap(panel.title, 72 * size.width, theme.title, bold=True)
    place.set_title("\n".join(title), loc="left", pad=4)
    place.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    place.set_axisbelow(True)
    place.spines["right"].set_visible(False)
    low, high = place.get_ylim()
    _set_ticks(place.yaxis, choose_ticks(low, high, panel.y.scale, tall, theme.text, True))
    if panel.n:
        n = panel.n
        twin = place.secondary_yaxis("right", functions=(lambda y: y / n, lambda y: y * n))
        twin.set_ylabel("per record")
        twin.spines["right"].set_color(GREY)
        ticks = choose_ticks(low / n, high / n, panel.y.scale, tall, theme.text, True)
        _set_ticks(twin.yaxis, ticks)


def _set_ticks(side: Any, ticks: Sequence[tuple[float, str]]) -> None:
    """Numbers at these places, written as in the tables, and none elsewhere.

    Matplotlib's own formatter writes formulas, which the style of the figures does not parse.
    """
    side.set_ticks([place for place, _ in ticks], labels=[text for _, text in ticks])
    side.set_ticks([], minor=True)


def _limit_places(place: Any, panel: Panel) -> None:
    """The ends of the horizontal axis."""
    xs = panel.xs
    if panel.x.scale == "names":
        place.set_xlim(-0.6, len(panel.x.names or panel.curves) - 0.4)
    elif xs and panel.x.scale == LINEAR:
        place.set_xlim(*widen_ends(xs[0], xs[-1]))
    elif xs:
        span = math.log(xs[-1] / xs[0]) or 1.0
        place.set_xlim(xs[0] * math.exp(-0.05 * span), xs[-1] * math.exp(0.05 * span))


def _number_places(place: Any, panel: Panel, size: PanelSize) -> None:
    """Numbers on the horizontal axis: the values that were run, where they fit."""
    xs = panel.xs
    if not xs:
        return
    low, high = place.get_xlim()
    wide, letters = 72 * size.width, size.theme.text
    _set_ticks(place.xaxis, choose_ticks(low, high, panel.x.scale, wide, letters, False, xs))


def _name_places(place: Any, panel: Panel, size: PanelSize, fitted: Sequence[str] | None) -> None:
    """Names on the horizontal axis: of categories, or of curves where these fit."""
    count = len(panel.x.names or panel.curves)
    if panel.x.names:
        room = 72 * size.width / (count + 0.2) - 3
        words = [piece for name in panel.x.names for piece in split_joints(name)]
        upright = any(measure(word, size.theme.text) > room for word in words)
        labels = [name if upright else "\n".join(wrap(name, room, size.theme.text))
                  for name in panel.x.names]  # fmt: skip
        place.set_xticks(range(count), labels=labels, rotation=90 if upright else 0)
    elif fitted is not None:
        place.set_xticks(range(count), labels=fitted)
    else:
        place.set_xticks([])


def fit_labels(panel: Panel, size: PanelSize) -> list[str] | None:
    """The names of a panel's places, broken to the room each has; None where they do not fit."""
    if panel.x.names or not panel.curves:
        return None
    letters = size.theme.text
    room = 72 * size.width / (len(panel.curves) + 0.2) - 0.5 * letters
    labels = []
    for curve in panel.curves:
        words = [word for text in _place_words(curve) for word in split_joints(text)]
        if any(measure(word, letters) > room for word in words):
            return None
        lines = [line for text in _place_words(curve) for line in wrap(text, room, letters)]
        if len(lines) > _MOST_LABEL_LINES:
            return None
        labels.append("\n".join(lines))
    return labels


def _place_words(curve: Curve) -> list[str]:
    words = [curve.name, curve.calibration if curve.calibration == "paper" else "", curve.variant]
    words += [f"({curve.note})"] if curve.note else []
    return [word for word in words if word]


def select_paper_curves(panel: Panel) -> list[Curve]:
    """The curves whose accounted epsilon is worth a line of its own under the axis."""
    if panel.x.scale == "names":
        return []
    return [curve for curve in panel.curves if curve.calibration == "paper"
            and any(point.epsilon_accounted is not None for point in curve.points)]  # fmt: skip


def _write_accounted(place: Any, panel: Panel, size: PanelSize, shown: bool) -> None:
    """Accounted epsilon of each paper-calibrated curve, under the axis in the curve's colour."""
    curves = select_paper_curves(panel) if shown else []
    letters = size.theme.text
    place.xaxis.labelpad = 2 + 1.45 * letters * len(curves)
    low, high = place.get_xlim()
    wide = 72 * size.width / (math.log(high / low) if curves else 1.0)
    for i, curve in enumerate(curves):
        style: Any = {"fontsize": letters, "color": curve.hue, "annotation_clip": False}
        style |= {"textcoords": "offset points", "xycoords": place.get_xaxis_transform()}
        down, end = -7 - letters * (1.2 + 1.35 * i), -math.inf
        for point in curve.points:
            if point.epsilon_accounted is None or not point.x:
                continue
            text = number(point.epsilon_accounted, 3)
            at, half = wide * math.log(point.x / low), measure(text, letters) / 2
            if at - half > end:
                place.annotate(text, (point.x, 0), (0, down), ha="center", va="top", **style)
                end = at + half + 0.6 * letters
