"""Outputs, statistics, and the bounds that follow from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.audit.outside.bounds import (
    find_attacks,
    find_largest_bound,
    find_refutable,
    judge,
)
from dperm_cli.audit.outside.neighbours import Pair
from dperm_cli.audit.outside.outputs import Output, Sample, describe_failure, describe_result
from dperm_cli.audit.outside.records import Table
from dperm_cli.audit.outside.statistics import KINDS, Statistic

PAIR = Pair("zeros/zero", Table(np.zeros((1, 1))), Table(np.ones((1, 1))))
RUNS = 4000


def attack(draw, without=(), runs=RUNS):
    """The attack found on runs of ``draw(rng, side)``, and what it shows on new ones."""
    rng = np.random.default_rng(3)
    sides = [[describe_result(draw(rng, side)) for _ in range(2 * runs)] for side in (0, 1)]
    found = find_attacks(PAIR, sides[0][:runs], sides[1][:runs], 0.0, without)
    return found, [judge(one, sides[0][runs:], sides[1][runs:], 0.0, 1e-4) for one in found]


def test_results_become_numbers_and_a_form():
    found = describe_result({"b": [1, 2.5], "a": np.zeros((1, 2)), "c": "yes"})
    assert found.numbers == (0.0, 0.0, 1.0, 2.5)
    assert found.form == "{a: numbers [1, 2], b: numbers [2], c: text}"
    assert found.text == "yes"
    assert describe_result([1, [2, 3]]).numbers == (1.0, 2.0, 3.0)
    assert describe_result(None).form == "nothing"
    failed = describe_failure("ValueError", "row 3\nis too long")
    assert failed.is_error
    assert failed.form == "error: ValueError: row 3 is too long"
    for output in (found, failed, describe_result([math.nan, -0.0, 1e-310])):
        again = Output.of_dict(output.to_dict())
        assert [n.hex() for n in again.numbers] == [n.hex() for n in output.numbers]
        assert again.form == output.form


def test_laplace_noise_of_scale_one_shows_its_epsilon():
    _, shown = attack(lambda rng, side: side + rng.laplace())
    best = max(one.bound for one in shown if one.attack.statistic.kind != "low_bits")
    assert 0.7 < best <= 1.0


def test_equal_laws_show_nothing():
    found, shown = attack(lambda rng, side: rng.normal(size=3).tolist())
    assert len(found) > 10
    assert all(one.bound < 0.3 for one in shown)


@pytest.mark.parametrize(
    ("kind", "draw"),
    [
        ("low_bits", lambda rng, side: side + rng.laplace(scale=4.0)),
        ("values", lambda rng, side: float(rng.integers(64) * 2 + side)),
        ("classifier", lambda rng, side: (lambda z: [z, z + side * 1e-3])(rng.laplace(scale=50.0))),
        ("form", lambda rng, side: [0.0] * (2 + side)),
        ("norms", lambda rng, side: (rng.normal(size=6) * (1 + 2 * side)).tolist()),
    ],
)
def test_each_statistic_finds_what_it_is_for(kind, draw):
    _, shown = attack(draw)
    assert max(one.bound for one in shown if one.attack.statistic.kind == kind) > 1.0


def test_a_difference_that_no_coordinate_shows():
    """A constant secret beside its own noise: coordinates alone show next to nothing."""

    def draw(rng, side):
        z = rng.laplace(scale=50.0)
        return [z, z + side * 1e-3]

    _, shown = attack(draw)
    alone = [one.bound for one in shown if one.attack.statistic.kind == "coordinates"]
    assert max(alone) < 0.3


def test_kinds_can_be_left_out():
    found, _ = attack(lambda rng, side: side + rng.laplace(), without=("low_bits", "values"))
    kinds = {one.statistic.kind for one in found}
    assert kinds <= set(KINDS) - {"low_bits", "values"}
    assert "coordinates" in kinds


def test_the_lowest_bit_of_a_number():
    sample = Sample([describe_result(v) for v in (0.5, 1.5, 0.75, 1.0, 6.0, 2.0**-1074, 0.0)])
    found = Statistic("low_bits", "bits", {"place": 0}).score(sample)
    assert found.tolist() == [-1.0, -1.0, -2.0, 0.0, 1.0, -1074.0, 2000.0]


def test_a_statistic_is_the_same_when_it_is_written_down():
    found, _ = attack(lambda rng, side: [side + rng.laplace(), rng.normal()], runs=200)
    sample = Sample([describe_result([0.1 * i, -0.2 * i]) for i in range(9)], 2)
    for one in found:
        again = Statistic(**one.statistic.to_dict())
        assert np.array_equal(again.score(sample), one.statistic.score(sample))


def test_what_so_many_runs_can_show():
    assert find_largest_bound(0, 0.0, 1e-4) == 0.0
    few, many = (find_largest_bound(runs, 0.0, 1e-4) for runs in (100, 10_000))
    assert 1.5 < few < 3.0 < 6.0 < many
    assert math.isinf(find_refutable(1.5, 20, 0.0, 1e-4))
    levels = [find_refutable(1.0, runs, 0.0, 1e-4) for runs in (1000, 10_000, 100_000)]
    assert levels[0] > levels[1] > levels[2] > 1.0
