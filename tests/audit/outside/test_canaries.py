"""Canaries: neighbouring tables, and bounds that hold for the most telling private results."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit.outside.canaries import (
    Guess,
    count_right,
    draw_canaries,
    find_bound,
    find_chance,
    find_refutable,
)
from dperm_cli.audit.outside.outputs import describe_failure, describe_result
from dperm_cli.audit.outside.records import read_kind

KINDS = (
    "numeric:p=5,norm=2,n=30", "numeric:p=5,low=0,high=1,n=30",
    "numeric:p=5,norm=1,labels=-1|1,n=30", "numeric:p=1,low=-1,high=3,targets=0|9,n=30",
)  # fmt: skip


@pytest.mark.parametrize("words", KINDS)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_one_coin_is_one_record(words, relation):
    kind = read_kind(words)
    canaries = draw_canaries(kind, relation, np.random.default_rng(0))
    table = canaries.make_table()
    count = np.count_nonzero(canaries.heads) if relation == "add_remove" else kind.n
    assert len(table.rows) == count
    assert 5 < np.count_nonzero(canaries.heads) < 25
    canaries.heads[3] = not canaries.heads[3]
    other = canaries.make_table()
    before, after = (Counter(one.format_lines().splitlines()) for one in (table, other))
    changed = 1 if relation == "add_remove" else 2
    assert (before - after).total() + (after - before).total() == changed
    for one in (table, other):
        if kind.norm is not None:
            assert np.all(np.linalg.norm(one.rows, axis=1) <= kind.norm * (1 + 1e-12))
        else:
            assert np.all((one.rows >= kind.low) & (one.rows <= kind.high))
        if kind.answers:
            assert set(one.labels) <= set(kind.answers)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_no_private_result_is_right_more_often(epsilon, delta):
    """(epsilon, delta) at its worst: all coins are told with a chance of delta, else each is told
    by randomised response. The law of the right guesses is known, and is below the bound."""
    coins, rate = 20, 1.0 / (1.0 + math.exp(-epsilon))
    for right in range(coins + 1):
        true = delta + (1.0 - delta) * stats.binom.sf(right - 1, coins, rate)
        assert true <= find_chance(epsilon, delta, coins, coins, right) + 1e-12


def test_the_chance_is_the_sum_of_the_theorem():
    epsilon, delta, canaries, guesses, right = 1.0, 1e-4, 50, 40, 37
    rate = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    law = [math.comb(guesses, k) * rate**k * (1 - rate) ** (guesses - k) for k in range(41)]
    worst = max(sum(law[right - i : right]) / i for i in range(1, right + 1))
    expected = sum(law[right:]) + 2.0 * delta * canaries * worst
    assert find_chance(epsilon, delta, canaries, guesses, right) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bounds_are_rarely_above_the_truth_and_not_far_below(epsilon):
    """Randomised response, 4000 times with 300 coins: at an error of .1 about 400 bounds may be
    too large, and 480 or more would have a chance below 1e-4."""
    rate, error = 1.0 / (1.0 + math.exp(-epsilon)), 0.1
    drawn = np.random.default_rng(0).binomial(300, rate, size=4000)
    bounds = {right: find_bound(0.0, 300, 300, right, error) for right in np.unique(drawn)}
    found = np.array([bounds[right] for right in drawn])
    assert np.count_nonzero(found > epsilon) < 480
    assert np.mean(found) > 0.6 * epsilon


def test_what_can_be_refuted_falls_with_the_canaries():
    few, many = (find_refutable(1.0, 0.0, canaries, 1e-4) for canaries in (200, 20_000))
    assert 1.0 < many < few < 10.0
    assert find_refutable(1.0, 1e-3, 20_000, 1e-4) == math.inf  # delta alone is above the error


@pytest.mark.parametrize("words", KINDS[:3])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_coins_are_read_from_a_sum(words, relation):
    """Thirty rows in a hundred dimensions: their sum tells every coin, its opposite none."""
    kind = read_kind(words.replace("p=5", "p=100"))
    canaries = draw_canaries(kind, relation, np.random.default_rng(1))
    table = canaries.make_table()
    rows = table.rows if table.labels is None else table.rows * table.labels[:, None]
    guesses = [Guess(False, True, sign, share) for sign in (1.0, -1.0) for share in (1.0, 0.2)]
    middle = 0.5 * (kind.low + kind.high) * len(rows) if kind.norm is None else 0.0
    output = describe_result({"sum": rows.sum(axis=0) - middle})
    found = list(count_right(guesses, kind, canaries, output))
    assert [count for count, _ in found] == [30, 6, 30, 6]
    # heads and tails are not equally many, and each is guessed half the time
    assert found[0][1] >= 26
    assert found[1][1] == 6
    assert found[2][1] <= 4
    assert found[3][1] == 0


def test_nothing_is_guessed_from_an_error():
    kind = read_kind("numeric:p=2,n=4")
    canaries = draw_canaries(kind, "replace_one", np.random.default_rng(0))
    guess = Guess(False, False, 1.0, 1.0)
    for output in (describe_failure("ValueError", "no"), describe_result([math.nan, 1.0])):
        assert list(count_right([guess], kind, canaries, output)) == [(0, 0)]
