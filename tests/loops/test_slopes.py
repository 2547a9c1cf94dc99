"""Slopes: the documented formulas, derivatives, kinks; the room's own exponential."""

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from dperm_cli.loops import slopes

LOSSES = {
    slopes.LOGISTIC: lambda z, y: np.logaddexp(0, -y * z),
    slopes.HINGE: lambda z, y: np.maximum(0, 1 - y * z),
    slopes.SQUARED: lambda z, y: (z - y) ** 2 / 2,
    slopes.ABSOLUTE: lambda z, y: np.abs(z - y),
}
FORMULAS = {
    slopes.LOGISTIC: lambda z, y: -y * expit(-y * z),
    slopes.HINGE: lambda z, y: np.where(y * z < 1, -y, 0.0),
    slopes.SQUARED: lambda z, y: z - y,
    slopes.ABSOLUTE: lambda z, y: np.sign(z - y),
}
MARGINS = np.r_[np.linspace(-40, 40, 801), -1.0, 0.0, 1.0, -800.0, 800.0]


def compiled(code, z, y):
    return np.array([slopes.slope(code, a, y) for a in z])


@pytest.mark.parametrize("code", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_agrees_with_its_formula(code, y):
    assert np.max(np.abs(compiled(code, MARGINS, y) - FORMULAS[code](MARGINS, y))) < 1e-15


@pytest.mark.parametrize("code", LOSSES)
def test_is_the_derivative_of_its_loss(code):
    z, h = np.linspace(-3.01, 3.02, 41), 1e-6
    numeric = (LOSSES[code](z + h, 1.0) - LOSSES[code](z - h, 1.0)) / (2 * h)
    assert np.allclose(compiled(code, z, 1.0), numeric, atol=1e-8)


def test_kinks():
    for y in (-1.0, 1.0):
        assert slopes.slope(slopes.HINGE, y, y) == 0.0
        assert slopes.slope(slopes.ABSOLUTE, y, y) == 0.0


def test_all_at_once_has_the_same_bits():
    y = np.where(np.arange(MARGINS.size) % 2, 1.0, -1.0)
    for code in LOSSES:
        together = MARGINS.copy()
        slopes.slopes(code, together, y)
        alone = [slopes.slope(code, a, b) for a, b in zip(MARGINS, y, strict=True)]
        assert together.tobytes() == np.array(alone).tobytes()


def test_exponential():
    points = np.r_[np.linspace(-708, 708, 1001), np.linspace(-1, 1, 501), 1e-300]
    exact = np.array([mpmath.exp(mpmath.mpf(x)) for x in points])
    ours = [slopes.exp(x) for x in points]
    assert max(abs(float(a / e - 1)) for a, e in zip(ours, exact, strict=True)) < 4e-16
    assert slopes.exp(900.0) == slopes.exp(708.0)
    assert slopes.exp(-900.0) == slopes.exp(-708.0)
