"""Meters: how far one stream moved, against what was declared for it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core.errors import PrivacyError
from dperm_cli.privacy import channels
from dperm_cli.privacy.events import (
    Channel,
    DisjointBatches,
    Exponential,
    GammaNorm,
    Gaussian,
    GaussianMatrix,
    Laplace,
    PerturbedObjective,
    Pure,
    RegularizedExponential,
    SampledGaussian,
    SparseAnswers,
    WishartDifference,
)
from dperm_cli.privacy.meters import (
    ChannelRatio,
    LawRange,
    LawSlope,
    PerCall,
    RootOfSquares,
    Total,
)

ZERO = np.zeros((2, 2))


def far(first, second=(0.0, 0.0)):
    """Values of two trials, [2, 2]."""
    return np.array([first, second], dtype=float)


@pytest.mark.parametrize(("order", "size"), [(2, 5.0), (1, 7.0), (np.inf, 4.0)])
def test_each_call_by_itself_in_its_norm(order, size):
    meter = PerCall(order, 10.0)
    assert meter.move(ZERO, far([3.0, -4.0])) == pytest.approx(size / 10.0)
    # what came before is forgotten
    assert meter.move(ZERO, ZERO) == 0.0
    assert meter.move(far([1.0, 1.0]), far([1.0, 1.0])) == 0.0


@pytest.mark.parametrize("meter", [PerCall(2, 1.0), Total(2, 1.0), RootOfSquares(1.0)])
def test_the_worst_trial_counts(meter):
    assert meter.move(ZERO, far([0.1, 0.0], [0.0, 0.7])) == pytest.approx(0.7)


def test_a_total_adds_up_and_a_root_adds_squares_trial_by_trial():
    total, root = Total(2, 2.0), RootOfSquares(2.0)
    moves = [far([3.0, 0.0]), far([0.0, 4.0]), far([0.0, 0.0], [6.0, 8.0])]
    assert [total.move(ZERO, move) for move in moves] == pytest.approx([1.5, 3.5, 5.0])
    assert [root.move(ZERO, move) for move in moves] == pytest.approx([1.5, 2.5, 5.0])
    # nothing is taken back
    assert total.move(moves[0], moves[0]) == pytest.approx(5.0)
    assert root.move(moves[0], moves[0]) == pytest.approx(5.0)


def test_two_meters_share_nothing():
    event = DisjointBatches(1.0, 0.5, 2, "gamma_norm")
    one, other = event.meter("replace_one"), event.meter("replace_one")
    one.move(ZERO, far([0.9, 0.0]))
    assert other.move(ZERO, far([0.9, 0.0])) == pytest.approx(0.9)
    assert one.move(ZERO, far([0.9, 0.0])) == pytest.approx(1.8)


@pytest.mark.parametrize("make", [lambda s: PerCall(2, s), lambda s: Total(1, s), RootOfSquares])
def test_where_nothing_may_move_any_move_is_infinite(make):
    meter = make(0.0)
    assert meter.move(ZERO, ZERO) == 0.0
    assert meter.move(ZERO, far([0.0, 1e-300])) == math.inf


@pytest.mark.parametrize("sensitivity", [0.0, 1.0])
@pytest.mark.parametrize("make", [lambda s: PerCall(2, s), lambda s: Total(1, s), RootOfSquares])
def test_a_nan_is_never_within_what_is_declared(make, sensitivity):
    for before, after in ((ZERO, far([0.0, math.nan])), (far([math.inf, 0.0]),) * 2):
        meter = make(sensitivity)
        with np.errstate(invalid="ignore"):
            assert not meter.move(before, after) <= 1.0
            # and for meters that add up, no later call makes it good
            later = meter.move(ZERO, ZERO)
        assert isinstance(meter, PerCall) or not later <= 1.0


def test_an_infinite_move_is_seen():
    assert PerCall(2, 1.0).move(ZERO, far([math.inf, 0.0])) == math.inf


def test_one_number_a_trial_may_come_without_its_axis():
    assert PerCall(1, 2.0).move(np.zeros(3), np.array([1.0, 0.0, 1.0])) == pytest.approx(1.0)


def test_answers_of_one_user_add_up_and_equal_vectors_tell_nothing():
    channel = channels.by_epsilon("l_inf", 2, 1.0)
    meter = ChannelRatio(channel, 2.0)
    low, high = np.full((1, 2), -1.0), np.full((1, 2), 1.0)
    moved = meter.move(low, high)
    assert 0.0 < moved <= 0.5 + 1e-9
    assert meter.move(high, high) == moved
    assert meter.move(low, high) == pytest.approx(2.0 * moved)
    assert meter.move(low, high) == pytest.approx(3.0 * moved)


class Law:
    """What a law was made of, at a place on a line."""

    def __init__(self, at):
        self.at = at

    def log_ratio_range(self, other, exponent):
        return exponent * abs(self.at - other.at)

    def slope_distance(self, other, scale):
        return abs(self.at - other.at)


def test_laws_are_measured_in_what_was_declared_for_them():
    assert LawRange(0.5, 4.0).move(Law(0.0), Law(3.0)) == pytest.approx(0.75)
    assert LawSlope(2.0, 4.0).move(Law(0.0), Law(3.0)) == pytest.approx(1.5)
    # a law that declares nothing may not be drawn from at all
    assert LawRange(0.5, 0.0).move(Law(0.0), Law(0.0)) == math.inf
    assert LawSlope(2.0, 0.0).move(Law(0.0), Law(0.0)) == math.inf
    assert not LawRange(0.5, 4.0).move(Law(0.0), Law(math.nan)) <= 1.0


@pytest.mark.parametrize(
    ("event", "kind", "order"),
    [
        (Gaussian(2.0, 0.5), PerCall, 2),
        (GaussianMatrix(2.0, 0.5), PerCall, 2),
        (GammaNorm(2.0, 0.5), PerCall, 2),
        (Laplace(2.0, 0.5), PerCall, 1),
        (SampledGaussian(2.0, 0.5, 1, 4, "poisson"), PerCall, 2),
        (SparseAnswers(2.0, 0.5, 1.0, 1, 2), PerCall, 1),
        (PerturbedObjective("gamma_norm", 2.0, 0.5, 0.1, 1.0), PerCall, 2),
        (DisjointBatches(2.0, 0.5, 3), RootOfSquares, 2),
        (DisjointBatches(2.0, 0.5, 3, "gamma_norm"), Total, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_is_measured_in_its_own_norm_and_sensitivity(event, kind, order):
    """0.5 of a record's contribution: a sensitivity of 1 under replace_one."""
    meter = event.meter("replace_one")
    assert type(meter) is kind
    assert meter.move(ZERO, far([0.6, 0.8])) == pytest.approx(1.4 if order == 1 else 1.0)
    if getattr(event, "partition", "") != "place":
        removed = event.meter("add_remove")
        assert removed.move(ZERO, far([0.6, 0.8])) == pytest.approx(2.8 if order == 1 else 2.0)


def test_symmetric_matrices_are_measured_in_the_nuclear_norm():
    """The packed matrix ((3, 4), (4, -3)) has the eigenvalues 5 and -5."""
    event = WishartDifference(scale=2.0, record_norm=2.5)
    meter = event.meter("replace_one")
    moved = np.array([[3.0, math.sqrt(2.0) * 4.0, -3.0], [1.0, 0.0, 0.0]])
    assert meter.move(np.zeros((2, 3)), moved) == pytest.approx(2.0)
    assert math.isnan(event.meter("add_remove").move(np.zeros((1, 3)), np.full((1, 3), np.nan)))


def test_laws_channels_and_black_boxes_have_the_meters_that_fit_them():
    assert type(Exponential(1.0, 1.0).meter("replace_one")) is LawRange
    assert type(RegularizedExponential(1.0, 1.0).meter("replace_one")) is LawSlope
    assert type(Channel(1.0, 2, "l_2", 3).meter("replace_one")) is ChannelRatio
    with pytest.raises(PrivacyError, match="nothing to measure for Pure"):
        Pure(1.0).meter("replace_one")
