"""Plug-ins of a study: equal ones are one object; what is not dperm's own is built each time."""

from __future__ import annotations

import pytest

from dperm_cli.core import plugin_sources
from dperm_cli.runner.compose import study_plan
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
