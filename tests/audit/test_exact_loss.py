"""Exact losses against closed forms and the test vector of the exponential mechanism."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dperm_cli.audit import exact_loss
from dperm_cli.audit.replay import replace_record
from dperm_cli.core.errors import Unsupported
from dperm_cli.mechanisms.sampling.exponential import Exponential as Exponential_
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.privacy.channels import sign_bit
from dperm_cli.privacy.events import (
    Channel,
    Disclosure,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    SampledGaussian,
)
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem


def slope(s):
    return lambda theta: s * theta[:, 0]


def test_exponential_mechanism_on_an_interval():
    """n = 1000 linear losses on [-1/2, 1/2] at epsilon 1: the log ratio is 0.997998."""
    c = 1.0 / 2.0  # epsilon over the oscillation 2 L |C|
    found = exact_loss.log_ratio(slope(c * 1000), slope(c * 998), [-0.5], [0.5])
    assert found == pytest.approx(0.997998, abs=5e-7)
    # ln of the ratio of integrals of exp(-a t): sinh(a/2) / (a/2)
    a, b = c * 1000, c * 998
    closed = (a - b) / 2 + math.log((math.sinh(b / 2) / b) / (math.sinh(a / 2) / a))
    other = -(a - b) / 2 + math.log((math.sinh(b / 2) / b) / (math.sinh(a / 2) / a))
    assert found == pytest.approx(max(abs(closed), abs(other)), rel=1e-9)
    event = Exponential(c, 1.0)
    assert exact_loss.linear_exponential(event, "replace_one") == pytest.approx(found, rel=1e-12)


def test_two_dimensions_factor():
    """A product law's log ratio is the sum of its factors'."""
    one = exact_loss.log_ratio(slope(3.0), slope(2.0), [0.0], [1.0])

    def plane(s):
        return lambda theta: s * np.sum(theta, axis=1)

    both = exact_loss.log_ratio(plane(3.0), plane(2.0), [0.0, 0.0], [1.0, 1.0])
    assert both == pytest.approx(2 * one, rel=1e-9)


def test_different_supports_are_infinitely_far():
    def half(theta):
        return np.where(theta[:, 0] < 0.3, np.inf, 0.0)

    assert exact_loss.log_ratio(half, slope(0.0), [0.0], [1.0]) == math.inf


def test_delta_of_two_normals():
    x, weight = exact_loss.points([-14.0], [14.0])
    f, g = norm.pdf(x[:, 0]), norm.pdf(x[:, 0] - 1.5)
    for epsilon in (0.0, 1.0, 3.0):
        a = norm.cdf(0.75 - epsilon / 1.5) - math.exp(epsilon) * norm.cdf(-0.75 - epsilon / 1.5)
        assert exact_loss.delta_at(epsilon, f, g, weight) == pytest.approx(a, rel=1e-5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_of_every_kind_spends_what_is_claimed(relation):
    sensitivity = 2.0 if relation == "replace_one" else 1.0
    sigma = calibrate.scale_for(
        lambda s: (Gaussian(s, 1.0, 7),), epsilon=1.0, delta=1e-5, relation=relation
    )
    cases = [
        (Gaussian(sigma, 1.0, 7), 1e-5),
        (SampledGaussian(4.0, 2.0, 1, 4, "poisson", 3), 1e-5),
        (Laplace(sensitivity, 1.0), 0.0),
        (GammaNorm(sensitivity, 1.0), 0.0),
        (Exponential(1.0 / sensitivity, 1.0), 0.0),
    ]
    if relation == "replace_one":
        cases.append((SampledGaussian(4.0, 2.0, 1, 4, "fixed", 3), 1e-5))
    for event, delta in cases:
        ratio = exact_loss.noise_loss(event, 1.0, delta, relation)
        assert exact_loss.POWER <= ratio <= 1.0 + exact_loss.WITHIN, event
        assert ratio > 0.99


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_parts_of_a_plan_add_up(relation):
    """Gaussians by squares, pure ones in a sum, others each against its own share."""
    unit = 2.0 if relation == "replace_one" else 1.0
    sigma = calibrate.gaussian_scale(1.0, 1e-5, unit)
    two = (Gaussian(sigma * math.sqrt(1.5), 1.0), Gaussian(sigma * math.sqrt(3.0), 1.0))
    assert exact_loss.plan_loss(two, 1.0, 1e-5, relation) == pytest.approx((1.0, 1.0), abs=1e-5)
    loud = (two[0], Gaussian(sigma, 1.0))
    assert exact_loss.plan_loss(loud, 1.0, 1e-5, relation)[0] > 1.5
    pure = (Laplace(4.0 * unit, 1.0), GammaNorm(4.0 * unit / 3.0, 1.0))
    assert exact_loss.plan_loss(pure, 1.0, 0.0, relation) == pytest.approx((1.0, 1.0))
    assert exact_loss.plan_loss((*pure, pure[0]), 1.0, 0.0, relation)[0] == pytest.approx(1.25)
    both = exact_loss.plan_loss((two[0], pure[0]), 1.0, 1e-5, relation)
    assert both[1] > 0.99
    assert both[0] <= 1.0 + exact_loss.WITHIN
    assert exact_loss.plan_loss((Disclosure(),), 1.0, 1e-5, relation) is None


@pytest.mark.parametrize("shape", ["l_inf", "l_1", "l_2"])
def test_channels_are_listed_in_more_dimensions_than_the_attack_has(shape, monkeypatch):
    """One user on a line cannot tell the channels' shapes apart."""
    event = Channel(0.5, 2, shape, 1)
    assert exact_loss.plan_loss((event,), 1.0, 0.0, "replace_one") == pytest.approx((1.0, 1.0))
    assert exact_loss.plan_loss((Channel(0.5, 2),), 1.0, 0.0, "replace_one") is None
    kept = sign_bit.corner

    def telling(gain: float, dim: int) -> tuple[int, int, int]:
        same, back, _ = kept(gain, dim)
        rarer = back if dim == 1 else int(0.9 * back)
        return same, rarer, (1 << 64) - same - rarer

    monkeypatch.setattr(sign_bit, "corner", telling)
    worst, _ = exact_loss.plan_loss((event,), 1.0, 0.0, "replace_one")
    assert worst == pytest.approx(1.2107 if shape == "l_1" else 1.0, abs=2e-4)


LAWS = ("linear", "hinge", "logistic", "squared")


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("loss", LAWS)
def test_densities_of_neighbours_are_within_epsilon(loss, p):
    """The exponential mechanism's own target on a box, two records, one of them turned round."""
    plain = small_problem(loss=loss, constraint="box", n=2, p=p, radius=1.0)
    first = replace_record(plain, 0, np.eye(p)[0], 1.0)
    second = replace_record(plain, 0, -np.eye(p)[0], 1.0)
    budget = Budget(1.0, 0.0)
    plan = Exponential_().plan(first.spec(), budget)
    energies = [CentralView(problem).potential(plan.sampler.target).value for problem in
                (first, second)]  # fmt: skip
    half = [float(first.constraint.support(axis)) for axis in np.eye(p)]
    found = exact_loss.log_ratio(*energies, [-h for h in half], half)
    assert 0.2 < found <= 1.0 + exact_loss.WITHIN


@pytest.mark.parametrize("event", [Gaussian, Laplace, GammaNorm])
def test_a_little_less_noise_is_noticed(event):
    scale = calibrate.gaussian_scale(1.0, 1e-5, 2.0) if event is Gaussian else 2.0
    assert (
        exact_loss.noise_loss(event(scale, 1.0), 1.0, 1e-5, "replace_one")
        <= 1.0 + exact_loss.WITHIN
    )
    less = event(0.99 * scale, 1.0)
    assert exact_loss.noise_loss(less, 1.0, 1e-5, "replace_one") > 1.005


def test_events_without_a_density():
    with pytest.raises(Unsupported, match="Disclosure"):
        exact_loss.noise_loss(Disclosure(), 1.0, 1e-5, "replace_one")
