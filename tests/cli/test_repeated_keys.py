"""A key with two values is refused wherever something is spent: the last may not be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from dperm_cli import cli

SCHEMA = """\
target: {column: sick, kind: label, classes: ["no", "yes"]}
columns: {age: {kind: number, bounds: BOUNDS}}
"""
SPENT = ("epsilon=1", "out=here", "epsilon=5")


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    Path("t.csv").write_text("age,sick\n" + "40,yes\n30,no\n" * 20)
    Path("s.yaml").write_text(SCHEMA.replace("BOUNDS", "[0, 100]"))
    Path("open.yaml").write_text(SCHEMA.replace("BOUNDS", "private"))
    Path("q.csv").write_text("0.1,0.2\n")


@pytest.mark.parametrize("words", [
    ("release", "t.csv", "s.yaml", *SPENT),
    ("prepare", "t.csv", "open.yaml", *SPENT),
    ("ask", "mechanism=kernel_release", *SPENT, "q.csv"),
    ("budget", "create", "people", "epsilon=1", "delta=1e-6", "epsilon=5"),
    ("run", "mechanism=noisy_gd", "noise=secure", "trials=1", *SPENT),
], ids=lambda words: words[0])  # fmt: skip
def test_a_verb_that_spends_takes_no_second_value(words, capsys):
    before = sorted(path.name for path in Path.cwd().iterdir() if path.name != "cache")
    assert cli.main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "dperm: epsilon=5: was typed before, as epsilon=1: give it once\n"
    assert sorted(path.name for path in Path.cwd().iterdir() if path.name != "cache") == before


def test_the_same_value_twice_is_one():
    assert cli.main(["budget", "create", "people", "epsilon=1", "delta=1e-6", "epsilon=1"]) == 0
