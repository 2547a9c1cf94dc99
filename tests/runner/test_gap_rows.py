"""Rows of the gap between proved bounds: right numbers, and one line for bad settings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.bounds.one_shot import find_draw_risk
from dperm_cli.core.errors import InputError
from dperm_cli.results.records.schema import normalise
from dperm_cli.runner.cells.gap_rows import CLASSES, find_bounds, make_rows


def test_a_row_has_both_bounds_and_what_has_them():
    (row,) = make_rows({"losses": "linear", "n": 1000, "p": 8, "epsilon": 1})
    found = row["settings"]
    assert (found["lower"], found["upper"]) == pytest.approx((1.5214, 4.8341), rel=1e-4)
    assert found["factor"] == pytest.approx(found["upper"] / found["lower"])
    assert (row["loss"], row["p"], row["delta"]) == ("linear", 8, 1e-6)
    normalise(row)  # every column is one of a record's


def test_the_classes_are_in_the_order_of_the_bounds():
    assert [row["losses"].split()[0].lower() for row in find_bounds({})] == list(CLASSES)


@pytest.mark.parametrize(("name", "apart"), [("l1_ball", 2.0), ("simplex", math.sqrt(2.0))])
def test_a_corner_drawn_with_the_range_is_the_best_pure_bound_of_a_hull(name, apart):
    corners = 16 if name == "l1_ball" else 8
    found = find_bounds({"constraint": name, "p": 8, "delta": 0, "epsilon": 0.5, "radius": 3})[0]
    assert found["upper_by"] == "exponential mechanism over corners"
    assert found["upper"] == pytest.approx(apart * 3 * 2 * find_draw_risk(corners) / 0.5)
    assert found["upper"] < apart * 3 * 2 * math.log(corners) / 0.5


@pytest.mark.parametrize("points", [1, 2, 4, 16, 1000])
def test_a_draw_s_mean_gap_is_below_its_bound_and_attains_it(points):
    bound = find_draw_risk(points)
    others = np.random.default_rng(points).exponential(1.0 + bound, (2000, points - 1))
    others[0] = 1.0 + bound
    shares = np.exp(-others)
    means = (others * shares).sum(axis=1) / (1.0 + shares.sum(axis=1))
    assert means.max() <= bound
    assert means[0] == pytest.approx(bound, abs=1e-9)


def test_the_size_that_the_gaussian_gap_hangs_on():
    found = find_bounds({"n": 100, "p": 32, "epsilon": 1})[0]
    assert 1.0 < found["gaussian_size"] < 2.0
    assert find_bounds({"delta": 0})[0]["gaussian_size"] is None


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"losses": "cubic"}, "losses"),
        ({}, "losses"),
        ({"losses": "linear", "p": 0}, "p"),
        ({"losses": "linear", "n": 2.5}, "n"),
        ({"losses": "linear", "epsilon": 0}, "epsilon"),
        ({"losses": "linear", "delta": 0.5}, "delta"),
        ({"losses": "linear", "constraint": "l3"}, "constraint"),
        ({"losses": "linear", "radius": -1}, "radius"),
        ({"losses": "linear", "nn": 3}, "nn"),
    ],
)
def test_bad_settings_are_one_line(given, key):
    with pytest.raises(InputError) as caught:
        make_rows(given)
    assert caught.value.key == key
    assert "\n" not in str(caught.value)


def test_no_upper_bound_of_a_corner_is_below_a_lower_bound():
    for name in ("l1_ball", "simplex"):
        for p in (2, 5, 50, 1000):
            for epsilon in (0.05, 1.0, 8.0):
                found = find_bounds({"constraint": name, "p": p, "epsilon": epsilon, "delta": 0})
                assert all(row["lower"] <= row["upper"] for row in found)
