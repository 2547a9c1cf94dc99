"""Proved epsilons: at least the exact ones, which mpmath has here, and hardly above them."""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("flint")

import mpmath
from flint import acb, arb
from mpmath import mpf

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.privacy.accounting import rigorous_level
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.accounting.rigorous_balls import (
    find_least,
    make_ball,
    read_least,
    round_up,
    work_with,
)
from dperm_cli.privacy.accounting.rigorous_grid import GaussianTails, SampledTails, make_grid
from dperm_cli.privacy.accounting.rigorous_level import prove_level
from dperm_cli.privacy.accounting.rigorous_losses import SampledLaw, add_losses, compute_loss
from dperm_cli.privacy.accounting.rigorous_profiles import GaussianBound, SingleSampledBound
from dperm_cli.privacy.accounting.rigorous_transforms import SampledTransform
from dperm_cli.privacy.accounting.saddle_point import Saddle
from dperm_cli.privacy.events import (
    Approx,
    Gaussian,
    Laplace,
    PerturbedObjective,
    Pure,
    SampledGaussian,
    SparseAnswers,
)
from tests.privacy._events import EVENTS, proved
from tests.privacy.rigorous_distance import KINDS, compare, draw_plans

REPLACE = "replace_one"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "rigorous.md"


@pytest.fixture(autouse=True)
def _many_digits():
    with mpmath.workdps(60):
        yield


def phi(x):
    return mpmath.ncdf(x)


def gaussian_delta(epsilon, mu):
    """The exact profile, also below 0."""
    return phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def binomial_chances(reach, count):
    """Losses of equal pure steps with their chances."""
    big = 1 / (1 + mpmath.exp(-reach))
    for j in range(count + 1):
        chance = mpmath.binomial(count, j) * big**j * (1 - big) ** (count - j)
        yield (2 * j - count) * reach, chance


def pure_delta(epsilon, reach, count):
    return sum(
        chance * max(mpf(0), 1 - mpmath.exp(epsilon - loss))
        for loss, chance in binomial_chances(reach, count)
    )


def mixed_delta(epsilon, mu, reach, count):
    """Of a Gaussian beside equal pure steps, exactly: the mean of its profile over their loss."""
    return sum(
        chance * gaussian_delta(epsilon - loss, mu)
        for loss, chance in binomial_chances(reach, count)
    )


def sampled_delta(epsilon, form, rate, shift):
    """Of one release over a random batch, from the two densities by quadrature."""
    q, s = mpf(rate), mpf(shift)
    pairs = {
        "fixed": ((0, s), (0, 0)), "remove": ((0, s), (0, 0)), "add": ((0, 0), (0, s)),
        "poisson": ((0, s), (0, -s)),
    }  # fmt: skip
    first, second = pairs[form]

    def density(x, places):
        return (1 - q) * mpmath.npdf(x, places[0]) + q * mpmath.npdf(x, places[1])

    def gain(x):
        return density(x, first) - mpmath.exp(epsilon) * density(x, second)

    grid = [mpf(k) / 2 for k in range(-24, 25)]
    ends = [mpf(-12)]
    for low, high in pairwise(grid):
        if gain(low) * gain(high) < 0:
            ends.append(mpmath.findroot(gain, (low, high), solver="anderson"))
    ends.append(mpf(12))
    with mpmath.workdps(25):
        parts = [mpmath.quad(gain, mpmath.linspace(a, b, 5)) for a, b in pairwise(ends)]
    return sum((max(mpf(0), part) for part in parts), mpf(0))


def require_tight(found, delta, exact, room=1e-14):
    """The proved epsilon, and its decimal digits, are large enough; a little less is not."""
    for epsilon in (mpf(found.epsilon), mpf(repr(found.epsilon))):
        assert exact(epsilon) <= mpf(delta)
    assert exact(mpf(found.epsilon) * (1 - mpf(room))) > mpf(delta)


@pytest.mark.parametrize("mu2", [1e-6, 0.01, 0.3, 4.0, 60.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-5, 0.03])
def test_gaussian_epsilon_is_the_exact_one_rounded_up(mu2, delta):
    event = Gaussian(1.0, math.sqrt(mu2), 1)
    mu = mpf(event.record_norm)
    found = prove_level([event], delta=delta, relation="add_remove")
    if found.epsilon == 0.0:
        assert gaussian_delta(mpf(0), mu) <= delta
    else:
        require_tight(found, delta, lambda e: gaussian_delta(e, mu))


def test_sums_of_pure_steps_are_exact_sums_rounded_up():
    events = [Laplace(3.0, 0.1, 7), Pure(0.1, 11), Pure(1e-17, 3)]
    found = prove_level(events, delta=0.0, relation=REPLACE)
    exact = 7 * 2 * Fraction(0.1) / 3 + 11 * Fraction(0.1) + 3 * Fraction(1e-17)
    for value in (Fraction(found.epsilon), Fraction(repr(found.epsilon))):
        assert exact <= value
    assert found.epsilon <= float(exact) * (1 + 5e-16)
    assert found.words == "yes (sum)"


@pytest.mark.parametrize(("reach", "count"), [(1.3, 1), (0.7, 2), (0.25, 17), (0.02, 600)])
def test_equal_pure_steps(reach, count):
    found = prove_level([Pure(reach, count)], delta=1e-5, relation=REPLACE)
    require_tight(found, 1e-5, lambda e: pure_delta(e, mpf(reach), count))


@pytest.mark.parametrize("epsilon", [0.05, 0.9])
def test_laplace_step(epsilon):
    found = prove_level([Laplace(1.0, epsilon / 2)], delta=1e-3, relation=REPLACE)
    reach = mpf(epsilon)
    require_tight(found, 1e-3, lambda e: 1 - mpmath.exp((e - reach) / 2))


@pytest.mark.parametrize(
    ("form", "sampling", "relation"),
    [
        ("fixed", "fixed", REPLACE),
        ("poisson", "poisson", REPLACE),
        ("both", "poisson", "add_remove"),
    ],
)
def test_one_sampled_release(form, sampling, relation):
    event = SampledGaussian(2.0, 1.5, 10, 80, sampling)
    shift = event.record_norm / event.scale * (2.0 if form == "fixed" else 1.0)
    forms = ("remove", "add") if form == "both" else (form,)
    found = prove_level([event], delta=1e-4, relation=relation)

    def exact(epsilon):
        return max(sampled_delta(epsilon, one, 10 / mpf(80), shift) for one in forms)

    assert found.method == "closed form"
    require_tight(found, 1e-4, exact, room=1e-12)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_gaussian_beside_pure_steps_by_the_contour(count):
    mu, reach = 0.4, 0.3 / math.sqrt(count)
    events = [Gaussian(1.0, mu), Pure(reach, count, "add_remove")]
    found = prove_level(events, delta=1e-6, relation="add_remove")
    assert found.method == "contour"
    require_tight(found, 1e-6, lambda e: mixed_delta(e, mpf(mu), mpf(reach), count), room=1e-9)


def test_failures_and_sampler_errors_are_paid():
    events = [Gaussian(1.0, 0.5), Approx(0.0, 3e-7, 2, "add_remove")]
    found = prove_level(events, delta=1e-6, relation="add_remove")
    kept = (1 - mpf(3e-7)) ** 2
    exact = lambda e: 1 - kept * (1 - gaussian_delta(e, mpf(0.5)))  # noqa: E731
    require_tight(found, 1e-6, exact)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("beside", [None, 0.01])
def test_objective_perturbation(relation, beside):
    """Far beyond the edge the bound is twice the delta of both Gaussians, epsilon less J."""
    first = PerturbedObjective("gaussian", 40.0, 1.0, 0.25, 2.0, 1e-6)
    events = [first] if beside is None else [first, Gaussian(1.0, beside / 2)]
    found = prove_level(events, delta=1e-6, relation=relation)
    size = 2 if relation == REPLACE else 1
    both = mpmath.hypot(mpf(size) / 40, size * mpf(beside or 0) / 2)
    jacobian = mpmath.log1p(mpf(0.25) / 2)
    assert found.method == "closed form"
    require_tight(found, 1e-6, lambda e: 2 * gaussian_delta(e - jacobian, both), room=1e-9)


@pytest.mark.parametrize("form", ["fixed", "poisson", "remove", "add"])
def test_transforms_of_batches_hold_the_integral_and_its_decay(form):
    law = SampledLaw(form, make_ball(Fraction(1, 10)), arb(1), 1)
    transform, q, s = SampledTransform(law), mpf(1) / 10, mpf(1)
    tilt = mpf("1.5")

    def mix(x, side):
        return 1 - q + q * mpmath.exp(side * s * x - s * s / 2)

    def compute(z):
        base = {
            "remove": lambda x: mix(x, 1) ** (1 + z),
            "add": lambda x: mix(x, 1) ** -z,
            "fixed": lambda x: mix(x, 1) ** (1 + z) + mix(x, 1) ** -z if x > s / 2 else 0,
            "poisson": lambda x: mix(x, 1) ** (1 + z) * mix(x, -1) ** -z,
        }[form]
        places = [s / 2, 3, 8, 20] if form == "fixed" else [-14, -5, 0, 3, 8, 20]
        found = mpmath.quad(lambda x: mpmath.npdf(x) * base(x), places)
        return found + (1 - q) * (1 - 2 * phi(-s / 2)) if form == "fixed" else found

    with work_with(128), mpmath.workdps(25):
        peak = compute(tilt)
        for t in (0.0, 3.0, 11.0):
            ball, exact = transform.compute(acb(1.5, t)), compute(mpmath.mpc(tilt, t))
            for part, number in ((ball.real, exact.real), (ball.imag, exact.imag)):
                assert abs(mpf(float(part.mid())) - number) < 1e-14
                assert float(part.rad()) < 1e-15
            assert abs(exact) / peak <= float(transform.bound_decay(arb(1.5), arb(t)).upper())
        assert float(transform.bound_decay(arb(1.5), arb(60)).upper()) < 0.999


@pytest.mark.parametrize("form", ["fixed", "poisson", "remove", "add"])
def test_profiles_of_one_batch(form):
    with work_with(128):
        bound = SingleSampledBound(form, make_ball(Fraction(1, 8)), arb(0.75))
        for epsilon in (0.01, 0.1, 0.5):
            exact = sampled_delta(mpf(epsilon), form, mpf(1) / 8, 0.75)
            found = bound.delta(arb(epsilon))
            assert abs(mpf(float(found.mid())) - exact) <= mpf("1e-14")


@pytest.mark.parametrize("form", ["fixed", "poisson", "remove", "add"])
def test_the_grid_of_one_batch_is_just_above_its_profile(form):
    law = SampledLaw(form, make_ball(Fraction(1, 8)), arb(0.75), 1)
    saddle = Saddle(8.0, 1.0, 0.3, -8.0, math.inf)
    with work_with(128):
        grid = make_grid([(SampledTails(law), 1)], saddle)
        exact = SingleSampledBound(form, law.rate, law.shift)
        for epsilon in (0.0, 0.013, 0.1, 0.12):
            found, least = grid.delta(arb(epsilon)), exact.delta(arb(epsilon))
            assert not found < least
            assert found <= least * 1.0001 + 1e-7


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_the_grid_of_gaussian_releases_is_just_above_their_profile(count):
    """Their composition is known exactly, which that of batches is not."""
    mu = 0.9 / math.sqrt(count)
    saddle = Saddle(5.0, 8.0, 3.0, -14.0, math.inf)
    with work_with(128):
        grid = make_grid([(GaussianTails(make_ball(mu)), count)], saddle)
        exact = GaussianBound(make_ball(mu) * arb(count).sqrt())
        for epsilon in (0.0, 0.5, 1.7, 3.1):
            found, least = grid.delta(arb(epsilon)), exact.delta(arb(epsilon))
            assert not found < least
            assert found <= least * 1.001 + 1e-12


def test_a_short_run_of_batches_is_on_the_grid_and_a_long_one_on_the_contour():
    short = SampledGaussian(8.0, 3.0, 2, 80, "fixed", 7)
    long = SampledGaussian(8.0, 3.0, 2, 8000, "fixed", 10**6)
    for event, method, limit in ((short, "grid", 1e-5), (long, "contour", 1e-9)):
        level = account([event], delta=1e-6, relation=REPLACE)
        found = prove_level([event], delta=1e-6, relation=REPLACE)
        assert found.method == method
        assert found.epsilon == pytest.approx(level.epsilon, rel=limit)


@pytest.mark.parametrize("name", EVENTS)
def test_ball_losses_are_those_of_the_events(name):
    """mu, reach, rate, shift and failure in float64 lie within rounding of the balls."""
    event = EVENTS[name]
    for relation in proved(event):
        loss = event.loss(relation)
        with work_with(200):
            ball = compute_loss(event, relation)
            pairs = [(ball.mu2, loss.mu2), (ball.ratio, loss.ratio), (ball.distance, loss.distance)]
            if loss.bounded is not None:
                (step,) = ball.bounded
                pairs += [(step.reach, loss.bounded.reach), (arb(step.count), loss.bounded.count)]
            if loss.sampled is not None:
                (step,) = ball.sampled
                pairs += [(step.rate, loss.sampled.rate), (step.shift, loss.sampled.shift)]
            if loss.selection is not None:
                (law,) = ball.selections
                pairs.append((law.mu, loss.selection.mu))
            kept = math.exp(loss.log_failure) if not loss.exposed else 0.0
            pairs.append((arb(1) * ball.kept, kept))
        for exact, number in pairs:
            assert float((arb(0) + exact).mid()) == pytest.approx(number, rel=1e-11, abs=1e-300), (
                name
            )


def read_limits() -> dict[str, tuple[float, ...]]:
    """Of each kind of plan the largest distances on the page: float64 says less, and more."""
    rows = re.findall(r"^\| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    cells = [row.split(" | ") for row in rows]
    limits = {row[0]: (row[4], row[7]) for row in cells if row[0] in KINDS}
    return {
        kind: tuple(0.0 if cell == "-" else float(cell) for cell in pair)
        for kind, pair in limits.items()
    }


def test_the_first_plans_of_the_page_are_as_far_apart_as_it_says():
    """Within the page's largest distances, up to their two digits."""
    limits = read_limits()
    assert set(limits) == set(KINDS)
    for plan in draw_plans(14):
        found = compare(plan)
        assert found.proved.epsilon is not None, plan
        less, more = limits[plan.kind]
        assert -1.06 * more <= found.distance <= 1.06 * less, plan


def test_float64_says_less_than_the_proved_bound_by_a_rounding():
    """The double that is nearest to a third is less than a third."""
    events = [Laplace(3.0, 0.5)]
    plain = account(events, delta=0.0, relation=REPLACE).epsilon
    found = prove_level(events, delta=0.0, relation=REPLACE)
    assert Fraction(plain) < Fraction(1, 3) <= Fraction(found.epsilon)
    assert found.epsilon == math.nextafter(plain, 1.0)


def test_what_is_not_proved_says_why():
    run = SparseAnswers(80.0, 3.0, 900.0, 3, 40)
    found = prove_level([run], delta=1e-6, relation=REPLACE)
    assert found.epsilon is None
    assert found.words.startswith("not rigorous: the Renyi bound of the updates")
    assert prove_level([run], delta=0.0, relation=REPLACE).epsilon == pytest.approx(3.0)

    class OwnNoise(Gaussian):
        """An event that is not dperm's."""

    found = prove_level([OwnNoise(3.0, 1.0)], delta=1e-6, relation=REPLACE)
    assert found.words == "not rigorous: what OwnNoise spends is written in float64 alone"
    with pytest.raises(Unsupported):
        prove_level([EVENTS["Channel"]], delta=0.0, relation="add_remove")


def test_no_guarantee_stays_infinite():
    assert prove_level([Gaussian(1.0, 1.0)], delta=0.0, relation=REPLACE).epsilon == math.inf


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(InputError, match=r"rigorous=True: needs .*pip install 'dperm\[rigorous\]'"):
        rigorous_level.require_flint()


@pytest.mark.parametrize("value", [0.1, 0.3, 1.0, 1e-300, 123456.789])
def test_doubles_and_their_digits(value):
    with work_with(128):
        assert read_least(value) <= make_ball(value)
        assert float(read_least(value).mid()) == value
        third = make_ball(value) / 3
        up = round_up(third)
        assert make_ball(up) >= third
        assert make_ball(Fraction(repr(up))) >= third
        assert up <= value / 3 * (1 + 5e-16)
        assert round_up(arb.pos_inf()) == math.inf
        assert round_up(arb(0)) == 0.0


@pytest.mark.parametrize("guess", [0.0, 1e-9, 0.7, 0.7071067811865475, 5.0])
def test_the_search_ends_at_the_least_double(guess):
    with work_with(128):
        found = find_least(lambda x: bool(x * x >= arb(1) / 2), guess)
        assert found == round_up((arb(1) / 2).sqrt())
        assert find_least(lambda x: False, guess) == math.inf


def test_losses_of_the_same_law_are_added_up():
    with work_with(128):
        whole = add_losses([compute_loss(Laplace(3.0, 1.0, k), REPLACE) for k in (2, 5)])
    (step,) = whole.bounded
    assert step.count == 7
