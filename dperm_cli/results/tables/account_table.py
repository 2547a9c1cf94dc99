"""What ``dperm account`` prints: its rows as a table for a terminal. Pure function of rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal

from dperm_cli.results.records.row_facts import Row, distinct, format_value, group_by, number
from dperm_cli.results.tables.summary_table import Field, Section, format_grid, make_field

LEMMAS = (
    "lemmas: epsilon by [BST14, Lemmas 2.2 and 2.3], as printed (no valid proof) and repaired "
    "(valid, loose)."
)
PROVED = (
    "proved: in ball arithmetic, and rounded up; the certified epsilon is float64, rounded to "
    "nearest."
)
SHUFFLED = (
    "shuffled: if a trusted shuffler asks the users in a random order that nobody else learns, or "
    "mixes their answers to one question. Who sees answers before it knows what `certified` says."
)
_PROVED_DIGITS = 7
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
            words.append(f"{label}{format_value(values[0])}")
    return f"no data are read | {' | '.join(words)}"


def _fields(rows: Sequence[Row]) -> list[Field]:
    fields = [make_field("mechanism", "mechanism", left=True)]
    if any(row["calibration"] for row in rows):
        fields.append(make_field("calibration", "calib.", left=True))
    fields += [make_field(name, name) for name in _PUBLIC if len(distinct(rows, name)) > 1]
    if any(row["epsilon"] is not None for row in rows):
        fields.append(make_field("epsilon", "epsilon", "nominal"))
    fields += [
        make_field("epsilon_accounted", "epsilon", "certified", 5),
        *_proved_fields(rows),
        *_shuffled_fields(rows),
        make_field("guarantee", "kind", left=True),
        make_field("noise_scale", "noise", "scale", 6),
        make_field("noise_over_nl", "noise", "/ (n L)", 6),
        make_field("steps", "steps", "", 3),
        make_field("gradients", "record", "gradients", 3),
    ]
    if any(row.get("epsilon_chain") is not None for row in rows):
        fields.append(make_field("epsilon_chain", "lemmas", "printed"))
        fields.append(make_field("epsilon_chain_repaired", "lemmas", "repaired"))
    return [*fields, make_field("accountant", "accountant", left=True)]


def _proved_fields(rows: Sequence[Row]) -> list[Field]:
    """The proved epsilon and what is proved, where that was asked for."""
    if all(row.get("rigorous") is None for row in rows):
        return []
    return [
        Field("epsilon", "proved", lambda row: format_up(row.get("epsilon_rigorous"))),
        make_field("rigorous", "rigorous", left=True),
    ]


def _shuffled_fields(rows: Sequence[Row]) -> list[Field]:
    """The epsilon of shuffled answers, its delta and whom it is for, where that was asked for."""
    if all(row.get("shuffled") is None for row in rows):
        return []
    return [
        Field("epsilon", "shuffled", lambda row: format_up(row.get("epsilon_shuffled"))),
        make_field("delta_shuffled", "delta", "shuffled"),
        make_field("shuffled", "shuffled", left=True),
    ]


def format_up(value: float | None) -> str:
    """An upper bound in few digits: never a smaller number than its decimal digits say.

    Args:
        value: The bound; None where there is none.

    Returns:
        The digits, rounded up; a dash for none.

    >>> format_up(0.33333333333333337), format_up(2.0), format_up(None)
    ('0.3333334', '2', '-')
    """
    if value is None or not value < float("inf"):
        return "-" if value is None else "inf"
    up = Context(prec=_PROVED_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(value))
    return f"{up.normalize():f}" if up == 0 or Decimal("1e-4") <= up < 10**7 else str(up)


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
            notes.append(f"{row['mechanism']} at epsilon {format_value(row['epsilon_accounted'])}: "
                         f"{row['note']}.")  # fmt: skip
    if any(row.get("rigorous") for row in rows):
        notes.append(PROVED)
    if any(row.get("epsilon_shuffled") is not None for row in rows):
        notes.append(SHUFFLED)
    if rows:
        notes.append("noise scale: in the mechanism's own unit; certified: at the delta above.")
    return notes
