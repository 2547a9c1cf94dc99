"""Help appears at once: nothing heavy is imported for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "pyarrow",
    "matplotlib",
    "hydra",
    "omegaconf",
    "sklearn",
)
PROBE = """
import sys
from dperm_cli.cli import main
code = main({words!r})
loaded = [name for name in {heavy!r} if name in sys.modules]
assert code == 0, code
assert not loaded, loaded
"""


@pytest.mark.parametrize(
    "words",
    [["--help"], ["list"], ["list", "dataset"], ["run", "--help"], ["data", "--help"],
     ["completion", "bash"], ["completion", "--words", "run", "--", "mechanism="]],
)  # fmt: skip
def test_help_imports_nothing_heavy(words):
    probe = PROBE.format(words=words, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


QUICK = """
import os, sys
from dperm_cli.__main__ import main
before = set(sys.modules)
sys.argv = ["dperm", {word!r}]
code = main()
more = sorted(name for name in set(sys.modules) - before if not name.startswith("encodings"))
assert (code, more) == (0, []), (code, more)
"""


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_the_first_page_is_shown_without_imports(dperm, word):
    program = QUICK.format(word=word)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == dperm("--help").out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_the_first_page_on_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dperm_cli", "--help"], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("dperm: standard output cannot be written")


def test_run_help_names_groups_keys_and_examples(dperm):
    done = dperm("run", "--help")
    assert done.code == 0
    for word in ("mechanism", "noisy_sgd", "epsilon: 1.0", "constraint.radius", "examples", "-m"):
        assert word in done.out


def test_list_describes_every_choice(dperm):
    done = dperm("list")
    assert all(name in done.out for name in ("noisy_gd", "breast_cancer", "hinge", "l1_ball"))
    assert dperm("list", "mechansm").code == 2


def test_completion_words(dperm):
    assert "noisy_sgd" in dperm("completion", "--words", "run", "--", "mechanism=noisy_s").out
    assert dperm("completion", "--words", "--", "ru").out.split() == ["run"]
    asked = ("completion", "--words", "run", "mechanism=noisy_sgd", "--", "mechanism.ba")
    assert dperm(*asked).out.split() == ["mechanism.batch="]
    offered = dperm("completion", "--words", "describe", "--", "privacy.relation=").out.split()
    assert offered == ["privacy.relation=replace_one", "privacy.relation=add_remove"]
    words = ("completion", "--words", "run", "dataset=csv", "--", "dataset.header=")
    assert dperm(*words).out.split() == [f"dataset.header={v}" for v in ("true", "false", "auto")]
    words = ("completion", "--words", "run", "--", "force=")
    assert dperm(*words).out.split() == ["force=true", "force=false"]
    words = ("completion", "--words", "run", "--", "epsilon=")
    assert dperm(*words).out.split() == []


def test_list_shows_a_users_own_files_within_the_page(dperm, tmp_path):
    (tmp_path / "mine" / "loss").mkdir(parents=True)
    (tmp_path / "mine" / "loss" / "own.yaml").write_text("# words of mine\nname: hinge\n")
    for words in (("--config-dir", "mine", "loss"), ("loss", "--config-dir=mine")):
        done = dperm("list", *words)
        assert done.code == 0
        assert any(line.split() == ["own", "words", "of", "mine"] for line in done.out.splitlines())
    every = dperm("list", "dataset", "constraint", "loss", "mechanism", "privacy").out
    assert max(map(len, every.splitlines())) <= 100
    for words, part in [(("--config-dir",), "existing folder"), (("--config", "x"), "option")]:
        done = dperm("list", *words)
        assert (done.code, done.out) == (2, "")
        assert part in done.err


BASH = """
eval "$(dperm completion bash)"
COMP_LINE="dperm run mechanism=noisy_s"; COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=(dperm run mechanism = noisy_s); COMP_CWORD=4
_dperm; echo "${{COMPREPLY[@]}}"
"""


def test_completion_works_in_bash(tmp_path):
    """The function that bash calls, with '=' a word break as it is by default."""
    shim = tmp_path / "dperm"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dperm_cli "$@"\n')
    shim.chmod(0o755)
    script = f'PATH="{tmp_path}:$PATH"\n' + BASH.format()
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["noisy_sgd"], done.stderr


def test_list_shows_the_keys_of_one_thing(dperm, tmp_path):
    done = dperm("list", "dataset", "csv")
    assert done.code == 0
    assert "dataset.delimiter" in done.out
    assert "svmlight" not in done.out
    both = dperm("list", "mechanism", "newton", "noisy_gd", "loss", "hinge").out
    assert [word for word in ("newton", "noisy_gd", "hinge") if f"  {word}  " in both] == [
        "newton", "noisy_gd", "hinge",
    ]  # fmt: skip
    assert "noisy_sgd" not in both
    (tmp_path / "mine" / "dataset").mkdir(parents=True)
    (tmp_path / "mine" / "dataset" / "hosp.yaml").write_text("name: csv\ndelimiter: ';'\n")
    own = dperm("list", "--config-dir", "mine", "dataset", "hosp").out
    assert "dataset.delimiter: ';'" in own
    assert "dataset.header: auto" in own, "what the file leaves out"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("list csv", "group=csv: is a dataset: say dperm list dataset csv"),
        ("list dataset cvs", "(did you mean 'csv'?)"),
        ("list dataset noisy_gd", "dataset=noisy_gd: must be one of"),
        ("run dataset=cvs --help", "(did you mean 'csv'?)"),
        ("run --config-dir nowhere dataset=mine --help", "must be an existing folder"),
    ],
)
def test_names_that_there_are_not(dperm, words, said):
    done = dperm(*words.split())
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_help_has_the_keys_of_what_is_named(dperm, tmp_path):
    usual = dperm("run", "--help").out
    assert "with dataset=breast_cancer:" in usual
    assert "dataset.delimiter" not in usual
    for words in (("run", "dataset=csv", "--help"), ("run", "--help", "dataset=[csv,npz]")):
        page = dperm(*words).out
        assert "dataset.delimiter" in page
        assert "with dataset=breast_cancer:" not in page
        assert "with mechanism=auto:" in page, "of the other groups the defaults"
    page = dperm("describe", "mechanism=newton", "epsilon=1", "-h").out
    assert "mechanism.output: last" in page
    assert dperm("describe", "-h").out + "\nkeys" == page[: len(dperm("describe", "-h").out) + 5]
    (tmp_path / "mine" / "dataset").mkdir(parents=True)
    (tmp_path / "mine" / "dataset" / "hosp.yaml").write_text("name: csv\n")
    page = dperm("run", "--config-dir", "mine", "dataset=hosp", "--help").out
    assert "with dataset=hosp:" in page
    assert "dataset.delimiter" in page
    assert dperm("audit", "mechanism=all", "--help").code == 0
