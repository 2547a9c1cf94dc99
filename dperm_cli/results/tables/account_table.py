"""What ``dperm account`` prints: its rows as a table for a terminal. Pure function of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dperm_cli.results.records.row_facts import Row, distinct, group_by, number
from dperm_cli.results.tables.summary_table import Field, Section, format_grid

LEMMAS = (
    "lemmas: epsilon by [BST14, Lemmas 2.2 and 2.3], as printed (no valid proof) and repaired "
    "(valid, loose)."
)
_PUBLIC = ("n", "p", "lipschitz", "relation", "delta")


def format_table(rows: Sequence[Row]) -> str:
    """Aligned plain text: what the rows share, the table, what is unsupported and why."""
    ran = [row for row in rows if row["status"] == "ok"]
    blocks = [_format_shared(rows)]
    if ran:
        body = tuple(tuple(f.text(row) for f in _fields(ran)) for row in ran)
        blocks.append(format_grid(Section((), tuple(_fields(ran)), body)))
    blocks.append("\n".join([*_format_refusals(rows), *_notes(ran)]))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _format_shared(rows: Sequence[Row]) -> str:
    words = []
    for name in _PUBLIC:
        values = distinct(rows, name)
        if len(values) == 1 and values[0] is not None:
            label = {"lipschitz": "L "}.get(name, "" if name == "relation" else f"{name} ")
            words.append(f"{label}{_value(values[0])}")
    return f"no data are read | {' | '.join(words)}"


def _fields(rows: Sequence[Row]) -> list[Field]:
    fields = [Field("mechanism", "", lambda row: str(row["mechanism"]), left=True)]
    if any(row["calibration"] for row in rows):
        fields.append(Field("calib.", "", lambda row: row["calibration"] or "-", left=True))
    fields += [_plain(name, name) for name in _PUBLIC if len(distinct(rows, name)) > 1]
    if any(row["epsilon"] is not None for row in rows):
        fields.append(_plain("epsilon", "epsilon", "nominal"))
    fields += [
        _plain("epsilon_accounted", "epsilon", "certified", 5),
        Field("kind", "", lambda row: str(row["guarantee"]), left=True),
        _plain("noise_scale", "noise", "scale", 6),
        _plain("noise_over_nl", "noise", "/ (n L)", 6),
        _plain("steps", "steps", "", 3),
        _plain("gradients", "record", "gradients", 3),
    ]
    if any(row.get("epsilon_chain") is not None for row in rows):
        fields.append(_plain("epsilon_chain", "lemmas", "printed"))
        fields.append(_plain("epsilon_chain_repaired", "lemmas", "repaired"))
    return [*fields, Field("accountant", "", lambda row: str(row["accountant"]), left=True)]


def _plain(name: str, top: str, low: str = "", digits: int = 4) -> Field:
    return Field(top, low, lambda row: _value(row.get(name), digits))


def _value(value: Any, digits: int = 4) -> str:
    return value if isinstance(value, str) else number(value, digits)


def _format_refusals(rows: Sequence[Row]) -> list[str]:
    """One line per reason that there is no answer, with the epsilons or scales it concerns."""
    left = [row for row in rows if row["status"] != "ok"]
    lines = []
    keys = ("mechanism", "calibration", "reason", "status")
    by_reason = group_by(left, lambda row: tuple(row[name] for name in keys))
    for key, group in by_reason.items():
        at = [number(e) for e in distinct(group, "epsilon") if e is not None]
        where = f"{key[0]} ({key[1]})" if key[1] else key[0]
        where += f", epsilon {', '.join(at)}" if at else ""
        lines.append(f"{key[3]}: {where}: {key[2]}")
    return lines


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = []
    if any(row["calibration"] == "paper" for row in rows):
        notes.append("paper: the scale as printed; the accountant certifies less than the nominal.")
    if any(row.get("epsilon_chain") is not None for row in rows):
        notes.append(LEMMAS)
    for row in rows:
        if row.get("note"):
            notes.append(f"{row['mechanism']} at epsilon {_value(row['epsilon_accounted'])}: "
                         f"{row['note']}.")  # fmt: skip
    if rows:
        notes.append("noise scale: in the mechanism's own unit; certified: at the delta above.")
    return notes
