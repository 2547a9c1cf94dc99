"""The tables of paper.md, of claims and of other packages' methods.

`python -m tests.structure.paper_counts` writes both anew.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "paper.md"
# begins of the names of a paper's experiments
PAPERS = {
    "Bassily": ("bst14", "leak"),
    "Kasivis": ("kj16",),
    "Jain": ("jt13",),
    "Duchi": ("djw12_information", "djw12_rates"),  # djw12_modern is about later channels
}
RESULTS = ROOT / "experiments" / "leaderboard" / "results.csv"
DECIDED = ("confirmed", "refuted, as filed", "refuted")
# verdicts of the summary on the page of claims, at full size
_VERDICT = re.compile(r"(\d+) (confirmed|refuted, as filed|refuted)(?=;|$)")


def count_claims() -> dict[str, tuple[int, int, int, int]]:
    """Of each paper: claims, those confirmed, those refuted, and the others."""
    page = (ROOT / "docs" / "claims.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (\d+) \| .* \| (.*) \|$", page, re.M)
    counted = {}
    for name, begins in PAPERS.items():
        total, found = 0, Counter[str]()
        for experiment, claims, verdicts in rows:
            if experiment.startswith(begins):
                total += int(claims)
                found.update({word: int(n) for n, word in _VERDICT.findall(verdicts)})
        confirmed, as_filed, refuted = (found[word] for word in DECIDED)
        refuted += as_filed
        counted[name] = (total, confirmed, refuted, total - confirmed - refuted)
    return counted


def write_counts(text: str) -> str:
    """The text of the paper with the counts of today."""
    for name, counts in count_claims().items():
        cells = " | ".join(map(str, counts))
        row = re.compile(rf"^(\| {name}[^|]*) \| \d+ \| \d+ \| \d+ \| \d+ \|$", re.M)
        text, changed = row.subn(rf"\1 | {cells} |", text)
        assert changed == 1, name
    return text


def compare_methods() -> dict[str, tuple[int, int, float]]:
    """Of each method that is not dperm's: problems, those where ``auto`` has less excess risk, and
    the geometric mean of the method's excess risk over that of ``auto``."""
    with RESULTS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    own = {row["problem"]: float(row["excess_risk"]) for row in rows if row["method"] == "auto"}
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["origin"] != "dperm":
            ratio = float(row["excess_risk"]) / own[row["problem"]]
            found.setdefault(row["method"], []).append(ratio)
    return {
        method: (
            len(ratios),
            sum(ratio > 1.0 for ratio in ratios),
            math.exp(sum(map(math.log, ratios)) / len(ratios)),
        )
        for method, ratios in found.items()
    }


def write_comparison(text: str) -> str:
    """The text of the paper with the kept results of the leaderboard."""
    for method, (problems, ahead, ratio) in compare_methods().items():
        row = re.compile(rf"^(\| `{method}` \|[^|]*) \| \d+ \| \d+ \| [\d.]+ \|$", re.M)
        text, changed = row.subn(rf"\1 | {problems} | {ahead} | {ratio:.1f} |", text)
        assert changed == 1, method
    return text


if __name__ == "__main__":
    PAPER.write_text(write_comparison(write_counts(PAPER.read_text())))
