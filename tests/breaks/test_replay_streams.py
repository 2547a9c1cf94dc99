"""Break 5: the replay audit keeps one account for each stream.

Streams may be asked in any order. What one stream's sums move by counts together; what another
stream moves by has its own event and its own account.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.breaks._doors import Budget, make_problem, neighbour, release, replay
from tests.breaks._mechanisms import (
    LeakBetweenQuietPasses,
    SumsAndBatches,
    TreeAggregation,
    TwoPasses,
    TwoVectors,
    prefix,
)

BUDGET = Budget(1.0, 1e-5)


def problem(n=32, p=3, loss="linear"):
    """Equal rows of norm 1 with either label: gradients are as far apart as they may be."""
    x = np.full((n, p), p**-0.5)
    return make_problem(x, np.where(np.arange(n) % 2, 1.0, -1.0), loss, 2.0, 0.0)


def verdict(mechanism, index=5, loss="linear"):
    """The replay of a mechanism on the problem with one label turned."""
    first = problem(loss=loss)
    row, target = np.asarray(first.data.x)[index], -float(first.data.y[index])
    second = neighbour(first, index, row, target)
    return replay(mechanism, mechanism.plan(first.spec(), BUDGET), first, second)


PASSES = [(index, loss) for index in (0, 5, 31) for loss in ("linear", "logistic", "hinge")]


@pytest.mark.parametrize(("index", "loss"), PASSES)
def test_two_passes_in_turn_are_accepted(index, loss):
    """Correct: either pass moves by one sensitivity in the sums over the record's own batch."""
    found = verdict(TwoPasses(), index, loss)
    assert found.private, found.faults
    assert 0.4 < found.worst <= 1.0 + 1e-9


@pytest.mark.parametrize("noise", ["gaussian", "gamma_norm"])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_leak_is_caught_though_other_streams_begin_in_between(count, noise):
    """``count`` sums move by a sensitivity each: of Gaussian noise the root of that adds up."""
    found = verdict(LeakBetweenQuietPasses(count, noise=noise))
    assert not found.private
    expected = count**0.5 if noise == "gaussian" else count
    assert found.worst == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "gamma_norm"])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_without_the_leak_it_is_accepted(count, noise):
    found = verdict(LeakBetweenQuietPasses(count, honest=True, noise=noise))
    assert found.private, found.faults
    assert found.worst == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("factor", [1.01, 2.0])
def test_a_sum_that_is_too_large_is_caught_in_either_pass(factor):
    found = verdict(TwoPasses(leak=factor))
    assert not found.private
    assert found.worst >= factor * (1 - 1e-9)


TREES = [(levels, index) for levels in (1, 2, 3, 4) for index in (0, 5, 31)]


@pytest.mark.parametrize(("levels", "index"), TREES)
def test_tree_aggregation_is_accepted(levels, index):
    """Correct: a record moves one node of each level, and every level has an event."""
    found = verdict(TreeAggregation(levels=levels), index)
    assert found.private, found.faults
    assert found.worst == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_tree_with_a_level_that_is_too_large_is_caught(level):
    found = verdict(TreeAggregation(levels=3, leaky_level=level))
    assert not found.private


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_by_how_much_a_level_is_too_large(level):
    found = verdict(TreeAggregation(levels=3, leaky_level=level))
    assert found.worst == pytest.approx(2.0, rel=1e-6)


def test_tree_sums_are_those_of_the_leaves():
    """The mechanism is what it says: without noise a prefix is the sum of its leaves."""
    leaves = np.arange(1.0, 9.0)
    noisy = {
        (level, node): leaves[node << level : (node + 1) << level].sum()
        for level in range(4)
        for node in range(8 >> level)
    }
    for time in range(1, 9):
        assert prefix(noisy, time) == leaves[:time].sum()


def test_tree_aggregation_releases_a_point():
    made, first = TreeAggregation(), problem(loss="logistic")
    _, theta = release(made, first, BUDGET, 3)
    assert theta.shape == (3, 3)
    assert np.all(np.linalg.norm(theta, axis=1) <= 2.0 + 1e-9)
    _, other = release(made, first, BUDGET, 3, seed=1)
    assert not np.array_equal(theta, other)


def test_coordinates_of_two_vectors_in_turn_are_accepted():
    """Each vector moves by one sensitivity: the root of two together, and neither by more."""
    found = verdict(TwoVectors())
    assert found.private, found.faults
    assert found.worst == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("factor", [1.01, 2.0])
def test_a_vector_that_moves_too_far_is_caught(factor):
    assert not verdict(TwoVectors(factor)).private


@pytest.mark.parametrize("index", [0, 5, 31])
def test_full_gradients_between_the_sums_of_a_pass_are_accepted(index):
    found = verdict(SumsAndBatches(), index)
    assert found.private, found.faults


def test_a_leak_between_full_gradients_is_caught():
    found = verdict(SumsAndBatches(leak=2.0))
    assert not found.private
    assert found.worst == pytest.approx(2.0, rel=1e-6)
