"""Certified accounting against dp-accounting."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import (
    Gaussian,
    Laplace,
    Pure,
    SampledGaussian,
)
from tests.privacy.dp_accounting_peer import epsilon_pld

# ---- dp-accounting


KINDS = ("fixed", "poisson", "full", "laplace", "pure", "mixed")


def random_setting(rng):
    """Events, delta, relation and a grid for the peer that a loss of 2 ** -k falls on."""
    kind = str(rng.choice(KINDS))
    relation = "replace_one" if kind == "fixed" else str(rng.choice(["replace_one", "add_remove"]))
    size = 2.0 if relation == "replace_one" else 1.0
    rate = round(10 ** rng.uniform(-2.5, -0.4), 4)
    count = int(10 ** rng.uniform(0, 2.7))
    delta, epsilon = 10 ** rng.uniform(-8, -3), 10 ** rng.uniform(-0.7, 0.7)
    mu = gaussian_profile.mu(epsilon, delta)
    step = min(mu / math.sqrt(count), 3.0)
    shift = min(math.sqrt(math.log1p(mu**2 / (rate**2 * count))), 3.0)
    interval = 2.0 ** math.floor(math.log2(min(max(0.02 * step, 6e-5), 5e-4)))
    level = 2.0 * interval * math.ceil(step / (2.0 * interval))
    batch = SampledGaussian(
        (2.0 if kind == "fixed" else 1.0) / shift,
        1.0,
        round(rate * 10_000),
        10_000,
        "fixed" if kind == "fixed" else "poisson",
        count,
    )
    events = {
        "full": [Gaussian(size / step, 1.0, count)],
        "laplace": [Laplace(1.0 / level, 1.0 / size, count)],
        "pure": [Pure(level, count, relation)],
        "mixed": [batch, Gaussian(2.0 * size / mu, 1.0), Laplace(1.0 / level, 1.0 / size, 3)],
    }.get(kind, [batch])
    return events, delta, relation, interval


def compare(rng):
    """One random setting: our epsilon, dp-accounting's, and what its grid's halving changed."""
    events, delta, relation, interval = random_setting(rng)
    own = account(events, delta=delta, relation=relation).epsilon
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coarse, fine = (
            epsilon_pld(events, delta=delta, relation=relation, interval=h)
            for h in (2 * interval, interval)
        )
    return own, fine, fine - coarse


def check_against_peer(seed, number):
    """Never below the peer's value, its grid error (which falls as the interval's square) removed.

    What the extrapolation itself may be off by is taken as 5 % of what halving the grid changed.
    """
    rng = np.random.default_rng(seed)
    for _ in range(number):
        own, theirs, change = compare(rng)
        refined = theirs + change / 3
        assert own >= refined - 1e-6 - 0.05 * abs(change)
        assert own <= refined + 1e-6 + 1e-5 * refined + 0.05 * abs(change)


def test_against_dp_accounting():
    check_against_peer(20141, 8)


@pytest.mark.slow
def test_against_dp_accounting_many():
    check_against_peer(20142, 500)
