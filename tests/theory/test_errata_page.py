"""docs/errata.md: every entry has a class, a page and a test; what is counted, and what is not."""

from __future__ import annotations

import re
from pathlib import Path

from tests.theory import test_errata

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text()
ENTRY = re.compile(r"^\| `([a-z0-9-]+)` \|.*\[\w+\]\(proofs/(\w+)\.md\) \|$", re.MULTILINE)
CLASSES = {part.partition("\n")[0]: ENTRY.findall(part) for part in PAGE.split("\n## ")[1:]}
IDS = [name for entries in CLASSES.values() for name, _ in entries]
COUNTS = [len(entries) for entries in CLASSES.values()]


def test_the_classes_stand_in_the_order_of_their_weight():
    assert list(CLASSES) == [
        "Privacy false",
        "Theorem false",
        "Proof gap",
        "Slip of the pen",
        "To be compared with the published PDF",
    ]
    assert COUNTS == [4, 12, 5, 11, 5]


def test_every_entry_has_its_test_and_its_page():
    tests = {name.removeprefix("test_") for name in vars(test_errata) if name.startswith("test_")}
    assert len(IDS) == len(set(IDS)) == len(re.findall(r"^\| `", PAGE, re.MULTILINE))
    assert {name.replace("-", "_") for name in IDS} == tests
    pages = {page for entries in CLASSES.values() for _, page in entries}
    assert [p for p in pages if not (ROOT / "docs" / "proofs" / f"{p}.md").exists()] == []


def test_false_statements_alone_are_counted():
    told = re.findall(r"(\d+) statements are false: (\d+) about privacy, (\d+) about", PAGE)
    assert told == [(str(sum(COUNTS[:2])), str(COUNTS[0]), str(COUNTS[1]))]
    line = r"\[errata\]\(docs/errata\.md\), (\d+) false statements of the papers \((\d+) about"
    found = re.findall(line, (ROOT / "README.md").read_text())
    assert found == [(str(sum(COUNTS[:2])), str(COUNTS[0]))]
