"""The sizes of a figure: as wide as one column of a paper, as both, or as a slide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class Theme:
    """Sizes of a figure at the width at which it is printed.

    Args:
        width: Inches.
        text: Points of ticks, legends and notes: the smallest letters.
        title: Points of titles and names of axes.
        heights: Inches of a panel, by the number of panels in a row.
        line: Points of a curve's line; marks grow with it.
        columns: Panels in a row, by the number of panels; more panels have the last one.
    """

    width: float
    text: float
    title: float
    heights: tuple[float, ...]
    line: float
    columns: tuple[int, ...]

    @property
    def mark(self) -> float:
        """Points of a mark."""
        return 3.2 * self.line

    def count_columns(self, panels: int) -> int:
        """How many panels stand in a row."""
        return self.columns[min(panels, len(self.columns)) - 1]

    def make_settings(self) -> Mapping[str, Any]:
        """Matplotlib's settings that depend on the size."""
        small, large = self.text, self.title
        return {
            "font.size": small,
            "axes.titlesize": large,
            "axes.labelsize": large,
            "xtick.labelsize": small,
            "ytick.labelsize": small,
            "legend.fontsize": small,
            "lines.linewidth": self.line,
            "lines.markersize": self.mark,
        }


THEMES = {
    "single": Theme(3.3, 7.0, 7.5, (2.0, 1.15), 1.2, (1, 1, 2)),
    "double": Theme(6.9, 7.2, 8.0, (2.6, 1.9, 1.4), 1.4, (1, 2, 3, 2, 3)),
    "slide": Theme(10.0, 14.0, 15.0, (4.0, 2.6), 2.2, (1, 2)),
}
DEFAULT_THEME = "double"
