"""Public calls of Python: unknown keywords, and what their docstrings say of the known ones."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

import dperm_cli
from dperm_cli.api.name_table import CALLS
from dperm_cli.core.errors import InputError


def list_calls():
    """Functions of the front, and the public methods of its classes."""
    found = {}
    for name, place in CALLS.items():
        if not place.startswith("dperm_cli.api."):
            continue
        made = getattr(importlib.import_module(place), name)
        if not isinstance(made, type):
            found[name] = made
            continue
        for word, value in vars(made).items():
            if inspect.isfunction(value) and not word.startswith("_"):
                found[f"{name}.{word}"] = value
    return found


KNOWN = list_calls()
CLOSED = [
    name for name, call in KNOWN.items()
    if all(one.kind is not one.VAR_KEYWORD for one in inspect.signature(call).parameters.values())
]  # fmt: skip


def test_there_are_calls_to_check():
    assert {"Study.plot", "Study.table", "load", "Problem.optimum", "run"} <= set(KNOWN)
    assert "Study.plot" in CLOSED
    assert "run" not in CLOSED


@pytest.mark.parametrize("name", CLOSED)
def test_an_unknown_keyword_is_refused_in_one_line(name):
    known = [word for word in inspect.signature(KNOWN[name]).parameters if word != "self"]
    with pytest.raises(InputError, match=r"colon=3: \w+\(\) has no such keyword") as caught:
        KNOWN[name](None, colon=3)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in known)


@pytest.mark.parametrize(
    ("call", "word", "meant"),
    [("plot", "width", "theme"), ("plot", "colour", "hue"), ("plot", "facets", "facet"),
     ("table", "cols", "columns"), ("table", "format", "style"), ("rank", "on", "by")],
)  # fmt: skip
def test_the_keyword_that_was_meant_is_named(call, word, meant, study):
    with pytest.raises(InputError, match=f"did you mean '{meant}'") as caught:
        getattr(study, call)(**{word: 1})
    assert caught.value.nearest == meant


@pytest.mark.parametrize(
    ("ask", "meant"),
    [(lambda study: study.table(columns="eps"), "epsilon"),
     (lambda study: study.plot(y="accuracy"), "test_metric"),
     (lambda study: study.plot(y="risk"), "excess_risk"),
     (lambda study: study.plot(x="eps"), "epsilon"),
     (lambda study: study.plot(x="mech"), "mechanism"),
     (lambda study: study.rank(by="algorithm"), "mechanism"),
     (lambda study: dperm_cli.run(eps=1), "epsilon")],
)  # fmt: skip
def test_common_words_and_abbreviations_name_what_was_meant(ask, meant, study):
    with pytest.raises(InputError, match=f"did you mean '{meant}'"):
        ask(study)


@pytest.mark.parametrize("name", KNOWN)
def test_lines_that_go_on_are_indented_below_their_argument(name):
    text = inspect.getdoc(KNOWN[name]) or ""
    _, found, rest = text.partition("Args:\n")
    block = re.split(r"\n\n|\n\w", rest)[0] if found else ""
    for line in filter(None, block.split("\n")):
        assert re.match(r"    [\w, ]+: |        +\S", line), line
