"""The answers of the person who signs a statement: the draft of their file, and the file."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from dperm_cli.core import checks, plain_yaml
from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import NOTHING, InputError
from dperm_cli.runner.statements.questions import (
    COUNT,
    DATE,
    NAMES,
    QUESTIONS,
    REQUIRED,
    SLUG,
    Question,
)

KEY = "answers"
LONGEST = 4000  # characters of one answer
MOST_NAMES = 20
MOST_RECORDS = 1_000_000
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HEAD = (
    "# What dperm cannot know of a release. Fill in, and give as answers=FILE.",
    "# A line left empty is said to be undeclared. A text of several lines: KEY: >- and the text,",
    "# each of its lines behind two spaces.",
)


@dataclass(frozen=True)
class Answers:
    """Declared answers by the names of ``QUESTIONS``; what is not there was not answered."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """An answer in words, None where there is none.

        >>> Answers({"data_curators": ("A", "B")}).text("data_curators")
        'A, B'
        """
        found = self.given.get(name)
        if found is None:
            return None
        return ", ".join(found) if isinstance(found, tuple) else str(found)

    def list_missing(self) -> list[str]:
        """The required answers that are not there, in the order of the draft."""
        return [name for name in REQUIRED if name not in self.given]


def draft() -> str:
    """The YAML file to be filled in."""
    required = [_draft_line(question) for question in QUESTIONS if question.required]
    others = [_draft_line(question) for question in QUESTIONS if not question.required]
    lines = [*_HEAD, "", "# required by the registry of deployments", *required]
    return "\n".join([*lines, "", "# not required", *others]) + "\n"


def _draft_line(question: Question) -> str:
    words = question.words
    if question.choices:
        words += f": {', '.join(question.choices)}"
    return f"{question.name}:  # {words}"


def read(word: str | None) -> Answers:
    """The answers in a file; none of them without a file.

    Raises:
        InputError: it cannot be read, or a line of it is no answer.
    """
    if word is None:
        return Answers()

    def refuse(words: str) -> InputError:
        return InputError(KEY, word, words)

    return check(plain_yaml.read_mapping(Path(checks.path(KEY, word)), refuse))


def check(given: Mapping[str, Any]) -> Answers:
    """Answers as they were written, each of its kind; InputError names the line."""
    checks.known_keys(given, [question.name for question in QUESTIONS], f"{KEY}.")
    found = {}
    for question in QUESTIONS:
        value = given.get(question.name)
        if value is None or value == "":
            continue
        found[question.name] = _check_one(question, value)
    return Answers(found)


def require_complete(answers: Answers) -> None:
    """InputError where a required answer is missing: it names the lines to write."""
    missing = answers.list_missing()
    if missing:
        lines = ", ".join(f"`{name}: ...`" for name in missing)
        words = f"the registry takes no entry without these lines: {lines}"
        raise InputError(KEY, NOTHING, f"{words} (format=answers drafts the file)")


def _check_one(question: Question, value: Any) -> Any:
    key = f"{KEY}.{question.name}"
    if question.choices:
        return checks.choice(key, value, question.choices)
    if question.kind == COUNT:
        return checks.integer(key, value, low=1, high=MOST_RECORDS)
    if question.kind == NAMES:
        names = value if isinstance(value, list) else [value]
        if not 0 < len(names) <= MOST_NAMES:
            raise InputError(key, value, f"must be a list of 1 to {MOST_NAMES} texts")
        return tuple(_check_text(key, name) for name in names)
    text = _check_text(key, value)
    if question.kind == SLUG and not _SLUG.fullmatch(text):
        raise InputError(key, text, "must be made of a-z, 0-9 and single dashes, as my-model")
    if question.kind == DATE:
        _check_date(key, text)
    return text


def _check_text(key: str, value: Any) -> str:
    """A text in one line: line breaks become spaces."""
    if not isinstance(value, str):
        raise InputError(key, value, "must be text: put it in quotes")
    text = " ".join(value.split())
    if not text or len(text) > LONGEST or not text.isprintable():
        raise InputError(key, text[:60], f"must be 1 to {LONGEST} characters that can be printed")
    return text


def _check_date(key: str, text: str) -> None:
    words = "must be a day, as 2026-01-31"
    if not _DATE.fullmatch(text):
        raise InputError(key, text, words)
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise InputError(key, text, words) from None
