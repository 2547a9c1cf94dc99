"""Steps of bounded loss, black boxes, approximate samplers and channels, alone and together."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy.accounting import gaussian_profile, saddle_point
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.accounting.dominating_pairs import find_dominating_laws
from dperm_cli.privacy.events import (
    Approx,
    Channel,
    Disclosure,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    Pure,
    SampledGaussian,
    SamplerError,
)

# ---- steps of bounded loss


def optimal(epsilon, steps, delta):
    """Optimal composition of ``steps`` epsilon-DP steps [Kairouz-Oh-Viswanath 2015, Thm 3.3].

    The profile is piecewise linear in e^epsilon between (steps - 2 i) epsilon: solved exactly.
    """
    with mpmath.workdps(50):
        e, total = mpmath.mpf(epsilon), mpmath.mpf(0)
        scale = (1 + mpmath.exp(e)) ** steps

        def profile(level, number):
            return sum(
                mpmath.binomial(steps, j)
                * (mpmath.exp((steps - j) * e) - mpmath.exp(level + j * e))
                / scale
                for j in range(number + 1)
            )

        for i in range(steps // 2 + 1):
            total = profile((steps - 2 * i - 2) * e, i)
            if total > delta or (steps - 2 * i - 2) <= 0:
                up = sum(
                    mpmath.binomial(steps, j) * mpmath.exp((steps - j) * e) for j in range(i + 1)
                )
                down = sum(mpmath.binomial(steps, j) * mpmath.exp(j * e) for j in range(i + 1))
                return max(float(mpmath.log((up - delta * scale) / down)), 0.0)
    raise AssertionError("not reached")


@pytest.mark.parametrize(
    ("epsilon", "steps"),
    [(0.01, 1), (2.0, 1), (0.3, 2), (0.7, 5), (0.1, 40), (0.03, 100), (3.0, 7)],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_pure_steps_compose_optimally(epsilon, steps, delta):
    exact = optimal(epsilon, steps, delta)
    got = account([Pure(epsilon, steps)], delta=delta, relation="replace_one").epsilon
    assert exact * (1 - 1e-9) <= got <= exact * (1 + 2e-5)
    split = [Pure(epsilon, n) for n in (steps - steps // 2, steps // 2) if n]
    assert account(split, delta=delta, relation="replace_one").epsilon == got


@pytest.mark.parametrize("distance", [1e-3, 0.3, 1.0, 6.0])
def test_one_laplace_step_is_its_closed_form(distance):
    for epsilon in (0.0, 0.3 * distance, 0.9 * distance):
        exact = -math.expm1((epsilon - distance) / 2.0)
        for event in (Laplace, GammaNorm):
            events = [event(3.0 / distance, 3.0)]
            got = delta_of(events, epsilon=epsilon, relation="add_remove")
            assert exact * (1 - 1e-12) <= got <= exact * (1 + 1e-9)
            level = account(events, delta=exact, relation="add_remove").epsilon
            assert epsilon * (1 - 1e-12) <= level <= epsilon * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("distance", [0.2, 1.5])
def test_three_laplace_steps_by_nested_quadrature(distance):
    # delta_3(eps) = E delta_2(eps - L) over the atoms and the density of L, twice nested
    nodes, weights = np.polynomial.legendre.leggauss(16)

    def profile(level):
        if level >= distance:
            return 0.0
        if level <= -distance:
            return -math.expm1(level)
        return -math.expm1((level - distance) / 2)

    def mean(f, level):
        inside = (level - k * distance for k in range(-3, 4))
        cuts = sorted({-distance, distance, *(c for c in inside if abs(c) < distance)})
        total = f(level - distance) / 2 + math.exp(-distance) / 2 * f(level + distance)
        for low, high in itertools.pairwise(cuts):
            half = (high - low) / 2
            for x, w in zip(low + half * (nodes + 1), half * weights, strict=True):
                total += w * math.exp((x - distance) / 2) / 4 * f(level - x)
        return total

    for share in (0.3, 1.4, 2.5):
        epsilon = share * distance
        exact = mean(lambda level: mean(profile, level), epsilon)
        got = delta_of([Laplace(1.0 / distance, 1.0, 3)], epsilon=epsilon, relation="add_remove")
        assert exact * (1 - 1e-9) <= got <= exact * (1 + 2e-4)


def test_delta_zero_adds_the_epsilons():
    noisy = [Laplace(4.0, 1.0, 3), GammaNorm(8.0, 1.0), Exponential(0.1, 2.0, 5)]
    events = [*noisy, Pure(0.25, 2)]
    level = account(events, delta=0.0, relation="replace_one")
    assert level.epsilon == pytest.approx(3 * 0.5 + 0.25 + 5 * 0.4 + 0.5, rel=1e-15)
    removed = [*noisy, Pure(0.25, 2, "add_remove")]
    half = account(removed, delta=0.0, relation="add_remove").epsilon
    assert half == pytest.approx((level.epsilon - 0.5) / 2 + 0.5, rel=1e-15)
    # a replaced record is one removed and one added
    twice = account(removed, delta=0.0, relation="replace_one").epsilon
    assert twice == pytest.approx(2 * half, rel=1e-15)
    assert delta_of(events, epsilon=level.epsilon, relation="replace_one") == 0.0
    assert 0.0 < delta_of(events, epsilon=0.9 * level.epsilon, relation="replace_one") < 1e-3
    for extra in (
        Gaussian(9.0, 1.0),
        SampledGaussian(9.0, 1.0, 1, 9, "fixed"),
        Approx(0.1, 1e-9),
        SamplerError("tv", 1e-9),
        Disclosure(),
    ):
        assert account([*events, extra], delta=0.0, relation="replace_one").epsilon == math.inf
    silent = [*events, Gaussian(9.0, 1.0, gap=0.0), Approx(0.0, 0.0)]
    assert account(silent, delta=0.0, relation="replace_one").epsilon == level.epsilon


@pytest.mark.parametrize(("epsilon", "steps"), [(1.0, 1), (1.0, 10), (0.1, 100), (0.02, 2000)])
def test_exponential_mechanisms_compose_between_what_is_proved(epsilon, steps):
    event = Exponential(epsilon / 2.0, 1.0, steps)
    got = account([event], delta=1e-6, relation="replace_one").epsilon
    assert got <= account([Pure(epsilon, steps)], delta=1e-6, relation="replace_one").epsilon
    concentrated = Gaussian(1.0, epsilon / 4.0, steps)  # rho = epsilon^2 / 8 each, by Renyi alone
    bound = saddle_point.renyi_epsilon(
        find_dominating_laws([concentrated], "replace_one").directions[0], math.log(1e-6)
    )
    assert got <= bound * (1 + 1e-9)
    # a real composition: each step two outcomes of losses t and t - epsilon
    lower = 0.0
    for share in (0.4, 0.5, 0.6, 0.8):
        t = share * epsilon
        chance = math.expm1(epsilon - t) / (math.exp(epsilon - t) - math.exp(-t))
        number = np.arange(steps + 1)
        losses = number * t + (steps - number) * (t - epsilon)
        mass = np.exp(binom.logpmf(number, steps, chance))
        delta = float(mass @ np.maximum(-np.expm1(0.97 * got - losses), 0.0))
        lower = max(lower, delta)
    assert delta_of([event], epsilon=0.97 * got, relation="replace_one") >= lower
    if steps >= 100:
        assert lower > 1e-7  # and not far above it


def test_ten_exponential_mechanisms():
    # zero-concentrated composition alone gives 8.847, adding up gives 10
    concentrated = find_dominating_laws([Gaussian(1.0, 0.25, 10)], "replace_one").directions[0]
    assert saddle_point.renyi_epsilon(concentrated, math.log(1e-6)) == pytest.approx(
        8.847, abs=2e-3
    )
    got = account([Exponential(0.5, 1.0, 10)], delta=1e-6, relation="replace_one").epsilon
    assert got == pytest.approx(8.1159, abs=2e-4)


@pytest.mark.parametrize(
    ("event", "mu"),
    [
        (Laplace(1e5, 1.0, 10**10), 1.0),
        (GammaNorm(1e4, 1.0, 10**8), 1.0),
        (Pure(1e-5, 10**10, "add_remove"), 1.0),
        (Pure(1e-3, 10**6, "add_remove"), 1.0),
    ],
)
def test_very_many_steps_reach_the_central_limit(event, mu):
    level = account([event], delta=1e-6, relation="add_remove").epsilon
    limit = gaussian_profile.epsilon(1e-6, mu)
    assert limit * (1 - 1e-4) < level < limit * (1 + 5e-4)


def test_many_exponential_mechanisms_take_the_concentrated_route():
    # mu = epsilon sqrt(T / 4); Renyi's conversion costs a little over the Gaussian profile
    level = account([Exponential(1e-4, 1.0, 10**8)], delta=1e-6, relation="add_remove").epsilon
    assert gaussian_profile.epsilon(1e-6, 0.5) < level < 1.1 * gaussian_profile.epsilon(1e-6, 0.5)


# ---- black boxes, approximate samplers, channels


def test_black_boxes_compose_optimally_in_delta():
    boxes = Approx(0.2, 1e-7, 3, "add_remove")
    base = [Laplace(2.0, 1.0, 4)]
    failure = 1 - (1 - 1e-7) ** 3
    inner = account(
        [*base, Pure(0.2, 3, "add_remove")],
        delta=(1e-6 - failure) / (1 - failure),
        relation="add_remove",
    ).epsilon
    got = account([*base, boxes], delta=1e-6, relation="add_remove")
    assert got.epsilon == pytest.approx(inner, rel=1e-12)
    assert "black-box" in got.accountant
    spent = account(
        [*base, Approx(0.2, 1e-6, relation="add_remove")], delta=9e-7, relation="add_remove"
    )
    assert spent.epsilon == math.inf
    back = delta_of([*base, boxes], epsilon=got.epsilon, relation="add_remove")
    assert back == pytest.approx(1e-6, rel=1e-3)
    # the whole delta in the black box: its epsilons add up
    only = account([boxes], delta=failure * (1 + 1e-9), relation="add_remove")
    assert only.epsilon == pytest.approx(0.6, rel=1e-6)


def test_sampler_errors_follow_their_inequalities():
    pure, normal = [Exponential(1.0, 0.5)], [Gaussian(3.0, 0.5)]
    near = SamplerError("inf", 0.01, 2)
    for delta in (0.0, 1e-6):
        core = account(pure, delta=delta * math.exp(-0.02), relation="replace_one").epsilon
        got = account([*pure, near], delta=delta, relation="replace_one")
        assert got.epsilon == pytest.approx(core + 0.04, rel=1e-12)
    core = gaussian_profile.epsilon(1e-6 * math.exp(-0.02), 1 / 3)
    got = account([*normal, near], delta=1e-6, relation="replace_one")
    assert got.epsilon == pytest.approx(core + 0.04, rel=1e-12)
    assert "sampler" in got.accountant
    back = delta_of([*normal, near], epsilon=got.epsilon, relation="replace_one")
    assert back == pytest.approx(1e-6, rel=1e-9)
    assert delta_of([*normal, near], epsilon=0.03, relation="replace_one") == 1.0


def test_total_variation_makes_a_pure_mechanism_approximate():
    t = 1e-8
    events = [Pure(1.0), SamplerError("tv", t)]
    exact = (1 + math.e) * t
    assert delta_of(events, epsilon=1.0, relation="replace_one") == pytest.approx(exact, rel=1e-9)
    level = account(events, delta=exact * (1 + 1e-7), relation="replace_one")
    assert level.epsilon <= 1.0 + 1e-7
    assert account(events, delta=1e-8, relation="replace_one").epsilon == math.inf
    # the level returned satisfies delta_core + (1 + e^eps) t <= delta
    events = [Gaussian(3.0, 0.5), SamplerError("tv", t)]
    level = account(events, delta=1e-6, relation="replace_one").epsilon
    spent = gaussian_profile.delta(level, 1 / 3) + (1 + math.exp(level)) * t
    assert 1e-6 * (1 - 1e-6) < spent <= 1e-6
    # larger epsilons stay covered although e^epsilon t grows
    deltas = [delta_of(events, epsilon=e, relation="replace_one") for e in np.linspace(0, 30, 40)]
    assert np.all(np.diff(deltas[:3]) < 0)
    assert max(np.diff(deltas)) < 1e-6


def test_channels_add_up_for_one_user():
    level = account([Channel(0.5, 3), Channel(1.0)], delta=1e-6, relation="replace_one")
    assert (level.epsilon, level.accountant) == (2.5, "local channels, added up")
    assert delta_of([Channel(0.5, 3)], epsilon=1.5, relation="replace_one") == 0.0
    assert delta_of([Channel(0.5, 3)], epsilon=1.4, relation="replace_one") == 1.0
    for events, relation in (
        ([Channel(1.0), Pure(1.0)], "replace_one"),
        ([Channel(1.0)], "add_remove"),
    ):
        with pytest.raises(Unsupported, match="local"):
            account(events, delta=1e-6, relation=relation)


def test_disclosure_is_no_privacy():
    events = [Gaussian(3.0, 1.0), Disclosure()]
    level = account(events, delta=0.5, relation="replace_one")
    assert (level.epsilon, level.accountant) == (math.inf, "nothing is protected")
    assert delta_of(events, epsilon=50.0, relation="replace_one") == 1.0


@pytest.mark.parametrize("size", [1e-300, 1e-14, 1e3, 1e300])
@pytest.mark.parametrize("count", [1, 1000])
def test_steps_out_of_numerical_range_are_added(size, count):
    for event in (
        Pure(size, count, "add_remove"),
        Exponential(size, 1.0, count),
        Laplace(1.0 / size, 1.0, count),
    ):
        alone = account([event], delta=1e-6, relation="add_remove").epsilon
        assert alone == pytest.approx(count * size, rel=1e-12)
        noise = Gaussian(1.0, 1.0)
        core = account([noise], delta=1e-6, relation="add_remove").epsilon
        both = account([noise, event], delta=1e-6, relation="add_remove").epsilon
        assert both == pytest.approx(core + alone, rel=1e-12)


def test_every_added_event_costs_something():
    added = [
        Gaussian(30.0, 1.0),
        SampledGaussian(3.0, 1.0, 1, 100, "poisson", 500),
        Laplace(30.0, 1.0, 2),
        GammaNorm(40.0, 1.0),
        Exponential(0.1, 1.0, 3),
        Pure(0.01),
        Approx(0.01, 1e-8),
        SamplerError("inf", 1e-3),
        SamplerError("tv", 1e-9),
    ]
    prefixes = (added[:k] for k in range(len(added) + 1))
    levels = [account(e, delta=1e-6, relation="replace_one").epsilon for e in prefixes]
    assert np.all(np.diff(levels) > 0)
    with pytest.raises(Unsupported, match="promises nothing"):
        account(added, delta=1e-6, relation="add_remove")
    boxes = (Pure, Approx)
    own = [e.change_fields(relation="add_remove") if isinstance(e, boxes) else e for e in added]
    assert account(own, delta=1e-6, relation="add_remove").epsilon < levels[-1]
