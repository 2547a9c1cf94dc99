"""Completion: the words that are offered, and the scripts of three shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from dperm_cli.core import completion

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def offered(dperm, tmp_path):
    """Offered words for the last of some words, in a folder with a study, a model and rows."""
    (tmp_path / "outputs" / "mine").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "model.npz").touch()
    (tmp_path / "rows.csv").touch()
    (tmp_path / ".hidden").touch()

    def words(*typed: str) -> list[str]:
        return dperm("completion", "--words", *typed[:-1], "--", typed[-1]).out.split()

    return words


@pytest.mark.parametrize("verb", ["report", "status", "verify", "compare", "merge"])
def test_studies_and_paths(offered, verb):
    every = offered(verb, "")
    assert {"outputs/mine", "other/", "outputs/", "rows.csv"} <= set(every)
    assert offered(verb, "outputs/") == ["outputs/mine"]
    assert offered(verb, "oth") == ["other/"]
    assert offered(verb, "none/such/") == []
    assert ".hidden" not in every


def test_models_and_rows(offered):
    assert {"model.npz", "rows.csv", "out=", "columns="} <= set(offered("predict", ""))
    assert offered("predict", "m") == ["model.npz"]
    assert offered("predict", "model.npz", "./ro") == ["./rows.csv"]
    assert "rows.csv" in offered("ask", "ro")
    assert {"model.npz", "answers=", "format=", "out="} <= set(offered("statement", ""))
    assert offered("statement", "model.npz", "answers=ro") == ["answers=rows.csv"]


def test_values_that_are_paths(offered):
    assert offered("run", "dataset=csv", "dataset.path=ro") == ["dataset.path=rows.csv"]
    assert offered("merge", "a", "out=oth") == ["out=other/"]
    assert offered("run", "--config-dir", "o") == ["other/", "outputs/"]


def test_a_users_own_choices_and_their_keys(offered, tmp_path):
    (tmp_path / "mine" / "mechanism").mkdir(parents=True)
    (tmp_path / "mine" / "mechanism" / "quick.yaml").write_text("name: noisy_gd\nsteps: 5\n")
    own = ("--config-dir", "mine")
    assert offered("run", *own, "mechanism=qu") == ["mechanism=quick"]
    assert "mechanism.momentum=" in offered("run", *own, "mechanism=quick", "mechanism.")
    assert offered("list", *own, "mechanism", "qui") == ["quick"]


def test_choices_of_a_group_that_was_typed(offered):
    assert offered("list", "dataset", "cs") == ["csv"]
    assert offered("list", "data") == ["dataset"]
    assert offered("completion", "") == list(SHELLS)
    assert "mechanism=newton" in offered("ask", "mechanism=new")


def test_a_shell_that_is_not_known(dperm):
    done = dperm("completion", "powershell")
    assert (done.code, done.out) == (2, "")
    assert "must be one of bash, zsh, fish" in done.err


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_printed_and_offer_the_words(dperm, shell):
    script = dperm("completion", shell).out
    assert script.strip() == completion.read_script(shell)
    assert "dperm completion --words" in script
    brackets = [script.count(c) for c in "(){}"]
    assert brackets[0] == brackets[1]
    assert brackets[2] == brackets[3]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_takes_its_script(dperm, shell, tmp_path):
    need(shell)
    (tmp_path / "script").write_text(dperm("completion", shell).out)
    flags = {"bash": ["--norc", "-n"], "zsh": ["-f", "-n"], "fish": ["--no-config", "--no-execute"]}
    done = call([shell, *flags[shell], "script"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# How each shell is asked what it would complete; compadd of zsh works inside its line editor only.
ASK = {
    "bash": """
eval "$(dperm completion bash)"
COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'
_dperm; printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """
compdef() {{ : }}; eval "$(dperm completion zsh)"
compadd() {{ [[ $1 == -S ]] && shift 2; shift; print -rl -- "$@" }}
words=({line}); CURRENT=$#words; PREFIX=$words[-1]
_dperm
""",
    "fish": """
dperm completion fish | source
complete -C '{line}'
""",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dperm run mechanism=noisy_s", "mechanism=noisy_sgd"),
        ("dperm list dataset cs", "csv"),
        ("dperm predict mo", "model.npz"),
        ("dperm predict model.npz two", "two words.csv"),
    ],
)
def test_what_a_shell_completes(shell, line, expected, tmp_path):
    need(shell)
    (tmp_path / "model.npz").touch()
    (tmp_path / "two words.csv").touch()
    folder = tmp_path / "bin"
    folder.mkdir()
    shim = folder / "dperm"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dperm_cli "$@"\n')
    shim.chmod(0o755)
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}
    done = call([shell, *flags[shell], "-c", ASK[shell].format(line=line)], tmp_path, folder)
    if shell == "bash":  # it is given what follows the last '=', with blanks quoted
        expected = expected.rpartition("=")[2].replace(" ", "\\ ")
    assert [word for word in done.stdout.splitlines() if word] == [expected], done.stderr


def need(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def call(words, here, folder=None):
    path = os.pathsep.join(filter(None, [folder and str(folder), os.environ["PATH"]]))
    environment = {**os.environ, "PATH": path, "HOME": str(here)}
    return subprocess.run(
        words, cwd=here, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
