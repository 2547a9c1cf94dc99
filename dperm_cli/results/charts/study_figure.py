"""The figure of a study: excess risk against epsilon, as PDF, SVG and PNG.

Drawn with matplotlib's default settings plus ``_STYLE``, whatever the user's own are, and without
dates or random ids, so that equal rows give equal bytes.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dperm_cli.results.charts.panel_drawing import (
    GREY,
    INK,
    MIN_VISIBLE_GAP,
    draw_panel,
    height_of,
    select_paper_curves,
)
from dperm_cli.results.charts.study_panels import (
    NO_GUARANTEE,
    Panel,
    Point,
    axis_of,
    drawn_rows,
    panels,
)
from dperm_cli.results.records.row_facts import Row, number

FORMATS = ("pdf", "svg", "png")
_WIDEST_LABEL = 96  # characters of a line of the legend
MAX_PANELS = 6
MAX_CURVES = 24  # of a panel
_WIDTH = 7.0  # inches: both columns of a two-column page
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    # a name may hold any number of dollar signs; numbers on axes have formatters without them
    "text.parse_math": False,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.2,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.6,
    "savefig.dpi": 200.0,
    "svg.hashsalt": "dperm",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "pdf.compression": 6,
}
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def draw_figure(rows: Sequence[Row]) -> tuple[dict[str, bytes], str | None]:
    """The study's figure as bytes by format, and a note where something could not be drawn.

    ``rows`` are summary rows. With nothing to draw the dict is empty and the note says why.
    """
    found = [panel for panel in panels(rows) if _drawable(panel)]
    if not found:
        return {}, "no figure: no cell has an excess risk that can be drawn"
    note = None
    if len(found) > MAX_PANELS:
        note = f"figure: the first {MAX_PANELS} of {len(found)} problems; the table has them all"
    shown = [replace(panel, curves=panel.curves[:MAX_CURVES]) for panel in found[:MAX_PANELS]]
    most = max(len(panel.curves) for panel in found[:MAX_PANELS])
    if most > MAX_CURVES:
        words = f"the first {MAX_CURVES} of {most} curves a problem; the table has them all"
        note = f"{note.partition(';')[0]}, {words}" if note else f"figure: {words}"
    with figure_style():
        spent = any(row["noise"] == "secure" for row in rows)
        drawn = _draw(shown, axis_of(drawn_rows(rows)), note, spent)
        return {name: image_bytes(drawn, name) for name in FORMATS}, note


@contextmanager
def figure_style() -> Iterator[None]:
    """The style of all figures, whatever the user's own is."""
    import matplotlib

    default = matplotlib.rcParamsDefault.items()
    style: Any = {key: value for key, value in default if not key.startswith("backend")}
    with matplotlib.rc_context(style | _STYLE):
        yield


def image_bytes(drawn: Any, name: str) -> bytes:
    """A matplotlib figure in one of FORMATS, without dates or random ids."""
    sink = io.BytesIO()
    drawn.savefig(sink, format=name, metadata=_METADATA[name])
    return sink.getvalue()


def _drawable(panel: Panel) -> bool:
    return any(height_of(point) > 0 for curve in panel.curves for point in curve.points)


def _draw(found: Sequence[Panel], axis: str, note: str | None, spent: bool = False) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 1 if len(found) == 1 else 2
    lines = math.ceil(len(found) / columns)
    strips = max(len(select_paper_curves(panel)) for panel in found)
    height = lines * ((3.4 if columns == 1 else 2.9) + 0.14 * strips)
    drawn = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(drawn)
    grid = drawn.subplots(lines, columns, squeeze=False).ravel().tolist()
    hues = list(dict.fromkeys(curve.hue for panel in found for curve in panel.curves))
    alone = len(found) == 1
    for place, panel in zip(grid, found, strict=False):
        draw_panel(place, panel, axis, hues, alone)
    for place in grid[len(found) :]:
        place.remove()
    caption = _caption(found, note, spent)
    _below(drawn, height, _legend_entries(grid[: len(found)], found), caption)
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # laid out once, the same for every format
    return drawn


def _below(drawn: Any, height: float, entries: dict[str, Any], caption: str) -> None:
    """Legend and caption in a strip of their own under the panels, added to the height."""
    legend, tall = _legend(drawn, entries)
    notes = 0.135 * (caption.count("\n") + 1) + 0.06
    total = height + tall + notes
    drawn.set_figheight(total)
    drawn.get_layout_engine().set(rect=(0, 1 - height / total, 1, height / total))
    legend.set_bbox_to_anchor((0.0, 1 - height / total))
    drawn.text(
        0.012, 0.06 / total, caption, fontsize=6.8, color=GREY, va="bottom", linespacing=1.35
    )


def _legend(drawn: Any, entries: dict[str, Any]) -> tuple[Any, float]:
    """The legend in as many columns (two at most) as fit, and its height in inches."""
    labels = ["\n".join(textwrap.wrap(label, _WIDEST_LABEL)) for label in entries]
    for columns in (2, 1):
        legend = drawn.legend(
            list(entries.values()),
            labels,
            loc="upper left",
            ncols=columns,
            frameon=False,
            bbox_to_anchor=(0.0, 1.0),
            handlelength=3.0,
            columnspacing=1.5,
            labelspacing=0.35,
            borderaxespad=0.2,
        )
        box = legend.get_window_extent(drawn.canvas.get_renderer())
        if columns == 1 or box.width <= _WIDTH * drawn.dpi:
            return legend, box.height / drawn.dpi + 0.06
        legend.remove()
    raise AssertionError("one column always fits")


def _legend_entries(grid: Sequence[Any], found: Sequence[Panel]) -> dict[str, Any]:
    """What the legend of all panels shows: each label once."""
    from matplotlib.patches import Patch

    entries: dict[str, Any] = {}
    for place in grid:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if any(point.trials > 1 for point in _points(found)):
        entries["5-95 % band over trials"] = Patch(color=GREY, alpha=0.25, linewidth=0)
    return entries


def _points(found: Sequence[Panel]) -> list[Point]:
    return [point for panel in found for curve in panel.curves for point in curve.points]


def _bars(points: Sequence[Point]) -> str:
    """What the caption says where the gap is drawn."""
    seen = any(
        point.median + point.gap > height_of(point) > 0
        and point.gap > MIN_VISIBLE_GAP * height_of(point)
        for point in points
    )
    return ": the bar above a marker" if seen else ""


def _caption(found: Sequence[Panel], note: str | None, spent: bool = False) -> str:
    """The lines below a figure; ``spent`` says that trials are releases with fresh noise."""
    points = _points(found)
    counts = sorted({point.trials for point in points})
    many = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    trials = "One trial a point."
    if counts != [1]:
        trials = f"Median and 5-95 % band over {many} trials"
        if spent:
            trials += ", each of them released and spent: no guarantee covers these statistics."
        else:
            trials += ": a simulation on the same data, not a release."
    gap = max(point.gap for point in points)
    lines = [
        trials,
        "Hollow: within a factor 2 of the data-free floor, or above it (saturated). "
        f"Optimum gap at most {number(gap, 2)}{_bars(points)}.",
    ]
    if any(select_paper_curves(panel) for panel in found):
        lines.append("Coloured numbers under the axis: accounted epsilon, calibration=paper.")
    if any(curve.note == NO_GUARANTEE for panel in found for curve in panel.curves):
        lines.append("Curves without a guarantee are NOT private.")
    return "\n".join([*lines, *([note] if note else [])])
