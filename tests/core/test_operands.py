"""The one reader of the words behind a verb."""

from __future__ import annotations

import doctest

import pytest

from dperm_cli.core import operands
from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.core.operands import CONFIG_DIR, FORMATS, Syntax, settings_in, wants_help

STUDY = Syntax(keys=("format", "out"))
NAMED = Syntax(keys=("size",), options=CONFIG_DIR, switches={"-q": "quiet", "--quiet": "quiet"})
CLOSED = Syntax(keys=("seed", "out"), operands=False, empty=("out",))


def refused(syntax, *words):
    with pytest.raises(InputError) as caught:
        syntax.split(list(words))
    assert "\n" not in str(caught.value)
    return caught.value


def test_operands_and_settings_in_any_order():
    words = STUDY.split(["a", "format=json", "b", "out=x=y"])
    assert words.operands == ("a", "b")
    assert words.settings == {"format": "json", "out": "x=y"}
    assert (words.options, words.switches, words.passed_on) == ({}, frozenset(), ())


def test_of_a_key_that_stands_twice_the_last_value_counts():
    words = STUDY.split(["format=json", "format=table"])
    assert (words.settings, words.choose("format", FORMATS)) == ({"format": "table"}, "table")
    assert settings_in(["a=1", "b", "a=2", "c=d=e"]) == {"a": "2", "c": "d=e"}


def test_a_key_has_its_first_value_by_default_and_no_other_word():
    assert STUDY.split([]).choose("format", FORMATS) == "table"
    with pytest.raises(InputError, match=r"format=jsno: must be .*did you mean 'json'"):
        STUDY.split(["format=jsno"]).choose("format", FORMATS)


@pytest.mark.parametrize(("word", "near"), [("fromat=json", "format"), ("ot=a", "out")])
def test_an_unknown_key_is_told_with_the_nearest_one(word, near):
    fault = refused(STUDY, "a", word)
    assert isinstance(fault, UnknownKey)
    assert fault.nearest == near
    assert "known: format, out" in str(fault)


def test_a_folder_may_be_called_like_a_setting(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    assert STUDY.split(["a=b", "format"]).operands == ("a=b", "format")


def test_options_take_their_value_from_behind_or_from_the_next_word():
    for typed in (["--config-dir", "mine"], ["-cd", "mine"], ["--config-dir=mine"]):
        words = NAMED.split(["leak", *typed, "size=full"])
        assert words.options == {"--config-dir": "mine"}
        assert (words.operands, words.settings) == (("leak",), {"size": "full"})
    # a verb that needs it says what it must be
    assert NAMED.split(["leak", "--config-dir"]).options == {"--config-dir": ""}
    assert NAMED.split(["-q", "--quiet"]).switches == {"quiet"}


@pytest.mark.parametrize(
    ("syntax", "words", "line"),
    [
        (STUDY, ["a", "--force"], "option=--force: is not one of this verb"),
        (STUDY, ["--formt=json"], "option=--formt=json: is not one of this verb"),
        (STUDY, ["-"], "option=-: is not one of this verb"),
        (
            NAMED, ["--config-dri=x"],
            "option=--config-dri=x: must be --config-dir (did you mean '--config-dir'?)",
        ),
        (CLOSED, ["seed"], "seed=: needs a value: write KEY=VALUE"),
        (CLOSED, ["seed="], "seed=: needs a value: write KEY=VALUE"),
        (CLOSED, ["out"], "out=: needs a value: write KEY=VALUE"),
        (CLOSED, ["sede=1"], "sede: unknown key (did you mean 'seed'?); known: out, seed"),
        (CLOSED, ["sede"], "sede: unknown key (did you mean 'seed'?); known: out, seed"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_in_one_line(syntax, words, line):
    assert str(refused(syntax, *words)) == line


def test_some_keys_may_be_empty():
    assert CLOSED.split(["out="]).settings == {"out": ""}
    assert STUDY.split(["out="]).settings == {"out": ""}  # the verb says what a folder must be


def test_what_is_for_another_reader_is_passed_on_in_order():
    audit = Syntax(keys=("seed",), switches={"--quick": "quick"}, operands=False, passes_on=True)
    words = audit.split(["-m", "epsilon=1,2", "--quick", "seed=3", "--config-dir", "mine", "loss"])
    assert words.passed_on == ("-m", "epsilon=1,2", "--config-dir", "mine", "loss")
    assert (words.settings, words.switches) == ({"seed": "3"}, {"quick"})
    ask = Syntax(keys=("columns",), passes_on=True).split(["ridge=1", "-", "columns=name"])
    assert (ask.passed_on, ask.operands) == (("ridge=1",), ("-",))


@pytest.mark.parametrize("word", ["Ünïcode", "данные/набор", "a\u202eb", "🗂️", "\udcff", "a b\nc"])
def test_words_of_any_letters_are_handed_on_as_they_are(word):
    words = STUDY.split([word, f"out={word}"])
    assert (words.operands, words.settings) == ((word,), {"out": word})
    fault = refused(STUDY, f"{word}=1") if "\n" not in word else None
    assert fault is None or fault.key == word


def test_help_is_asked_for_anywhere():
    assert wants_help(["leak", "--help"])
    assert wants_help(["-h"])
    assert not wants_help(["help", "format=--help", "--helpful"])


def test_the_examples():
    assert doctest.testmod(operands) == (0, 6)
