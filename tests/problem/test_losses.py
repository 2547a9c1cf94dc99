"""Losses: derivatives, kinks, bounds and conjugates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dperm_cli.core import registry

NAMES = ["logistic", "hinge", "squared", "absolute"]
CODES = {"logistic": 0, "hinge": 1, "squared": 2, "absolute": 3}
KINKED = {"hinge", "absolute"}

margins = st.floats(-30, 30)
labels = st.sampled_from([-1.0, 1.0])
targets = st.floats(-1, 1)

few = settings(max_examples=40, deadline=None)


def loss(name):
    return registry.load("loss", name)()


def label_of(name, sign, target):
    return np.array([sign if "binary" in loss(name).tasks else target])


@pytest.mark.parametrize("name", NAMES)
def test_identity(name):
    cls = registry.load("loss", name)
    assert cls.name == name
    assert cls.code == CODES[name]
    assert set(cls.tasks) <= {"binary", "regression"}
    assert dataclasses.fields(cls) == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        cls().code = 7


@pytest.mark.parametrize(
    ("name", "z", "y", "value"),
    [
        ("logistic", 0.0, 1.0, np.log(2.0)),
        ("logistic", -1.0, 1.0, np.log1p(np.e)),
        ("hinge", -1.0, 1.0, 2.0),
        ("hinge", 3.0, 1.0, 0.0),
        ("squared", 2.0, -1.0, 4.5),
        ("absolute", 2.0, -1.0, 3.0),
    ],
)
def test_known_values(name, z, y, value):
    assert loss(name).value(np.array([z]), np.array([y]))[0] == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_broadcasts_over_leading_axes(name):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(2, 3, 5)), np.sign(rng.normal(size=5))
    for method in (loss(name).value, loss(name).slope, loss(name).conjugate):
        whole = method(z, y)
        assert whole.shape == z.shape
        np.testing.assert_array_equal(whole[1, 2], method(z[1, 2], y))


@pytest.mark.parametrize("name", NAMES)
@few
@given(z=margins, sign=labels, target=targets)
def test_slope_is_the_derivative(name, z, sign, target):
    y, h = label_of(name, sign, target), 1e-6
    kink = {"hinge": y[0], "absolute": y[0]}.get(name, np.inf)
    if abs(z - kink) < 1e-5:
        return
    f = loss(name).value
    numeric = (f(np.array([z + h]), y) - f(np.array([z - h]), y)) / (2 * h)
    np.testing.assert_allclose(loss(name).slope(np.array([z]), y), numeric, atol=1e-7)


def test_slopes_at_the_kinks():
    y = np.array([1.0, -1.0])
    np.testing.assert_array_equal(loss("hinge").slope(y, y), [0.0, 0.0])
    np.testing.assert_array_equal(loss("hinge").slope(y * (1 - 1e-12), y), -y)
    np.testing.assert_array_equal(loss("absolute").slope(y, y), [0.0, 0.0])


@pytest.mark.parametrize("name", ["logistic", "squared"])
@few
@given(z=margins, sign=labels, target=targets)
def test_curvature_and_smoothness(name, z, sign, target):
    y, h, one = label_of(name, sign, target), 1e-5, loss(name)
    numeric = (one.slope(np.array([z + h]), y) - one.slope(np.array([z - h]), y)) / (2 * h)
    np.testing.assert_allclose(one.curvature(np.array([z]), y), numeric, atol=1e-6)
    assert one.curvature(np.array([z]), y)[0] <= one.smoothness * (1 + 1e-15)
    assert one.curvature(np.zeros(1), y)[0] == one.smoothness  # so no smaller constant will do


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("margin", [0.1, 3.0])
def test_slope_bound_is_the_supremum(name, margin):
    z = np.linspace(-margin, margin, 2001)[:, None]
    y = np.array([-1.0, 1.0])
    reached = np.max(np.abs(loss(name).slope(z, y)))
    assert loss(name).slope_bound(margin, 1.0) == pytest.approx(reached, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@few
@given(z=margins, w=margins, sign=labels, target=targets)
def test_fenchel_young(name, z, w, sign, target):
    y, one = label_of(name, sign, target), loss(name)
    a = one.slope(np.array([z]), y)
    assert one.conjugate(a, y)[0] + one.value(np.array([z]), y)[0] == pytest.approx(
        a[0] * z, abs=1e-12
    )
    assert one.conjugate(a, y)[0] >= a[0] * w - one.value(np.array([w]), y)[0] - 1e-12


@pytest.mark.parametrize("name", ["logistic", "hinge", "absolute"])
def test_conjugate_is_infinite_outside_its_domain(name):
    y = np.array([1.0, -1.0])
    assert np.all(np.isfinite(loss(name).conjugate(-y, y)))
    assert np.all(np.isposinf(loss(name).conjugate(-1.001 * y, y)))
    if name != "absolute":
        assert np.all(np.isposinf(loss(name).conjugate(0.001 * y, y)))


@pytest.mark.parametrize("name", sorted(KINKED))
@few
@given(z=margins, sign=labels, target=targets)
def test_pieces_add_up_to_the_loss(name, z, sign, target):
    y = label_of(name, sign, target)
    piece_sign, offset, up, down = loss(name).pieces(y)
    r = piece_sign * z + offset
    value = up * np.maximum(r, 0) + down * np.maximum(-r, 0)
    np.testing.assert_allclose(value, loss(name).value(np.array([z]), y), atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@few
@given(z=st.floats(-1e300, 1e300), sign=labels)
def test_extreme_margins_neither_overflow_nor_warn(name, z, sign):
    if name == "squared":
        z = np.sign(z) * min(abs(z), 1e150)
    y = np.array([sign])
    assert np.isfinite(loss(name).value(np.array([z]), y)[0])
    assert np.isfinite(loss(name).slope(np.array([z]), y)[0])
