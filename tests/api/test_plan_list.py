"""Plans show themselves shortly, in a shell and in a notebook; nothing of them is lost."""

from __future__ import annotations

import copy
import pickle

import pytest

from dperm_cli import plans


@pytest.fixture(scope="module")
def two():
    return plans(mechanism=["noisy_gd", "noisy_sgd"], epsilon=2, progress=False)


def test_a_plan_is_one_line(two):
    for plan in two:
        text = repr(plan)
        assert len(text) <= 120
        assert "\n" not in text
        for word in ("approx", "epsilon", f"{plan.steps} steps", "noise scale"):
            assert word in text


def test_several_are_a_line_each_with_what_they_are_of(two):
    lines = repr(two).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("noisy_gd on breast_cancer: Plan(approx, epsilon ")
    assert lines[1].startswith("noisy_sgd on breast_cancer: Plan(")


def test_a_notebook_shows_a_table(two):
    shown = two._repr_html_()
    assert "<table" in shown
    assert len(shown) < 4000
    for word in ("noisy_gd", "noisy_sgd", "noise_scale", "steps", "approx"):
        assert word in shown


def test_they_are_a_list_of_plans(two):
    assert isinstance(two, list)
    assert [type(plan).__name__ for plan in two] == ["Plan", "Plan"]
    assert pickle.loads(pickle.dumps(two)) == two == copy.copy(two) == list(two)
    assert repr(pickle.loads(pickle.dumps(two))) == repr(two)
    assert len(repr(two[:1]).splitlines()) == 1
    assert repr(plans(mechanism="noisy_gd", progress=False)[:0]) == "[]"
