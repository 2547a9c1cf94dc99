"""Lines of ``experiments/leaderboard/audits.csv`` from what an audit printed.

    dperm audit mechanism=noisy_gd part=adversary format=json | python -m tests.kept_audits

replaces the lines of the same method, claim, delta and relation, and keeps all others. Behind
``dperm audit ... out=FOLDER`` of code that is not dperm's it is told the method:

    python -m tests.kept_audits opacus < FOLDER/audit.json
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[1] / "experiments" / "leaderboard" / "audits.csv"
COLUMNS = ("method", "claim", "delta", "relation", "records", "verdict", "bound", "runs",
           "refutable_from")  # fmt: skip
NAMED = COLUMNS[:5]  # what a line is about
OWN_PAIR = "the pair it finds hardest to hide"


def make_line(row: Mapping[str, Any]) -> dict[str, str]:
    """A line of the file from a row of an adversary, as ``dperm audit format=json`` prints it."""
    return {
        "method": row["mechanism"], "claim": f"{row['epsilon']:g}", "delta": f"{row['delta']:g}",
        "relation": row["relation"], "records": OWN_PAIR,
        "verdict": "violated" if row["bound"] > row["claim"] * (1.0 + 1e-9) else "not shown",
        "bound": f"{row['bound']:.3g}", "runs": str(row["runs"]), "refutable_from": "",
    }  # fmt: skip


def make_outside_line(method: str, audit: Mapping[str, Any]) -> dict[str, str]:
    """A line of the file from the ``audit.json`` of an audit of code that is not dperm's.

    Args:
        method: The name that the leaderboard has for it.
        audit: What the file says.
    """
    claim = audit["claim_epsilon"]  # null in the file where the claim was no number
    return {
        "method": method, "claim": f"{math.nan if claim is None else claim:g}",
        "delta": f"{audit['claim_delta']:g}", "relation": audit["relation"],
        "records": f"logistic, {audit['records']}, by {audit.get('method', 'pairs')}",
        "verdict": audit["verdict"], "bound": f"{audit['bound']:.3g}", "runs": str(audit["runs"]),
        "refutable_from": _format_reach(audit["refutable_from"]),
    }  # fmt: skip


def _format_reach(epsilon: Any) -> str:
    """The least true epsilon that the runs could have refuted; empty where there is none."""
    is_finite = isinstance(epsilon, (int, float)) and math.isfinite(epsilon)
    return f"{epsilon:.3g}" if is_finite else ""


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
    if sys.argv[1:]:
        new = [make_outside_line(sys.argv[1], row) for row in rows]
    else:
        attacked = [row for row in rows if row.get("kind") == "adversary" and row["runs"]]
        new = [make_line(row) for row in attacked]
    lines = merge(read_kept(), new)
    with KEPT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
