"""Lines of prose in the pages that people write have at most 120 characters."""

from __future__ import annotations

import re

import pytest

from tests.structure import commands

MOST = 120
MADE = ("claims.md", "faults.md")  # written by programs


def find_long_lines(text: str) -> list[str]:
    """Lines of prose that are too long: no code, table, heading, or formula of its own."""
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in prose.splitlines() if len(line) > MOST]
    return [line for line in lines if not re.match(r" *\||#|    |!\[", line)]


def test_lines_of_prose_are_short():
    pages = [page for page in commands.list_pages() if page.name not in MADE]
    pages += [commands.ROOT / "CHANGELOG.md", commands.ROOT / "paper.md"]
    pages += (commands.ROOT / "experiments").rglob("README.md")
    assert len(pages) > 100
    found = {str(page): find_long_lines(page.read_text()) for page in set(pages)}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a " * 61, 1),
        ("- " + "a " * 61, 1),
        ("| " + "a " * 61, 0),
        ("```sh\n" + "a " * 61 + "\n```\n", 0),
        ("a " * 60, 0),
    ],
)
def test_long_lines_are_found(text, found):
    assert len(find_long_lines(text)) == found
