"""Describe a problem in words and a picture, from the facts that ``dperm describe`` collects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dperm_cli.results.charts.panel_drawing import format_axis_numbers
from dperm_cli.results.charts.study_figure import figure_style, image_bytes
from dperm_cli.results.records.row_facts import number

Facts = Mapping[str, Any]
_LEGEND_LINE = 0.16  # inches


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
    """Two panels: losses of the records, and what bounds and floor leave to each epsilon."""
    with figure_style():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(7.0, 3.0), layout="constrained")
        left, right = drawn.subplots(1, 2)
        _draw_losses(left, found)
        _draw_outlook(right, found)
        handles, labels = right.get_legend_handles_labels()
        drawn.set_figheight(3.0 + _LEGEND_LINE * len(handles))
        # below, where names of any length hide nothing
        drawn.legend(handles, labels, loc="outside lower right", frameon=False)
        drawn.suptitle(
            f"{found['dataset']}, {found['loss']}{_kernel(found)}, {found['constraint']}: "
            f"n = {found['n']}, p = {found['p']}", fontsize=9,
        )  # fmt: skip
        return {ending: image_bytes(drawn, ending) for ending in ("pdf", "svg", "png")}


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


def _draw_losses(place: Any, found: Facts) -> None:
    levels = [k / 100 for k in range(101)]
    for name, style in (("optimum", "-"), ("centre", "--")):
        label = {"optimum": "at the optimum", "centre": "at the data-free point"}[name]
        place.plot(found["losses"][name], levels, style, label=label)
    place.set_xlabel("loss of a record")
    place.set_ylabel("share of records below")
    place.legend(frameon=False)


def _draw_outlook(place: Any, found: Facts) -> None:
    place.axhline(found["floor_excess_risk"], color="#888888", lw=2, label="data-free floor")
    seen: set[tuple[str, str]] = set()
    for name, rows in found["mechanisms"].items():
        for side, style in (("upper", "-."), ("lower", ":")):
            points = [(r["epsilon"], r[f"bound_{side}"]) for r in rows if r.get(f"bound_{side}")]
            theorem = next((r[f"bound_{side}_id"] for r in rows if r.get(f"bound_{side}")), "")
            if not points or (side, theorem) in seen:
                continue
            seen.add((side, theorem))
            label = f"{side}: {theorem}" + (f" ({name})" if name not in theorem else "")
            place.plot(*zip(*points, strict=True), style, marker=".", label=label)
    place.axhline(max(found["optimum_gap"], 1e-300), color="#CCCCCC", lw=1, label="optimum gap")
    place.set_xscale("log")
    place.set_yscale("log")
    format_axis_numbers(place.xaxis, place.get_xlim())
    format_axis_numbers(place.yaxis, place.get_ylim())
    place.set_xlabel("epsilon")
    place.set_ylabel("excess risk (sum)")
