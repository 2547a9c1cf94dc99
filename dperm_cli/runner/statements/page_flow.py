"""A statement laid out on A4 pages: which line of which size stands where. Nothing is drawn here.

The largest size of letters is taken at which all fits on ``MOST_PAGES`` pages. The font of the
measurement is wide: in a browser, the same text in the same size takes less room.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import field

from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.charts.text_fitting import wrap
from dperm_cli.runner.statements import layers
from dperm_cli.runner.statements.facts import Statement
from dperm_cli.runner.statements.lines import Line, Section
from dperm_cli.runner.statements.plain_text import RISK

MOST_PAGES = 3
PAPER = (595.28, 841.89)  # points
MARGIN = 48.0
SIZES = (9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0)  # points of letters, the best first
LEADING = 1.32  # height of a line, in letters
PICTURE = (238.0, 187.0)  # points: width and height of the picture of the risk
_LABEL = 116.0  # points of the column of names
_GAP = 10.0
_WIDE = PAPER[0] - 2 * MARGIN
INK, SOFT, ACCENT, WARN = "ink", "soft", "accent", "warn"


@dataclass(frozen=True)
class Words:
    """One line of text; ``x`` from the left and ``y`` from the top are of its baseline."""

    x: float
    y: float
    text: str
    size: float
    color: str = INK
    is_bold: bool = False


@dataclass
class Page:
    """What is on one page.

    Attributes:
        words: the lines of text.
        rules: heights at which a thin line goes from margin to margin.
        boxes: (top, bottom) of boxes around warnings.
        picture: top of the picture of the risk; None where it is on another page.
    """

    words: list[Words] = field(default_factory=list)
    rules: list[float] = field(default_factory=list)
    boxes: list[tuple[float, float]] = field(default_factory=list)
    picture: float | None = None


def lay_out(found: Statement) -> tuple[list[Page], float]:
    """The pages of a statement, and the size of their letters in points."""
    pages: list[Page] = []
    size = SIZES[0]
    # a name may have letters that the font lacks: they count as boxes, and nothing is said
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        for size in SIZES:
            pages = _Flow(size).fill(found)
            if len(pages) <= MOST_PAGES:
                break
    return pages, size


class _Flow:
    """Pages that are filled from above."""

    def __init__(self, size: float) -> None:
        self.size, self.step = size, LEADING * size
        self.pages = [Page()]
        self.y = MARGIN

    def fill(self, found: Statement) -> list[Page]:
        """All pages of a statement."""
        self._write(found.title, 1.75 * self.size, is_bold=True)
        self._write(found.lede, 1.1 * self.size, color=SOFT)
        if found.warning:
            self._warn(found.warning)
        self._add_sections(found.before)
        self._add_risk(found)
        self._add_sections(found.after)
        self._add_heading(layers.HEADING, 1.3, self._find_height(found.layers[0].lines[0]) + 40)
        self._add_sections(found.layers, 1.05)
        return self.pages

    def _write(self, text: str, size: float, *, color: str = INK, is_bold: bool = False) -> None:
        """A paragraph over the whole width."""
        for line in wrap(text, _WIDE, size, is_bold):
            self._need(LEADING * size)
            self.y += LEADING * size
            self._put(MARGIN, line, size, color, is_bold)
        self.y += 0.25 * size

    def _warn(self, text: str) -> None:
        lines = wrap(text, _WIDE - 16, self.size, True)
        self.y += 0.8 * self.size
        top = self.y
        for line in lines:
            self.y += self.step
            self._put(MARGIN + 8, line, self.size, WARN, True)
        self.y += 0.6 * self.size
        self.pages[-1].boxes.append((top, self.y))
        self.y += 0.4 * self.size

    def _add_sections(self, sections: Iterable[Section], scale: float = 1.3) -> None:
        for section in sections:
            self._add_heading(section.title, scale, self._find_height(section.lines[0]))
            for line in section.lines:
                self._add_line(line)

    def _add_heading(self, title: str, scale: float, after: float) -> None:
        """A heading, which stays with the line that follows it."""
        above = (0.75 + LEADING) * scale * self.size
        self._need(above + 0.45 * self.size + after)
        self.y += above
        self._put(MARGIN, title, scale * self.size, ACCENT, True)
        self.y += 0.35 * self.size
        self.pages[-1].rules.append(self.y)
        self.y += 0.1 * self.size

    def _wrap_line(self, line: Line) -> tuple[list[str], list[str]]:
        names = wrap(line.name, _LABEL, self.size, True)
        return names, wrap(line.text, _WIDE - _LABEL - _GAP, self.size)

    def _find_height(self, line: Line) -> float:
        return self.step * max(map(len, self._wrap_line(line)))

    def _add_line(self, line: Line) -> None:
        names, texts = self._wrap_line(line)
        self._need(self.step * max(len(names), len(texts)))
        for k in range(max(len(names), len(texts))):
            self.y += self.step
            if k < len(names):
                self._put(MARGIN, names[k], self.size, SOFT, True)
            if k < len(texts):
                color = WARN if line.is_open else INK
                self._put(MARGIN + _LABEL + _GAP, texts[k], self.size, color, False)
        self.y += 0.18 * self.size

    def _add_risk(self, found: Statement) -> None:
        """The picture, and the numbers beside it; the sentences below both."""
        width, height = PICTURE
        left, room = MARGIN + width + 14, _WIDE - width - 14
        told = [
            (wrap(name, room, self.size), wrap(text, room, self.size, True))
            for name, text in found.risk.rows()
        ]
        needed = sum(len(names) + len(texts) for names, texts in told) * self.step
        needed = max(height, needed + 0.5 * self.size * len(told))
        self._add_heading(RISK, 1.3, needed)
        top = self.y
        self.pages[-1].picture = top
        for names, texts in told:
            for lines, color, is_bold in ((names, SOFT, False), (texts, INK, True)):
                for line in lines:
                    self.y += self.step
                    self._put(left, line, self.size, color, is_bold)
            self.y += 0.5 * self.size
        self.y = top + needed
        self._write(found.risk.explain(), self.size)

    def _need(self, height: float) -> None:
        """Begin another page where this one has less room."""
        if self.y + height > PAPER[1] - MARGIN - 10:
            self.pages.append(Page())
            self.y = MARGIN

    def _put(self, x: float, text: str, size: float, color: str, is_bold: bool) -> None:
        self.pages[-1].words.append(Words(x, self.y, text, size, color, is_bold))
