"""What is said of a plug-in that was not given, and of a verb whose words are missing."""

from __future__ import annotations

import pytest

import dperm_cli
from dperm_cli import cli
from dperm_cli.core.errors import InputError
from dperm_cli.core.new_plugin import KINDS

OF_A_LINE = "one of your own needs --plugin FILE.py"
OF_PYTHON = "one of your own needs plugins=['FILE.py']"
LINES = (
    *(
        f"{verb} {kind}=mine{more}"
        for verb in ("run", "describe", "audit", "account")
        for kind in ("mechanism", "loss", "kernel", "sampler")
        for more in ("", " --help")
        if verb != "account" or kind == "mechanism"
    ),
    "run dataset=mine",
    "run constraint=mine",
    "run mechanism=projected mechanism.inner=mine",
    "account constraint=mine",
    "audit fuzz=1s mechanism=mine",
    *(f"list {kind} mine" for kind in (*KINDS, "sampler", "event", "bound")),
)


@pytest.mark.parametrize("line", LINES)
def test_an_unknown_plugin_is_refused_with_what_to_type(line, dperm):
    found = dperm(*line.split())
    assert (found.code, found.out) == (2, "")
    (said,) = found.err.splitlines()
    assert OF_A_LINE in said
    assert "=mine: " in said
    assert "must be one of ;" not in said


@pytest.mark.parametrize("call", ["run", "plans", "describe", "audit", "account", "make_problem"])
def test_in_python_the_argument_is_named(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = {"loss": "mine"} if call == "make_problem" else {"mechanism": "mine", "progress": False}
    with pytest.raises(InputError) as caught:
        getattr(dperm_cli, call)(**keys)
    assert OF_PYTHON in str(caught.value)
    assert "--plugin" not in str(caught.value)


def test_in_python_a_file_that_cannot_be_used_is_named_by_its_argument(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^plugins=.*no such file"):
        dperm_cli.run(plugins=["absent.py"], progress=False)
    with pytest.raises(InputError, match=r"^check=.*no such file"):
        dperm_cli.check("absent.py")


@pytest.mark.parametrize("verb", [verb for verb in cli.VERBS if verb not in cli.COMPLETE_VERBS])
def test_a_verb_without_its_words_shows_its_page(verb, dperm):
    found = dperm(verb)
    assert found.code == 2
    assert found.out.startswith(f"usage: dperm {verb}")


@pytest.mark.parametrize(
    ("line", "words"),
    {
        "new": ("mechanism, loss, constraint, dataset, kernel", "dperm new mechanism mine"),
        "new mechanism": ("new=mechanism", "dperm new mechanism mine"),
        "check format=json": ("needs a file ending in .py",),
        "predict format=csv": ("must be a model and a file of rows",),
        "report format=json": ("must be one folder",),
        "status format=json": ("must be one folder",),
        "compare format=json": ("must be two folders",),
        "merge out=x": ("must be at least two folders",),
        "data path": ("needs the name of a data set",),
        "reproduce size=small": ("must be one of bst14_accounting",),
        "warmup now": ("now: unknown key",),
    }.items(),
)
def test_a_missing_word_is_asked_for_in_one_line(line, words, dperm):
    found = dperm(*line.split())
    assert (found.code, found.out) == (2, "")
    (said,) = found.err.splitlines()
    assert "=:" not in said
    for word in words:
        assert word in said
