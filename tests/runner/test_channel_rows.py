"""Rows about channels: right numbers, and one line for bad settings."""

from __future__ import annotations

import math

import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.shuffling import find_local_epsilon
from dperm_cli.results.records.schema import normalise
from dperm_cli.runner.cells.channel_rows import make_rows

SQUARE = [[1, 1], [1, -1], [-1, 1], [-1, -1]]


def row(settings):
    """The one row of a channel."""
    (found,) = make_rows(settings)
    return found


def test_a_row_has_information_epsilon_and_a_check_of_both():
    found = row({"channel": "l_1", "p": 10, "multiplier": 2})
    assert found["information_accounted"] == pytest.approx(0.855868, abs=1e-6)
    assert found["epsilon_accounted"] == pytest.approx(5.79901, abs=1e-5)
    assert found["settings"]["leading"] == pytest.approx(1.25)
    assert found["settings"]["off"] < 1e-6
    assert found["settings"]["bias"] < 1e-12
    assert (found["status"], found["guarantee"]) == ("planned", "local")
    normalise(found)  # every column is one of a record's


def test_levels_and_polytopes_name_the_same_channel():
    two = row({"channel": "l_inf", "p": 2, "multiplier": 3})
    for key in ("information", "epsilon"):
        same = row({"channel": "l_inf", "p": 2, key: two[f"{key}_accounted"]})
        assert same["channel_multiplier"] == pytest.approx(3.0)
    square = row({"channel": "polytope", "vertices": SQUARE, "multiplier": 3})
    assert square["information_accounted"] == pytest.approx(two["information_accounted"])
    told = row({"channel": "polytope", "vertices": SQUARE,
                "information": two["information_accounted"]})  # fmt: skip
    assert told["channel_multiplier"] == pytest.approx(3.0)


def test_no_iteration_where_answers_are_many_or_a_continuum():
    for settings in ({"channel": "l_inf", "p": 2000}, {"channel": "l_2", "p": 3}):
        assert row({**settings, "multiplier": 9})["settings"]["off"] is None


@pytest.mark.parametrize("shape", ["l_2", "privunit", "privunit_g"])
def test_the_error_that_is_drawn_is_the_exact_one(shape):
    asked = {"channel": shape, "p": 20, "epsilon": 3, "draws": 20_000}
    found = row(asked)["settings"]
    assert found["drawn_ratio"] == pytest.approx(1.0, abs=0.02)
    assert found["drawn_bias"] < 3.0
    assert found["squared_error"] == pytest.approx(row({**asked, "seed": 1})["settings"]
                                                   ["squared_error"])  # fmt: skip
    assert found["drawn_error"] == row(asked)["settings"]["drawn_error"]
    assert found["drawn_error"] != row({**asked, "seed": 1})["settings"]["drawn_error"]
    assert 0.0 < found["side_share"] <= 1.0


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"channel": "l_1", "p": 3, "epsilon": 1, "draws": 9}, "draws"),
        ({"channel": "l_2", "p": 3, "epsilon": 1, "draws": 0}, "draws"),
        ({"channel": "l_1", "p": 3}, "channel"),
        ({"channel": "l_1", "p": 3, "multiplier": 2, "epsilon": 1}, "channel"),
        ({"channel": "l_3", "p": 3, "multiplier": 2}, "channel"),
        ({"channel": "l_1", "multiplier": 2}, "p"),
        ({"channel": "l_1", "p": 3, "multiplier": -2}, "multiplier"),
        ({"channel": "l_1", "p": 3, "multiplier": 0.5}, "multiplier"),
        ({"channel": "l_1", "p": 3, "noise": 2}, "noise"),
        ({"channel": "polytope", "multiplier": 2}, "vertices"),
        ({"channel": "polytope", "vertices": [[1, 2], [3]], "multiplier": 2}, "vertices"),
        ({"channel": "polytope", "vertices": SQUARE, "multiplier": 0.5}, "multiplier"),
        ({"channel": "polytope", "vertices": SQUARE, "epsilon": 1}, "epsilon"),
        ({"channel": "polytope", "vertices": SQUARE, "information": math.log(4)}, "information"),
    ],
)
def test_bad_settings(settings, key):
    with pytest.raises(InputError) as error:
        row(settings)
    assert str(error.value).startswith(key)


def test_a_polytope_without_symmetry_is_refused():
    with pytest.raises(Unsupported, match="different lengths"):
        row({"channel": "polytope", "vertices": [[1, 0], [-2, 0]], "multiplier": 2})


def mean(**changes):
    asked = {"n": 10_000, "p": 50, "epsilon": 1, "trust": "shuffled", "channel": "privunit"}
    return row({key: value for key, value in {**asked, **changes}.items() if value is not None})


def test_the_error_of_a_mean_by_who_is_trusted():
    local, shuffled = mean(trust="local"), mean()
    central = mean(trust="central", channel="gaussian")
    one = row({"channel": "privunit", "p": 50, "epsilon": 1})["settings"]["squared_error"]
    assert local["settings"]["mean_error"] == pytest.approx(one / 10_000)
    assert (local["guarantee"], local["delta"]) == ("local", 0.0)
    level = find_local_epsilon(1.0, 1e-8, 10_000)
    again = row({"channel": "privunit", "p": 50, "epsilon": level})["settings"]["squared_error"]
    assert shuffled["settings"]["local_epsilon"] == level
    assert shuffled["settings"]["mean_error"] == pytest.approx(again / 10_000)
    assert (shuffled["guarantee"], shuffled["delta"]) == ("approx", 1e-8)
    clones = 9999 * math.exp(-level) / math.log(1e8)
    assert shuffled["settings"]["clones_per_log"] == pytest.approx(clones)
    noise = 2.0 / (10_000 * gaussian_profile.mu(1.0, 1e-8))
    assert central["settings"]["mean_error"] == pytest.approx(50 * noise**2)
    assert central["settings"]["local_epsilon"] is None
    assert central["channel"] is None
    for found in (local, shuffled, central):
        normalise(found)
    assert mean(delta=1e-3)["settings"]["local_epsilon"] > level


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"n": 1}, "n"),
        ({"n": 10**10}, "n"),
        ({"p": None}, "p"),
        ({"trust": "nobody"}, "trust"),
        ({"trust": None}, "trust"),
        ({"trust": "central"}, "channel"),
        ({"channel": "l_1"}, "channel"),
        ({"channel": "gaussian"}, "channel"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1000}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"users": 5}, "users"),
    ],
)
def test_bad_settings_of_a_mean(changes, key):
    with pytest.raises(InputError) as error:
        mean(**changes)
    assert str(error.value).startswith(key)
