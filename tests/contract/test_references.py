"""Whatever is cited by a key stands in docs/references.bib, and nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEY = re.compile(r"\[([A-Z][A-Za-z]*\d{2})[\],;]")
# whose sentences the code carries out; the last two come with their mechanisms
PAPERS = {"BST14", "DJW12", "KJ16", "JT13"}


def cited():
    places = [*ROOT.glob("dperm_cli/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    places += ROOT.glob("experiments/*/README.md")
    return {key for place in places for key in KEY.findall(place.read_text())}


def test_every_citation_has_its_entry():
    known = re.findall(r"^@\w+\{(\w+),$", (ROOT / "docs/references.bib").read_text(), re.MULTILINE)
    assert len(known) == len(set(known))
    assert len(cited()) > 5
    assert cited() - set(known) == set()
    assert set(known) - cited() - PAPERS == set()
