"""One Gaussian draw handed out coordinate by coordinate."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.rng import seed_sequence
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.noise import Gate

PLAN = ((Gaussian(2.0, 0.5),), "replace_one")


def gate(plan=PLAN):
    return Gate([seed_sequence(0, "test", trial) for trial in range(3)], plan=plan)


def test_it_is_the_draw_of_the_vector():
    vector = gate().gaussian(dim=5, count=1, scale=2.0, sensitivity=1.0).add(np.zeros((3, 5)), 0)
    stream = gate().coordinates(dim=5, scale=2.0, sensitivity=1.0)
    for number in (3, 0, 4):
        assert np.array_equal(stream.add(np.zeros(3), number), vector[:, number])


def test_a_coordinate_is_asked_once_and_of_the_right_shape():
    stream = gate().coordinates(dim=5, scale=2.0, sensitivity=1.0)
    stream.add(np.zeros(3), 1)
    for value, number in ((np.zeros(3), 1), (np.zeros(3), 5), (np.zeros((3, 1)), 2)):
        with pytest.raises(PrivacyError):
            stream.add(value, number)


def test_it_must_be_an_event_of_the_plan_and_spends_it():
    with pytest.raises(PrivacyError):
        gate().coordinates(dim=5, scale=2.0, sensitivity=1.1)
    one = gate()
    one.coordinates(dim=5, scale=2.0, sensitivity=1.0)
    with pytest.raises(PrivacyError):
        one.coordinates(dim=5, scale=2.0, sensitivity=1.0)
