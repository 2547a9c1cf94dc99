"""Keys of Python and words of the command line mean the same; what makes no sense is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dperm_cli
from dperm_cli.api.python_values import make_setting, write_word
from dperm_cli.runner.compose.command_line import parse
from tests.api.conftest import SMALL

NUMBERS = st.one_of(
    st.integers(-(10**15), 10**15), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
TEXTS = st.text("abcXYZ019_-./ :,=(){}[]'\"@äß", max_size=12).filter(str.strip)
VALUES = st.one_of(st.none(), NUMBERS, TEXTS)


@given(st.one_of(VALUES, st.lists(VALUES, min_size=1, max_size=3)))
def test_a_value_is_read_back_from_its_word(value):
    setting = make_setting("dataset.title", value)
    (found,) = parse([write_word(setting)]).settings
    assert found == setting
    assert repr(found) == repr(setting)  # 1 is not 1.0, and neither is True


@given(st.lists(NUMBERS, min_size=1, max_size=3))
def test_a_list_is_an_axis_of_words_too(values):
    setting = make_setting("epsilon", values)
    (found,) = parse(["-m", write_word(setting, sweep=True)]).settings
    assert found.values == tuple(values)


def plan_noise(*words, **keys) -> list[float]:
    return [plan.noise_scale for plan in dperm_cli.plans(*words, **keys, progress=False)]


WAYS = {
    "words": (("mechanism=noisy_gd", "mechanism.steps=[10,20]", "constraint.radius=2"), {}),
    "a list of words": (
        (["mechanism=noisy_gd", "mechanism.steps=10,20", "constraint.radius=2"],),
        {},
    ),
    "keys": (
        (),
        {"mechanism": "noisy_gd", "mechanism.steps": [10, 20], "constraint.radius": 2},
    ),
    "maps": (
        (),
        {
            "mechanism": {"name": "noisy_gd", "steps": (10, 20)},
            "constraint": {"name": "l2_ball", "radius": np.float64(2)},
        },
    ),
    "numpy": (
        ("mechanism=noisy_gd",),
        {"mechanism.steps": np.array([10, 20]), "constraint": {"radius": 2}},
    ),
    "objects": (
        (),
        {
            "mechanism": [dperm_cli.mechanisms.NoisyGd(steps=n) for n in (10, 20)],
            "constraint": dperm_cli.L2Ball(radius=2.0, p=1),
        },
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_say_the_same(way):
    words, keys = WAYS[way]
    expected = plan_noise("dataset=diabetes", *WAYS["words"][0])
    assert plan_noise("dataset=diabetes", *words, **keys) == expected
    assert len(set(expected)) == 2


def test_a_class_and_an_object_with_another_inside():
    made = dperm_cli.mechanisms.Localization(inner=dperm_cli.mechanisms.NoisyGd(steps=30))
    words = ("mechanism=localization", "mechanism.inner=noisy_gd", "mechanism.inner.steps=30")
    assert plan_noise(mechanism=made, ridge=0.1) == plan_noise(*words, ridge=0.1)
    by_class = plan_noise(mechanism=dperm_cli.mechanisms.NoisyGd)
    assert by_class == plan_noise(mechanism="noisy_gd")


def test_keys_give_the_records_of_the_command_line(run_small, tmp_path):
    from dperm_cli import cli

    words = ("mechanism=noisy_gd", "epsilon=[3,30]", "constraint.radius=1", "loss=squared")
    assert cli.main(["run", "dataset=diabetes", *words, "trials=2", f"out={tmp_path}/cli"]) == 0
    run_small(
        dataset="diabetes", loss="squared", mechanism="noisy_gd", epsilon=[3, 30],
        constraint={"radius": 1},
    )  # fmt: skip
    for name in ("table.csv", "ledger.json"):
        one, other = (tmp_path / folder / name for folder in ("cli", "study"))
        assert one.read_bytes() == other.read_bytes()


BAD = {
    "a number out of range": ((), {"epsilon": -1}, "epsilon=-1"),
    "an unknown key": ((), {"epsilom": 1}, "did you mean 'epsilon'"),
    "a key of another group": ((), {"radius": 1}, r"constraint\.radius"),
    "a key twice": (("epsilon=1",), {"epsilon": 2}, "twice"),
    "no text": ((3,), {}, "overrides"),
    "a matrix": ((), {"epsilon": np.ones((2, 2))}, "epsilon=<ndarray>"),
    "an object of no kind": ((), {"mechanism": object()}, "mechanism=<object>"),
    "an object of another kind": ((), {"mechanism": dperm_cli.Logistic()}, "is no mechanism"),
    "text where a number stands": ((), {"epsilon": "1"}, "epsilon=1"),
    "an interpolation": ((), {"out": "${oc.env:HOME}"}, "interpolations"),
    "--cfg": (("--cfg", "job"), {}, "option of `dperm run`"),
    "a plug-in that is no name": ((), {"plugins": [3]}, "plugins=<int>"),
    "two problems": ((), {"X": [[1.0]], "y": [1], "dataset.task": "location"}, "no target"),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_makes_no_sense_is_refused(fault, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words, keys, said = BAD[fault]
    with pytest.raises(dperm_cli.InputError, match=said) as caught:
        dperm_cli.run(*words, **{"out": tmp_path / "out", **keys})
    assert type(caught.value) is dperm_cli.InputError
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_yaml_files(tmp_path):
    folder = tmp_path / "conf" / "mechanism"
    folder.mkdir(parents=True)
    source = Path(__file__).parents[2] / "conf" / "mechanism" / "noisy_gd.yaml"
    (folder / "short.yaml").write_text(source.read_text().replace("steps: auto", "steps: 10"))
    (plan,) = dperm_cli.plans(*SMALL, config_dir=tmp_path / "conf", mechanism="short")
    assert plan.steps == 10


def test_what_a_plan_cannot_promise_is_unsupported():
    with pytest.raises(dperm_cli.Unsupported, match="ridge"):
        dperm_cli.plans(*SMALL, mechanism="output_perturbation", progress=False)
