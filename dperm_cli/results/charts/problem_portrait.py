"""Draw a problem from the facts that ``dperm describe`` collects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.results.charts.chart_model import (
    LINE_STYLES,
    LINEAR,
    Axis,
    Curve,
    Figure,
    Panel,
    ReferenceLine,
)
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.figure_drawing import draw_files
from dperm_cli.results.tables.problem_text import say_kernel

Facts = Mapping[str, Any]


def draw_figure(found: Facts) -> dict[str, bytes]:
    """The figure of ``make_figure`` as bytes by format."""
    return draw_files(make_figure(found))


def make_figure(found: Facts) -> Figure:
    """Two panels: losses of the records, and what bounds and floor leave to each epsilon."""
    title = (
        f"{found['dataset']}, {found['loss']}{say_kernel(found)}, {found['constraint']}: "
        f"n = {found['n']}, p = {found['p']}"
    )
    panels = (_plot_losses(found["losses"]), _plot_outlook(found))
    return Figure(panels, title, shared_legend=True)


def _plot_losses(losses: Mapping[str, list[float]]) -> Panel:
    curves = (
        Curve("at the optimum", _list_shares(losses["optimum"]), marked=False),
        Curve("at the data-free point", _list_shares(losses["centre"]), 1, pattern=1,
              marked=False),
    )  # fmt: skip
    x, y = Axis("loss of a record", LINEAR), Axis("share of records below", LINEAR)
    return Panel("", x, y, curves)


def _list_shares(levels: list[float]) -> tuple[Point, ...]:
    shares = [k / 100 for k in range(101)]
    return tuple(Point(x, y, y, y, 0.0, 1) for x, y in zip(levels, shares, strict=True))


def _plot_outlook(found: Facts) -> Panel:
    lines = [ReferenceLine("floor", LINE_STYLES["floor"].words, (), (found["floor_excess_risk"],))]
    seen: set[tuple[str, str]] = set()
    for name, rows in found["mechanisms"].items():
        for side in ("upper", "lower"):
            kept = [row for row in rows if row.get(f"bound_{side}")]
            theorem = kept[0][f"bound_{side}_id"] if kept else ""
            if not kept or (side, theorem) in seen:
                continue
            seen.add((side, theorem))
            label = f"{side}: {theorem}" + (f" ({name})" if name not in theorem else "")
            xs, ys = zip(*((row["epsilon"], row[f"bound_{side}"]) for row in kept), strict=True)
            lines.append(ReferenceLine(f"bound_{side}", label, xs, ys, look=len(seen) - 1))
    if found["optimum_gap"] > 0:
        lines.append(ReferenceLine("gap", LINE_STYLES["gap"].words, (), (found["optimum_gap"],)))
    x, y = Axis("epsilon"), Axis("excess risk (sum)")
    return Panel("", x, y, (), tuple(lines), shows_all_lines=True)
