"""paper.md has the counts of docs/claims.md, and cites what its bibliography has."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "paper.md").read_text()
PAPERS = {
    "Bassily": ("bst14", "leak"),
    "Kasivis": ("kj16",),
    "Jain": ("jt13",),
    "Duchi": ("djw12",),
}
# verdicts of the summary on the page of claims, at full size
_VERDICT = re.compile(r"(\d+) (pass|does not hold, as filed)")


def count_claims() -> dict[str, Counter[str]]:
    """How many claims each paper's experiments have, and what came of them at full size."""
    page = (ROOT / "docs" / "claims.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\(#\w+\) \| (\d+) \| .* \| (.*) \|$", page, re.M)
    found: dict[str, Counter[str]] = {name: Counter() for name in PAPERS}
    for experiment, claims, verdicts in rows:
        for name, begins in PAPERS.items():
            if experiment.startswith(begins):
                found[name]["claims"] += int(claims)
                found[name].update({word: int(n) for n, word in _VERDICT.findall(verdicts)})
    return found


def test_the_table_is_that_of_the_claims():
    for name, counts in count_claims().items():
        row = re.search(rf"^\| {name}.*? \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", TEXT, re.M)
        assert row, name
        shown = [int(number) for number in row.groups()]
        total, held, failed = (
            counts[word] for word in ("claims", "pass", "does not hold, as filed")
        )
        assert shown == [total, held, failed, total - held - failed], name


def test_every_citation_is_in_the_bibliography():
    cited = set(re.findall(r"@(\w+)", TEXT))
    listed = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.M))
    assert cited == listed
