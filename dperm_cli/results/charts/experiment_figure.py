"""The figure of an experiment: one panel per entry of its plot, slopes in the legends."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dperm_cli.results.charts.curve_points import Point, select_rows
from dperm_cli.results.charts.panel_drawing import (
    GREY,
    HUES,
    MARKS,
    format_axis_numbers,
    format_major_ticks,
)
from dperm_cli.results.charts.study_figure import FORMATS, figure_style, image_bytes
from dperm_cli.results.charts.study_panels import AXIS_WORDS
from dperm_cli.results.claims.experiment_tables import Curve, curves, make_selection, rows_of, title
from dperm_cli.results.records.row_facts import Row, number

_WIDTH, _HEIGHT = 7.0, 2.45  # inches, of the page and of a row of panels without its legends
_MAX_FREE_PANELS = 8  # panels; more of them stand in three columns, at these places (inches)
_GRID: dict[str, Any] = {"left": 0.5, "pitch": 2.55, "panel": (1.95, 1.3), "above": 0.36}
_LEGEND_LINE = 0.13  # inches
_LOG_ZERO = 1e-300  # what a logarithmic axis has in the place of 0
_BELOW = 0.42  # inches from the axis to the legend, for ticks and the axis' name
_TITLE = 15.0  # characters of a title's line, by inch
_MAX_TWO_COLUMN_LABEL = 24  # characters of labels that two columns of a legend have room for
_LABELS = 6  # on an axis of a panel, without leaving any out, where there are three columns
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")
_FLOOR = {"color": GREY, "linestyle": "-", "linewidth": 1.8, "alpha": 0.6}
_LINES: dict[str, dict[str, Any]] = {
    "bound_upper": {"linestyle": (0, (6, 1.5, 1, 1.5)), "linewidth": 0.9},
    "bound_lower": {"linestyle": (0, (1, 1.4)), "linewidth": 1.1},
    "order_upper": {"linestyle": (0, (6, 1.5, 1, 1.5, 1, 1.5)), "linewidth": 0.8},
    "order_lower": {"linestyle": (0, (1, 2.4)), "linewidth": 1.0},
}
_LINES |= {f"population_{kind}": _LINES[kind] for kind in ("bound_upper", "bound_lower")}
_LINE_WORDS = {
    "floor": "data-free floor",
    "bound_upper": "explicit upper bound",
    "bound_lower": "explicit lower bound",
    "order_upper": "upper bound up to a constant",
    "order_lower": "lower bound up to a constant",
    "population_bound_upper": "explicit upper bound",
    "population_bound_lower": "explicit lower bound",
}
_WORDS = {
    "excess_risk": "excess risk (sum over records)",
    "excess_risk_per_record": "excess risk (per record)",
    "population_excess_risk": "population excess risk (per record)",
    "records_told": "n in the channel's unit",
    "epsilon_accounted": "certified epsilon",
    "epsilon": "nominal epsilon",
    "noise_over_nl": "noise of a step / (n L)",
    "records_exposed": "records given back",
    "mechanism.width": "half-width h of the rounding",
    **{key: AXIS_WORDS[key] for key in ("n", "p")},
}
_METRICS = {"test_metric": "held-out ", "train_metric": "training "}
_METRIC_WORDS = {"r2": "R2", "mean_distance": "mean distance", "residual_norm": "residual norm"}
_STATISTICS = {
    "mean": "mean ",
    "q05": "5 % quantile of the\n",
    "q95": "95 % quantile of the\n",
    "min": "least ",
    "max": "largest ",
}


def draw_figure(records: Sequence[Row], about: Mapping[str, Any]) -> dict[str, bytes]:
    """The figure's bytes by format; empty where no panel has anything to draw."""
    rows = rows_of(records, about)
    found = [(panel, curves(rows, panel)) for panel in about["plot"]]
    found = [({**panel, "named": _quantity(rows, panel)}, _sort_curves(drawn))
             for panel, drawn in found if any(_select_points(panel, c) for c in drawn)]  # fmt: skip
    if not found:
        return {}
    with figure_style():
        drawn = _draw(found, about)
        return {name: image_bytes(drawn, name) for name in FORMATS}


def _quantity(rows: Sequence[Row], panel: Mapping[str, Any]) -> str:
    """What stands at the left axis; a metric by the name it has in the rows that are drawn."""
    if panel["y"] not in _METRICS:
        return _label_column(panel["y"])
    metrics = sorted(
        {str(r["metric"]) for r in select_rows(rows, make_selection(panel)) if r["metric"]}
    )
    words = " or ".join(_METRIC_WORDS.get(name, name) for name in metrics)
    return _METRICS[panel["y"]] + (words or "metric")


def _sort_curves(drawn: Sequence[Curve]) -> list[Curve]:
    """Curves whose labels differ in numbers alone stand by these, where the first of them is."""
    forms = [_NUMBER.sub("#", curve.label) for curve in drawn]
    keys = [(forms.index(form), [float(word) for word in _NUMBER.findall(curve.label)])
            for curve, form in zip(drawn, forms, strict=True)]  # fmt: skip
    return [drawn[i] for i in sorted(range(len(drawn)), key=keys.__getitem__)]


def _linear(panel: Mapping[str, Any]) -> bool:
    return panel.get("scale") == "linear"


def _select_points(panel: Mapping[str, Any], curve: Curve) -> list[Point]:
    """The points that the panel's scale can show."""
    linear = _linear(panel)
    return [
        p for p in curve.points if p.x and (linear or p.value > p.resolution) and p.value < math.inf
    ]


def _draw(found: Sequence[tuple[Mapping[str, Any], list[Curve]]], about: Mapping[str, Any]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    columns = 3 if len(found) > _MAX_FREE_PANELS else min(2, len(found))
    longest = max(len(curves) + len(panel["lines"]) for panel, curves in found)
    drawn, places = (_place_many if columns == 3 else _place_few)(len(found), columns, longest)
    FigureCanvasAgg(drawn)
    labels = list(dict.fromkeys(curve.label for _, curves in found for curve in curves))
    for place, (panel, mine) in zip(places, found, strict=False):
        _panel(place, panel, mine, labels)
        if columns == 3:
            _thin_labels(place)
        words = textwrap.fill(title(about, panel), round(_TITLE * drawn.get_figwidth() / columns))
        place.set_title(words, loc="left", fontsize=7.4)
    for place in places[len(found) :]:
        place.remove()
    top, low = 1.0 - 0.06 / drawn.get_figheight(), 0.06 / drawn.get_figheight()
    place = {} if columns < 3 else {"y": top, "va": "top"}
    drawn.suptitle(f"{about['id']} {about['paper']}, size={about['size']}", fontsize=9, x=0.01,
                   ha="left", fontweight="bold", **place)  # fmt: skip
    place = {} if columns < 3 else {"y": low, "va": "bottom"}
    drawn.supxlabel(_caption(found), fontsize=6.5, color=GREY, x=0.01, ha="left", **place)
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")
    return drawn


def _place_few(count: int, columns: int, longest: int) -> tuple[Any, list[Any]]:
    """A page of one or two columns, laid out by what its panels hold."""
    from matplotlib.figure import Figure

    lines = math.ceil(count / columns)
    height = lines * (_HEIGHT + _LEGEND_LINE * (longest + 1)) + 0.35
    drawn = Figure(figsize=(_WIDTH, height))
    drawn.set_layout_engine("constrained", hspace=0.06)
    return drawn, drawn.subplots(lines, columns, squeeze=False).ravel().tolist()


def _place_many(count: int, columns: int, longest: int) -> tuple[Any, list[Any]]:
    """A page of panels at fixed places, so that a long legend makes no panel narrower."""
    from matplotlib.figure import Figure

    (across, up), above = _GRID["panel"], _GRID["above"]
    row = above + up + _BELOW + _LEGEND_LINE * (longest + 0.5)
    width, height = columns * _GRID["pitch"], math.ceil(count / columns) * row + 0.4
    drawn, places = Figure(figsize=(width, height)), []
    for i in range(count):
        line, column = divmod(i, columns)
        left, low = _GRID["left"] + column * _GRID["pitch"], height - 0.22 - line * row - above - up
        places.append(drawn.add_axes((left / width, low / height, across / width, up / height)))
    return drawn, places


def _caption(found: Sequence[tuple[Mapping[str, Any], list[Curve]]]) -> str:
    """What the marks mean, of those that are there."""
    shown = [p for panel, curves in found for curve in curves for p in _select_points(panel, curve)]
    words = []
    if any(p.is_near_floor for p in shown):
        words.append("Hollow: within a factor 2 of the data-free floor (saturated, not fitted).")
    if any(p.trials > 1 for p in shown):
        words.append("Bands: 5-95 % over trials.")
    if any(curve.fit for _, curves in found for curve in curves):
        words.append("Slopes: least squares on logarithms, 95 % intervals.")
    return " ".join(words)


def _panel(
    place: Any, panel: Mapping[str, Any], found: Sequence[Curve], labels: Sequence[str]
) -> None:
    place.set_xscale("log")
    place.set_yscale("linear" if _linear(panel) else "log")
    for curve in found:
        at = labels.index(curve.label)
        _curve(
            place, curve, _select_points(panel, curve), HUES[at % len(HUES)], MARKS[at % len(MARKS)]
        )
    _hold_limits(place, panel, found)
    if place.get_yscale() == "log":
        format_major_ticks(place.yaxis)
    place.set_xlabel(_label_column(panel["x"]))
    place.set_ylabel(_STATISTICS.get(panel.get("statistic", ""), "") + panel["named"],
                     fontsize=7.4)  # fmt: skip
    place.spines["right"].set_visible(False)
    place.grid(True, which="major", color="#E4E4E4", linewidth=0.6)
    place.set_axisbelow(True)
    _ticks(place, sorted({p.x for c in found for p in _select_points(panel, c) if p.x}))
    _legend(place, found)


def _hold_limits(place: Any, panel: Mapping[str, Any], found: Sequence[Curve]) -> None:
    """A band that reaches 0 runs off a logarithmic axis, which ends below what can be shown."""
    kept = [p for curve in found for p in _select_points(panel, curve)]
    lines = [y for curve in found for line in curve.lines.values() for _, y in line or ()]
    values = [v for p in kept for v in (p.low, p.value, p.high) if v > p.resolution] + lines
    shown = [value for value in values if value > 0.0]
    if (
        place.get_yscale() == "log"
        and shown
        and any(p.trials > 1 and p.low <= p.resolution for p in kept)
    ):
        place.set_ylim(0.6 * min(shown), max(shown) / 0.6)


def _legend(place: Any, found: Sequence[Curve]) -> None:
    """Below the panel, where it hides nothing; bounds and floors once, in grey."""
    from matplotlib.transforms import ScaledTranslation

    handles, _ = place.get_legend_handles_labels()
    for kind in dict.fromkeys(kind for curve in found for kind in curve.lines if curve.lines[kind]):
        style = _FLOOR if kind == "floor" else {"color": GREY, **_LINES[kind]}
        handles += place.plot([], [], label=_LINE_WORDS[kind], **style)
    if len(handles) > 1 or (found[0].label or found[0].fit):
        short = max(len(str(handle.get_label())) for handle in handles) <= _MAX_TWO_COLUMN_LABEL
        columns = 2 if len(handles) > 3 and short else 1
        below = ScaledTranslation(0.0, -_BELOW, place.figure.dpi_scale_trans)
        place.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.0, 0.0),
                     bbox_transform=place.transAxes + below, fontsize=6.2, frameon=False,
                     borderpad=0.0, borderaxespad=0.0, labelspacing=0.25, handlelength=2.4,
                     ncols=columns)  # fmt: skip


def _curve(place: Any, curve: Curve, kept: Sequence[Point], color: str, mark: str) -> None:
    if not kept:
        return
    xs = [p.x for p in kept]
    if any(p.trials > 1 for p in kept):
        log = place.get_yscale() == "log"
        lows = [_LOG_ZERO if log and p.low <= p.resolution else p.low for p in kept]
        place.fill_between(xs, lows, [p.high for p in kept], color=color, alpha=0.15, linewidth=0)
    label = _shorten_label(curve.label)
    if curve.fit:
        slope = round(curve.fit.slope, 2) + 0.0  # never -0.00
        label += f"{': ' if label else ''}slope {slope:.2f} ± {curve.fit.half:.2f}"
    place.plot(xs, [p.value for p in kept], color=color, zorder=3)
    place.plot([], [], color=color, marker=mark, label=label)
    for p in kept:
        face = "white" if p.is_near_floor else color
        place.plot([p.x], [p.value], marker=mark, linestyle="none", color=color,
                   markerfacecolor=face, zorder=4)  # fmt: skip
    for kind, line in curve.lines.items():
        if line:
            style = _FLOOR if kind == "floor" else {"color": color, **_LINES[kind]}
            place.plot([x for x, _ in line], [y for _, y in line], zorder=1.5, **style)


def _shorten_label(label: str) -> str:
    """A curve's name without the keys that its mechanism has no value of."""
    return ", ".join(part for part in label.split(", ") if not part.endswith(" -"))


def _ticks(place: Any, xs: Sequence[float]) -> None:
    format_major_ticks(place.xaxis)
    apart = min((math.log(b / a) for a, b in pairwise(xs)), default=0.0)
    if 1 < len(xs) <= 8 and apart > math.log(xs[-1] / xs[0]) / 14:
        place.set_xticks(xs, labels=[number(x) for x in xs], minor=False)
    elif xs and xs[-1] < 200.0 * xs[0]:
        format_axis_numbers(place.xaxis, (1.0, 2.0))
        place.tick_params(axis="x", which="minor", length=0)
        place.tick_params(axis="x", labelsize=6.6 if len(xs) > 6 else 7.5)


def _thin_labels(place: Any) -> None:
    """Every other label of a crowded axis, the last one among them; and smaller words."""
    labels = place.get_xticklabels()
    if len(labels) > _LABELS and any(label.get_text() for label in labels):
        kept = [label.get_text() if (len(labels) - i) % 2 else "" for i, label in enumerate(labels)]
        place.set_xticks(place.get_xticks(), labels=kept, minor=False)
    place.tick_params(labelsize=6.6)
    place.xaxis.label.set_fontsize(7.4)
    place.yaxis.label.set_fontsize(6.4)
    low, high = place.get_ylim()
    if place.get_yscale() == "log" and high < 60.0 * low:
        format_axis_numbers(place.yaxis, (low, high))  # 2, 5, 10: powers of ten take too much room


def _label_column(name: str) -> str:
    return _WORDS.get(name, name.rpartition(".")[2].replace("_", " "))
