"""The loss laws: densities, inverses and tilted transforms against plain quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from dperm_cli.privacy._fourier import _MOST_BLOCKED, _blocked, _direct
from dperm_cli.privacy._laws import Step, tilted

STEPS = [
    Step(rate, shift, form, 1)
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


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_transform_against_adaptive_quadrature(step):
    tilt, spacing = 0.6, 0.9
    law = tilted(step, tilt, frequency=3 * spacing)
    assert math.exp(law.log_m) == pytest.approx(transform(step, tilt).real, rel=1e-10)
    for route in (_direct, _blocked):
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
    assert tilted(step, 0.0).log_m == pytest.approx(0.0, abs=1e-14)
    law = tilted(step, 0.3)
    atom = (1 - step.rate) * (1 - 2 * ndtr(-step.shift / 2)) if step.form == "fixed" else 0.0
    total = float(law.even.sum()) + atom * math.exp(-law.log_m)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_refined_panels_follow_the_frequency():
    step = Step(0.01, 2.0, "fixed", _MOST_BLOCKED)
    few, many = (len(tilted(step, 1.0, frequency=f).x) for f in (0.0, 200.0))
    assert many > 4 * few
