"""Figures as PDF, SVG and PNG, laid out and drawn with matplotlib.

Drawn with matplotlib's default settings plus ``figure.mplstyle``, whatever the user's own are, and
without dates or random ids, so that equal figures give equal bytes.
"""

from __future__ import annotations

import contextlib
import io
import math
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dperm_cli.core import private_folders
from dperm_cli.results.charts.chart_model import GREY, INK, Figure, Panel
from dperm_cli.results.charts.panel_drawing import draw_panel, select_paper_curves, wrap_title
from dperm_cli.results.records.summary import BAND_WORDS

FORMATS = ("pdf", "svg", "png")
_WIDTH = 7.0  # inches: both columns of a two-column page
_WIDEST_LABEL = 96  # characters of a line of a shared legend
_MAX_TWO_COLUMN_LABEL = 24  # characters of labels that two columns of a small legend have room for
# A panel at a fixed place, in inches: from panel to panel, room left of it, its width and height.
_PLACES = {1: (7.0, 0.75, 6.1, 2.2), 2: (3.5, 0.7, 2.65, 1.85), 3: (2.55, 0.55, 1.9, 1.3)}
_LEGEND_LINE = 0.13
_BELOW = 0.42  # from the axis to the legend, for ticks and the axis' name
# Settings of matplotlib for all figures, and those that differ where panels have fixed places.
_STYLE, _SMALL_STYLE = (Path(__file__).parent / f"{name}.mplstyle" for name in ("figure", "small"))
_COLORS = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def draw_files(figure: Figure) -> dict[str, bytes]:
    """The figure's bytes by format."""
    with _use_style(figure):
        drawn = draw(figure)
        return {name: image_bytes(drawn, name) for name in FORMATS}


def draw_canvas(figure: Figure) -> Any:
    """The figure as matplotlib's, for whoever draws on. Settings of the user's own stay."""
    with _use_style(figure):
        return draw(figure)


@contextlib.contextmanager
def _use_style(figure: Figure) -> Iterator[None]:
    private_folders.settle_matplotlib()
    import matplotlib

    default = matplotlib.rcParamsDefault.items()
    style: Any = {key: value for key, value in default if not key.startswith("backend")}
    for path in (_STYLE,) if figure.shared_legend else (_STYLE, _SMALL_STYLE):
        style |= matplotlib.rc_params_from_file(path, use_default_template=False)
    with matplotlib.rc_context(style | _COLORS):
        yield


def image_bytes(drawn: Any, name: str) -> bytes:
    """A matplotlib figure in one of FORMATS, without dates or random ids."""
    sink = io.BytesIO()
    drawn.savefig(sink, format=name, metadata=_METADATA[name])
    return sink.getvalue()


def draw(figure: Figure) -> Any:
    """The figure as matplotlib's, laid out once for every format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    drawn = Canvas(figsize=(_WIDTH, 1.0))
    FigureCanvasAgg(drawn)
    (_place_by_content if figure.shared_legend else _place_at_fixed_places)(drawn, figure)
    return drawn


def _place_by_content(drawn: Any, figure: Figure) -> None:
    """Panels as large as their words leave them; legend and notes in a strip below them all."""
    from matplotlib.patches import Patch

    panels = figure.panels
    columns = min(figure.columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    strips = max(len(select_paper_curves(panel)) for panel in panels)
    height = lines * ((3.4 if columns == 1 else 2.9) + 0.14 * strips)
    drawn.set_figheight(height)
    drawn.set_layout_engine("constrained")
    places = drawn.subplots(lines, columns, squeeze=False).ravel().tolist()
    for place, panel in zip(places, panels, strict=False):
        draw_panel(place, panel, 5.7 if columns == 1 else 2.4)
    for place in places[len(panels) :]:
        place.remove()
    if figure.title:
        drawn.suptitle(figure.title, fontsize=9)
    entries: dict[str, Any] = {}
    for place in places[: len(panels)]:
        for label, handle in _legend_entries(place).items():
            entries.setdefault(label, handle)
    if any(point.trials > 1 for panel in panels for point in panel.points):
        entries[f"{BAND_WORDS} band over trials"] = Patch(color=GREY, alpha=0.25, linewidth=0)
    legend, tall = _draw_shared_legend(drawn, entries)
    total = height + tall + 0.135 * len(figure.notes) + 0.06
    drawn.set_figheight(total)
    drawn.get_layout_engine().set(rect=(0, 1 - height / total, 1, height / total))
    legend.set_bbox_to_anchor((0.006, 1 - height / total))
    _write_notes(drawn, figure)
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")


def _draw_shared_legend(drawn: Any, entries: dict[str, Any]) -> tuple[Any, float]:
    """The legend in as many columns (two at most) as fit, and its height in inches."""
    labels = ["\n".join(textwrap.wrap(label, _WIDEST_LABEL)) for label in entries]
    for columns in (2, 1):
        style = {"ncols": columns, "handlelength": 3.0, "columnspacing": 1.5}
        legend = drawn.legend(entries.values(), labels, bbox_to_anchor=(0.006, 1.0), **style)
        box = legend.get_window_extent(drawn.canvas.get_renderer())
        if columns == 1 or box.width <= _WIDTH * drawn.dpi:
            return legend, box.height / drawn.dpi + 0.06
        legend.remove()
    raise AssertionError("one column always fits")


def _place_at_fixed_places(drawn: Any, figure: Figure) -> None:
    """Panels at fixed places, so that a long legend makes no panel narrower."""
    panels = figure.panels
    columns = min(figure.columns, len(panels))
    pitch, left, across, up = _PLACES[columns]
    above = 0.245 + 0.125 * max(wrap_title(panel, across).count("\n") for panel in panels)
    longest = max(_count_legend_lines(panel) for panel in panels)
    row = above + up + _BELOW + _LEGEND_LINE * (longest + 0.5)
    width = columns * pitch
    height = 0.24 + math.ceil(len(panels) / columns) * row + 0.135 * len(figure.notes) + 0.06
    drawn.set_size_inches(width, height)
    for i, panel in enumerate(panels):
        line, column = divmod(i, columns)
        x, y = left + column * pitch, height - 0.24 - line * row - above - up
        place = drawn.add_axes((x / width, y / height, across / width, up / height))
        draw_panel(place, panel, across)
        _draw_own_legend(place, _legend_entries(place))
    style = {"fontsize": 9, "fontweight": "bold", "va": "top"}
    drawn.text(0.08 / width, 1 - 0.06 / height, figure.title, **style)
    _write_notes(drawn, figure)


def _draw_own_legend(place: Any, entries: dict[str, Any]) -> None:
    """Below the panel, where it hides nothing."""
    from matplotlib.transforms import ScaledTranslation

    if not entries:
        return
    below = ScaledTranslation(0.0, -_BELOW, place.figure.dpi_scale_trans)
    style = {
        "ncols": _count_columns(list(entries)),
        "handlelength": 2.4,
        "bbox_to_anchor": (0.0, 0.0),
    }
    style["bbox_transform"] = place.transAxes + below
    place.legend(entries.values(), entries.keys(), **style)


def _count_columns(labels: list[str]) -> int:
    return 2 if len(labels) > 3 and max(map(len, labels)) <= _MAX_TWO_COLUMN_LABEL else 1


def _count_legend_lines(panel: Panel) -> int:
    labels = {curve.legend for curve in panel.curves} | {line.label for line in panel.lines}
    return math.ceil(len(labels) / _count_columns(list(labels)))


def _legend_entries(place: Any) -> dict[str, Any]:
    """What a panel's legend shows: each label once, in grey where several colours share it."""
    entries: dict[str, Any] = {}
    for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
        first = entries.setdefault(label, handle)
        if first.get_color() != handle.get_color():
            entries[label] = type(handle)([], [])
            entries[label].update_from(handle)
            entries[label].set_color(GREY)
    return entries


def _write_notes(drawn: Any, figure: Figure) -> None:
    width, height = drawn.get_size_inches()
    style = {"fontsize": 6.8, "color": GREY, "va": "bottom", "linespacing": 1.35}
    drawn.text(0.085 / width, 0.06 / height, "\n".join(figure.notes), **style)
