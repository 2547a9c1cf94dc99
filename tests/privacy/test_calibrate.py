"""Calibration returns the private side of the root, close to it, or says why not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import (
    Approx,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    Pure,
    SampledGaussian,
    SamplerError,
)


def private_and_tight(events_at, epsilon, delta, relation, slack=3e-6):
    scale = calibrate.scale_for(events_at, epsilon=epsilon, delta=delta, relation=relation)
    level = account(events_at(scale), delta=delta, relation=relation)
    below = account(events_at(scale * (1 - slack)), delta=delta, relation=relation)
    assert level.epsilon <= epsilon < below.epsilon
    return scale


@pytest.mark.parametrize("n", [100, 1000, 100_000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 100.0])
def test_noisy_sgd_with_n_squared_steps(n, epsilon):
    private_and_tight(
        lambda scale: [SampledGaussian(scale, n, 1, n, "fixed", n * n)],
        epsilon,
        n**-2.0,
        "replace_one",
    )


TARGETS = ("gaussian", "fixed", "poisson", "laplace", "gamma", "exponential", "mixed")


def random_target(rng):
    n = int(10 ** rng.uniform(2, 5))
    batch = max(1, int(n * 10 ** rng.uniform(-5, -0.5)))
    count = int((n / batch) ** 2 * 10 ** rng.uniform(-0.5, 1)) + 30
    few = int(10 ** rng.uniform(0, 3))
    kind = str(rng.choice(TARGETS))
    relation = "replace_one" if kind == "fixed" else str(rng.choice(["replace_one", "add_remove"]))
    epsilon, delta = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-12, -2)
    if kind in ("laplace", "gamma", "exponential") and rng.random() < 0.3:
        delta = 0.0

    def events_at(scale):
        return {
            "gaussian": lambda: [Gaussian(scale, 1.0, count)],
            "laplace": lambda: [Laplace(scale, 1.0, few)],
            "gamma": lambda: [GammaNorm(scale, 1.0, few, gap=1.3)],
            "exponential": lambda: [Exponential(1.0 / scale, 1.0, few)],
            "mixed": lambda: [Gaussian(scale, 1.0, few), Laplace(2.0 * scale, 1.0, 2)],
        }.get(kind, lambda: [SampledGaussian(scale, n / batch, batch, n, kind, count)])()

    return events_at, epsilon, delta, relation


def check_random_targets(seed, number):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        events_at, epsilon, delta, relation = random_target(rng)
        scale = calibrate.scale_for(events_at, epsilon=epsilon, delta=delta, relation=relation)
        level = account(events_at(scale), delta=delta, relation=relation)
        below = account(events_at(scale * 0.9999), delta=delta, relation=relation)
        assert level.epsilon <= epsilon < below.epsilon


def test_random_targets():
    check_random_targets(7, 12)


@pytest.mark.slow
def test_random_targets_many():
    check_random_targets(8, 1000)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("event", [Laplace, GammaNorm])
def test_pure_noise_for_one_release(event, epsilon, delta):
    scale = private_and_tight(lambda s: [event(s, 1.5)], epsilon, delta, "replace_one")
    # epsilon - 2 ln(1 - delta) is the distance of a Laplace pair that is (epsilon, delta)-private
    exact = 3.0 / (epsilon - 2.0 * math.log1p(-delta))
    assert scale == pytest.approx(exact, rel=4e-6)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_exponent_as_one_over_the_scale(epsilon):
    scale = private_and_tight(lambda s: [Exponential(1.0 / s, 2.0, 3)], epsilon, 0.0, "replace_one")
    assert 1.0 / scale == pytest.approx(epsilon / 12.0, rel=4e-6)


def test_closed_forms_of_one_release_are_private_as_computed():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        epsilon, size = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-3, 3)
        scale = calibrate.pure_scale(epsilon, size)
        assert size / scale <= epsilon * 1.0
        assert scale == pytest.approx(size / epsilon, rel=1e-15)
        for event in (Laplace(scale, size), GammaNorm(scale, size)):
            assert account([event], delta=0.0, relation="add_remove").epsilon <= epsilon
        exponent = calibrate.exponent(epsilon, size)
        event = Exponential(exponent, size)
        assert account([event], delta=0.0, relation="add_remove").epsilon <= epsilon
        assert exponent == pytest.approx(epsilon / size, rel=1e-15)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_noise_beside_what_is_fixed(epsilon):
    def events_at(scale):
        share = epsilon / 4
        return [Laplace(scale, 1.0, 5), Pure(share), Approx(share, 1e-8), SamplerError("tv", 1e-12)]

    private_and_tight(events_at, epsilon, 1e-6, "replace_one")


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_mixed_events(relation):
    def events_at(scale):
        return [SampledGaussian(scale, 100.0, 1, 100, "poisson", 10_000), Gaussian(scale, 1.0, 10)]

    mixed = private_and_tight(events_at, 1.0, 1e-4, relation)
    alone = private_and_tight(lambda scale: events_at(scale)[:1], 1.0, 1e-4, relation)
    assert mixed > alone


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_gaussian_scale_is_the_closed_form(epsilon):
    scale = calibrate.gaussian_scale(epsilon, 1e-6, 3.0)
    assert scale == pytest.approx(3.0 / calibrate.mu(epsilon, 1e-6), rel=1e-12)
    assert account([Gaussian(scale, 1.5)], delta=1e-6, relation="replace_one").epsilon <= epsilon
    searched = private_and_tight(lambda s: [Gaussian(s, 1.5)], epsilon, 1e-6, "replace_one")
    assert scale * (1 - 1e-9) <= searched <= scale * (1 + 3e-6)


def test_full_gradient_steps_add_in_squares():
    scale = private_and_tight(lambda s: [Gaussian(s, 1.0, 50)], 0.5, 1e-6, "add_remove")
    assert scale == pytest.approx(math.sqrt(50) / calibrate.mu(0.5, 1e-6), rel=3e-6)


def test_stated_scale_formula():
    n, lipschitz, epsilon, delta = 250, 0.7, 0.3, 1e-5
    variance = 32 * lipschitz**2 * n**2 * math.log(n / delta) * math.log(1 / delta) / epsilon**2
    stated = calibrate.bst14_stated_scale(n, lipschitz, epsilon, delta)
    assert stated == pytest.approx(math.sqrt(variance), rel=1e-14)


def test_no_pure_guarantee():
    for call in (
        lambda: calibrate.mu(1.0, 0.0),
        lambda: calibrate.gaussian_scale(1.0, 0.0, 1.0),
        lambda: calibrate.bst14_stated_scale(10, 1.0, 1.0, 0.0),
        lambda: calibrate.scale_for(
            lambda s: [Gaussian(s, 1.0)], epsilon=1.0, delta=0.0, relation="replace_one"
        ),
    ):
        with pytest.raises(Unsupported, match="delta"):
            call()
    with pytest.raises(Unsupported, match="delta"):
        calibrate.scale_for(
            lambda s: [Laplace(s, 1.0), SamplerError("tv", 1e-9)],
            epsilon=1.0,
            delta=0.0,
            relation="replace_one",
        )


def test_no_scale_helps():
    # a fixed release outside the scale's reach already spends more than the budget
    with pytest.raises(Unsupported, match="no noise scale"):
        calibrate.scale_for(
            lambda s: [Gaussian(s, 1.0), Gaussian(0.1, 1.0)],
            epsilon=1.0,
            delta=1e-6,
            relation="replace_one",
        )


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, 0.0, -1.0, True, "1"])
def test_bad_epsilon(epsilon):
    with pytest.raises(InputError) as caught:
        calibrate.mu(epsilon, 1e-6)
    assert caught.value.key == "epsilon"
