"""Plug-ins of a study: equal ones are one object; what is not dperm's own is built each time."""

from __future__ import annotations

import pytest

from dperm_cli.core import plugin_sources
from dperm_cli.core.errors import InputError
from dperm_cli.runner.compose import cell_schema, study_plan
from dperm_cli.runner.compose.command_line import parse

OWN = """
from dataclasses import dataclass

from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd


@dataclass(frozen=True)
class Counted(NoisyGd):
    name = "counted"
"""


def plan(*words):
    return study_plan.plan_study(parse(["-m", *words])).cells


def test_equal_mechanisms_of_a_study_are_one_object():
    one, two, other = plan("mechanism=noisy_gd", "epsilon=1,2", "mechanism.steps=3") + plan(
        "mechanism=noisy_gd", "mechanism.steps=4"
    )
    assert one.mechanism is two.mechanism
    assert one.mechanism.steps == 3
    assert other.mechanism.steps == 4


@pytest.mark.parametrize("word", ["mechanism.steps=3,3.0", "calibration=tight,paper"])
def test_what_differs_is_told_apart(word):
    cells = plan("mechanism=noisy_gd", word, "epsilon=1,2")
    assert len({id(cell.mechanism) for cell in cells}) == len(cells) // 2


def test_a_mechanism_from_outside_is_built_for_each_cell(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    with plugin_sources.use_plugins():
        plugin_sources.add(str(tmp_path / "own.py"))
        one, two = plan("mechanism=counted", "epsilon=1,2")
        inside, again = plan("mechanism=huberized", "mechanism.inner=counted", "loss=hinge",
                             "epsilon=1,2")  # fmt: skip
    assert one.mechanism is not two.mechanism
    assert inside.mechanism is not again.mechanism


SEEDED = [
    ["mechanism=noisy_gd", "seed=0,3,3.0,7", "epsilon=1,2"],
    ["mechanism=noisy_gd", "epsilon=1,2", "seed=0,3", "trials=1,2", "lasso=0,0.1"],
    ["seed=1,2", "dataset=synthetic_logistic", "dataset.n=40,50", "mechanism=noisy_gd,newton"],
    ["mechanism=noisy_gd", "seed=1,2", "tune={ridge: [0, 0.1]}", "epsilon=1"],
    ["mechanism=exponential", "sampler=auto", "privacy=pure", "seed=1,2", "epsilon=1,2"],
]  # fmt: skip


@pytest.mark.parametrize("words", SEEDED)
def test_cells_that_differ_in_their_seed_are_as_if_each_were_built_alone(words, monkeypatch):
    together = plan(*words)
    monkeypatch.setattr(cell_schema, "_MOST_FIRSTS", 0)
    alone = plan(*words)
    assert len({cell.seed for cell in alone}) >= 2
    for one, other in zip(together, alone, strict=True):
        assert one.config == other.config
        assert list(one.config) == list(other.config)
        assert repr(one) == repr(other)


@pytest.mark.parametrize("bad", ["-1", "x", "1.5", str(2**63), "true"])
def test_a_seed_is_checked_wherever_it_stands(bad):
    with pytest.raises(InputError) as alone:
        plan("mechanism=noisy_gd", f"seed={bad}")
    with pytest.raises(InputError) as last:
        plan("mechanism=noisy_gd", f"seed=1,2,{bad}")
    assert str(last.value) == str(alone.value)


def test_a_mechanism_from_outside_is_built_for_each_seed(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    with plugin_sources.use_plugins():
        plugin_sources.add(str(tmp_path / "own.py"))
        one, two = plan("mechanism=counted", "seed=1,2")
    assert one.mechanism is not two.mechanism
