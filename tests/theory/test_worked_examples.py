"""Every number of a proof page's worked example is computed again, by hand and by the package."""

from __future__ import annotations

import pytest

from tests.theory.worked_examples import (  # noqa: F401  each enters its pages
    accounting,
    bounds,
    channels,
    combinators,
    counts,
    gradients,
    kernels,
    pages,
    perturbations,
    samplings,
)
from tests.theory.worked_examples.pages import FUNCTIONS, Worked

SHOWN = [name for name in pages.NAMES if pages.HEADING.search(pages.read_page(name))]


def test_every_page_has_a_worked_example_that_is_computed():
    assert pages.NAMES == SHOWN
    assert sorted(FUNCTIONS) == SHOWN


@pytest.mark.parametrize("name", SHOWN)
def test_its_numbers_are_computed_again(name):
    section = pages.read_section(pages.read_page(name))
    assert pages.find_faults(section, FUNCTIONS[name]()) == []


@pytest.mark.parametrize("name", SHOWN)
def test_its_code_prints_what_it_says(name):
    assert pages.find_false_comments(pages.read_section(pages.read_page(name))) == []


SECTION = "\nn = 1000 and δ = 1e-6 give μ = 0.2367 and 119.492 by Theorem 14, in 5 parameters.\n"
WORKED = Worked((1000, 5, 1e-6), (0.23670438, 119.49196))


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("μ", "μ", ""),
        ("0.2367", "0.2368", "nothing computes 0.2368"),
        ("0.2367", "0.24", "nothing computes 0.24"),
        ("119.492", "a lot", "119.49196 does not stand there"),
        ("5 parameters", "5 parameters or 50", "nothing computes 50"),
        ("1000", "many", "1000 is an input and does not stand there"),
    ],
)
def test_a_wrong_number_is_found(right, wrong, fault):
    found = pages.find_faults(SECTION.replace(right, wrong), WORKED)
    assert fault in found if fault else found == []


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("# a\n\n## Worked example\n\n4.\n", True),
        ("# a\n\n## 4. Worked example\n\n4.\n", True),
        ("# a\n\n## Worked example\n\n4.\n\n## Deviations\n", False),
        ("# a\n\n## Deviations\n", False),
    ],
)
def test_the_section_ends_the_page(page, found):
    assert bool(pages.read_section(page)) == found


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        ("print(0.25)  # 0.25", 0),
        ("print(0.23670438)  # 0.2367", 0),
        ("print(0.23670438)  # 0.2368", 1),
        ("print(0.23670438)", 1),
        ("0.25  # 0.25", 1),
    ],
)
def test_code_that_prints_something_else_is_found(code, faults):
    assert len(pages.find_false_comments(f"```python\n{code}\n```\n")) == faults
