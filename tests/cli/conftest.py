"""Run the command line inside the test process, in an empty folder."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from dperm_cli.cli import main
from tests.conftest import draw_nothing


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def dperm(tmp_path, monkeypatch, capsys):
    """``dperm("run", "epsilon=1")`` in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Outcome:
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def figures():
    """For tests in which a run draws its figure: it takes seconds."""


@pytest.fixture(autouse=True)
def no_figures(request, monkeypatch):
    """Nothing is drawn unless a test asks for ``figures``; tests/results tests drawing."""
    if "figures" not in request.fixturenames:
        draw_nothing(monkeypatch)
