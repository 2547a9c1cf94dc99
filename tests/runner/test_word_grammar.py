"""Words of a command line: what is read without Hydra is what Hydra reads."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dperm_cli.runner.compose import word_grammar
from dperm_cli.runner.compose.word_grammar import Word

PIECES = [
    "a", "A_b", "noisy_gd", "0", "1", "-3", "+2", "007", "10", "1.5", "0.1", ".5", "2.", "1e-6",
    "1E5", "1e400", "1_000", "-0", "-0.0", "null", "NULL", "true", "False", "nan", "inf", "-inf",
    "none", "/", "/tmp", "out/x", "a-b", "a.b.c", "1a", "a1", "1.2.3", "-", "+", "_", "__", "é",
    " ", "'1'", "a b", "$", "%", "a//b", "a/", "./a", "../a", "~", "x.npz", "1-2", "e5", "E",
    "123456789012345678901",
]  # fmt: skip
KEYS = ["epsilon", "a.b", "dataset.path", "_x", "a1.b2", "a.1", "A", "a/b", "+a", "~a", "", "a@b"]


def judge(word: str) -> None:
    found = word_grammar._read_plain_word(word)
    if found is not None:
        assert repr(found) == repr(word_grammar._read_by_hydra(word))  # types and signs of 0 too


@pytest.mark.parametrize("key", KEYS)
def test_every_piece_alone(key):
    for piece in PIECES:
        judge(f"{key}={piece}")


@given(st.sampled_from(KEYS), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4),
       st.sampled_from([",", "", "/", "-", "."]))  # fmt: skip
def test_pieces_put_together(key, pieces, between):
    judge(f"{key}={between.join(pieces)}")


@given(st.text(alphabet="aeE_nulNULtrinf019.-+/,=[]{}'\" $", max_size=9))
def test_any_text(text):
    judge(f"epsilon={text}")


def test_what_is_read_without_hydra():
    words = {
        "epsilon=0.1": (0.1,), "trials=3": (3,), "mechanism=noisy_gd": ("noisy_gd",),
        "out=outputs/a-1": ("outputs/a-1",), "delta=1e-6": (1e-6,), "epsilon=0.1,1": (0.1, 1),
        "force=true": (True,), "save=False,NULL": (False, None),
    }  # fmt: skip
    for word, values in words.items():
        key = word.partition("=")[0]
        assert word_grammar._read_plain_word(word) == Word(key, values, len(values) > 1)


def test_a_looked_up_composition_imports_no_hydra():
    program = (
        "import sys\n"
        "from dperm_cli.runner.compose import study_plan\n"
        "study_plan.parse_request(['epsilon=0.3', 'trials=2'])\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'hydra', 'omegaconf'}))\n"
    )
    for _ in range(2):  # the first keeps what Hydra composed
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
