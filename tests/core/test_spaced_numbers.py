"""Lists of numbers to try: numpy's own, to the last bit."""

import numpy as np
import pytest

from dperm_cli.core.spaced_numbers import (
    drop_repeats,
    list_integers_by_ratio,
    space_by_ratio,
    space_evenly,
)

RNG = np.random.default_rng(0)
LOW = 10.0 ** RNG.uniform(-6, 6, 300)
HIGH = LOW * 10.0 ** RNG.uniform(0, 6, 300)
ENDS = list(zip(LOW.tolist(), HIGH.tolist(), strict=True))


@pytest.mark.parametrize("count", [2, 3, 12, 60, 160])
def test_they_are_those_of_numpy(count):
    for low, high in ENDS:
        assert np.array_equal(space_evenly(low, high, count), np.linspace(low, high, count))
        assert np.array_equal(space_by_ratio(low, high, count), np.geomspace(low, high, count))


@pytest.mark.parametrize("count", [2, 14, 120])
def test_whole_numbers_are_the_different_ones_of_numpy(count):
    for low, high in [(1, 1), (1, 2), (7, 9), (999_999, 1_000_000), (1, 10**9), (40, 41)]:
        expected = np.unique(np.geomspace(low, high, count).astype(np.int64))
        assert np.array_equal(list_integers_by_ratio(low, high, count), expected)


def test_equal_ends_give_equal_numbers():
    assert space_by_ratio(3.0, 3.0, 4).tolist() == [3.0] * 4


def test_nobody_can_write_to_a_list_that_is_kept():
    with pytest.raises(ValueError, match="read-only"):
        list_integers_by_ratio(1, 10, 5)[0] = 2


def test_repeats_are_dropped_in_order():
    assert drop_repeats(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    assert drop_repeats(np.array([], dtype=int)).size == 0
