"""Certified accounting against closed forms and plain quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting import (
    fourier_inversion,
    gaussian_profile,
    loss_grid,
    saddle_point,
)
from dperm_cli.privacy.accounting.accountant import account, delta_of, solve_epsilon
from dperm_cli.privacy.accounting.dominating_pairs import find_dominating_laws
from dperm_cli.privacy.events import (
    Gaussian,
    SampledGaussian,
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
    assert level.epsilon == gaussian_profile.epsilon(1e-5, math.sqrt(mu2))
    assert level.accountant == "analytic Gaussian"
    mu2 = 5 * (1 / 10) ** 2 + 3 * (0.5 / 4) ** 2 + 2 * (1 / 7) ** 2
    other = account(events, delta=1e-5, relation="add_remove")
    assert other.epsilon == gaussian_profile.epsilon(1e-5, math.sqrt(mu2))


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
    limit = gaussian_profile.epsilon(1e-6, factor * shift)
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
    adding = find_dominating_laws([sampled("poisson", 0.01, 3.0, 4)], "add_remove").directions[1]
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
    composition = find_dominating_laws(
        [sampled(kind, rate, shift, count)], "replace_one"
    ).directions[0]
    log_delta = math.log(1e-7)
    saddle = saddle_point.find_saddle_at_delta(composition, log_delta)
    contour = fourier_inversion.contour(composition, saddle, 1e9)
    assert contour is not None
    fourier = solve_epsilon(contour.log_delta, log_delta, saddle)
    layout = loss_grid.layout(composition, saddle)
    grid = solve_epsilon(loss_grid.grid(layout).log_delta, log_delta, saddle)
    # the grid is pessimistic, the contour is not
    assert fourier * (1 - 1e-9) <= grid <= fourier * (1 + 3e-5)


def test_contour_does_not_depend_on_its_tilt():
    composition = find_dominating_laws(
        [sampled("fixed", 0.02, 0.8, 3000)], "replace_one"
    ).directions[0]
    saddle = saddle_point.find_saddle_at_delta(composition, math.log(1e-6))
    values = []
    for factor in (0.6, 1.0, 1.3):
        tilt = factor * saddle.tilt
        other = saddle_point.Saddle(
            tilt, composition.log_m(tilt), saddle.epsilon, saddle.log_delta, 2 * saddle.period
        )
        contour = fourier_inversion.contour(composition, other, 1e9)
        assert contour is not None
        values.append(contour.log_delta(saddle.epsilon))
    assert np.ptp(values) < 1e-5


def test_round_trip():
    for kind, count in (("fixed", 20), ("poisson", 20), ("fixed", 10**6), ("poisson", 10**6)):
        event = sampled(kind, 0.01, 0.4 if count < 100 else 0.02, count)
        level = account([event], delta=1e-6, relation="replace_one")
        back = delta_of([event], epsilon=level.epsilon, relation="replace_one")
        assert back == pytest.approx(1e-6, rel=1e-3)


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


def test_tiny_rates_and_shifts_do_not_round_to_zero():
    """The total variation here is 1.3e-11 (normal limit of nearly normal steps): no free lunch."""
    event = SampledGaussian(1.0, 7.07e-8, 1, 790259620, "poisson", 131998888880)
    assert account((event,), delta=9.08e-12, relation="add_remove").epsilon > 0.0
    assert account((event,), delta=1.4e-11, relation="add_remove").epsilon == 0.0
