"""Figures as PDF, SVG and PNG, laid out and drawn with matplotlib.

Drawn with matplotlib's default settings plus ``figure.mplstyle`` and the theme's sizes, whatever
the user's own are, and without dates or random ids, so that equal figures give equal bytes.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dperm_cli.core import checks, late_imports, private_folders
from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.chart_model import DASHES, FILLS, GREY, HOLLOW_WORDS, INK, Figure
from dperm_cli.results.charts.panel_drawing import PanelSize, draw_panel, fit_labels, is_line
from dperm_cli.results.charts.text_fitting import measure, wrap
from dperm_cli.results.charts.themes import THEMES, Theme
from dperm_cli.results.study_files import FIGURE_FORMATS

DEFAULT_FORMATS = ("png",)  # of a study of which nobody asked for more
_EDGE = 0.04  # inches of white around everything
_GAP = 0.1  # between panels beside each other
_BETWEEN = 0.14  # between rows of panels
_ABOVE_LEGEND = 0.05
_MOST_LEGEND_COLUMNS = 5
_HANDLE, _SPACING = 2.6, 1.2  # a legend's pieces of line, and space between columns, in letters
_CLOSE = 0.03  # inches by which a panel may be wider or narrower than its words were chosen for
_STYLE = Path(__file__).parent / "figure.mplstyle"
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


def draw_files(figure: Figure, formats: Sequence[str] = FIGURE_FORMATS) -> dict[str, bytes]:
    """The figure's bytes by format.

    Args:
        figure: What is drawn.
        formats: Of ``FIGURE_FORMATS``.
    """
    with use_settings(THEMES[figure.theme]):
        drawn = _lay_out(figure)
        return {name: image_bytes(drawn, name) for name in formats}


def read_formats(text: str | None) -> tuple[str, ...] | None:
    """The formats that ``formats=pdf,svg`` names; None where nothing is asked.

    Raises:
        InputError: A name is not one of FIGURE_FORMATS.
    """
    if not text:
        return None
    names = tuple(text.split(","))
    for name in names:
        checks.choice("formats", name, FIGURE_FORMATS)
    return names


def draw_canvas(figure: Figure) -> Any:
    """The figure as matplotlib's own object, for a notebook or a script."""
    with use_settings(THEMES[figure.theme]):
        drawn = _lay_out(figure)
        drawn.draw_without_rendering()  # words that follow the settings are found now
        return drawn


def image_bytes(drawn: Any, name: str) -> bytes:
    """A matplotlib figure in one of FIGURE_FORMATS, without dates or random ids."""
    sink = io.BytesIO()
    drawn.savefig(sink, format=name, metadata=_METADATA[name])
    return sink.getvalue()


@contextlib.contextmanager
def use_settings(theme: Theme) -> Iterator[None]:
    """Matplotlib's settings for all figures; the user's own come back at the end."""
    private_folders.settle_matplotlib()
    import matplotlib

    late_imports.settle_matplotlib_words()
    default = matplotlib.rcParamsDefault.items()
    style: Any = {key: value for key, value in default if not key.startswith("backend")}
    style |= matplotlib.rc_params_from_file(_STYLE, use_default_template=False)
    with matplotlib.rc_context(style | _COLORS | theme.make_settings()):
        yield


@dataclass
class _Margins:
    """Inches that the words of a panel take on each side of its axes."""

    left: float
    right: float
    bottom: float
    top: float


def _lay_out(figure: Figure) -> Any:
    """The figure as matplotlib's: panels of one size in a grid, legends and labels around them."""
    from dperm_cli.results.charts.shown_figure import ShownFigure

    theme = THEMES[figure.theme]
    columns = theme.count_columns(len(figure.panels))
    height = theme.heights[min(columns, len(theme.heights)) - 1]
    drawn = ShownFigure(theme.width, 2 * height)
    rows = -(-len(figure.panels) // columns)
    side = _SharedLabels(figure, theme, rows * height)
    # words beside the axes depend on their width, and the width on these words
    width = theme.width / columns - 0.6
    places, margins, sides = [], [], []
    for _ in range(3):
        drawn.clear()
        places = _draw_panels(drawn, figure, PanelSize(width, height, theme), side)
        margins = [_measure_margins(place) for place in places]
        sides = [_widest(margins[column::columns]) for column in range(columns)]
        words = sum(m.left + m.right for m in sides) + side.left + _GAP * (columns - 1)
        found = (theme.width - 2 * _EDGE - words) / columns
        close, width = abs(found - width) < _CLOSE, max(found, 0.3)
        if close:
            break
    _place_all(drawn, figure, places, margins, sides, (width, height), side)
    return drawn


class _SharedLabels:
    """Names of axes that all panels of a figure share: they stand once, beside the grid."""

    def __init__(self, figure: Figure, theme: Theme, tall: float) -> None:
        """``tall`` is the height of all rows of panels, in inches."""
        several = len(figure.panels) > 1
        xs, ys = ({getattr(p, axis).label for p in figure.panels} for axis in ("x", "y"))
        # legends of panels stand between the panels and a name below them all
        self.x = xs.pop() if several and len(xs) == 1 and figure.shared_legend else ""
        y = ys.pop() if several and len(ys) == 1 else ""
        lines = wrap(y, 72 * tall, theme.title)
        self.y = "\n".join(lines)
        self.size = theme.title
        self.left = (1.25 * len(lines) + 0.25) * theme.title / 72 if lines else 0.0
        self.below = 1.6 * theme.title / 72 if self.x else 0.0


def _draw_panels(drawn: Any, figure: Figure, size: PanelSize, shared: _SharedLabels) -> list[Any]:
    """All panels on axes of their size, at any place."""
    tall, wide = drawn.get_figheight(), drawn.get_figwidth()
    labelled = len(figure.panels) == 1 and fit_labels(figure.panels[0], size) is not None
    places = []
    for panel in figure.panels:
        place = drawn.add_axes((0.3, 0.3, size.width / wide, size.height / tall), label=object())
        draw_panel(place, panel, size, labelled, figure.shows_accounted,
                   frozenset(pattern for _, pattern in figure.patterns))  # fmt: skip
        if shared.x:
            place.set_xlabel("")
        if shared.y:
            place.set_ylabel("")
        places.append(place)
    return places


def _measure_margins(place: Any) -> _Margins:
    figure = place.get_figure()
    box = place.get_tightbbox(figure.canvas.get_renderer())
    axes = place.get_window_extent()
    pixels = (axes.x0 - box.x0, box.x1 - axes.x1, axes.y0 - box.y0, box.y1 - axes.y1)
    return _Margins(*(max(0.0, side / figure.dpi) for side in pixels))


def _widest(margins: Sequence[_Margins]) -> _Margins:
    names = ("left", "right", "bottom", "top")
    return _Margins(*(max(getattr(m, name) for m in margins) for name in names))


def _place_all(
    drawn: Any,
    figure: Figure,
    places: Sequence[Any],
    margins: Sequence[_Margins],
    sides: Sequence[_Margins],
    size: tuple[float, float],
    shared: _SharedLabels,
) -> None:
    """Give everything its place, from the top down, and the figure its height."""
    theme, columns = THEMES[figure.theme], len(sides)
    width, height = size
    lefts = [_EDGE + shared.left]
    for side in sides:
        lefts.append(lefts[-1] + side.left + width + side.right + _GAP)
    title = wrap(figure.title, 72 * (theme.width - 2 * _EDGE), theme.title, bold=True)
    down = _EDGE + 1.35 * theme.title / 72 * len(title) + (0.06 if title else 0.0)
    spots: list[tuple[Any, float, float]] = []  # axes with their left and upper end
    legends: list[tuple[Any, float, float]] = []
    first = down
    for start in range(0, len(places), columns):
        row = _widest(margins[start : start + columns])
        tallest = 0.0
        for column, place in enumerate(places[start : start + columns]):
            spots.append((place, lefts[column] + sides[column].left, down + row.top))
            if not figure.shared_legend:
                room = lefts[column + 1] - lefts[column] - _GAP
                legend, tall = _draw_legend(drawn, _list_entries([place]), room, theme)
                y = down + row.top + height + row.bottom + _ABOVE_LEGEND
                legends += [(legend, lefts[column], y)] * bool(legend)
                tallest = max(tallest, tall + _ABOVE_LEGEND)
        down += row.top + height + row.bottom + tallest + _BETWEEN
    down -= _BETWEEN
    middle = (first + down) / 2
    below = down
    down += shared.below
    if figure.shared_legend:
        entries = _list_entries(places) | _make_pattern_entries(figure, theme)
        legend, tall = _draw_legend(drawn, entries, theme.width - 2 * _EDGE, theme)
        legends += [(legend, _EDGE, down + _ABOVE_LEGEND)] * bool(legend)
        down += tall + _ABOVE_LEGEND * bool(legend)
    total = down + _EDGE
    drawn.set_figheight(total)
    for place, x, y in spots:
        shape = (x / theme.width, 1 - (y + height) / total)
        place.set_position((*shape, width / theme.width, height / total))
    for legend, x, y in legends:
        legend.set_bbox_to_anchor((x / theme.width, 1 - y / total), drawn.transFigure)
    _write_around(drawn, title, shared, (middle, below, total), lefts[-1] - _GAP)


def _write_around(
    drawn: Any,
    title: Sequence[str],
    shared: _SharedLabels,
    heights: tuple[float, float, float],
    right: float,
) -> None:
    """The figure's title, and the names of axes that all panels share."""
    middle, below, total = heights
    width, style = drawn.get_figwidth(), {"fontsize": shared.size}
    if title:
        text = "\n".join(title)
        style |= {"fontweight": "bold", "linespacing": 1.2}
        drawn.text(_EDGE / width, 1 - _EDGE / total, text, va="top", **style)
        style = {"fontsize": shared.size}
    if shared.y:
        spot = (_EDGE / width, 1 - middle / total)
        drawn.text(
            *spot, shared.y, rotation=90, va="center", ha="left", multialignment="center", **style
        )
    if shared.x:
        spot = ((_EDGE + shared.left + right) / 2 / width, 1 - (below + 0.03) / total)
        drawn.text(*spot, shared.x, va="top", ha="center", **style)


def _list_entries(places: Sequence[Any]) -> dict[str, Any]:
    """What a legend of panels shows: each label once, in grey where several colours share it."""
    entries: dict[str, Any] = {}
    for place in places:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            first = entries.setdefault(label, handle)
            if first.get_linestyle() == "None" and handle.get_linestyle() != "None":
                entries[label] = handle  # a line is drawn in this panel
            if first.get_color() != handle.get_color():
                entries[label] = type(handle)([], [])
                entries[label].update_from(handle)
                entries[label].set_color(GREY)
    return entries


def _make_pattern_entries(figure: Figure, theme: Theme) -> dict[str, Any]:
    """What dashes and fills mean, and hollow marks where there are any, in grey."""
    from matplotlib.lines import Line2D

    entries = {}
    points = [point for panel in figure.panels for point in panel.points]
    if any(point.is_near_floor and not point.is_hidden for point in points):
        hollow: dict[str, Any] = {
            "color": GREY,
            "marker": "o",
            "markerfacecolor": "white",
            "linestyle": "none",
        }
        hollow |= {"markersize": theme.mark, "markeredgewidth": 0.24 * theme.mark}
        entries[HOLLOW_WORDS] = Line2D([], [], **hollow)
    curves = [(panel, curve) for panel in figure.panels for curve in panel.curves]
    lined = {curve.pattern for panel, curve in curves if is_line(panel, curve)}
    for words, pattern in figure.patterns:
        dashes = DASHES[pattern % len(DASHES)]
        look: dict[str, Any] = {"color": GREY, "linewidth": theme.line, "marker": "o"}
        look |= {"markersize": theme.mark, "markerfacecoloralt": "white"}
        look["fillstyle"] = FILLS[(pattern + pattern // len(DASHES)) % len(FILLS)]
        style = (0, dashes) if dashes else "-"
        entries[words] = Line2D([], [], linestyle=style if pattern in lined else "none", **look)
    return entries


def _draw_legend(
    drawn: Any, entries: dict[str, Any], room: float, theme: Theme
) -> tuple[Any, float]:
    """A legend in as many columns as fit into so many inches, and its height; None if empty."""
    if not entries:
        return None, 0.0
    sample = (_HANDLE + 0.8) * theme.text  # points of a piece of line and the space behind it
    space = _SPACING * theme.text
    parted = [wrap(label, 72 * room - sample, theme.text) for label in entries]
    columns = _count_legend_columns(_measure_all(parted, sample, theme), 72 * room, space)
    if columns == 1 and len(entries) > _MOST_LEGEND_COLUMNS:
        half = [wrap(label, (72 * room - space) / 2 - sample, theme.text) for label in entries]
        if max(map(len, half)) <= 3:  # two columns, though some labels take more lines
            parted, columns = half, 2
    labels = ["\n".join(lines) for lines in parted]
    style = {"ncols": columns, "handlelength": _HANDLE, "columnspacing": _SPACING}
    style |= {"loc": "upper left", "borderaxespad": 0.0, "bbox_to_anchor": (0.0, 1.0)}
    legend = drawn.legend(entries.values(), labels, **style)
    return legend, legend.get_window_extent(drawn.canvas.get_renderer()).height / drawn.dpi + 0.02


def _measure_all(parted: Sequence[Sequence[str]], more: float, theme: Theme) -> list[float]:
    """The widths of labels in lines, each with so many points more."""
    return [more + max(measure(line, theme.text) for line in lines) for lines in parted]


def _count_legend_columns(wide: Sequence[float], room: float, space: float) -> int:
    """The most columns, filled one after the other, of entries so wide that have room."""
    for columns in range(min(_MOST_LEGEND_COLUMNS, len(wide)), 1, -1):
        full, more = divmod(len(wide), columns)
        counts = [full + (i < more) for i in range(columns)]
        ends = [sum(counts[: i + 1]) for i in range(columns)]
        widths = [max(wide[end - count : end]) for end, count in zip(ends, counts, strict=True)]
        if sum(widths) + space * (columns - 1) <= room:
            return columns
    return 1
