"""Attack risk against the vectors of exact trade-off functions."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dperm_cli.privacy.accounting.attack_risk import (
    TradeOff,
    bound_advantage,
    bound_rate,
    find_attack_risk,
)
from dperm_cli.privacy.accounting.group_privacy import guarantee_for_person
from dperm_cli.privacy.budget import Guarantee
from dperm_cli.privacy.events import Approx, Channel, Gaussian, Laplace, Pure

# epsilon, delta, mu, advantage, rates at .01 and .001, success from priors .1 and .5
GAUSSIAN = [
    (1.0, 4.81e-6, 0.25690, 0.10221, 0.01925, 0.00230, 0.15276, 0.60137),
    (1.0, 1e-6, 0.23670, 0.09421, 0.01832, 0.00216, 0.14805, 0.59356),
    (3.0, 1e-6, 0.64773, 0.25396, 0.04661, 0.00729, 0.26310, 0.74142),
]
PURE = Guarantee("pure", 1.0, 0.0, "replace_one", "pure")


def describe_numbers(events, guarantee):
    risk, known = find_attack_risk(events, guarantee), TradeOff(events, guarantee)
    rates = risk.true_positive_rates
    successes = known.bound_success(0.1), known.bound_success(0.5)
    return risk.advantage, rates[0.01], rates[0.001], *successes


@pytest.mark.parametrize("row", GAUSSIAN)
def test_gaussian_noise_has_the_vectors(row):
    epsilon, delta, mu, *expected = row
    events = (Gaussian(1.0 / mu, record_norm=1.0),)
    guarantee = Guarantee("approx", epsilon, delta, "add_remove", "gaussian")
    assert describe_numbers(events, guarantee) == pytest.approx(expected, abs=1.1e-5)


def test_pure_privacy_has_the_vectors():
    expected = (0.46212, 0.02718, 0.00272, 0.27183, 0.81606)
    events = (Pure(1.0, relation="replace_one"),)
    assert describe_numbers(events, PURE) == pytest.approx(expected, abs=6e-6)
    # the bound on a guess and the bound on a test are one function
    assert 1.0 - math.exp(-1.0) * 0.5 == pytest.approx(expected[-1], abs=6e-6)


def test_a_pair_alone_has_no_gaussian_row():
    """Of a black box nothing is known but its pair."""
    events = (Approx(1.0, 1e-6),)
    guarantee = Guarantee("approx", 1.0, 1e-6, "replace_one", "approx")
    found = describe_numbers(events, guarantee)
    pairs = [bound_rate(rate, 1.0, 1e-6) for rate in (0.01, 0.001, 0.1, 0.5)]
    assert found == pytest.approx((bound_advantage(1.0, 1e-6), *pairs), abs=1e-7)
    assert pairs[2] == pytest.approx(1e-6 + math.e * 0.1)


def test_laplace_noise_leaves_no_more_than_its_pure_epsilon():
    events = (Laplace(scale=1.0, record_norm=1.0),)
    guarantee = Guarantee("pure", 1.0, 0.0, "add_remove", "laplace")
    known = TradeOff(events, guarantee)
    for prior in (0.01, 0.1, 0.5, 0.9):
        assert known.bound_success(prior) <= bound_rate(prior, 1.0, 0.0) + 1e-12


def test_two_equally_likely_records_are_told_apart_no_better_than_the_advantage_says():
    mu = 0.2569
    events = (Gaussian(1.0 / mu, record_norm=1.0),)
    guarantee = Guarantee("approx", 1.0, 4.81e-6, "add_remove", "gaussian")
    advantage = find_attack_risk(events, guarantee).advantage
    assert (1.0 + advantage) / 2.0 == pytest.approx(0.55110, abs=1e-5)


def test_a_curve_is_an_upper_bound_and_close():
    mu, rates = 0.2569, [0.0, 1e-4, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    events = (Gaussian(1.0 / mu, record_norm=1.0),)
    guarantee = Guarantee("approx", 1.0, 4.81e-6, "add_remove", "gaussian")
    known = TradeOff(events, guarantee)
    found = known.bound_curve(rates)
    exact = [float(stats.norm.cdf(mu + stats.norm.ppf(rate))) for rate in rates]
    for one, other in zip(found, exact, strict=True):
        assert other - 1e-9 <= one <= other + 2e-3
    assert found == sorted(found)
    for rate, most, least in zip(rates, found, exact, strict=True):
        assert least - 1e-9 <= known.bound_success(rate) <= min(most, least + 1e-5)


def test_a_local_channel_has_the_pair_of_its_guarantee():
    events = (Channel(1.0),)
    guarantee = Guarantee("local", 1.0, 0.0, "replace_one", "channel")
    assert TradeOff(events, guarantee).bound_success(0.1) == pytest.approx(math.e / 10.0)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_group_has_the_pairs_of_the_group(size):
    """Exact for pure steps; for Gaussian noise above the law of the group, and below its pair."""
    pure = TradeOff((Pure(1.0, relation="replace_one"),), PURE, size)
    assert pure.bound_success(0.1) == pytest.approx(bound_rate(0.1, float(size), 0.0))
    assert pure.find_advantage() == pytest.approx(math.tanh(size / 2.0))
    mu = 0.2367011
    events = (Gaussian(1.0 / mu, record_norm=1.0),)
    guarantee = Guarantee("approx", 1.0, 1e-6, "add_remove", "gaussian")
    known, whole = TradeOff(events, guarantee, size), guarantee_for_person(guarantee, size)
    exact = 2.0 * float(stats.norm.cdf(size * mu / 2.0)) - 1.0
    assert exact - 1e-9 <= known.find_advantage() <= bound_advantage(whole.epsilon, whole.delta)
    for rate in (0.001, 0.01, 0.1, 0.5):
        least = float(stats.norm.cdf(size * mu + stats.norm.ppf(rate)))
        most = bound_rate(rate, whole.epsilon, whole.delta)
        assert least - 1e-9 <= known.bound_success(rate) <= most + 1e-12
