"""Every tutorial, run as a reader does, prints what it shows.

The first runs in the default suite, the short ones in CI, the rest every night.
"""

from __future__ import annotations

import re

import pytest

from tests.doors import tutorials

PAGES = tutorials.list_pages()
NIGHTLY = "567"  # of the pages that CI does not run, the numbers
CASES = [
    pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.name[0] in NIGHTLY else ())
    for page in PAGES
]


@pytest.mark.parametrize("page", CASES)
def test_a_tutorial_prints_what_it_shows(page, tmp_path):
    compared = 0
    for step, printed in tutorials.run_page(page.read_text(), tmp_path):
        assert tutorials.find_difference(step.content, printed, step.drawn) is None
        compared += 1
    assert compared


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_is_laid_out_as_the_others(page):
    text = page.read_text()
    assert re.match(rf"# {page.name[0]}\. ", text)
    assert re.search(r"^## (What you learnt|Where to go on)$", text, re.M)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    assert [line for line in prose.splitlines() if len(line) > 120] == []
    assert len(text.splitlines()) < 200


def test_pages_have_numbers_of_their_own():
    numbers = [page.stem.partition("_")[0] for page in PAGES]
    assert len(set(numbers)) == len(numbers) >= 5


@pytest.mark.parametrize(
    ("shown", "printed", "drawn", "same"),
    [
        ("a 1.00\n", "a   1.01\n", False, True),
        ("a 1.00\n", "a 1.10\n", False, False),
        ("a 1.00\n", "a 9.10\n", True, True),
        ("a 1.00\n", "b 1.00\n", True, False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", False, True),
        ("a\n", "a\nb\n", False, False),
        ("a\nb\n", "a\n", False, False),
        ("a\n...\n", "a\nb\n", False, True),
        ("1e-9\n", "1.1e-9\n", False, False),
        ("4.81e-6\n", "4.82e-6\n", False, True),
    ],
)
def test_differences_are_found(shown, printed, drawn, same):
    assert (tutorials.find_difference(shown, printed, drawn) is None) == same
