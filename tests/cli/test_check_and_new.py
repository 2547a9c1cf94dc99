"""``dperm check`` and ``dperm new`` on the command line: exit codes, bad input, what is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dperm_cli import cli
from dperm_cli.core import plugin_sources
from dperm_cli.core.new_plugin import KINDS, fill_template

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, arguments, *words):
    assert cli.main(arguments) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert len(found.err.strip().splitlines()) == 1
    for word in words:
        assert word in found.err


def write(name, kind="dataset"):
    Path(name).write_text(fill_template(kind, "mine"))


def test_a_check_prints_a_line_a_promise_and_writes_nothing(capsys):
    write("mine.py")
    assert cli.main(["check", "mine.py"]) == 0
    found = capsys.readouterr()
    assert re.search(r"^mine\.py, version 0\.1, sha256 [0-9a-f]{12}$", found.out, re.M)
    assert len(re.findall(r"^  ok      \S", found.out, re.M)) == 9
    assert found.out.endswith("9 promises of 1 plug-in: 9 ok\n")
    assert os.listdir() == ["mine.py"]


def test_a_broken_promise_is_exit_code_1(capsys):
    write("mine.py")
    path = Path("mine.py")
    path.write_text(path.read_text().replace("row_bound=1.0", "row_bound=0.5"))
    assert cli.main(["check", "mine.py", "format=json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (broken,) = [row for row in rows if row["verdict"] == "BROKEN"]
    assert broken["kind"] == "dataset"
    assert "row_bound" in broken["seen"]
    assert broken["mend"]


def test_what_a_plugin_prints_is_no_result(capfd):
    write("mine.py")
    path = Path("mine.py")
    path.write_text(path.read_text().replace("rng = np", "print('hello'); rng = np"))
    assert cli.main(["check", "mine.py", "format=json"]) == 0
    assert all(json.loads(line) for line in capfd.readouterr().out.splitlines())


def test_a_package_is_checked_by_its_import_name_or_folder(capsys):
    Path("lab_of_mine").mkdir()
    write("lab_of_mine/__init__.py")
    for word in ("lab_of_mine", f".{os.sep}lab_of_mine"):
        assert cli.main(["check", word]) == 0
        assert "dataset mine" in capsys.readouterr().out
    assert os.listdir("lab_of_mine") == ["__init__.py"]


def test_what_is_no_plugin_is_bad_input(capsys):
    Path("empty.py").write_text("x = 1\n")
    Path("wrong.py").write_text("class OneStep(:\n")
    Path("folder").mkdir()
    refused(capsys, ["check", "empty.py"], "check=", "empty.py", "no plug-in")
    refused(capsys, ["check", "wrong.py"], "wrong.py", "syntax error, line 1")
    refused(capsys, ["check", "absent.py"], "absent.py", "no such file")
    refused(capsys, ["check", "no_such_package_here"], "nothing of this name")
    refused(capsys, ["check", "folder"], "folder")
    refused(capsys, ["check", "empty.py", "form=json"], "form: unknown key")


@pytest.mark.parametrize("kind", KINDS)
def test_new_writes_a_short_file(kind, capsys):
    assert cli.main(["new", kind, "my_own"]) == 0
    found = capsys.readouterr()
    assert found.out == "my_own.py\n"
    assert "dperm check my_own.py" in found.err
    text = Path("my_own.py").read_text()
    assert "class MyOwn(" in text
    assert "from dperm_cli import" in text
    assert "{" not in text.replace("{theta", "").replace('{"step_size"', "")
    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) <= 100


def test_a_name_that_its_class_does_not_give_is_written_down(capsys):
    assert cli.main(["new", "dataset", "rows_2"]) == 0
    assert cli.main(["check", "rows_2.py"]) == 0
    assert "dataset rows_2" in capsys.readouterr().out


def test_new_never_overwrites(capsys):
    Path("mine.py").write_text("precious")
    refused(capsys, ["new", "mechanism", "mine"], "mine.py", "there already")
    assert Path("mine.py").read_text() == "precious"
    Path("link.py").symlink_to("nowhere.py")
    refused(capsys, ["new", "mechanism", "link"], "link.py")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in ("mechanism", "loss") for name in ("range", "help", "a__b")),
        *(("mechanism", name) for name in ("release", "gaussian", "mechanism")),
        *(("dataset", name) for name in ("data", "data_set", "x_")),
        *(("kernel", "kernel"), ("constraint", "convex_set"), ("loss", "margin_loss")),
    ],
)
def test_a_name_of_something_that_the_file_uses_gives_a_class_of_another_name(kind, name):
    text = fill_template(kind, name)
    (defined,) = re.findall(r"^class (\w+)\(", text, re.M)
    imported = re.search(r"^from dperm_cli import (.*)$", text, re.M).group(1).split(", ")
    assert defined not in (*imported, "Annotated", "np")
    Path(f"{name}.py").write_text(text)
    with plugin_sources.use_plugins([f"{name}.py"]):
        [source] = plugin_sources.list_sources()
    assert source.names == ((kind, name),)


def test_such_a_file_passes(capsys):
    assert cli.main(["new", "dataset", "data"]) == 0
    assert cli.main(["check", "data.py"]) == 0
    assert "dataset data" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["all", "none", "null", "true", "false", "nan", "inf", "a" * 200])
def test_a_word_that_no_value_can_be_is_no_name(name, capsys):
    for kind in ("mechanism", "dataset"):
        refused(capsys, ["new", kind, name], "name=")
    text = fill_template("dataset", "mine").replace(
        "n: Annotated", f'name = "{name}"\n    n: Annotated', 1
    )
    Path("mine.py").write_text(text)
    refused(capsys, ["check", "mine.py"], "check=", "the name of a dataset")


@pytest.mark.parametrize(
    "name",
    ["../up", "a b", "noisy_gd", "class", "match", "1st", "Mine", "a/b", "", "json", "numpy"],
)
def test_new_refuses_a_name_that_cannot_be(name, capsys):
    refused(capsys, ["new", "mechanism", name], "name=")
    assert os.listdir() == []


def test_new_says_which_kinds_there_are(capsys):
    for words in ([], ["mechanism"], ["mechanisms", "mine"], ["mechanism", "a", "b"]):
        refused(capsys, ["new", *words], "mechanism, loss, constraint, dataset, kernel")


def test_auto_is_a_word_of_dperm(capsys):
    refused(capsys, ["new", "loss", "auto"], "auto")


def test_neither_pytest_nor_the_tests_are_imported():
    write("mine.py")
    for name in ("pytest", "_pytest", "hypothesis", "tests"):
        Path(f"{name}.py").write_text(f"raise ImportError('{name}')\n")
    done = subprocess.run(
        [sys.executable, "-m", "dperm_cli", "check", "mine.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_completion_knows_both(capsys):
    write("mine.py")
    for typed, wanted in ((["check"], {"mine.py", "format="}), (["new"], set(KINDS))):
        assert cli.main(["completion", "--words", *typed, "--", ""]) == 0
        assert set(capsys.readouterr().out.split()) == wanted
