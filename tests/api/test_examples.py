"""Every example of docs/api.md and of the calls runs, in an empty folder; each name has one."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import dperm_cli
from dperm_cli.api import forecasts, foreign_claims, problems, questions, studies

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
SHOWN = (
    studies.run, studies.load, studies.Study, questions.plans, questions.account, questions.audit,
    questions.describe, foreign_claims.audit_fit, forecasts.plan, problems.Problem,
    problems.make_problem, problems.load_data,
)  # fmt: skip


def find_faults(text: str, known: dict, name: str) -> str:
    """What comes out otherwise than an example says."""
    told: list[str] = []
    shown = doctest.DocTestParser().get_doctest(text, known, name, None, None)
    assert shown.examples, f"{name} has no example"
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(shown, out=told.append)
    return "".join(told)


def test_the_examples_of_the_page(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    told = find_faults("\n".join(BLOCKS), {"__name__": "__main__"}, "api.md")
    assert told == "", told


@pytest.mark.parametrize("shown", SHOWN, ids=lambda one: one.__name__)
def test_the_example_of_a_call(shown, tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    known = vars(__import__(shown.__module__, fromlist=["x"])).copy()
    assert find_faults(shown.__doc__, known, shown.__name__) == ""


@pytest.mark.parametrize("name", dperm_cli.__all__)
def test_a_public_name_is_in_an_example(name):
    assert re.search(rf"\b{name}\b", "\n".join(BLOCKS)), f"docs/api.md has no example of {name}"


def test_columns_of_a_frame_are_documented(study):
    pages = " ".join(path.read_text("utf-8") for path in PAGE.parent.glob("*.md"))
    assert [name for name in study.frame().columns if f"`{name}`" not in pages] == []
