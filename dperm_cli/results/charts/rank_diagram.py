"""The critical-difference diagram: mean ranks, and how far apart they have to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dperm_cli.core import checks
from dperm_cli.results.charts import figure_drawing
from dperm_cli.results.charts.chart_model import GREY, HUES, INK, index_mark
from dperm_cli.results.charts.marks import MARKS
from dperm_cli.results.charts.mechanism_looks import choose_looks
from dperm_cli.results.charts.themes import THEMES, Theme
from dperm_cli.results.study_files import FIGURE_FORMATS
from dperm_cli.results.tables.rankings import Ranking, list_alike

_EDGE = 0.06  # inches of white around everything
_LINE = 3.0  # heights of a letter between two names


def draw_ranks(
    names: Sequence[str],
    means: Sequence[float],
    width: float | None,
    alike: Sequence[tuple[int, int]],
    theme: str = "single",
) -> Any:
    """A line for each name with its mean rank; grey bars join names that do not differ.

    Args:
        names: The best first.
        means: Their mean ranks.
        width: The critical difference, shown as a ruler; None for none.
        alike: First and last place of each row of names that the ranks do not tell apart.
        theme: One of THEMES.

    Returns:
        A figure of matplotlib.
    """
    size = THEMES[checks.choice("theme", theme, THEMES)]
    with figure_drawing.use_settings(size):
        return _draw(names, means, width, alike, size)


def draw_ranking(ranking: Ranking, theme: str = "single") -> Any:
    """The diagram of a ranking."""
    names = [one.name for one in ranking.names]
    means = [one.mean_rank for one in ranking.names]
    return draw_ranks(names, means, ranking.critical_difference, list_alike(ranking), theme)


def draw_files(drawn: Any, theme: str = "single") -> dict[str, bytes]:
    """A figure of ``draw_ranks`` as bytes by format."""
    with figure_drawing.use_settings(THEMES[theme]):
        return {name: figure_drawing.image_bytes(drawn, name) for name in FIGURE_FORMATS}


def _draw(
    names: Sequence[str],
    means: Sequence[float],
    width: float | None,
    alike: Sequence[tuple[int, int]],
    theme: Theme,
) -> Any:
    from dperm_cli.results.charts.shown_figure import ShownFigure

    step = _LINE * theme.text / 72
    below = 3.6 * theme.title / 72  # ticks and the name of the axis
    rows = len(names) + 1  # and the ruler
    height = 2 * _EDGE + rows * step + below
    drawn = ShownFigure(theme.width, height)
    place = drawn.add_axes((0.3, below / height, 0.6, rows * step / height))
    looks = choose_looks(names)
    for i, (name, mean) in enumerate(zip(names, means, strict=True)):
        look, y = looks[name], -i
        place.plot([mean], [y], marker=MARKS[index_mark(look)].drawn, color=HUES[look % len(HUES)],
                   markersize=1.6 * theme.mark, zorder=3)  # fmt: skip
    for first, last in alike:
        # a step beside each mark of the group, so that bars of two groups do not lie on each other
        place.plot([means[first], means[last]], [-first - 0.3, -first - 0.3], color=GREY,
                   linewidth=2.5 * theme.line, solid_capstyle="butt", zorder=2)  # fmt: skip
    if width is not None:
        place.plot([1.0, 1.0 + width], [1, 1], "|-", color=INK, linewidth=theme.line)
    place.set_ylim(-len(names) + 0.4, 1.6)
    place.set_xlim(0.8, max(len(names), 2) + 0.2)
    ruler = [] if width is None else [f"critical difference {width:.2f}"]
    place.set_yticks([*range(1 - len(names), 1), *([1] if ruler else [])], [*names[::-1], *ruler])
    place.set_xticks(range(1, max(len(names), 2) + 1))
    place.set_xlabel("mean rank (1 is best)")
    place.tick_params(axis="y", length=0)
    place.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.5)
    for side in ("top", "right", "left"):
        place.spines[side].set_visible(False)
    _fit_names(drawn, place)
    return drawn


def _fit_names(drawn: Any, place: Any) -> None:
    """Give the names the room that they take beside the axes; very long ones take two lines."""
    most = 0.55 * drawn.get_figwidth() * drawn.dpi
    labels = place.get_yticklabels()
    for label in labels:
        text = label.get_text()
        if label.get_window_extent().width > most:
            cut = max(text.rfind(mark, 0, len(text) * 2 // 3) for mark in "_(, ") + 1
            label.set_text(f"{text[:cut]}\n{text[cut:]}" if cut > 0 else text)
    place.set_yticks(place.get_yticks(), [label.get_text() for label in labels])
    wide = max(label.get_window_extent().width for label in place.get_yticklabels()) / drawn.dpi
    left = (wide + 2 * _EDGE + 0.05) / drawn.get_figwidth()
    box = place.get_position()
    place.set_position((left, box.y0, 1 - left - _EDGE / drawn.get_figwidth(), box.height))
