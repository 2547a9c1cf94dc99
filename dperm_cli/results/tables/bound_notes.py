"""The lines below a table that say what its columns of bounds mean."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

FACTOR = (
    "bound factor: upper over lower bound, so that the mechanism's worst case is within it of the "
    "best\nthat any mechanism with this guarantee can promise for losses as Lipschitz as these."
)
GAP = (
    "gap: the best proved upper bound of any mechanism over the best proved lower bound, at the\n"
    "row's records, parameters, set and budget, for losses as Lipschitz as these."
)
RELEASED = (
    "released bound: what released gradients show of the excess risk. Its mean over trials is at\n"
    "least the expected excess risk; a run's own record has the bound for that run alone."
)
_MEANINGS = {"bound_factor": FACTOR, "minimax_factor": GAP, "bound_released": RELEASED}


def explain_bounds(rows: Sequence[Mapping[str, Any]], shown: Container[str]) -> list[str]:
    """Which theorems the bounds of a section come from, and what its columns of bounds mean.

    Args:
        rows: the rows of a summary.
        shown: the columns that the table has room for.

    Returns:
        Lines, none for columns without a value.
    """
    notes = []
    for side in ("upper", "lower"):
        ids = [row[f"bound_{side}_id"] for row in rows if row[f"bound_{side}"] is not None]
        if ids and f"bound_{side}" in shown:
            whose = " (of the worst data set: a run may lie below)" if side == "lower" else ""
            notes.append(f"{side} bound{whose}: {', '.join(dict.fromkeys(ids))}.")
    for name, meaning in _MEANINGS.items():
        if name in shown and any(row.get(name) is not None for row in rows):
            notes.append(meaning)
    return notes
