"""Help appears at once: nothing heavy is imported for it."""

from __future__ import annotations

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
