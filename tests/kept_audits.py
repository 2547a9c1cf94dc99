"""Lines of ``experiments/leaderboard/audits.csv`` from what an audit printed.

    dperm audit mechanism=noisy_gd part=adversary format=json | python -m tests.kept_audits

replaces the lines of the same method, claim, delta and relation, and keeps all others.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[1] / "experiments" / "leaderboard" / "audits.csv"
COLUMNS = ("method", "claim", "delta", "relation", "records", "verdict", "bound", "runs")
NAMED = COLUMNS[:5]  # what a line is about
OWN_PAIR = "the pair it finds hardest to hide"


def make_line(row: Mapping[str, Any]) -> dict[str, str]:
    """A line of the file from a row of an adversary, as ``dperm audit format=json`` prints it."""
    return {
        "method": row["mechanism"], "claim": f"{row['epsilon']:g}", "delta": f"{row['delta']:g}",
        "relation": row["relation"], "records": OWN_PAIR,
        "verdict": "violated" if row["bound"] > row["claim"] * (1.0 + 1e-9) else "not shown",
        "bound": f"{row['bound']:.3g}", "runs": str(row["runs"]),
    }  # fmt: skip


def read_kept() -> list[dict[str, str]]:
    """The lines of the file."""
    return list(csv.DictReader(KEPT.read_text("utf-8").splitlines()))


def merge(kept: Iterable[dict[str, str]], new: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Both, the new one where two are about the same, in order."""
    found = {tuple(line.get(name, "") for name in NAMED): line for line in (*kept, *new)}
    return [found[key] for key in sorted(found, key=_order)]


def _order(key: tuple[str, ...]) -> tuple[Any, ...]:
    method, claim, delta, *others = key
    return method, float(delta or 0.0) == 0.0, *others, float(claim)


def main() -> None:
    """Read rows from stdin and write the file."""
    rows = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    attacked = [row for row in rows if row.get("kind") == "adversary" and row["runs"]]
    lines = merge(read_kept(), map(make_line, attacked))
    with KEPT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
