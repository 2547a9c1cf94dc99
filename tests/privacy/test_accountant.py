"""Certified accounting against closed forms, plain quadrature and dp-accounting."""

from __future__ import annotations

import itertools
import math
import warnings

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy import _fourier, _gdp, _grid, _saddle
from dperm_cli.privacy._dominating import release
from dperm_cli.privacy._outside import epsilon_pld
from dperm_cli.privacy.accountant import _solve, account, delta_of
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


def sampled(kind, rate, shift, count=1):
    """One event whose dominating pair has the given rate and distance."""
    batch, population = round(rate * 10_000), 10_000
    factor = 2.0 if kind == "fixed" else 1.0
    return SampledGaussian(factor / shift, 1.0, batch, population, kind, count)


def one_step(epsilon, rate, shift):
    """H_{e^epsilon}((1-q) N(0,1) + q N(s,1) || N(0,1)) for epsilon of either sign, symmetrised."""
    if epsilon < 0:
        return 1 - math.exp(epsilon) + math.exp(epsilon) * one_step(-epsilon, rate, shift)
    cut = shift / 2 + math.log1p(math.expm1(epsilon) / rate) / shift
    return (1 - rate - math.exp(epsilon)) * ndtr(-cut) + rate * ndtr(shift - cut)


# ---- one and two steps, by hand


@pytest.mark.parametrize(
    ("rate", "shift"), [(0.01, 1.0), (0.1, 0.3), (0.5, 3.0), (0.001, 6.0), (0.02, 0.05)]
)
def test_one_fixed_step_is_its_closed_form(rate, shift):
    for epsilon in (0.01, 0.3, 3.0):
        exact = one_step(epsilon, rate, shift)
        if exact < 1e-40:
            continue
        got = delta_of([sampled("fixed", rate, shift)], epsilon=epsilon, relation="replace_one")
        # deep in the tail a grid that costs epsilon 1e-5 costs delta 1e-2
        assert exact * (1 - 1e-12) <= got <= exact * (1 + (2e-4 if exact > 1e-12 else 1e-2))
        level = account([sampled("fixed", rate, shift)], delta=exact, relation="replace_one")
        assert epsilon * (1 - 1e-9) <= level.epsilon <= epsilon * (1 + 2e-5) + 2e-6


@pytest.mark.parametrize(("rate", "shift"), [(0.05, 1.5), (0.3, 0.6), (0.01, 4.0)])
def test_two_fixed_steps_by_plain_quadrature(rate, shift):
    # delta_2(e) = E_L delta_1(e - L): right part with density P, image with density Q, atom
    def integrand(x, epsilon):
        loss = math.log1p(rate * math.expm1(shift * x - shift**2 / 2))
        normal = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        up = math.exp(loss) * one_step(epsilon - loss, rate, shift)
        return normal * (up + one_step(epsilon + loss, rate, shift))

    for epsilon in (0.2, 1.5):
        kink = shift / 2 + math.log1p(math.expm1(epsilon) / rate) / shift
        exact = sum(
            quad(integrand, a, b, args=(epsilon,), epsabs=1e-15, epsrel=1e-11, limit=200)[0]
            for a, b in [(shift / 2, kink), (kink, kink + 3), (kink + 3, kink + 15)]
        )
        atom = (1 - rate) * (1 - 2 * ndtr(-shift / 2))
        exact += atom * one_step(epsilon, rate, shift)
        got = delta_of([sampled("fixed", rate, shift, 2)], epsilon=epsilon, relation="replace_one")
        assert exact * (1 - 1e-9) <= got <= exact * (1 + 2e-4)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_one_poisson_step_by_plain_quadrature(relation):
    rate, shift, epsilon = 0.2, 1.2, 0.3
    normal = lambda x, m: math.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    mixed = lambda x, m: (1 - rate) * normal(x, 0) + rate * normal(x, m)  # noqa: E731
    if relation == "replace_one":
        pairs = [(lambda x: mixed(x, shift), lambda x: mixed(x, -shift))]
    else:
        pairs = [(lambda x: mixed(x, shift), lambda x: normal(x, 0))]
        pairs.append((pairs[0][1], pairs[0][0]))
    x = np.linspace(-12, 14, 400_001)
    gap = x[1] - x[0]
    exact = max(
        gap * sum(max(p(v) - math.exp(epsilon) * q(v), 0.0) for v in x[::20]) * 20 for p, q in pairs
    )
    event = sampled("poisson", rate, shift)
    got = delta_of([event], epsilon=epsilon, relation=relation)
    assert got == pytest.approx(exact, rel=1e-4)


# ---- limits and order


def test_gaussian_events_compose_exactly():
    events = [Gaussian(10.0, 1.0, 5), Gaussian(4.0, 0.5, 3), Gaussian(7.0, 1.0, 2, gap=0.8)]
    mu2 = 5 * (2 / 10) ** 2 + 3 * (1 / 4) ** 2 + 2 * (0.8 / 7) ** 2
    level = account(events, delta=1e-5, relation="replace_one")
    assert level.epsilon == _gdp.epsilon(1e-5, math.sqrt(mu2))
    assert level.accountant == "analytic Gaussian"
    mu2 = 5 * (1 / 10) ** 2 + 3 * (0.5 / 4) ** 2 + 2 * (1 / 7) ** 2
    other = account(events, delta=1e-5, relation="add_remove")
    assert other.epsilon == _gdp.epsilon(1e-5, math.sqrt(mu2))


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
def test_full_batches_are_plain_gaussian(kind):
    event = SampledGaussian(5.0, 1.0, 10, 10, kind, 7)
    level = account([event], delta=1e-6, relation="replace_one")
    assert (
        level.epsilon
        == account([Gaussian(5.0, 1.0, 7)], delta=1e-6, relation="replace_one").epsilon
    )


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
def test_central_limit(kind):
    # q = 1/n, T = n^2: mu -> s (fixed, from above, by a share under s/2) or 2 a (poisson)
    n, shift = 1000, 0.02
    factor = 1.0 if kind == "fixed" else 2.0
    event = SampledGaussian(2.0 / factor / shift, 1.0, 1, n, kind, n * n)
    level = account([event], delta=1e-6, relation="replace_one")
    limit = _gdp.epsilon(1e-6, factor * shift)
    assert limit * (1 - 1e-3) < level.epsilon < limit * (1 + (0.5 * shift if factor == 1 else 1e-3))


def test_negligible_companion_changes_nothing():
    # a Gaussian of mu 1e-9 beside one event, through the mixed route
    event = sampled("fixed", 0.01, 0.5, 10_000)
    alone = account([event], delta=1e-6, relation="replace_one").epsilon
    both = account([event, Gaussian(2e9, 1.0)], delta=1e-6, relation="replace_one").epsilon
    assert both == pytest.approx(alone, rel=1e-8)


def test_mixture_of_gaussian_and_vanishing_sampling_is_gaussian():
    events = [Gaussian(3.0, 1.0), sampled("poisson", 0.0001, 1e-6, 3)]
    for relation in ("replace_one", "add_remove"):
        alone = account(events[:1], delta=1e-6, relation=relation).epsilon
        both = account(events, delta=1e-6, relation=relation).epsilon
        assert alone * (1 - 1e-9) <= both <= alone * (1 + 1e-5)


def test_order_in_delta_count_and_scale():
    def epsilon(count=400, shift=0.7, delta=1e-6, kind="fixed"):
        event = sampled(kind, 0.02, shift, count)
        return account([event], delta=delta, relation="replace_one").epsilon

    for kind in ("fixed", "poisson"):
        assert np.all(np.diff([epsilon(delta=d, kind=kind) for d in (1e-12, 1e-8, 1e-4)]) < 0)
        assert np.all(np.diff([epsilon(count=c, kind=kind) for c in (1, 10, 100, 10_000)]) > 0)
        assert np.all(np.diff([epsilon(shift=s, kind=kind) for s in (0.1, 0.5, 1.0, 2.0)]) > 0)


def test_relations_and_samplings_are_ordered():
    # for one scale: add_remove below replace_one under Poisson; Poisson below fixed
    event = sampled("poisson", 0.02, 0.5, 500)
    fixed = SampledGaussian(event.scale, 1.0, event.batch, event.population, "fixed", 500)
    removed = account([event], delta=1e-6, relation="add_remove").epsilon
    replaced = account([event], delta=1e-6, relation="replace_one").epsilon
    assert removed < replaced < account([fixed], delta=1e-6, relation="replace_one").epsilon


def test_extremes():
    event = sampled("fixed", 0.0001, 0.1, 1)
    assert account([event], delta=0.1, relation="replace_one").epsilon == 0.0
    assert account([event], delta=0.0, relation="replace_one").epsilon == math.inf
    assert account([], delta=0.0, relation="replace_one").epsilon == 0.0
    assert delta_of([], epsilon=0.0, relation="replace_one") == 0.0
    # removing a record can be seen at any level, adding one only below -T ln(1 - q)
    adding = release([sampled("poisson", 0.01, 3.0, 4)], "add_remove").directions[1]
    assert adding.most == pytest.approx(-4 * math.log1p(-0.01))
    tiny = account([sampled("fixed", 0.01, 0.3, 10**4)], delta=1e-200, relation="replace_one")
    back = delta_of(
        [sampled("fixed", 0.01, 0.3, 10**4)], epsilon=tiny.epsilon, relation="replace_one"
    )
    assert 0.0 < back <= 1e-200 * (1 + 1e-6)


# ---- agreement of the two routes


@pytest.mark.parametrize("kind", ["fixed", "poisson"])
@pytest.mark.parametrize(("rate", "shift", "count"), [(0.1, 0.3, 300), (0.02, 1.0, 2000)])
def test_fourier_and_grid_agree(kind, rate, shift, count):
    composition = release([sampled(kind, rate, shift, count)], "replace_one").directions[0]
    log_delta = math.log(1e-7)
    saddle = _saddle.for_delta(composition, log_delta)
    contour = _fourier.contour(composition, saddle, 1e9)
    assert contour is not None
    fourier = _solve(contour.log_delta, log_delta, saddle)
    layout = _grid.layout(composition, saddle)
    grid = _solve(_grid.grid(layout).log_delta, log_delta, saddle)
    # the grid is pessimistic, the contour is not
    assert fourier * (1 - 1e-9) <= grid <= fourier * (1 + 3e-5)


def test_contour_does_not_depend_on_its_tilt():
    composition = release([sampled("fixed", 0.02, 0.8, 3000)], "replace_one").directions[0]
    saddle = _saddle.for_delta(composition, math.log(1e-6))
    values = []
    for factor in (0.6, 1.0, 1.3):
        tilt = factor * saddle.tilt
        other = _saddle.Saddle(
            tilt, composition.log_m(tilt), saddle.epsilon, saddle.log_delta, 2 * saddle.period
        )
        contour = _fourier.contour(composition, other, 1e9)
        assert contour is not None
        values.append(contour.log_delta(saddle.epsilon))
    assert np.ptp(values) < 1e-5


def test_round_trip():
    for kind, count in (("fixed", 20), ("poisson", 20), ("fixed", 10**6), ("poisson", 10**6)):
        event = sampled(kind, 0.01, 0.4 if count < 100 else 0.02, count)
        level = account([event], delta=1e-6, relation="replace_one")
        back = delta_of([event], epsilon=level.epsilon, relation="replace_one")
        assert back == pytest.approx(1e-6, rel=1e-3)


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
    got = account([Pure(epsilon, steps)], delta=delta, relation="add_remove").epsilon
    assert exact * (1 - 1e-9) <= got <= exact * (1 + 2e-5)
    split = [Pure(epsilon, n) for n in (steps - steps // 2, steps // 2) if n]
    assert account(split, delta=delta, relation="add_remove").epsilon == got


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
    events = [Laplace(4.0, 1.0, 3), GammaNorm(8.0, 1.0), Exponential(0.1, 2.0, 5), Pure(0.25, 2)]
    level = account(events, delta=0.0, relation="replace_one")
    assert level.epsilon == pytest.approx(3 * 0.5 + 0.25 + 5 * 0.4 + 0.5, rel=1e-15)
    half = account(events, delta=0.0, relation="add_remove").epsilon
    assert half == pytest.approx((level.epsilon - 0.5) / 2 + 0.5, rel=1e-15)
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
    bound = _saddle.renyi_epsilon(
        release([concentrated], "replace_one").directions[0], math.log(1e-6)
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
    concentrated = release([Gaussian(1.0, 0.25, 10)], "replace_one").directions[0]
    assert _saddle.renyi_epsilon(concentrated, math.log(1e-6)) == pytest.approx(8.847, abs=2e-3)
    got = account([Exponential(0.5, 1.0, 10)], delta=1e-6, relation="replace_one").epsilon
    assert got == pytest.approx(8.1159, abs=2e-4)


@pytest.mark.parametrize(
    ("event", "mu"),
    [
        (Laplace(1e5, 1.0, 10**10), 1.0),
        (GammaNorm(1e4, 1.0, 10**8), 1.0),
        (Pure(1e-5, 10**10), 1.0),
        (Pure(1e-3, 10**6), 1.0),
    ],
)
def test_very_many_steps_reach_the_central_limit(event, mu):
    level = account([event], delta=1e-6, relation="add_remove").epsilon
    limit = _gdp.epsilon(1e-6, mu)
    assert limit * (1 - 1e-4) < level < limit * (1 + 5e-4)


def test_many_exponential_mechanisms_take_the_concentrated_route():
    # mu = epsilon sqrt(T / 4); Renyi's conversion costs a little over the Gaussian profile
    level = account([Exponential(1e-4, 1.0, 10**8)], delta=1e-6, relation="add_remove").epsilon
    assert _gdp.epsilon(1e-6, 0.5) < level < 1.1 * _gdp.epsilon(1e-6, 0.5)


# ---- black boxes, approximate samplers, channels


def test_black_boxes_compose_optimally_in_delta():
    base = [Laplace(2.0, 1.0, 4)]
    failure = 1 - (1 - 1e-7) ** 3
    inner = account(
        [*base, Pure(0.2, 3)], delta=(1e-6 - failure) / (1 - failure), relation="add_remove"
    ).epsilon
    got = account([*base, Approx(0.2, 1e-7, 3)], delta=1e-6, relation="add_remove")
    assert got.epsilon == pytest.approx(inner, rel=1e-12)
    assert "black-box" in got.accountant
    spent = account([*base, Approx(0.2, 1e-6)], delta=9e-7, relation="add_remove")
    assert spent.epsilon == math.inf
    back = delta_of([*base, Approx(0.2, 1e-7, 3)], epsilon=got.epsilon, relation="add_remove")
    assert back == pytest.approx(1e-6, rel=1e-3)
    # the whole delta in the black box: its epsilons add up
    only = account([Approx(0.2, 1e-7, 3)], delta=failure * (1 + 1e-9), relation="add_remove")
    assert only.epsilon == pytest.approx(0.6, rel=1e-6)


def test_sampler_errors_follow_their_inequalities():
    pure, normal = [Exponential(1.0, 0.5)], [Gaussian(3.0, 0.5)]
    near = SamplerError("inf", 0.01, 2)
    for delta in (0.0, 1e-6):
        core = account(pure, delta=delta * math.exp(-0.02), relation="replace_one").epsilon
        got = account([*pure, near], delta=delta, relation="replace_one")
        assert got.epsilon == pytest.approx(core + 0.04, rel=1e-12)
    core = _gdp.epsilon(1e-6 * math.exp(-0.02), 1 / 3)
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
    spent = _gdp.delta(level, 1 / 3) + (1 + math.exp(level)) * t
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
        Pure(size, count),
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
    assert account(added, delta=1e-6, relation="add_remove").epsilon < levels[-1]


# ---- refusals


def test_fixed_batches_have_no_add_remove_guarantee():
    with pytest.raises(Unsupported, match="add_remove"):
        account([sampled("fixed", 0.1, 1.0)], delta=1e-6, relation="add_remove")


@pytest.mark.parametrize("delta", [math.nan, -1e-3, 1.0, 2.0])
def test_bad_delta(delta):
    with pytest.raises(InputError):
        account([Gaussian(1.0, 1.0)], delta=delta, relation="replace_one")


def test_bad_relation():
    with pytest.raises(InputError):
        account([Gaussian(1.0, 1.0)], delta=1e-6, relation="replace-one")


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
    mu = _gdp.mu(epsilon, delta)
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
        "pure": [Pure(level, count)],
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
    check_against_peer(20141, 25)


@pytest.mark.slow
def test_against_dp_accounting_many():
    check_against_peer(20142, 500)


def test_tiny_rates_and_shifts_do_not_round_to_zero():
    """The total variation here is 1.3e-11 (normal limit of nearly normal steps): no free lunch."""
    event = SampledGaussian(1.0, 7.07e-8, 1, 790259620, "poisson", 131998888880)
    assert account((event,), delta=9.08e-12, relation="add_remove").epsilon > 0.0
    assert account((event,), delta=1.4e-11, relation="add_remove").epsilon == 0.0
