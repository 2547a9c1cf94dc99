"""The figure of a study: from summary rows and what a reader asks for to panels and a caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dperm_cli.results.charts.chart_model import (
    NO_GUARANTEE,
    SATURATED_WORDS,
    Axis,
    Curve,
    Figure,
    Panel,
)
from dperm_cli.results.charts.figure_drawing import draw_canvas, draw_files
from dperm_cli.results.charts.panel_drawing import has_visible_gap
from dperm_cli.results.charts.study_panels import panels
from dperm_cli.results.charts.study_view import StudyView
from dperm_cli.results.records.aggregate import (
    aggregate_rows,
    choose_repetitions,
    count_repetitions,
    find_repetitions,
)
from dperm_cli.results.records.references import tell_references
from dperm_cli.results.records.row_facts import Row, group_by, number
from dperm_cli.results.records.summary import BAND_WORDS

MAX_PANELS = 6
MAX_CURVES = 24  # most curves in a panel
NEAR = 3.0  # factor above the highest point within which the floor is drawn unasked
DEFAULT_VIEW = StudyView()
_REFERENCES = ("baseline", "optimum")  # kinds of lines of a metric


def draw_figure(
    rows: Sequence[Row], view: StudyView = DEFAULT_VIEW
) -> tuple[dict[str, bytes], str | None]:
    """The study's figure as bytes by format, and a note where something could not be drawn.

    ``rows`` are summary rows. With nothing to draw the dict is empty and the note says why.
    """
    figure, note = build_figure(rows, view)
    return ({} if figure is None else draw_files(figure)), note


def plot_study(rows: Sequence[Row], view: StudyView = DEFAULT_VIEW) -> Any:
    """The study's figure as a Figure of matplotlib, at the size of its theme.

    The user's settings of matplotlib, their back end and their open figures stay as they are.

    Raises:
        InputError: The view asks for what the study lacks, or there is nothing to draw.
    """
    from dperm_cli.core.errors import InputError

    figure, note = build_figure(rows, view)
    if figure is None:
        raise InputError("y", view.y, str(note))
    return draw_canvas(figure)


def build_figure(
    rows: Sequence[Row], view: StudyView = DEFAULT_VIEW
) -> tuple[Figure | None, str | None]:
    """The figure's description with its caption, and a note on what is not in it.

    Raises:
        InputError: The view asks for what the study lacks.
    """
    view.check(rows)
    taken = [key for key in (view.x, view.hue, view.facet) if key]
    keys = choose_repetitions(view.aggregate, rows, taken)
    joined = aggregate_rows(rows, keys)
    found = [panel for panel in panels(joined, view) if panel.points]
    if not found:
        return None, f"no figure: no cell has a value of {view.y} that can be drawn"
    shown, note = _leave_out(found, rows, view)
    shown = [_select_lines(panel, view) for panel in shown]
    facts = _Facts(shown, joined, keys)
    caption = [*_write_caption(facts, view), *([f"{note[0].upper()}{note[1:]}."] if note else [])]
    if len(shown) > 1:
        shown = [replace(panel, n=None) for panel in shown]
    elif shown[0].n and view.theme != "single":
        label = f"excess risk (sum over n = {shown[0].n} records)"
        shown = [replace(shown[0], y=Axis(label))]
    else:
        shown = [replace(shown[0], n=None)]
    entered, patterns = _name_entries(shown)
    figure = Figure(
        tuple(entered),
        notes=caption,
        shared_legend=True,
        patterns=patterns,
        theme=view.theme,
        shows_accounted="calibration" in (view.show or ()),
    )
    return figure, note


def _leave_out(
    found: Sequence[Panel], rows: Sequence[Row], view: StudyView
) -> tuple[list[Panel], str | None]:
    """The panels and curves that have room, and a note on the others."""
    shown, left_out = list(found[:MAX_PANELS]), []
    if len(found) > MAX_PANELS:
        left_out.append(f"the first {MAX_PANELS} of {len(found)} problems")
    most = max(len(panel.curves) for panel in shown)
    if most > MAX_CURVES:
        left_out.append(f"the first {MAX_CURVES} of {most} curves a problem")
        shown = [replace(panel, curves=panel.curves[:MAX_CURVES]) for panel in shown]
    if not left_out:
        return shown, None
    note = f"figure: {', '.join(left_out)}; the table has them all"
    repeated = find_repetitions(rows)
    if repeated and view.aggregate is not None:
        note += f"; aggregate=seed joins those that differ in {' and '.join(repeated)}"
    return shown, note


def _select_lines(panel: Panel, view: StudyView) -> Panel:
    """The panel with the lines that the view asks for.

    Unasked, these are the floor where it is near, and what a metric is judged by.
    """
    kinds = {"floor": ("floor", *_REFERENCES), "bounds": ("bound",), "orders": ("order",)}
    asked = {kind for word in view.show or () for kind in kinds.get(word, ())}
    kept = [line for line in panel.lines if line.kind.partition("_")[0] in asked]
    if view.show is None:
        top = max(point.value for point in panel.points)
        kept = [line for line in panel.lines if line.kind in _REFERENCES
                or (line.kind == "floor" and max(line.ys) <= NEAR * top)]  # fmt: skip
    return replace(panel, lines=tuple(kept))


def _name_entries(shown: Sequence[Panel]) -> tuple[list[Panel], tuple[tuple[str, int], ...]]:
    """The panels with their curves' names for the legend, and what patterns mean.

    Where all colours come with the same calibrations and settings, the legend has each colour and
    each pattern once; otherwise the settings stand in the names.
    """
    curves = [curve for panel in shown for curve in panel.curves]
    names = {curve.name for curve in curves}
    by_name = {name: {c.variant for c in curves if c.name == name} for name in names}
    parted = len({frozenset(variants) for variants in by_name.values()}) == 1
    told = len({c.calibration == "paper" for c in curves}) > 1
    single = len(names) == 1 and parted

    def enter(curve: Curve) -> Curve:
        words = [curve.name] if parted else [curve.name, curve.variant]
        if single and curve.variant:
            words = [curve.name, curve.variant]
        if curve.calibration == "paper" and not told:
            words.append("paper")
        entry = ", ".join(word for word in words if word)
        return replace(curve, entry=f"{entry} ({curve.note})" if curve.note else entry)

    meanings: dict[int, str] = {}
    for curve in curves:
        paper = "paper's calibration" if curve.calibration == "paper" and told else ""
        variant = curve.variant if parted and not single else ""
        words = ", ".join(word for word in (variant, paper) if word)
        if words:
            meanings.setdefault(curve.pattern, words)
    entered = [replace(panel, curves=tuple(map(enter, panel.curves))) for panel in shown]
    return entered, tuple((words, pattern) for pattern, words in sorted(meanings.items()))


class _Facts:
    """What a caption is written from."""

    def __init__(self, shown: Sequence[Panel], rows: Sequence[Row], keys: Sequence[str]) -> None:
        self.panels, self.keys = shown, keys
        self.points = [point for panel in shown for point in panel.points]
        self.curves = [curve for panel in shown for curve in panel.curves]
        self.lines = [line for panel in shown for line in panel.lines]
        self.spent = any(row["noise"] == "secure" for row in rows)
        ran = [row for row in rows if row["status"] == "ok"]
        self.repetitions = count_repetitions(ran) if keys else []
        self.trials = sorted({row["trials"] // row["repetitions"] for row in ran})
        problems = group_by(ran, lambda row: (row["dataset"], row["loss"], row["metric"]))
        told = {key: tell_references(group) for key, group in problems.items()}
        alone = len(told) == 1
        self.references = [
            line if alone else f"{name}, {loss}: {line}"
            for (name, loss, _), line in told.items()
            if line
        ]


def _write_caption(facts: _Facts, view: StudyView) -> list[str]:
    """The sentences below a figure."""
    first, risk = facts.panels[0], view.quantity.is_risk
    names = {panel.y.label for panel in facts.panels}
    x = first.x.label
    details = dict.fromkeys(detail for panel in facts.panels for detail in panel.details)
    told = [panel.title for panel in facts.panels] if len(facts.panels) > 1 else []
    if len(details) > 1:  # each panel has its own
        told = [f"{panel.title} ({', '.join(panel.details)})" for panel in facts.panels]
        details = {}
    what = "; ".join(word for word in (*told, *details) if word)
    line = f"{' and '.join(sorted(names))} against {x}: {what}."
    lines = [line[0].upper() + line[1:]]
    if view.quantity.band:
        lines.append(_say_trials(facts))
    if risk:
        gap = number(max(point.gap for point in facts.points), 2)
        bars = ": the bar above a marker" if any(map(has_visible_gap, facts.points)) else ""
        if any(point.is_near_floor for point in facts.points):
            lines.append(f"Hollow: {SATURATED_WORDS}, or above it (saturated).")
        lines.append(f"Optimum gap at most {gap}{bars}.")
    lines += _say_lines(facts)
    lines += [f"{line[0].upper()}{line[1:]}." for line in facts.references]
    if {"paper"} < {curve.calibration for curve in facts.curves}:
        lines.append("Dashed, with half-filled marks: calibration=paper, the noise as published.")
    if "calibration" in (view.show or ()):
        lines.append("Coloured numbers under the axis: accounted epsilon, calibration=paper.")
    if any(curve.note == NO_GUARANTEE for curve in facts.curves):
        lines.append("Curves without a guarantee are NOT private.")
    return lines


def _say_trials(facts: _Facts) -> str:
    """What a point and its band are the statistics of."""
    trials = _count(facts.trials)
    if facts.keys and max(facts.repetitions, default=1) > 1:
        each = "one trial each" if facts.trials == [1] else f"each the median of {trials} trials"
        over = f"{_count(facts.repetitions)} repetitions ({', '.join(facts.keys)}; {each})"
        words = f"Median and {BAND_WORDS} band over {over}"
    elif facts.trials == [1]:
        return "One trial a point."
    else:
        words = f"Median and {BAND_WORDS} band over {trials} trials"
    if facts.spent:
        return f"{words}, each of them released and spent: no guarantee covers these statistics."
    return f"{words}: a simulation on the same data, not a release."


def _count(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _say_lines(facts: _Facts) -> list[str]:
    """What the reference lines are, and the constants that were fitted."""
    fitted = dict.fromkeys(
        f"{line.kind.partition('_')[2]}{f' {line.mechanism}' if line.mechanism else ''} "
        f"{line.constant}"
        for line in facts.lines
        if line.constant
    )
    words = []
    floors = [line for line in facts.lines if line.kind == "floor"]
    if any(line.mechanism for line in floors):
        words.append("Lines without marks: data-free floors, of points that use no data, each in "
                     "the colour of its curve.")  # fmt: skip
    elif floors:
        words.append("Grey line: data-free floor, the excess risk of a point that uses no data.")
    if any(line.kind in _REFERENCES for line in facts.lines):
        words.append("Thin grey lines: what the metric is judged by.")
    if fitted:
        words.append(f"Orders are drawn with fitted constants: {', '.join(fitted)}.")
    return words
