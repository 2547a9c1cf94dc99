"""What a terminal shows, what a pipe gets, and what the shell completes."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys

import pytest

from tests.doors._doors import (
    DPERM,
    SMALL,
    dperm,
    environment,
    mostly_slow,
    python,
    refused,
)

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]")
PROBLEM = ("dataset=diabetes", "constraint.radius=1")


def on_a_terminal(*args, cwd, columns=80, **more) -> str:
    """What a command shows on a terminal of so many columns, escapes included."""
    master, slave = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    more = {"TERM": "xterm-256color", **more}
    run = subprocess.Popen(
        [*DPERM, *map(str, args)],
        cwd=cwd,
        env=environment(cwd, **more),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        close_fds=True,
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 120)[0]:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert run.wait(30) == 0, shown
    return shown.decode()


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    return dperm("describe", *PROBLEM, cwd=tmp_path_factory.mktemp("describe"), code=0).stdout


def test_describe_has_at_most_forty_lines(described):
    lines = described.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


def test_describe_says_what_fits_what_needs_a_change_and_what_is_impossible(described):
    text = described.lower()
    fits = re.search(r"^.*\bfits?\b.*$", text, re.MULTILINE)
    needs = re.search(r"^.*\bneeds? a change\b.*$", text, re.MULTILINE)
    never = re.search(r"^.*\bimpossible\b.*$", text, re.MULTILINE)
    assert fits
    assert needs
    assert never
    assert fits.start() < needs.start() < never.start()
    assert fits.start() < text.index("noisy_gd") < needs.start()
    changes = text[needs.start() : never.start()]
    assert "output_perturbation" in changes
    assert "ridge" in changes


def test_describe_names_each_mechanism(described, tmp_path):
    """Fewer lines, but nobody is left out."""
    listed = dperm("list", "mechanism", cwd=tmp_path, code=0).stdout
    names = re.findall(r"^  ([a-z_]+) ", listed, re.MULTILINE)
    assert len(names) > 20
    assert [name for name in names if name not in described] in ([], ["non_private"])


def test_the_table_has_few_columns_and_all_of_them_on_request(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "study")
    report = ("report", "study", "html=false")
    every = dperm(*report, "columns=all", cwd=tmp_path, code=0).stdout
    chosen = dperm(*report, "columns=mechanism,epsilon", cwd=tmp_path, code=0).stdout
    for word in ("steps", "scale", "lower"):
        assert word in every
        assert word not in chosen.splitlines()[4]
    refused(dperm(*report, "columns=mechanisms", cwd=tmp_path), "mechanism")


def test_a_table_on_a_terminal_fits_it(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "study")
    shown = ESCAPES.sub("", on_a_terminal("report", "study", "html=false", cwd=tmp_path))
    lines = [line.split("\r")[-1] for line in shown.replace("\r\n", "\n").split("\n")]
    rows = [line for line in lines if "noisy_gd" in line and re.search(r"\d", line)]
    assert len(rows) >= 4
    assert max(map(len, rows)) <= 80


def test_a_pipe_gets_plain_text_without_rich(study_folder, tmp_path):
    """What draws bars and colours is imported only where there is a terminal."""
    shutil.copytree(study_folder, tmp_path / "study")
    script = (
        "import runpy, sys\nsys.argv = ['dperm', 'report', 'study', 'html=false']\n"
        "try:\n    runpy.run_module('dperm_cli', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print('RICH', 'rich' in sys.modules)"
    )
    done = python(script, cwd=tmp_path, FORCE_COLOR="1")
    assert "RICH False" in done.stdout
    assert not re.search(r"[\x1b\r\x08\u2500-\u257f\u2580-\u259f]", done.stdout + done.stderr)
    assert "noisy_gd" in done.stdout


@pytest.mark.slow
def test_long_work_shows_rate_and_time_left_on_a_terminal(tmp_path):
    keys = ("mechanism=noisy_gd", *SMALL[:3], "trials=500", "seed=range(0,10)", "out=study")
    shown = on_a_terminal("run", "-m", *keys, cwd=tmp_path, columns=100)
    assert "\r" in shown.replace("\r\n", "\n") or "\x1b[" in shown
    plain = ESCAPES.sub("", shown)
    assert re.search(r"\d (of|/) ?10|\d+/10", plain)
    assert re.search(r"/ ?s|per second|s/cell", plain)


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [{"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "dumb"}])
def test_a_dumb_terminal_gets_no_escapes(quiet, study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "study")
    assert "\x1b" not in on_a_terminal("report", "study", "html=false", cwd=tmp_path, **quiet)


@pytest.mark.parametrize(
    ("shell", "words"), [("zsh", ("compdef", "dperm")), ("fish", ("complete", "-c dperm"))]
)
def test_zsh_and_fish_get_a_script(shell, words, tmp_path):
    script = dperm("completion", shell, cwd=tmp_path, code=0).stdout
    for word in words:
        assert word in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", "script"], cwd=tmp_path, check=True, timeout=20)


def test_an_unknown_shell_names_the_known_ones(tmp_path):
    refused(dperm("completion", "csh", cwd=tmp_path), "bash", "zsh", "fish")


def completed(line: str, cwd) -> list[str]:
    """What bash offers for the last word of a line."""
    place = cwd / "bin"
    place.mkdir(exist_ok=True)
    (place / "dperm").write_text(f'#!/bin/sh\nexec {sys.executable} -m dperm_cli "$@"\n')
    (place / "dperm").chmod(0o755)
    script = (
        'eval "$(dperm completion bash)"\n'
        'COMP_LINE="$1"; COMP_POINT=${#1}; COMP_TYPE=9; COMP_KEY=9\n'
        'IFS=" " read -r -a COMP_WORDS <<< "$1"\n'
        '[[ "$1" == *" " ]] && COMP_WORDS+=("")\n'
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
        'name="$(complete -p dperm | sed "s/.*-F \\([^ ]*\\).*/\\1/")"\n'
        "compopt() { :; }\n"
        '"$name" dperm "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$COMP_CWORD - 1]}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    env = environment(cwd, PATH=f"{place}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", line],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [word for word in done.stdout.split("\n") if word]


def test_bash_completes_a_mechanism(tmp_path):
    """What the tests below stand on: the way they ask bash works today."""
    assert any("noisy_gd" in word for word in completed("dperm run mechanism=noisy_", tmp_path))


@pytest.mark.parametrize("verb", mostly_slow(["report", "status", "verify", "compare"], "report"))
def test_bash_completes_studies(verb, tmp_path):
    (tmp_path / "outputs" / "mine").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    words = completed(f"dperm {verb} outputs/mi", tmp_path)
    assert [word.rstrip("/") for word in words] == ["outputs/mine"]


@pytest.mark.parametrize("verb", mostly_slow(["report", "status", "verify", "compare"], "compare"))
def test_bash_completes_a_path_anywhere(verb, tmp_path):
    (tmp_path / "elsewhere" / "big").mkdir(parents=True)
    words = completed(f"dperm {verb} {tmp_path}/elsewhere/b", tmp_path)
    assert [word.rstrip("/") for word in words] == [f"{tmp_path}/elsewhere/big"]


def test_the_second_study_of_compare_is_completed_as_the_first(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    words = completed("dperm compare one tw", tmp_path)
    assert [word.rstrip("/") for word in words] == ["two"]


def test_bash_completes_a_plugin(own, tmp_path):
    words = completed("dperm run --plugin own.py mechanism=one_", tmp_path)
    assert any("one_step" in word for word in words)
    assert any("own.py" in word for word in completed("dperm run --plugin ow", tmp_path))
    keys = completed("dperm run --plugin own.py mechanism=one_step mechanism.st", tmp_path)
    assert any("mechanism.step_size" in word for word in keys)
