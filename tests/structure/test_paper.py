"""paper.md has the counts of docs/claims.md, and cites what its bibliography has."""

from __future__ import annotations

import re

from tests.structure.paper_counts import PAPER, ROOT, count_claims, write_counts

TEXT = PAPER.read_text()


def test_the_table_is_that_of_the_claims():
    assert all(counts[0] > 0 for counts in count_claims().values())
    assert write_counts(TEXT) == TEXT, "python -m tests.structure.paper_counts writes them"


def test_every_citation_is_in_the_bibliography():
    cited = set(re.findall(r"@(\w+)", TEXT))
    listed = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.M))
    assert cited == listed
