"""The figure of a study: excess risk against epsilon, n or p, one panel per problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dperm_cli.results.charts.chart_model import NO_GUARANTEE, SATURATED_WORDS, Axis, Figure, Panel
from dperm_cli.results.charts.figure_drawing import draw_files
from dperm_cli.results.charts.panel_drawing import has_visible_gap, select_paper_curves
from dperm_cli.results.charts.study_panels import panels
from dperm_cli.results.records.row_facts import Row, number
from dperm_cli.results.records.summary import BAND_WORDS

MAX_PANELS = 6
MAX_CURVES = 24  # most curves in a panel


def draw_figure(rows: Sequence[Row]) -> tuple[dict[str, bytes], str | None]:
    """The study's figure as bytes by format, and a note where something could not be drawn.

    ``rows`` are summary rows. With nothing to draw the dict is empty and the note says why.
    """
    figure, note = make_figure(rows)
    return ({} if figure is None else draw_files(figure)), note


def make_figure(rows: Sequence[Row]) -> tuple[Figure | None, str | None]:
    """The model of a study's figure, None with nothing to draw, and a note on what is missing."""
    found = [panel for panel in panels(rows) if panel.points]
    if not found:
        return None, "no figure: no cell has an excess risk that can be drawn"
    shown, left_out = found[:MAX_PANELS], []
    if len(found) > MAX_PANELS:
        left_out.append(f"the first {MAX_PANELS} of {len(found)} problems")
    most = max(len(panel.curves) for panel in shown)
    if most > MAX_CURVES:
        left_out.append(f"the first {MAX_CURVES} of {most} curves a problem")
        shown = [replace(panel, curves=panel.curves[:MAX_CURVES]) for panel in shown]
    note = f"figure: {', '.join(left_out)}; the table has them all" if left_out else None
    spent = any(row["noise"] == "secure" for row in rows)
    return build_figure(shown, note, spent), note


def build_figure(shown: Sequence[Panel], note: str | None = None, spent: bool = False) -> Figure:
    """The figure with these panels. ``spent`` says that every trial is a release with fresh
    noise.
    """
    notes = [*_caption(shown, spent), *([note] if note else [])]
    if len(shown) == 1 and shown[0].n:
        label = f"excess risk (sum over n = {shown[0].n} records)"
        shown = [replace(shown[0], y=Axis(label))]
    elif len(shown) > 1:
        shown = [replace(panel, details=(_constants(panel), *panel.details)) for panel in shown]
    return Figure(tuple(shown), notes=notes, shared_legend=True)


def _constants(panel: Panel) -> str:
    """The fitted constants of a panel's order bounds, in words short enough for its width."""
    words = [
        f"{line.kind.partition('_')[2]}{f' {line.mechanism}' if line.mechanism else ''} "
        f"{line.constant}"
        for line in panel.lines
        if line.constant
    ]
    return f"order constants: {', '.join(words)}" if words else ""


def _caption(found: Sequence[Panel], spent: bool) -> list[str]:
    points = [point for panel in found for curve in panel.curves for point in curve.points]
    counts = sorted({point.trials for point in points})
    many = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    trials = "One trial a point."
    if counts != [1]:
        trials = f"Median and {BAND_WORDS} band over {many} trials"
        if spent:
            trials += ", each of them released and spent: no guarantee covers these statistics."
        else:
            trials += ": a simulation on the same data, not a release."
    gap = number(max(point.gap for point in points), 2)
    bars = ": the bar above a marker" if any(map(has_visible_gap, points)) else ""
    lines = [
        trials,
        f"Hollow: {SATURATED_WORDS}, or above it (saturated). Optimum gap at most {gap}{bars}.",
    ]
    if any(select_paper_curves(panel) for panel in found):
        lines.append("Coloured numbers under the axis: accounted epsilon, calibration=paper.")
    if any(curve.note == NO_GUARANTEE for panel in found for curve in panel.curves):
        lines.append("Curves without a guarantee are NOT private.")
    return lines
