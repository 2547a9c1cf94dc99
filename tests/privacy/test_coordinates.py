"""One Gaussian draw handed out coordinate by coordinate."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.events import Gaussian
from dperm_cli.privacy.gate import Gate

EVENT = Gaussian(2.0, 0.5)
PLAN = ((EVENT,), "replace_one")


def gate(plan=PLAN):
    return Gate([seed_sequence(0, "test", trial) for trial in range(3)], plan=plan)


def test_it_is_the_draw_of_the_vector():
    vector = gate().stream(EVENT, 5).add(np.zeros((3, 5)), 0)
    stream = gate().stream(EVENT, 5, one_by_one=True)
    for number in (3, 0, 4):
        assert np.array_equal(stream.add(np.zeros(3), number), vector[:, number])


def test_a_coordinate_is_asked_once_and_of_the_right_shape():
    stream = gate().stream(EVENT, 5, one_by_one=True)
    stream.add(np.zeros(3), 1)
    for value, number in ((np.zeros(3), 1), (np.zeros(3), 5), (np.zeros((3, 1)), 2)):
        with pytest.raises(PrivacyError):
            stream.add(value, number)


def test_it_must_be_an_event_of_the_plan_and_spends_it():
    with pytest.raises(PrivacyError):
        gate().stream(Gaussian(2.0, 0.55), 5, one_by_one=True)
    one = gate()
    one.stream(EVENT, 5, one_by_one=True)
    with pytest.raises(PrivacyError):
        one.stream(EVENT, 5, one_by_one=True)


def test_several_vectors_are_not_handed_out_coordinate_by_coordinate():
    twice = Gaussian(2.0, 0.5, 2)
    with pytest.raises(Unsupported, match="not several"):
        gate(((twice,), "replace_one")).stream(twice, 5, one_by_one=True)


def test_its_moves_add_up_over_the_vector():
    """Each coordinate may move, all together by one sensitivity: a vector's norm."""
    meter = gate().stream(EVENT, 5, one_by_one=True).meter()
    zero, part = np.zeros((3, 1)), np.full((3, 1), 0.6)
    assert meter.move(zero, part) == pytest.approx(0.6)
    assert meter.move(zero, np.full((3, 1), 0.8)) == pytest.approx(1.0)
    assert meter.move(zero, part) > 1.1
