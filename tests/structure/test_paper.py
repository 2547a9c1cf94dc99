"""The tables of paper.md are those of today, and it cites what its bibliography has."""

from __future__ import annotations

import re

from tests.structure.paper_counts import (
    PAPER,
    ROOT,
    compare_methods,
    count_claims,
    write_comparison,
    write_counts,
)

TEXT = PAPER.read_text()


def test_the_table_is_that_of_the_claims():
    assert all(counts[0] > 0 for counts in count_claims().values())
    assert write_counts(TEXT) == TEXT, "python -m tests.structure.paper_counts writes them"


def test_the_table_of_other_methods_is_that_of_the_leaderboard():
    assert len(compare_methods()) >= 6
    assert all(problems > 0 for problems, _, _ in compare_methods().values())
    assert write_comparison(TEXT) == TEXT, "python -m tests.structure.paper_counts writes it"


def test_every_citation_is_in_the_bibliography():
    cited = set(re.findall(r"@(\w+)", TEXT))
    listed = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.M))
    assert cited == listed
