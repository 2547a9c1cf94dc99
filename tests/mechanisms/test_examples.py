"""The example in the docstring of every mechanism: it is there, is short, and runs."""

from __future__ import annotations

import doctest
import sys

import pytest

from dperm_cli.core import registry

MOST_LINES = 5  # with the line that comes out


def read_examples(cls: type) -> doctest.DocTest:
    """The examples in a class's own docstring, with the names of its module."""
    names = vars(sys.modules[cls.__module__]).copy()
    text = vars(cls).get("__doc__") or ""
    return doctest.DocTestParser().get_doctest(text, names, cls.__name__, None, None)


def find_faults(cls: type) -> list[str]:
    """What is wrong with the example of a class, in words."""
    found = read_examples(cls)
    if not any(example.want for example in found.examples):
        return [f"{cls.__name__}: no example in its docstring that shows a result"]
    lines = sum((one.source + one.want).count("\n") for one in found.examples)
    faults = [] if lines <= MOST_LINES else [f"{cls.__name__}: an example of {lines} lines"]
    told: list[str] = []
    doctest.DocTestRunner(verbose=False).run(found, out=told.append)
    return faults + told


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_a_mechanism_has_an_example_that_runs(name):
    assert find_faults(registry.load("mechanism", name)) == []


class NoExample:
    """Nothing to run."""


class NoResult:
    """Shows nothing.

    >>> 1 + 1
    """


class WrongResult:
    """Says what does not come out.

    >>> 1 + 1
    3
    """


class LongExample:
    """Six lines.

    >>> a = 1
    >>> b = 2
    >>> c = 3
    >>> d = 4
    >>> a + b + c + d
    10
    """


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (NoExample, "no example"), (NoResult, "no example"), (WrongResult, "Got:"),
        (LongExample, "6 lines"),
    ],
)  # fmt: skip
def test_a_missing_or_wrong_example_is_a_fault(cls, words):
    assert words in "\n".join(find_faults(cls))
