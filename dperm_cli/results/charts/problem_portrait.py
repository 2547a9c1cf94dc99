"""Describe a problem in words and a picture, from the facts that ``dperm describe`` collects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.results.charts.chart_model import (
    LINE_STYLES,
    Axis,
    Curve,
    Figure,
    Panel,
    ReferenceLine,
)
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.figure_drawing import draw_files
from dperm_cli.results.records.row_facts import number

Facts = Mapping[str, Any]


def format_problem(found: Facts) -> str:
    """The facts for a terminal."""
    width = number(found["width"])
    if found["width_error"]:
        width += f" +- {number(found['width_error'], 2)}"
    metric = found["metrics"]
    lines = [
        f"{found['dataset']} ({found['task']}): n {found['n']}, p {found['p']}",
        f"  {found['preprocessing']}",
        f"{found['loss']} loss{_kernel(found)}, per record: Lipschitz "
        f"{number(found['lipschitz'])}, smoothness {_or(found['smoothness'], 'none')}, strong "
        f"convexity {number(found['strong_convexity'])}",
        f"{found['constraint']}: radius {number(found['radius'])}, diameter "
        f"{number(found['diameter'])}, Gaussian width {width}",
        f"optimum {number(found['optimum'], 6)}, gap at most {number(found['optimum_gap'], 2)}; "
        f"there {metric['metric']} {_or(metric['train_metric'], '-')} on training, "
        f"{_or(metric['test_metric'], '-')} on test records",
        f"data-free floor: excess risk {number(found['floor_excess_risk'])}, per record "
        f"{number(found['floor_excess_risk_per_record'])}",
        "",
        f"what can be asked of it ({found['relation']}, delta {number(found['delta'], 3)}):",
    ]
    for name, rows in found["mechanisms"].items():
        lines += _mechanism(name, rows)
    lines += ["", "Optimum, floor and metrics are facts of the records, not private releases."]
    return "\n".join(lines)


def draw_figure(found: Facts) -> dict[str, bytes]:
    """The figure of ``make_figure`` as bytes by format."""
    return draw_files(make_figure(found))


def make_figure(found: Facts) -> Figure:
    """Two panels: losses of the records, and what bounds and floor leave to each epsilon."""
    title = (
        f"{found['dataset']}, {found['loss']}{_kernel(found)}, {found['constraint']}: "
        f"n = {found['n']}, p = {found['p']}"
    )
    panels = (_plot_losses(found["losses"]), _plot_outlook(found))
    return Figure(panels, title, shared_legend=True)


def _kernel(found: Facts) -> str:
    return f", kernel {found['kernel']}" if found["kernel"] else ""


def _or(value: Any, otherwise: str) -> str:
    return otherwise if value is None else number(value)


def _mechanism(name: str, rows: list[dict[str, Any]]) -> list[str]:
    reasons = {row.get("reason") for row in rows}
    if len(reasons) == 1 and None not in reasons:
        return [f"  {name:<12} no: {reasons.pop()}"]
    lines = []
    for row in rows:
        head = f"  {name:<12} epsilon {number(row['epsilon'], 3):<5}"
        if not row["supported"]:
            lines.append(f"{head} no: {row['reason']}")
            continue
        steps = f"{row['steps']} step{'s' * (row['steps'] != 1)}"
        words = [f"{row['guarantee']}, {steps}, noise {number(row['noise_scale'])}"]
        for side in ("upper", "lower"):
            if row.get(f"bound_{side}") is not None:
                value = number(row[f"bound_{side}"], 3)
                words.append(f"{side} bound {value} ({row[f'bound_{side}_id']})")
        lines.append(f"{head} {'; '.join(words)}")
    return lines


def _plot_losses(losses: Mapping[str, list[float]]) -> Panel:
    curves = (
        Curve("at the optimum", _list_shares(losses["optimum"]), marked=False),
        Curve("at the data-free point", _list_shares(losses["centre"]), 1, pattern=1,
              marked=False),
    )  # fmt: skip
    x, y = Axis("loss of a record", "linear"), Axis("share of records below", "linear")
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
