"""The picture of the attack risk: the largest true positive rate by false positive rate."""

from __future__ import annotations

import io
import re
from typing import Any

from dperm_cli.results.charts.chart_model import GREY, HUES, INK
from dperm_cli.results.charts.figure_drawing import use_settings
from dperm_cli.results.charts.themes import THEMES
from dperm_cli.runner.statements.number_words import format_percent
from dperm_cli.runner.statements.risk_numbers import MARKED, RiskNumbers

WIDTH, HEIGHT = 3.3, 2.6  # inches
# the page's own style sheet says the same
_OWN_STYLE = re.compile(r" *<defs>\s*<style.*?</style>\s*</defs>\n", re.DOTALL)
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def describe_picture(risk: RiskNumbers) -> str:
    """The picture in words, for those who do not see it."""
    return (
        "Curve: the largest share of true positives that any attack reaches, by its share of false "
        f"positives. It lies above the diagonal of guessing by at most "
        f"{format_percent(risk.advantage)}."
    )


def draw_risk(axes: Any, risk: RiskNumbers) -> None:
    """Draw the curve, the diagonal of guessing, and what lies between, on matplotlib axes."""
    rates, largest = zip(*risk.curve, strict=True)
    axes.fill_between(rates, rates, largest, color=HUES[0], alpha=0.15, linewidth=0)
    axes.plot(rates, rates, color=GREY, linestyle=(0, (4, 2)), linewidth=1.0)
    axes.plot(rates, largest, color=HUES[0], linewidth=1.6)
    rate, height = min(risk.curve, key=lambda pair: abs(pair[0] - MARKED))
    axes.plot([rate], [height], marker="o", color=HUES[0], markersize=3.5)
    axes.annotate(
        f"{format_percent(rate)} false,\nat most {format_percent(height)} true positives",
        (rate, height), xytext=(0.97, 0.2), ha="right", va="center", color=INK,
        arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkB": 3},
    )  # fmt: skip
    axes.annotate("guessing", (0.97, 0.97), xytext=(0.97, 0.62), ha="right", color=GREY,
                  arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.7})  # fmt: skip
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02), xticks=_TICKS, yticks=_TICKS)
    axes.set_xticklabels([f"{100 * tick:g}" for tick in _TICKS])
    axes.set_yticklabels([f"{100 * tick:g}" for tick in _TICKS])
    axes.set_xlabel("false positives (%)")
    axes.set_ylabel("true positives (%)")


def write_svg(risk: RiskNumbers) -> str:
    """The picture as an ``svg`` element for a page, its words as the picture's label."""
    with use_settings(THEMES["single"]):
        from dperm_cli.results.charts.shown_figure import ShownFigure

        drawn = ShownFigure(WIDTH, HEIGHT)
        axes = drawn.add_axes((0.15, 0.17, 0.82, 0.8))
        draw_risk(axes, risk)
        sink = io.BytesIO()
        drawn.savefig(sink, format="svg", metadata={
            "Date": None, "Creator": None, "Format": None, "Type": None,
        })  # fmt: skip
    text = _OWN_STYLE.sub("", sink.getvalue().decode())
    return text[text.index("<svg") :].replace(
        "<svg ", f'<svg role="img" aria-label="{describe_picture(risk)}" ', 1
    )
