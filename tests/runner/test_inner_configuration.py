"""Keys of the mechanism inside a mechanism."""

from __future__ import annotations

import pytest

from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse


def cells(*words):
    return study_plan.plan_study(parse(list(words))).cells


def test_defaults_and_keys_of_the_inner_mechanism():
    (cell,) = cells("mechanism=localization", "mechanism.inner.steps=7", "ridge=0.1")
    assert cell.mechanism.inner.steps == 7
    inner = cell.config["mechanism"]["inner"]
    assert inner["name"] == "noisy_gd"
    assert inner["averaging"] == "auto"


def test_order_does_not_matter_and_forms_are_one():
    a = cells("mechanism.inner.steps=7", "mechanism.inner=noisy_sgd", "mechanism=localization")
    b = cells("mechanism=localization", "mechanism.inner={name: noisy_sgd, steps: 7}")
    assert a[0].config == b[0].config
    assert type(a[0].mechanism.inner).__name__ == "NoisySgd"


def test_sweeps_over_inner_mechanisms_and_their_keys():
    found = cells(
        "-m", "mechanism=high_probability", "mechanism.inner=noisy_gd,noisy_sgd",
        "mechanism.inner.steps=3,5",
    )  # fmt: skip
    made = [(type(c.mechanism.inner).__name__, c.mechanism.inner.steps) for c in found]
    assert made == [("NoisyGd", 3), ("NoisyGd", 5), ("NoisySgd", 3), ("NoisySgd", 5)]


def test_deeper_nesting_and_calibration():
    (cell,) = cells(
        "mechanism=localization", "mechanism.inner=high_probability",
        "mechanism.inner.inner=noisy_sgd", "mechanism.inner.inner.steps=9", "calibration=paper",
    )  # fmt: skip
    assert cell.mechanism.inner.inner.steps == 9
    assert cell.mechanism.inner.inner.calibration == "paper"


@pytest.mark.parametrize(
    ("word", "key", "kind"),
    [
        ("mechanism.inner.steps=-1", "mechanism.inner.steps", InputError),
        ("mechanism.inner.stepz=1", "mechanism.inner.stepz", UnknownKey),
        ("mechanism.inner={name: noisy_gd, stepz: 1}", "mechanism.inner.stepz", UnknownKey),
        ("mechanism.inner=nobody", "mechanism.inner", InputError),
        ("mechanism.inner=3", "mechanism.inner", InputError),
        ("mechanism.inner.name=noisy_sgd", "mechanism.inner.name", UnknownKey),
        ("mechanism.inner.inner.steps=3", "mechanism.inner.inner.steps", UnknownKey),
    ],
)
def test_errors_name_the_key_that_was_typed(word, key, kind):
    with pytest.raises(kind) as caught:
        cells("mechanism=localization", word)
    assert caught.value.key == key
