"""The loss laws: densities, inverses and tilted transforms against plain quadrature."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from dperm_cli.privacy.accounting import bounded_laws
from dperm_cli.privacy.accounting.fourier_inversion import (
    MOST_BLOCKED,
    sum_directly,
    sum_in_blocks,
)
from dperm_cli.privacy.accounting.subsampled_laws import SampledStep, tilt_step

STEPS = [
    SampledStep(rate, shift, form, 1)
    for form in ("fixed", "poisson", "remove", "add")
    for rate, shift in [(1e-4, 0.02), (0.01, 1.5), (0.3, 0.4), (0.05, 5.0)]
]


def densities(step, x):
    """(P, Q) of the pair that the form names, not symmetrised."""
    normal = lambda m: math.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    mixed = (1 - step.rate) * normal(0) + step.rate * normal(step.shift)
    if step.form == "poisson":
        return mixed, (1 - step.rate) * normal(0) + step.rate * normal(-step.shift)
    return (normal(0), mixed) if step.form == "add" else (mixed, normal(0))


def transform(step, z):
    """E e^{zL} by adaptive quadrature from the definition, in real and imaginary parts."""

    def integrand(x, part):
        p, q = densities(step, x)
        if p == 0.0 or q == 0.0:
            return 0.0
        loss = math.log(p / q)
        value = p * np.exp(z * loss)
        if step.form == "fixed":
            value += q * np.exp(-z * loss)
        return getattr(value, part)

    low = step.shift / 2 if step.form == "fixed" else -14.0
    points = dict(limit=400, epsabs=1e-13, epsrel=1e-12)
    total = sum(
        quad(integrand, a, b, args=("real",), **points)[0]
        + 1j * quad(integrand, a, b, args=("imag",), **points)[0]
        for a, b in [(low, step.shift + 3.0), (step.shift + 3.0, 2.0 * step.shift + 14.0)]
    )
    atom = (1 - step.rate) * (1 - 2 * ndtr(-step.shift / 2)) if step.form == "fixed" else 0.0
    return total + atom


@pytest.mark.in_turn
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_transform_against_adaptive_quadrature(step):
    tilt, spacing = 0.6, 0.9
    law = tilt_step(step, tilt, frequency=3 * spacing)
    assert math.exp(law.log_m) == pytest.approx(transform(step, tilt).real, rel=1e-10)
    for route in (sum_directly, sum_in_blocks):
        values = (1 + route(law, spacing, 4)) * math.exp(law.log_m)
        for k in range(4):
            assert abs(values[k] - transform(step, tilt + 1j * k * spacing)) < 1e-10


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_loss_inverse_and_slope(step):
    x = np.linspace(step.start + 0.1, step.start + 9, 50)
    assert np.allclose(step.inverse(step.loss(x)), x, rtol=1e-8)
    middle = (step.loss(x + 1e-5) - step.loss(x - 1e-5)) / 2e-5
    assert np.allclose(step.slope(x), middle, rtol=1e-5, atol=1e-14)
    for value in x[::10]:
        p, q = densities(step, float(value))
        sign = -1.0 if step.form == "add" else 1.0
        assert step.loss(np.array([value]))[0] == pytest.approx(
            sign * math.log(p / q), rel=1e-9, abs=1e-15
        )


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_mass_is_one(step):
    assert tilt_step(step, 0.0).log_m == pytest.approx(0.0, abs=1e-14)
    law = tilt_step(step, 0.3)
    atom = (1 - step.rate) * (1 - 2 * ndtr(-step.shift / 2)) if step.form == "fixed" else 0.0
    total = float(law.even.sum()) + atom * math.exp(-law.log_m)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_refined_panels_follow_the_frequency():
    step = SampledStep(0.01, 2.0, "fixed", MOST_BLOCKED)
    few, many = (len(tilt_step(step, 1.0, frequency=f).x) for f in (0.0, 200.0))
    assert many > 4 * few


# ---- steps of bounded loss

REACHES = [1e-6, 0.003, 0.4, 2.5, 20.0]
BOUNDED = [
    make(reach)
    for make in (bounded_laws.pure, bounded_laws.laplace, bounded_laws.bounded_range)
    for reach in REACHES
]


def exact_transform(step, z):
    """E e^{zL} from the pair itself, in 22 digits: the laws' definitions, not their losses'."""
    e = mpmath.mpf(step.reach)
    if step.share == 1.0:
        chance = mpmath.exp(e) / (1 + mpmath.exp(e))
        return chance * mpmath.exp(z * e) + (1 - chance) * mpmath.exp(-z * e)
    if step.share == 0.0:
        density = lambda x: mpmath.sech(x / 2) ** 2 / 4  # noqa: E731
        loss = lambda x: e + 2 * mpmath.log((1 + mpmath.exp(-x)) / (1 + mpmath.exp(e - x)))  # noqa: E731
        cuts = [-55, -15, -3, e / 2, e + 3, e + 15, e + 55]
        return mpmath.quad(lambda x: density(x - e) * mpmath.exp(z * loss(x)), cuts)
    middle = lambda x: mpmath.exp(x - e) / 2 * mpmath.exp(z * (2 * x - e))  # noqa: E731
    return (
        mpmath.exp(z * e) / 2
        + mpmath.exp(-e) / 2 * mpmath.exp(-z * e)
        + mpmath.quad(middle, mpmath.linspace(0, e, 9))
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("step", BOUNDED, ids=str)
def test_bounded_transform_against_mpmath(step):
    with mpmath.workdps(22):
        tilt, spacing = 0.7, min(0.9 / step.reach, 50.0)
        law = tilt_step(step, tilt, frequency=3 * spacing)
        exact = exact_transform(step, mpmath.mpf(tilt))
        assert law.log_m == pytest.approx(float(mpmath.log(exact)), rel=1e-9, abs=1e-300)
        for route in (sum_directly, sum_in_blocks):
            values = 1 + route(law, spacing, 4)
            for k in (1, 3):
                ratio = exact_transform(step, mpmath.mpc(tilt, k * spacing)) / exact
                assert abs(values[k] - complex(ratio)) < 1e-12


@pytest.mark.parametrize("step", BOUNDED, ids=str)
def test_bounded_mass_mean_and_distance(step):
    assert tilt_step(step, 0.0).log_m == 0.0
    law = tilt_step(step, 0.3)
    assert float(law.even.sum()) == pytest.approx(1.0, abs=1e-12)
    assert tilt_step(step, 0.0).mean <= step.entropy * (1 + 1e-12)
    assert tilt_step(step, 0.0).mean >= 0.65 * min(step.entropy, step.reach)
    assert step.delta(0.0) == pytest.approx(step.distance, rel=1e-9)
    assert step.delta(step.reach) == 0.0


@pytest.mark.parametrize("reach", REACHES)
def test_bounded_profiles_are_those_of_their_pairs(reach):
    with mpmath.workdps(40):
        e = mpmath.mpf(reach)
        for share in (0.0, 0.3, 0.9):
            epsilon = share * e
            a = mpmath.exp(epsilon)
            pure = (mpmath.exp(e) - a) / (1 + mpmath.exp(e))
            # Laplace at 0 and e: best test x < cut, loss e - 2 x = epsilon at the cut
            laplace = 1 - mpmath.exp((epsilon - e) / 2)
            # logistic: sup over the level x of x - a sigma(logit x - e)
            x = 1 / (
                1
                + mpmath.exp(
                    -(
                        e / 2
                        + mpmath.log(
                            mpmath.sinh((e - epsilon) / 4) / mpmath.sinh((e + epsilon) / 4)
                        )
                    )
                )
            )
            logistic = x - a / (1 + mpmath.exp(e - mpmath.log(x / (1 - x))))
            exact = {
                bounded_laws.pure: pure,
                bounded_laws.laplace: laplace,
                bounded_laws.bounded_range: logistic,
            }
            for make, value in exact.items():
                assert make(reach).delta(float(epsilon)) == pytest.approx(float(value), rel=1e-8)


def divergence(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def test_bounded_range_steps_are_dominated_and_the_bound_is_reached():
    rng = np.random.default_rng(5)
    for _ in range(300):
        reach, size = 10 ** rng.uniform(-1, 0.7), int(rng.integers(2, 9))
        q = rng.dirichlet(np.full(size, 0.5))
        p = q * np.exp(reach * rng.choice([rng.random(size), rng.integers(0, 2, size)]))
        p /= p.sum()
        step = bounded_laws.bounded_range(reach)
        for epsilon in reach * rng.random(5):
            assert divergence(p, q, epsilon) <= step.delta(epsilon) * (1 + 1e-9) + 1e-15
    for share in (0.0, 0.3, 0.8):
        reach, epsilon = 1.3, 1.3 * share
        best = 0.0
        for top in np.linspace(epsilon, reach, 2001):
            chance = -math.expm1(top - reach) / -math.expm1(-reach)
            p = np.array([chance, 1 - chance])
            best = max(best, divergence(p, p * np.exp([-top, reach - top]), epsilon))
        assert best == pytest.approx(bounded_laws.bounded_range(reach).delta(epsilon), rel=1e-5)


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_gamma_norm_noise_is_dominated_by_laplace(dimension):
    # density exp(-|b|): coordinates along the shift and distance r from its line
    for shift in (0.3, 2.0):
        x, r = np.linspace(-40, 40, 801)[:, None], np.linspace(0.025, 39.975, 800)[None, :]
        p, q = (r ** (dimension - 2) * np.exp(-np.hypot(x - c, r)) for c in (0.0, shift))
        p, q = p / p.sum(), q / q.sum()
        step = bounded_laws.laplace(shift)
        for share in (0.0, 0.4, 0.8):
            value = divergence(p, q, share * shift)
            # smaller in higher dimension, by a factor that the linear bound does not see
            assert value <= step.delta(share * shift) * (1 + 1e-3) + 1e-12
            if share == 0.0:
                assert value > 0.2 * step.delta(0.0)


def test_split_laplace_shifts_are_dominated_by_one():
    # two coordinates that share the L1 sensitivity: convolve the two losses on a fine grid
    x = np.linspace(-25, 25, 1001)
    for first, second in ((0.5, 0.5), (0.9, 0.1)):
        density = [np.exp(-np.abs(x - c)) for c in (0.0, first, second)]
        p0, p1, p2 = (d / d.sum() for d in density)
        p, q = np.outer(p0, p0), np.outer(p1, p2)
        for epsilon in (0.0, 0.3, 0.8):
            value = divergence(p, q, epsilon)
            assert value <= bounded_laws.laplace(1.0).delta(epsilon) * (1 + 2e-3)


@pytest.mark.parametrize("reach", [1e-5, 1e-3, 0.1, 0.9])
def test_smoothed_atoms_dominate_and_touch(reach):
    step = bounded_laws.pure(reach, 7)
    wide = bounded_laws.smooth_atoms(step)
    assert wide.count == 7
    assert reach < wide.reach <= reach * (1 + reach / 3.9)
    gaps = [wide.delta(e) - step.delta(e) for e in np.linspace(0.0, reach, 400)]
    assert min(gaps) >= -1e-15
    assert min(gaps) < 1e-4 * reach
