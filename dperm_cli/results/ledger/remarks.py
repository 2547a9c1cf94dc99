"""Remarks for the reader on a weak privacy level, computed from public facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dperm_cli.results.records.row_facts import number

LARGE_EPSILON = 10.0
DELTA = (
    "delta {delta} is not below 1/n (n {n}): a mechanism that publishes whole records, about "
    "{count} of them, chosen at random, keeps such a delta"
)
EPSILON = (
    "epsilon {epsilon} is above {limit}: the chances of an outcome may differ by a factor of "
    "e^{epsilon}, which protects little"
)


def list_remarks(row: Mapping[str, Any]) -> list[str]:
    """Remarks on the guarantee of a record, or of a summary's row; empty where there is none.

    n is ``population``, the public number of the mechanism's formulas: nothing here depends on a
    number of records that a declared population keeps to itself.
    """
    if row["status"] != "ok" or row["guarantee"] in (None, "none"):
        return []
    found, n = [], row.get("population")
    delta, epsilon = row["delta_accounted"], row["epsilon_accounted"]
    if n and delta and delta >= 1.0 / n:
        words = {"delta": number(delta, 3), "n": n, "count": number(delta * n, 3)}
        found.append(DELTA.format(**words))
    if epsilon is not None and epsilon > LARGE_EPSILON:
        found.append(EPSILON.format(epsilon=number(epsilon), limit=number(LARGE_EPSILON)))
    return found


def summarise_remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The remarks on several rows: the first of each kind, and how many rows have one."""
    lines = []
    for kind in ("delta", "epsilon"):
        mine = [text for row in rows for text in list_remarks(row) if text.startswith(kind)]
        if mine:
            count = len(mine)
            lines.append(mine[0] if count == 1 else f"{mine[0]} ({count} rows have such a remark)")
    return lines
