"""The answers of the person who signs a statement: draft, file, and refusals in one line."""

from __future__ import annotations

import re

import pytest
import yaml

from dperm_cli.core.errors import InputError
from dperm_cli.runner.statements import answers, registry_entry
from dperm_cli.runner.statements.answers import Answers
from dperm_cli.runner.statements.questions import QUESTIONS, REQUIRED
from tests.runner.test_statement import FILLED, make


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_answer_that_is_missing_is_named(name):
    given = answers.check({key: value for key, value in FILLED.items() if key != name})
    with pytest.raises(InputError, match=f"`{name}: ...`") as caught:
        registry_entry.format_entry(make(), given)
    assert "\n" not in str(caught.value)
    assert all(f"`{key}" not in str(caught.value) for key in REQUIRED if key != name)


@pytest.mark.parametrize(("line", "words"), [
    ({"url_slug": "A Model"}, "a-z, 0-9"),
    ({"publication_date": "2026-02-30"}, "must be a day"),
    ({"publication_date": "soon"}, "must be a day"),
    ({"sector": "Health"}, "Healthcare"),
    ({"records_per_person": 0}, "integer"),
    ({"records_per_person": "many"}, "integer"),
    ({"name": 7}, "quotes"),
    ({"name": "a\u202eb"}, "can be printed"),
    ({"bias": "x" * 4001}, "4000 characters"),
    ({"data_curators": []}, "list"),
    ({"nam": "x"}, "did you mean 'name'"),
])  # fmt: skip
def test_an_answer_of_another_kind_is_refused_in_one_line(line, words):
    with pytest.raises(InputError, match=words) as caught:
        answers.check(FILLED | line)
    assert str(caught.value).startswith("answers.")
    assert "\n" not in str(caught.value)


def test_the_draft_can_be_read_and_has_every_question(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(answers.draft())
    assert answers.read(str(path)) == Answers()
    assert re.findall(r"^([a-z_]+):", answers.draft(), re.MULTILINE) == [
        *(q.name for q in QUESTIONS if q.required), *(q.name for q in QUESTIONS if not q.required),
    ]  # fmt: skip
    lines = yaml.safe_dump(FILLED | {"description": "two\nlines"})
    path.write_text(answers.draft() + lines)
    with pytest.raises(InputError, match="twice"):
        answers.read(str(path))
    path.write_text(lines)
    assert answers.read(str(path)).text("description") == "two lines"
