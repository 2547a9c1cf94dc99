"""What ``dperm plan`` prints: its rows as a table for a terminal. Pure function of rows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from dperm_cli.results.records.row_facts import Row, format_value
from dperm_cli.results.tables.summary_table import Field, Section, format_grid, make_field

CHOICE = {
    "choice": make_field("choice", "choice", left=True),
    "constraint.radius": make_field("constraint.radius", "radius"),
    "ridge": make_field("ridge", "ridge"),
    "dataset.scaling": make_field("dataset.scaling", "scaling", left=True),
}
NOTES = (
    "excess risk: per record, above the non-private optimum. median from, to: where the median may "
    "lie; 5 and 95 %: of single releases.",
    "attacks: upper bounds for whoever tells two neighbouring data sets apart, at false positive "
    "rates .001, .01, .1.",
)


def format_table(
    rows: Sequence[Row], refusals: Mapping[str, str], target: float | None, verdict: str = ""
) -> str:
    """Aligned plain text: what was read, the table, whether a choice pays, what does not fit."""
    blocks = [_format_head(rows, target)]
    if rows:
        fields = [*(field for key, field in CHOICE.items() if key in rows[0]), *_fields()]
        body = tuple(tuple(one.text(row) for one in fields) for row in rows)
        blocks.append(format_grid(Section((), tuple(fields), body)))
        blocks.append("\n".join(NOTES))
    blocks.append("\n".join(textwrap.wrap(f"{verdict}.", 100)) if verdict else "")
    blocks.append(format_refusals(refusals))
    return "\n\n".join(block for block in blocks if block)


def format_refusals(refusals: Mapping[str, str]) -> str:
    """A line for each mechanism that has no answer."""
    return "\n".join(f"does not fit: {name}: {reason}" for name, reason in refusals.items())


def _format_head(rows: Sequence[Row], target: float | None) -> str:
    like = rows[0]["like"] if rows else None
    read = "no data are read" if like is None else f"no data but the public {like} are read"
    words = [read] if target is None else [read, f"target {format_value(target)}"]
    if rows:
        first = rows[0]
        words += [f"p {first['p']}", str(first["relation"])]
    return " | ".join(words)


def _fields() -> list[Field]:
    return [
        make_field("mechanism", "mechanism", left=True),
        make_field("noise_law", "noise", left=True),
        make_field("n", "n"),
        make_field("epsilon", "epsilon"),
        make_field("delta", "delta", digits=3),
        make_field("excess_risk_per_record", "excess", "median", 3),
        make_field("median_low", "median", "from", 3),
        make_field("median_high", "", "to", 3),
        make_field("q05", "releases", "5 %", 3),
        make_field("q95", "", "95 %", 3),
        make_field("source", "found", "by", left=True),
        make_field("seconds", "seconds", digits=2),
        Field("memory", "MB", lambda row: format_value(row["memory"] / 1e6, 3)),
        make_field("tpr_at_fpr_0.001", "attack", ".001", 3),
        make_field("tpr_at_fpr_0.01", "true pos.", ".01", 3),
        make_field("tpr_at_fpr_0.1", "", ".1", 3),
        make_field("membership_advantage", "advantage", digits=3),
    ]
