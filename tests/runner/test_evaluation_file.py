"""The evaluation that lies beside a model: that of the model, and of no other program."""

from __future__ import annotations

import json

import pytest

from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import InputError
from dperm_cli.runner.models.evaluated_release import read_beside

KEYS = ("level_of_intervals", "metrics", "event")  # of every evaluation


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 100_000, '{"in_words": 3}', '{"accuracy": 0.9}', "{}", "\x00",
             json.dumps({"in_words": 3, **dict.fromkeys(KEYS)})],
)  # fmt: skip
def test_a_file_that_is_no_evaluation_is_refused(text, tmp_path):
    (tmp_path / "evaluation.json").write_text(text)
    with pytest.raises(InputError) as refused:
        read_beside(str(tmp_path / "model.npz"))
    said = str(refused.value)
    assert said.startswith("evaluation.json=")  # the path, of which a long one is cut short
    assert said.endswith(
        "/evaluation.json: is no evaluation that dperm wrote: move it, or the model, to another "
        "folder"
    )


def test_an_evaluation_of_another_model_is_refused(tmp_path):
    model = tmp_path / "model.npz"
    model.write_bytes(b"one")
    found = {"in_words": {}, "model_sha256": hash_sha256(b"one"), **dict.fromkeys(KEYS)}
    (tmp_path / "evaluation.json").write_text(json.dumps(found))
    assert read_beside(str(model)) is not None
    model.write_bytes(b"two")
    with pytest.raises(InputError, match="is the evaluation of another model: move it, or the"):
        read_beside(str(model))
