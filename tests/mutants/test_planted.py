"""The planted faults and the harmless edits are as many as stated, and each can be planted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.edits import apply_edit
from tests.mutants.planted import FAULTS, HARMLESS

PACKAGE = Path(__file__).resolve().parents[2] / "dperm_cli"
# what measures, and what only prints
OUT_OF_BOUNDS = ("audit/", "runner/audit", "runner/verbs/audit", "results/")

EDITS = [pytest.param(edit, id=edit.name.replace(" ", "_")) for edit in (*FAULTS, *HARMLESS)]


def test_there_are_thirty_faults_and_ten_harmless_edits():
    assert len(FAULTS) == 30
    assert len(HARMLESS) == 10
    assert len({edit.name for edit in (*FAULTS, *HARMLESS)}) == 40


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_applies_once_and_leaves_a_program(edit):
    file, changed = apply_edit(PACKAGE, edit.symbol, edit.old, edit.new)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse((PACKAGE / file).read_text()))
    assert not file.startswith(OUT_OF_BOUNDS)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_says_why_and_where_it_runs(edit):
    assert edit.why.endswith(".")
    assert edit.run[0] in ("run", "ask")


def test_what_measures_lies_out_of_bounds():
    files = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    assert all(any(file.startswith(place) for file in files) for place in OUT_OF_BOUNDS)
    measures = {file for file in files if "audit" in file or "fuzz" in file}
    assert all(file.startswith(OUT_OF_BOUNDS) for file in measures)


def test_no_two_faults_are_one_edit():
    assert len({(edit.symbol, edit.old) for edit in FAULTS}) == 30
