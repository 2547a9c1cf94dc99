"""Validators refuse what merely looks like a number, and name the key."""

from __future__ import annotations

import math

import pytest

from dperm_cli.core import checks
from dperm_cli.core.errors import InputError, UnknownKey


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0, -1, True, "1", None, 0.0, [1]])
def test_positive_refuses(value):
    with pytest.raises(InputError, match=r"^epsilon=.*must be a finite number > 0"):
        checks.positive("epsilon", value)


def test_positive_accepts_numbers():
    assert checks.positive("epsilon", 3) == 3.0
    assert checks.positive("epsilon", 1e-300) == 1e-300
    assert isinstance(checks.positive("epsilon", 3), float)


def test_huge_integer_is_refused_not_raised():
    with pytest.raises(InputError):
        checks.positive("epsilon", 10**400)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", math.nan, math.inf, None])
def test_integer_refuses(value):
    with pytest.raises(InputError, match=r"^trials="):
        checks.integer("trials", value, low=1)


def test_integer_bounds_are_inclusive():
    assert checks.integer("k", 1, low=1, high=2) == 1
    assert checks.integer("k", 2.0, low=1, high=2) == 2
    with pytest.raises(InputError):
        checks.integer("k", 3, low=1, high=2)


@pytest.mark.parametrize("value", [-0.1, 1.0, 2, math.nan])
def test_half_open_interval(value):
    with pytest.raises(InputError, match=r"\[0, 1\)"):
        checks.number("delta", value, low=0.0, high=1.0, high_open=True)


def test_choice_suggests_the_nearest_name():
    with pytest.raises(InputError) as caught:
        checks.choice("loss", "logstic", ["logistic", "hinge"])
    assert caught.value.nearest == "logistic"
    assert "\n" not in str(caught.value)


def test_unknown_key_suggests_and_lists():
    error = UnknownKey("mechansim", ["mechanism", "dataset"])
    assert error.nearest == "mechanism"
    assert error.exit_code == 2
    assert "dataset, mechanism" in str(error)


def test_long_values_are_cut():
    assert len(str(InputError("k", "x" * 10_000, "must be short"))) < 200


def test_known_keys():
    checks.known_keys(["a", "b"], {"a", "b", "c"})
    checks.known_keys([], [])
    expected = r"^own\.stepz: unknown key \(did you mean 'steps'\?\); known: own\.end, own\.steps$"
    with pytest.raises(UnknownKey, match=expected):
        checks.known_keys(["end", "stepz", "x"], ["steps", "end"], "own.")
    with pytest.raises(UnknownKey, match=r"did you mean 'own\.radius'"):
        checks.known_keys(["radius"], ["steps"], guess=lambda key: f"own.{key}")
    with pytest.raises(UnknownKey, match=r"^a: unknown key; there is nothing to set$"):
        checks.known_keys(["a"], [])
