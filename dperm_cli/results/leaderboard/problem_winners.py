"""Who is first on each problem of the leaderboard, and how far dperm's default is from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dperm_cli.results.leaderboard.entries import Entry
from dperm_cli.results.records.row_facts import csv_lines, group_by

DEFAULT = "auto"  # the mechanism that dperm takes where none is named
OWN = "dperm"  # the origin of lines of dperm's mechanisms
COLUMNS = (
    "dataset", "loss", "constraint", "constraint_radius", "relation", "guarantee", "epsilon",
    "first", "first_risk", "default_risk", "default_place", "methods", "ratio", "peer",
    "peer_risk", "floor",
)  # fmt: skip
_PROBLEM = COLUMNS[:7]


def list_winners(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """A line for each problem that has a result.

    Returns:
        What the problem is; the method with the least excess risk; that of dperm's default, its
        place and its ratio to the first; the best method of others; and the risk without data.
    """
    found = []
    ran = [entry for entry in entries if entry["status"] == "ok"]
    for members in group_by(ran, lambda entry: entry["problem"]).values():
        best = _find_best(members)
        own = _find_best([one for one in members if one["method"] == DEFAULT])
        peer = _find_best([one for one in members if one["origin"] != OWN])
        if best is None:
            continue
        found.append(
            {name: best[name] for name in _PROBLEM}
            | {
                "first": best["method"],
                "first_risk": best["excess_risk"],
                "default_risk": own and own["excess_risk"],
                "default_place": own and own["place"],
                "methods": len(members),
                "ratio": own and _divide(own["excess_risk"], best["excess_risk"]),
                "peer": peer and peer["method"],
                "peer_risk": peer and peer["excess_risk"],
                "floor": best["floor"],
            }
        )
    return found


def write_winners(winners: Iterable[dict[str, Any]]) -> str:
    """``winners.csv``: a line for each problem."""
    return csv_lines(COLUMNS, ([one[name] for name in COLUMNS] for one in winners))


def tell_winners(winners: Sequence[dict[str, Any]]) -> str:
    """In a sentence, on how many problems the default and a peer are first."""
    own = sum(one["first"] == DEFAULT for one in winners)
    other = sum(one["peer"] is not None and one["first"] == one["peer"] for one in winners)
    return (
        f"Of {len(winners)} problems, {DEFAULT}, the default of dperm, is first on {own} and a "
        f"method of others on {other}."
    )


def _find_best(members: Sequence[Entry]) -> Entry | None:
    return min(members, key=lambda one: one["excess_risk"], default=None)


def _divide(risk: float, best: float) -> float | None:
    """None where the best one has none: a ratio says nothing there."""
    return risk / best if best > 0.0 else None
