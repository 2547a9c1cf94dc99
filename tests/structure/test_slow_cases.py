"""Each line of ``slow_cases.txt`` names a test that is there."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.conftest import read_slow_cases

TESTS = Path(__file__).resolve().parents[1]


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


def test_every_line_names_a_test():
    cases = read_slow_cases()
    assert len(cases) > 50
    for case in cases:
        file, _, name = case.partition("::")
        assert name.partition("[")[0] in list_tests(TESTS / file), case


def test_the_lines_are_sorted():
    lines = (TESTS / "slow_cases.txt").read_text().splitlines()
    assert lines[2:] == sorted(set(lines[2:]))
