"""The lines that sections of a statement are made of."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass
from dperm_cli.runner.statements.answers import Answers

OPEN, DECLARED = "To be declared", "(declared)"  # a person's word, which dperm cannot check
_SHOWN = 420  # characters of one answer on the page; the registry entry has all of it


@dataclass(frozen=True)
class Line:
    """One fact.

    Attributes:
        name: what it is about.
        text: the fact in words.
        is_open: whether a person has still to declare it.
    """

    name: str
    text: str
    is_open: bool = False


@dataclass(frozen=True)
class Section:
    """Some lines under a heading."""

    title: str
    lines: tuple[Line, ...]


def declare(name: str, answers: Answers, key: str) -> Line:
    """The line of one answer, or that it is to be declared, with its key."""
    found = answers.text(key)
    if found is None:
        return Line(name, f"{OPEN} (answers: {key})", is_open=True)
    return Line(name, f"{shorten(found)} {DECLARED}")


def shorten(text: str, most: int = _SHOWN) -> str:
    """The beginning of a long text, cut between words.

    >>> shorten("one two three", 9)
    'one two …'
    """
    if len(text) <= most:
        return text
    head, space, _ = text[: most - 1].rpartition(" ")
    return f"{head if space else text[: most - 2]} …"
