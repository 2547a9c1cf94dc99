"""Each line of ``slow_cases.txt`` and ``longer_cases.txt`` names a test that is there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import read_cases

TESTS = Path(__file__).resolve().parents[1]


@cache
def list_tests(file: Path) -> set[str]:
    """The names of the tests in a file, of those in a class as ``Class::name``."""
    found = set[str]()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{one.name}" for one in node.body
                      if isinstance(one, ast.FunctionDef)}  # fmt: skip
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


LISTS = ("slow_cases.txt", "longer_cases.txt")


@pytest.mark.parametrize("name", LISTS)
def test_every_line_names_a_test(name):
    cases = read_cases(name)
    assert len(cases) > 50
    for case in cases:
        file, _, test = case.partition("::")
        found = list_tests(TESTS / file)
        assert test.partition("[")[0] in found if test else found, case


@pytest.mark.parametrize("name", LISTS)
def test_the_lines_are_sorted(name):
    lines = (TESTS / name).read_text().splitlines()
    assert lines[2:] == sorted(set(lines[2:]))
