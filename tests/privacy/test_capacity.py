"""Blahut and Arimoto's iteration against channels whose capacity is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.privacy.channels.capacity import capacity


def entropy(p):
    return -p * math.log(p) - (1 - p) * math.log1p(-p)


@pytest.mark.parametrize(
    ("laws", "expect"),
    [
        ([[0.9, 0.1], [0.1, 0.9]], math.log(2) - entropy(0.1)),
        ([[0.7, 0.3, 0.0], [0.0, 0.3, 0.7]], 0.7 * math.log(2)),
        # the Z channel: a 1 is read as 0 half of the time
        ([[1.0, 0.0], [0.5, 0.5]], math.log(5.0 / 4.0)),
        ([[0.2, 0.8], [0.2, 0.8]], 0.0),
        (np.eye(5), math.log(5)),
    ],
)
def test_known_capacities(laws, expect):
    low, high = capacity(np.array(laws))
    assert low - 1e-12 <= expect <= high + 1e-12
    assert high - low <= 1e-8


def test_bounds_hold_after_any_number_of_steps():
    laws = np.array([[1.0, 0.0], [0.5, 0.5]])
    for most in (1, 2, 5):
        low, high = capacity(laws, most=most)
        assert low < math.log(5.0 / 4.0) < high
        assert high - low > 1e-8
