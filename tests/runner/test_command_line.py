"""Command-line words: Hydra's grammar, one line for whatever does not fit."""

from __future__ import annotations

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose.command_line import parse


def settings(*words):
    return {s.key: s.values for s in parse(list(words)).settings}


def test_scalars_and_lists():
    found = settings("epsilon=[0.1,1]", "mechanism=noisy_gd", "force=true", "dataset.path=a b.csv")
    assert found == {
        "epsilon": ([0.1, 1],),
        "mechanism": ("noisy_gd",),
        "force": (True,),
        "dataset.path": ("a b.csv",),
    }


def test_sweeps_need_multirun():
    assert settings("-m", "epsilon=0.1,1,10")["epsilon"] == (0.1, 1, 10)
    assert settings("-m", "trials=range(1,4)")["trials"] == (1, 2, 3)
    with pytest.raises(InputError, match=r"epsilon=0.1,1: several values need -m"):
        parse(["epsilon=0.1,1"])


def test_flags():
    request = parse(["-m", "--config-dir", "here", "--cfg", "job", "seed=3"])
    assert (request.multirun, request.config_dir, request.show) == (True, "here", True)


def test_quoted_number_stays_text():
    assert settings("epsilon='1'")["epsilon"] == ("1",)


def test_label_maps_have_text_keys():
    assert settings("dataset.labels={1: 1, 2: -1}")["dataset.labels"] == ({"1": 1, "2": -1},)


@pytest.mark.parametrize(
    "word", ["epsilon", "~epsilon", "a@b=c", "epsilon=interval(0,1)", "--nope", "=3", "epsilon=[1,"]
)
def test_refused_in_one_line(word):
    with pytest.raises(InputError) as caught:
        parse([word])
    assert "\n" not in str(caught.value)
