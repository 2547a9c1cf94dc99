"""What a figure shows: panels with axes, curves and reference lines.

Every figure is described by these classes before anything is drawn. ``figure_drawing`` draws a
description with matplotlib. The page embeds the same panels as JSON, and its script draws them
(``results/page/html/chart.js``), so that a reader can hide curves and look up points. The meaning
of colours, marks and line styles, and the range of the axes, are decided here for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.marks import MARKS, Outline
from dperm_cli.results.charts.themes import DEFAULT_THEME

INK, GREY = "#222222", "#6E6E6E"
# Okabe and Ito's palette without its yellow: told apart by colour-blind readers.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5A4FCF", "#8C510A")
# From dark to light: colours of values (epsilon 0.1, 1, 10) where mechanisms have no colour.
TONES = ("#1B1B2F", "#3B2F5C", "#66406F", "#94537A", "#C06C7C", "#DE9181")
# Line and mark of curves that share colour and mark: another calibration, other settings. Lengths
# of dashes in widths of the line, and the part of a mark that has the colour.
DASHES = ((), (4, 1.6), (1.2, 1.2), (6, 1.5, 1.2, 1.5), (8, 3), (3, 1.2, 1.2, 1.2, 1.2, 1.2))
FILLS = ("full", "bottom", "left", "top", "right")
LOOKS = len(HUES) * len(MARKS)  # looks of mechanisms; looks of values come after them
AXIS_WORDS = {"epsilon": "epsilon", "n": "number of records n", "p": "number of parameters p"}
METRIC_WORDS = {"r2": "R2", "mean_distance": "mean distance", "residual_norm": "residual norm"}
NO_GUARANTEE = "no guarantee"  # the note of a curve that is not private
HOLLOW_WORDS = "hollow: near the data-free floor"
SATURATED_WORDS = "within a factor 2 of the data-free floor"
ROOM = 1.6  # factor between what an axis shows and its ends
DEPTH = 1e3  # factor by which bands may widen a logarithmic axis below their points
REACH = 30.0  # factor by which bounds may widen an axis beyond its curves


@dataclass(frozen=True)
class LineStyle:
    """How a kind of reference line is drawn. ``dashes`` are lengths in units of ``width``."""

    words: str
    width: float
    dashes: tuple[float, ...] = ()
    color: str = INK
    alpha: float = 1.0


LINE_STYLES = {
    "floor": LineStyle("data-free floor", 2.0, color=GREY, alpha=0.75),
    "bound_upper": LineStyle("explicit upper bound", 1.0, (6, 1.5, 1, 1.5)),
    "bound_lower": LineStyle("explicit lower bound", 1.1, (1, 1.4)),
    "order_upper": LineStyle("upper bound up to a constant", 0.9, (6, 1.5, 1, 1.5, 1, 1.5)),
    "order_lower": LineStyle("lower bound up to a constant", 1.2, (1, 2.4), GREY),
    "paper": LineStyle("as printed in the paper", 1.2, (3, 2), color=GREY),
    "nominal": LineStyle("nominal", 4.0, color=GREY, alpha=0.25),
    "gap": LineStyle("optimum gap", 1.0, color="#CCCCCC"),
    "baseline": LineStyle("baseline", 1.1, (5, 2), GREY),
    "optimum": LineStyle("non-private optimum", 1.1, (1.5, 1.5), GREY),
}


LINEAR = "linear"  # a scale of an axis


@dataclass(frozen=True)
class Axis:
    """An axis; ``scale`` is log, linear, or names.

    On an axis of names a point's x is the place of its name; without ``names`` every curve has a
    place of its own, by its label.
    """

    label: str
    scale: str = "log"
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Curve:
    """Points by ascending x. The label is made of name, calibration, variant and note.

    ``look`` gives the curve's place in HUES and MARKS, ``pattern`` that in DASHES and FILLS, where
    several share a look; ``entry`` is its name in the legend, the label if empty; ``slope`` what
    the legend says of a fitted one; ``rim`` how much wider than others it is drawn, to be seen
    below a curve on top of it.
    """

    name: str
    points: tuple[Point, ...]
    look: int = 0
    calibration: str = ""
    variant: str = ""
    note: str = ""
    slope: str = ""
    pattern: int = 0
    entry: str = ""
    joined: bool = True
    marked: bool = True
    rim: float = 0.0

    @property
    def hue(self) -> str:
        return find_hue(self.look)

    @property
    def mark(self) -> str | Outline:
        return MARKS[index_mark(self.look)].drawn

    @property
    def dashes(self) -> tuple[float, ...]:
        return DASHES[self.pattern % len(DASHES)]

    @property
    def fill(self) -> str:
        return FILLS[(self.pattern + self.pattern // len(DASHES)) % len(FILLS)]

    @property
    def label(self) -> str:
        """The name of the curve in the figure."""
        words = ", ".join(word for word in (self.name, self.calibration, self.variant) if word)
        return f"{words} ({self.note})" if self.note else words

    @property
    def legend(self) -> str:
        """The name in the legend, with the slope where one was fitted."""
        return ": ".join(word for word in (self.entry or self.label, self.slope) if word)


@dataclass(frozen=True)
class ReferenceLine:
    """A line that is no curve; ``kind`` is a key of LINE_STYLES, ``xs`` empty for every x.

    ``mechanism`` is set when the line speaks of that mechanism only, ``look`` when it has the
    colour of a curve, ``constant`` where one was fitted; ``faint`` lines step back behind others.
    """

    kind: str
    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    mechanism: str | None = None
    look: int | None = None
    constant: str = ""
    faint: bool = False

    @property
    def style(self) -> LineStyle:
        return LINE_STYLES[self.kind]

    @property
    def color(self) -> str:
        if self.look is None:
            return self.style.color
        return find_hue(self.look)


@dataclass(frozen=True)
class Panel:
    """Curves and lines on a pair of axes.

    ``details`` stand under the title. ``n`` adds an axis per record on the right. With
    ``shows_all_lines`` the vertical axis reaches every line, however far from the curves.
    """

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    lines: tuple[ReferenceLine, ...] = ()
    details: tuple[str, ...] = ()
    n: int | None = None
    shows_all_lines: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the vertical axis."""
        beyond = [y for line in self.lines if line.kind != "floor" for y in line.ys]
        floors = [y for line in self.lines if line.kind == "floor" for y in line.ys]
        if self.y.scale == LINEAR:
            shown = [y for p in self.points for y in (p.value, p.low, p.high)]
            shown = [y for y in (*shown, *floors, *beyond) if math.isfinite(y)]
            return widen_ends(min(shown), max(shown))
        resolved = [curve for curve in self.curves if not is_unresolved(curve)] or self.curves
        points = [p for curve in resolved for p in self.select_points(curve)]
        shown = [y for p in points for y in (p.height, p.high)]
        shown += [max(p.shown_low, p.height / DEPTH) for p in points if p.shown_low > 0]
        shown = [y for y in (*shown, *floors) if 0 < y < math.inf] or beyond
        low, high = min(shown), max(shown)
        reach = math.inf if self.shows_all_lines else REACH
        near = [y for y in beyond if low / reach <= y <= high * reach]
        return min([low, *near]) / ROOM, max([high, *near]) * ROOM

    @property
    def points(self) -> list[Point]:
        """All points that the scales can show."""
        return [point for curve in self.curves for point in self.select_points(curve)]

    @property
    def xs(self) -> list[float]:
        """The places on the horizontal axis that have a point or a line, ascending."""
        places = {point.x for point in self.points if point.x is not None}
        return sorted(places or {x for line in self.lines for x in line.xs})

    def select_points(self, curve: Curve) -> list[Point]:
        """The curve's points that the scales can show."""
        linear = self.y.scale == LINEAR
        return [p for p in curve.points if p.value < math.inf and (p.x or self.x.scale != "log")
                and (linear or p.height > p.resolution)]  # fmt: skip

    def height_of(self, point: Point) -> float:
        """Where the point lies on the vertical axis."""
        return point.value if self.y.scale == LINEAR else point.height


@dataclass(frozen=True)
class Figure:
    """Panels in rows.

    With ``shared_legend`` one legend under all panels names their curves; without, each panel has a
    legend of its own. ``patterns`` are what lines and fills mean in all panels, by their place in
    DASHES. ``notes`` are the caption, which stands in a file beside the figure.
    """

    panels: tuple[Panel, ...]
    title: str = ""
    notes: Sequence[str] = ()
    shared_legend: bool = False
    patterns: tuple[tuple[str, int], ...] = ()
    theme: str = DEFAULT_THEME
    shows_accounted: bool = False


def widen_ends(low: float, high: float) -> tuple[float, float]:
    """The ends of a linear axis that shows these values, with room beside them; never equal.

    >>> widen_ends(0.0, 1.0), widen_ends(2.0, 2.0), widen_ends(4e20, 4e20)
    ((-0.05, 1.05), (1.5, 2.5), (3.8e+20, 4.2e+20))
    """
    room = 0.05 * (high - low) or max(0.5, 0.05 * abs(low) if abs(low) > 1e6 else 0.0)
    return low - room, high + room


def find_hue(look: int) -> str:
    """The colour of a look: of a mechanism below ``LOOKS``, of a value from there on."""
    return HUES[look % len(HUES)] if look < LOOKS else TONES[(look - LOOKS) // len(MARKS)]


def index_mark(look: int) -> int:
    """The place in MARKS of a look; where hues come again, the marks are others."""
    if look >= LOOKS:
        return (look - LOOKS) % len(MARKS)
    return (look + look // len(MARKS)) % len(MARKS)


def is_unresolved(curve: Curve) -> bool:
    """Whether a curve without a guarantee is the optimum itself, and no use to scale an axis."""
    return curve.note == NO_GUARANTEE and all(p.value <= p.gap for p in curve.points)
