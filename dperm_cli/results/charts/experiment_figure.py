"""The figure of an experiment: one panel per entry of its plot, slopes in the legends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.results.charts import chart_model
from dperm_cli.results.charts.chart_model import (
    AXIS_WORDS,
    LINE_STYLES,
    LINEAR,
    METRIC_WORDS,
    SATURATED_WORDS,
    Axis,
    Figure,
    Panel,
    ReferenceLine,
)
from dperm_cli.results.charts.curve_points import select_rows
from dperm_cli.results.charts.figure_drawing import draw_files
from dperm_cli.results.charts.mechanism_looks import choose_looks
from dperm_cli.results.charts.themes import DEFAULT_THEME
from dperm_cli.results.claims.experiment_tables import Curve, curves, make_selection, rows_of, title
from dperm_cli.results.records.row_facts import Row
from dperm_cli.results.records.summary import BAND, BAND_WORDS

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")
_WORDS = {
    "excess_risk": "excess risk (sum over records)",
    "excess_risk_per_record": "excess risk (per record)",
    "population_excess_risk": "population excess risk (per record)",
    "records_told": "n in the channel's unit",
    "records_told_cor2": "n in the unit of Corollary 2",
    "epsilon_accounted": "certified epsilon",
    "noise_over_nl": "noise of a step / (n L)",
    "records_exposed": "records given back",
    "mechanism.width": "half-width h of the rounding",
    **AXIS_WORDS,
    "epsilon": "nominal epsilon",
}
_METRICS = {"test_metric": "held-out ", "train_metric": "training "}
_STATISTICS = {
    "mean": "mean ",
    "q05": f"{100 * BAND[0]:g} % quantile of the\n",
    "q95": f"{100 * BAND[1]:g} % quantile of the\n",
    "min": "least ",
    "max": "largest ",
}


def draw_figure(
    records: Sequence[Row], about: Mapping[str, Any], theme: str = DEFAULT_THEME
) -> dict[str, bytes]:
    """The figure's bytes by format; empty where no panel has anything to draw."""
    shown = select_panels(records, about)
    if not shown:
        return {}
    return draw_files(build_figure(shown, about, theme))


def build_figure(
    shown: Sequence[Panel], about: Mapping[str, Any], theme: str = DEFAULT_THEME
) -> Figure:
    """The figure with these panels, and its caption."""
    name = f"{about['id']} {about['paper']}, size={about['size']}"
    sloped = any(curve.slope for panel in shown for curve in panel.curves)
    notes = _write_caption(shown, about)
    return Figure(tuple(shown), name, notes, shared_legend=not sloped, theme=theme)


def panels(rows: Sequence[Row], about: Mapping[str, Any]) -> list[Panel]:
    """The panels of the plot, of rows as ``rows_of`` makes them; a label has one look in all."""
    found = [(panel, curves(rows, panel)) for panel in about["plot"]]
    looks = choose_label_looks(found)
    return [_panel(rows, panel, title(about, panel), drawn, looks) for panel, drawn in found]


def select_panels(records: Sequence[Row], about: Mapping[str, Any]) -> list[Panel]:
    """The panels of the plot that have a point."""
    return [panel for panel in panels(rows_of(records, about), about) if panel.points]


def choose_label_looks(
    found: Sequence[tuple[Mapping[str, Any], Sequence[Curve]]],
) -> dict[str, tuple[int, int]]:
    """The look and the pattern of each label.

    Mechanisms have their own looks, and patterns part the curves of one mechanism. Where the labels
    name one mechanism or none, each label has a look by its order.
    """
    names: dict[str, str | None] = {}
    for panel, drawn in found:
        place = panel["curve"].index("mechanism") if "mechanism" in panel["curve"] else None
        for curve in sort_curves(drawn):
            name = None if place is None else curve.label.split(", ")[place]
            names.setdefault(curve.label, name)
    known = {name for name in names.values() if name}
    if len(known) < 2 or None in names.values():
        return {label: (i, 0) for i, label in enumerate(names)}
    looks, made = choose_looks(sorted(known)), {}
    for name in known:
        mine = [label for label, whose in names.items() if whose == name]
        shown = dict.fromkeys(map(_shorten_label, mine))
        ordered = sorted(shown, key=lambda words: words != name)  # without settings: solid
        made |= {label: (looks[name], ordered.index(_shorten_label(label))) for label in mine}
    return made


def _shorten_label(label: str) -> str:
    """The label without the keys that its mechanism has no value of."""
    return ", ".join(part for part in label.split(", ") if not part.endswith(" -"))


def _panel(
    rows: Sequence[Row],
    panel: Mapping[str, Any],
    name: str,
    found: Sequence[Curve],
    looks: Mapping[str, tuple[int, int]],
) -> Panel:
    statistic = _STATISTICS.get(panel.get("statistic", ""), "")
    linear = panel.get("scale") == LINEAR or panel["y"] in _METRICS
    printed = panel.get("paper")
    return Panel(
        title=name,
        x=Axis(label_column(panel["x"])),
        y=Axis(statistic + name_quantity(rows, panel), LINEAR if linear else "log"),
        curves=tuple(_curve(curve, *looks[curve.label]) for curve in sort_curves(found)),
        lines=tuple(
            _line(kind.removeprefix("population_"), line, looks[curve.label][0])
            for curve in found
            for kind, line in curve.lines.items()
            if line
        )
        + (() if printed is None or not found else (_draw_printed(printed),)),
        shows_all_lines=True,
    )


def _line(kind: str, line: Sequence[tuple[float, float]], look: int) -> ReferenceLine:
    xs, ys = zip(*line, strict=True)
    return ReferenceLine(kind, LINE_STYLES[kind].words, xs, ys, look=look)


def _draw_printed(value: float) -> ReferenceLine:
    """A number that the paper prints, across the panel."""
    return ReferenceLine("paper", f"{LINE_STYLES['paper'].words}: {value:g}", (), (value,))


def _curve(curve: Curve, look: int, pattern: int) -> chart_model.Curve:
    name = _shorten_label(curve.label)
    slope = ""
    if curve.fit:
        value = round(curve.fit.slope, 2) + 0.0  # never -0.00
        slope = f"slope {value:.2f} ± {curve.fit.half:.2f}"
    return chart_model.Curve(name, curve.points, look, slope=slope, pattern=pattern)


def name_quantity(rows: Sequence[Row], panel: Mapping[str, Any]) -> str:
    """What stands at the left axis; a metric by the name it has in the rows that are drawn."""
    if panel["y"] not in _METRICS:
        return label_column(panel["y"])
    metrics = sorted(
        {str(r["metric"]) for r in select_rows(rows, make_selection(panel)) if r["metric"]}
    )
    words = " or ".join(METRIC_WORDS.get(name, name) for name in metrics)
    return _METRICS[panel["y"]] + (words or "metric")


def sort_curves(drawn: Sequence[Curve]) -> list[Curve]:
    """Curves whose labels differ in numbers alone stand by these, where the first of them is."""
    forms = [_NUMBER.sub("#", curve.label) for curve in drawn]
    keys = [(forms.index(form), [float(word) for word in _NUMBER.findall(curve.label)])
            for curve, form in zip(drawn, forms, strict=True)]  # fmt: skip
    return [drawn[i] for i in sorted(range(len(drawn)), key=keys.__getitem__)]


def _write_caption(shown: Sequence[Panel], about: Mapping[str, Any]) -> list[str]:
    """What the experiment asks, and what the marks mean, of those that are there."""
    points = [point for panel in shown for point in panel.points]
    words = [" ".join(str(about.get("text") or "").split())]
    if any(p.is_near_floor for p in points):
        words.append(f"Hollow: {SATURATED_WORDS} (saturated, not fitted).")
    if any(p.trials > 1 for p in points):
        words.append(f"Bands: {BAND_WORDS} over trials.")
    if any(curve.slope for panel in shown for curve in panel.curves):
        words.append("Slopes: least squares on logarithms, 95 % intervals.")
    return [word for word in words if word]


def label_column(name: str) -> str:
    """What an axis calls a column."""
    return _WORDS.get(name, name.rpartition(".")[2].replace("_", " "))
