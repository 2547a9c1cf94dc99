"""Events: sensitivities under both relations, what is refused, and the kind they can give."""

from __future__ import annotations

import dataclasses
import math

import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Disclosure,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    Pure,
    RegularizedExponential,
    SampledGaussian,
    SamplerError,
    classes,
    kind,
)

NOISE = (Gaussian, Laplace, GammaNorm, RegularizedExponential, Exponential)


@pytest.mark.parametrize("event", NOISE)
def test_sensitivity_doubles_under_replace_one_unless_the_gap_is_smaller(event):
    assert event(2.0, 3.0).sensitivity("replace_one") == 6.0
    assert event(2.0, 3.0).sensitivity("add_remove") == 3.0
    assert event(2.0, 3.0, gap=4.0).sensitivity("replace_one") == 4.0
    assert event(2.0, 3.0, gap=9.0).sensitivity("replace_one") == 6.0
    assert event(2.0, 3.0, gap=4.0).sensitivity("add_remove") == 3.0


def test_sampled_rate_and_sensitivity():
    event = SampledGaussian(1.0, 3.0, 5, 20, "fixed")
    assert event.rate == 0.25
    assert (event.sensitivity("replace_one"), event.sensitivity("add_remove")) == (6.0, 3.0)


@pytest.mark.parametrize("event", classes().values())
def test_events_are_frozen_and_say_what_is_released(event):
    assert event.__dataclass_params__.frozen
    assert event.__doc__
    assert not event.__doc__.startswith(event.__name__ + "(")
    for field in dataclasses.fields(event):
        assert field.type in ("float", "int", "str", "float | None")  # plain values in a ledger


BAD = [
    *[(lambda e=e: e(math.nan, 1.0), "scale") for e in NOISE[:-1]],
    (lambda: Exponential(math.nan, 1.0), "exponent"),
    *[(lambda e=e: e(0.0, 1.0), "scale") for e in NOISE[:-1]],
    *[(lambda e=e: e(1.0, -1.0), "record_norm") for e in NOISE[:-1]],
    *[(lambda e=e: e(1.0, 1.0, 0), "count") for e in NOISE],
    *[(lambda e=e: e(1.0, 1.0, gap=math.nan), "gap") for e in NOISE],
    (lambda: Exponential(-1.0, 1.0), "exponent"),
    (lambda: Exponential(1.0, math.inf), "record_oscillation"),
    (lambda: SampledGaussian(1.0, 1.0, 11, 10, "fixed"), "batch"),
    (lambda: SampledGaussian(1.0, 1.0, 1, 10, "shuffle"), "sampling"),
    (lambda: SampledGaussian(1.0, math.nan, 1, 10, "fixed"), "record_norm"),
    (lambda: Pure(math.inf), "epsilon"),
    (lambda: Pure(1.0, 0), "count"),
    (lambda: Approx(math.nan, 0.1), "epsilon"),
    (lambda: Approx(1.0, 1.0), "delta"),
    (lambda: Approx(1.0, math.nan), "delta"),
    (lambda: Channel(1.0, 0), "messages"),
    (lambda: Channel(True), "epsilon"),
    (lambda: SamplerError("kl", 0.1), "distance"),
    (lambda: SamplerError("tv", -0.1), "amount"),
]


@pytest.mark.parametrize(("make", "key"), BAD)
def test_bad_events_name_their_field(make, key):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], "pure"),
        ([Laplace(1.0, 1.0), GammaNorm(1.0, 1.0), Exponential(1.0, 1.0), Pure(1.0)], "pure"),
        ([Laplace(1.0, 1.0), SamplerError("inf", 0.1)], "pure"),
        ([Laplace(1.0, 1.0), SamplerError("tv", 0.1)], "approx"),
        ([Pure(1.0), Gaussian(1.0, 1.0)], "approx"),
        ([Pure(1.0), SampledGaussian(1.0, 1.0, 1, 10, "fixed")], "approx"),
        ([RegularizedExponential(1.0, 1.0)], "approx"),
        ([Pure(1.0), Approx(1.0, 0.0)], "pure"),
        ([Pure(1.0), Approx(1.0, 1e-9)], "approx"),
        ([Channel(1.0), Channel(2.0, 3)], "local"),
        ([Channel(1.0), Disclosure()], "none"),
        ([Gaussian(1.0, 1.0), Disclosure()], "none"),
    ],
)
def test_kind_is_the_weakest(events, expected):
    assert kind(events) == expected


def test_local_composes_with_local_only():
    with pytest.raises(Unsupported, match="local"):
        kind([Channel(1.0), Pure(1.0)])
