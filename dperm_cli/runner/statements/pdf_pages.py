"""A statement as PDF, drawn by matplotlib alone; equal statements give equal bytes."""

from __future__ import annotations

import io
import warnings
from typing import Any

from dperm_cli.results.charts.figure_drawing import use_settings
from dperm_cli.results.charts.themes import THEMES
from dperm_cli.runner.statements import page_flow
from dperm_cli.runner.statements.facts import Statement
from dperm_cli.runner.statements.page_flow import MARGIN, PAPER, PICTURE, Page
from dperm_cli.runner.statements.risk_picture import draw_risk

_POINTS = 72.0  # in an inch
_COLORS = {"ink": "#1d2126", "soft": "#565d66", "accent": "#0b5c8f", "warn": "#7a4b00"}
_LINE, _WARN_GROUND = "#c6c8c3", "#fdf3df"


def write_pdf(found: Statement) -> bytes:
    """The statement on A4 pages, at most ``page_flow.MOST_PAGES``."""
    sink = io.BytesIO()
    # letters that the font lacks are drawn as boxes, and nothing is said
    with warnings.catch_warnings(), use_settings(THEMES["single"]):
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        from matplotlib.backends.backend_pdf import PdfPages

        pages, size = page_flow.lay_out(found)
        known: dict[str, Any] = {"CreationDate": None, "Creator": None, "Producer": None}
        with PdfPages(sink, metadata=known | {"Title": found.title}) as file:
            for place, page in enumerate(pages):
                foot = f"{found.footer} · page {place + 1} of {len(pages)}"
                file.savefig(_draw_page(page, found, foot, size))
    return sink.getvalue()


def _draw_page(page: Page, found: Statement, foot: str, size: float) -> Any:
    """One page as a figure."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    from dperm_cli.results.charts.shown_figure import ShownFigure

    width, height = PAPER
    drawn = ShownFigure(width / _POINTS, height / _POINTS)
    for top, bottom in page.boxes:
        drawn.add_artist(Rectangle(
            (MARGIN / width, 1 - bottom / height), 1 - 2 * MARGIN / width, (bottom - top) / height,
            facecolor=_WARN_GROUND, edgecolor=_COLORS["warn"], linewidth=0.8,
            transform=drawn.transFigure,
        ))  # fmt: skip
    for y in page.rules:
        ends = [MARGIN / width, 1 - MARGIN / width]
        drawn.add_artist(Line2D(ends, [1 - y / height] * 2, color=_LINE, linewidth=0.6))
    for one in page.words:
        drawn.text(
            one.x / width, 1 - one.y / height, one.text, fontsize=one.size, va="baseline",
            color=_COLORS[one.color], fontweight="bold" if one.is_bold else "normal",
        )  # fmt: skip
    drawn.text(MARGIN / width, 30 / height, foot, fontsize=0.85 * size, color=_COLORS["soft"])
    if page.picture is not None:
        wide, tall = PICTURE
        left, bottom = MARGIN + 34, height - page.picture - tall + 30
        axes = drawn.add_axes(
            (left / width, bottom / height, (wide - 40) / width, (tall - 40) / height)
        )
        draw_risk(axes, found.risk)
    return drawn
