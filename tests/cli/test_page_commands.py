"""Every command of the pages: all are parsed, and those in blocks run in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dperm_cli.cli import VERBS, dispatch, main
from dperm_cli.core import catalogue, plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.core.new_plugin import KINDS
from dperm_cli.core.operands import settings_in, take_plugins
from tests.structure import commands

PLUGINS = commands.ROOT / "docs/plugins.md"
PAGES = commands.list_pages()
SHELL_PAGES = [
    pytest.param(page, id=page.stem)
    for page in PAGES
    # tests/doors/test_tutorials.py runs tutorials, and compares what they print
    if page.parent.name != "tutorials"
    if any(command.runs for command in commands.list_commands(page.read_text()))
]
NAMES = [str(page.relative_to(commands.ROOT)) for page in PAGES]
# In a template the reader puts a value: STUDY, A, FILE.npz, <name>, a|b, [size=..], ...
TEMPLATE = re.compile(r"^[A-Z_]+\b|[<>|\[\]]|\.\.\.|^\.\.$")
EMBEDDED = ("breast_cancer", "diabetes", "digits")
MISSING = ("must be an existing folder", "is not a file", "must be at least two", "holds no study")


# of a table that pages name
SCHEMA = (
    "target: {column: sick, kind: label, classes: [no, yes]}\n"
    "columns: {age: {kind: number, bounds: [0, 110]}}\n"
)


def is_template(word: str) -> bool:
    """Whether a word stands for another one."""
    value = word.partition("=")[2]
    return not value.startswith(("[", "{")) and bool(TEMPLATE.search(word))


def write_shown(text: str, folder: Path) -> None:
    """The files that a page shows, the plug-in of docs/plugins.md and a schema, named by others."""
    shown = commands.list_files(PLUGINS.read_text()) | commands.list_files(text)
    for name, content in shown.items():
        (folder / name).write_text(content)
    schemas = [content for language, content in commands.read_blocks(text) if language == "yaml"]
    named = [content for content in schemas if content.startswith("# schema.yaml\n")]
    (folder / "schema.yaml").write_text(named[0] if named else SCHEMA)


def check(words: list[str]) -> None:
    """AssertionError where dperm does not know a verb, key or choice; nothing is run."""
    plugins, words = take_plugins(words)
    with plugin_sources.use_plugins(plugins):
        check_words(words)


def check_words(words: list[str]) -> None:
    verb, *rest = words
    assert verb in VERBS, f"no verb {verb}"
    if verb in ("report", "status", "verify", "merge", "compare", "predict", "export", "statement"):
        # the folders are not there: whatever else is wrong is said before that
        with pytest.raises(InputError) as caught:
            dispatch(words)
        assert any(part in str(caught.value) for part in MISSING), str(caught.value)
    elif verb in ("run", "describe"):
        from dperm_cli.runner.compose.study_plan import parse_request

        if "dataset=stored" in rest:  # the folder is not there, which is said at last
            with pytest.raises(InputError, match="is no folder of"):
                parse_request(rest)
        else:
            parse_request(rest)
    elif verb == "plan":
        from dperm_cli.runner.verbs.plan_request import parse_request

        of_data = [word for word in rest if word.startswith("like=")]
        for name in of_data:
            assert name.removeprefix("like=") in catalogue.choices("dataset")
        own = [word for word in rest if word not in of_data]
        if of_data and all(name.removeprefix("like=") in EMBEDDED for name in of_data):
            parse_request(rest)
            return
        if own == ["--help"]:
            assert main(words) == 0
            return
        parse_request([*own, *(["task=binary", "p=20"] * bool(of_data))])
    elif verb == "ask":
        from dperm_cli.runner.compose.study_plan import parse_request

        parse_request([word for word in rest if "=" in word and not word.startswith("columns=")])
    elif verb == "new":
        assert rest[0] in KINDS
    elif verb == "budget":
        from dperm_cli.runner.verbs.budget import ACTIONS, KEYS

        assert rest[0] in ACTIONS
        assert set(settings_in(rest)) <= set(KEYS)
    elif verb == "peers" and rest[0] != "list":  # nothing is installed to read a page
        from dperm_cli.runner.compose.study_plan import parse_request
        from dperm_cli.runner.peers.catalogue import find_peer

        assert rest[0] in ("install", "remove", "run")
        assert find_peer(rest[1])
        settings = [word for word in rest[2:] if not word.startswith("format=")]
        if rest[0] == "run":
            parse_request(settings)
        else:
            assert settings == []
    elif verb == "cache":
        from dperm_cli.core.cache_contents import read_kinds

        assert set(settings_in(rest)) <= {"clear", "format"}
        assert read_kinds(settings_in(rest).get("clear", "all"))
    elif verb in ("schema", "prepare", "release"):
        # the table is not there, which is said after all words were read
        with pytest.raises(InputError, match=r"no such (file|budget)|must be"):
            dispatch(words)
    elif verb == "check":
        assert os.path.exists(rest[0])
    elif verb == "account":
        from dperm_cli.runner.verbs.account_request import parse_request

        parse_request(rest)
    elif verb == "audit":
        check_audit(rest)
    elif verb == "data":
        assert rest[0] in ("list", "path", "fetch", "verify", "store")
        rest = [word for word in rest if not word.startswith(("to=", "precision="))]
        assert all(name in catalogue.choices("dataset") for name in rest[1:2])
        if len(rest) > 2:
            from dperm_cli.runner.compose.study_plan import parse_request

            keys = [word if word[:8] == "dataset." else f"dataset.{word}" for word in rest[2:]]
            parse_request([f"dataset={rest[1]}", *keys])
    elif verb == "reproduce":
        assert rest[0] in (*catalogue.choices("experiment"), "all", "claims")
        assert set(settings_in(rest)) <= {"size", "out", "format", "force", "verdicts"}
    else:
        assert main(words) == 0


def check_audit(rest: list[str]) -> None:
    from dperm_cli.runner import audit_request
    from dperm_cli.runner.audits import fuzz, outside_request
    from dperm_cli.runner.compose.study_plan import parse_request

    if outside_request.is_asked(rest):
        outside_request.parse(rest)
        return
    if "fuzz" in settings_in(rest):
        assert set(settings_in(rest)) <= set(fuzz.KEYS)
        return
    asked = audit_request.parse(rest)
    words = [word for word in asked.words if not word.startswith(("mechanism=all", "noise="))]
    parse_request(["-m", *words])


@pytest.mark.parametrize("name", NAMES)
def test_commands_parse(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (commands.ROOT / name).read_text()
    write_shown(text, tmp_path)
    before = os.listdir(tmp_path)
    found = [command.words for command in commands.list_commands(text)]
    found += [shlex.split(line)[1:] for line in commands.list_inline(text)]
    for words in filter(None, found):
        assert words[0] in VERBS, words
        if len(words) > 1 and not any(map(is_template, words)):
            check(words)
    assert os.listdir(tmp_path) == before


@pytest.mark.parametrize("name", NAMES)
def test_marks_and_languages(name):
    """Blocks with commands say ``sh``, and a mark is one of those that CONTRIBUTING has."""
    text = (commands.ROOT / name).read_text()
    for language, content in commands.read_blocks(text):
        if re.search(r"^(\$ )?(dperm|make|pip) ", content, re.MULTILINE):
            assert language == "sh", f"a block of commands is marked {language!r}: {content[:60]}"
    for command in commands.list_commands(text):
        assert command.need in ("", *commands.NEEDS), command.line
        if command.line.startswith("make "):
            assert command.need == "clone", command.line
        if command.extra:
            check_extra(command)


def check_extra(command: commands.Command) -> None:
    """The words of a test may set keys and switches; they cannot be another command."""
    words = shlex.split(command.extra)
    assert words, command.line
    assert all("=" in word or word.startswith("--") for word in words), command.line


@pytest.mark.parametrize(
    "line",
    [
        "dperm rnu epsilon=1", "dperm run mechanism=noisy_dg", "dperm run epsilom=1",
        "dperm run mechanism.step=3", "dperm report outputs/x fromat=json", "dperm list datset",
        "dperm account epsilom=1", "dperm audit epsilom=1", "dperm data fetch covtipe",
        "dperm data verify csv pth=a.csv", "dperm reproduce bst14_tabel1", "dperm audit fuz=3s",
    ],
)  # fmt: skip
def test_a_slip_in_a_page_is_found(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, InputError)):
        check(commands.read_command(line).words)


def test_marks_are_read():
    found = commands.read_command("dperm audit a=1   # [hours; tested with fuzz=2s] the files")
    assert (found.need, found.extra, found.runs) == ("hours", "fuzz=2s", True)
    assert found.typed == "dperm audit a=1 fuzz=2s"
    assert found.words == ["audit", "a=1"]
    plain = commands.read_command("dperm run 'epsilon=[1]'  # what it is [BST14]")
    assert (plain.need, plain.words, plain.runs) == ("", ["run", "epsilon=[1]"], True)
    assert not commands.read_command("make run  # [clone]").runs


def write_hiding(folder: Path) -> Path:
    """A folder for PYTHONPATH with which no program finds the packages of extras."""
    modules = commands.list_modules_of_extras()
    line = f"import sys\nsys.modules.update(dict.fromkeys({modules}))\n"
    (folder / "sitecustomize.py").write_text(line)
    return folder


def test_the_packages_of_extras_are_hidden(tmp_path):
    modules = commands.list_modules_of_extras()
    given = os.environ | {"PYTHONPATH": str(write_hiding(tmp_path))}
    for module in modules[:2]:
        words = [sys.executable, "-c", f"import {module}"]
        done = subprocess.run(words, env=given, capture_output=True, text=True, check=False)
        assert "ModuleNotFoundError" in done.stderr


NEEDED = {
    "rigorous=true": "rigorous", "format=onnx": "onnx", "backend=dask": "dask",
    "backend=submitit": "slurm",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_needs_an_extra_says_so(name):
    for command in commands.list_commands((commands.ROOT / name).read_text()):
        for word in command.words:
            if word in NEEDED:
                assert command.need == f"extra {NEEDED[word]}", command.line


def test_every_extra_is_on_the_page_and_in_a_refusal():
    page = (commands.ROOT / "docs/install.md").read_text()
    code = "".join(path.read_text() for path in (commands.ROOT / "dperm_cli").rglob("*.py"))
    said = set(re.findall(r"say_how_to_install\('(\w+)'\)", code))
    said |= set(re.findall(r'_need\("\w+", "\w+", "\w+", "(\w+)"\)', code))
    assert said == set(commands.EXTRAS)
    for extra in commands.EXTRAS:
        assert f"\n| `{extra}` |" in page


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A folder with the package laid out as its wheel is, and nothing of the repository."""
    target = tmp_path_factory.mktemp("wheel")
    commands.lay_out_wheel(target)
    (target / "bin").mkdir()
    shim = target / "bin" / "dperm"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dperm_cli "$@"\n')
    shim.chmod(0o755)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("page", SHELL_PAGES)
def test_commands_run_in_an_empty_folder(page, wheel, tmp_path, tmp_path_factory):
    """One command of the page after the other, offline, with nothing but the installed package."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DPERM_") or "CACHE" in k}
    path = f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"
    given = {**kept, "PYTHONPATH": str(wheel), "PATH": path, "DPERM_OFFLINE": "1"}
    where = [sys.executable, "-c", "import dperm_cli; print(dperm_cli.__file__)"]
    home = subprocess.run(
        where, cwd=tmp_path, env=given, capture_output=True, text=True, check=True
    )
    assert Path(home.stdout.strip()).is_relative_to(wheel)
    write_shown(page.read_text(), tmp_path)
    failed = []
    hidden = write_hiding(tmp_path_factory.mktemp("hidden"))
    bare = given | {"PYTHONPATH": f"{hidden}{os.pathsep}{wheel}"}
    for command in commands.list_commands(page.read_text()):
        if command.runs:
            with_extras = command.need.startswith("extra ")
            done = subprocess.run(
                ["sh", "-c", command.typed], cwd=tmp_path, env=given if with_extras else bare,
                capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            if done.returncode:
                failed.append((command.typed, done.returncode, done.stderr[-300:]))
    assert failed == []


@pytest.mark.slow
def test_the_python_of_using_runs_and_prints(wheel, tmp_path):
    text = (commands.ROOT / "docs/using.md").read_text()
    (code,) = [content for language, content in commands.read_blocks(text) if language == "python"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(wheel)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "excess_risk_median" in done.stdout
    assert done.stdout.endswith("True\n")
