"""Losses of a margin: derivatives, kinks, bounds, conjugates, compiled twins."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.loops import slopes
from dperm_cli.problem.data import Bounds
from dperm_cli.sets.l2_ball import L2Ball

CODES = {
    "logistic": 0, "hinge": 1, "squared": 2, "absolute": 3, "linear": 4,
    "huberized_hinge": 5, "positive_part": 6, "huberized_positive_part": 7,
}  # fmt: skip
NAMES = list(CODES)
KINKED = {"hinge", "absolute", "positive_part"}
SMOOTH = sorted(set(NAMES) - KINKED)
ROUNDED = {"huberized_hinge": "hinge", "huberized_positive_part": "positive_part"}
WIDTHS = [0.05, 0.1, 0.7, 3.0]

margins = st.floats(-30, 30)
labels = st.sampled_from([-1.0, 1.0])
targets = st.floats(-1, 1)

few = settings(max_examples=40, deadline=None)


def loss(name, **fields):
    return registry.load("loss", name)(**fields)


def label_of(name, sign, target):
    return np.array([sign if "binary" in loss(name).tasks else target])


@pytest.mark.parametrize("name", NAMES)
def test_identity(name):
    cls = registry.load("loss", name)
    assert cls.name == name
    assert cls.code == CODES[name]
    assert set(cls.tasks) <= {"binary", "regression"}
    assert [f.name for f in dataclasses.fields(cls)] == (["width"] if name in ROUNDED else [])
    assert (cls().width > 0) == (name in ROUNDED)
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
        ("linear", 2.0, -0.25, 0.5),
        ("positive_part", -0.5, 1.0, 1.5),
        ("positive_part", 1.5, 1.0, 0.0),
        ("huberized_hinge", 1.0, 1.0, 0.025),  # h / 4 at the kink
        ("huberized_hinge", 0.9, 1.0, 0.1),  # as the hinge at the edges
        ("huberized_hinge", 1.1, 1.0, 0.0),
        ("huberized_positive_part", -0.5, -0.45, 0.05625),  # (0.05 + 0.1)^2 / 0.4
    ],
)
def test_known_values(name, z, y, value):
    found = loss(name).value(np.array([z]), np.array([y]))[0]
    assert found == pytest.approx(value, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_broadcasts_over_leading_axes(name):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(2, 3, 5)), np.sign(rng.normal(size=5))
    methods = [loss(name).value, loss(name).slope, loss(name).conjugate]
    for method in methods + ([loss(name).curvature] if name in SMOOTH else []):
        whole = method(z, y)
        assert whole.shape == z.shape
        np.testing.assert_array_equal(whole[1, 2], method(z[1, 2], y))


@pytest.mark.parametrize("name", NAMES)
@few
@given(z=margins, sign=labels, target=targets)
def test_slope_is_the_derivative(name, z, sign, target):
    y, h = label_of(name, sign, target), 1e-6
    if name in KINKED and abs(z - y[0]) < 1e-5:
        return
    f = loss(name).value
    numeric = (f(np.array([z + h]), y) - f(np.array([z - h]), y)) / (2 * h)
    near = 1e-5 if name in ROUNDED else 1e-7
    np.testing.assert_allclose(loss(name).slope(np.array([z]), y), numeric, atol=near)


def test_slopes_at_the_kinks():
    y = np.array([1.0, -1.0])
    np.testing.assert_array_equal(loss("hinge").slope(y, y), [0.0, 0.0])
    np.testing.assert_array_equal(loss("hinge").slope(y * (1 - 1e-12), y), -y)
    np.testing.assert_array_equal(loss("absolute").slope(y, y), [0.0, 0.0])
    np.testing.assert_array_equal(loss("positive_part").slope(y, y), [0.0, 0.0])
    np.testing.assert_array_equal(loss("positive_part").slope(y - 1e-12, y), [-1.0, -1.0])


@pytest.mark.parametrize("name", SMOOTH)
@few
@given(z=margins, sign=labels, target=targets)
def test_curvature_and_smoothness(name, z, sign, target):
    y, h, one = label_of(name, sign, target), 1e-5, loss(name)
    if name in ROUNDED and abs(abs(z - y[0]) - one.width) < 1e-4:
        return
    numeric = (one.slope(np.array([z + h]), y) - one.slope(np.array([z - h]), y)) / (2 * h)
    np.testing.assert_allclose(one.curvature(np.array([z]), y), numeric, atol=1e-6)
    assert one.curvature(np.array([z]), y)[0] <= one.smoothness * (1 + 1e-15)
    steepest = y if name in ROUNDED else np.zeros(1)
    assert one.curvature(steepest, y)[0] == one.smoothness  # so no smaller constant will do


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("margin", [0.1, 3.0])
def test_slope_bound_is_the_supremum(name, margin):
    z = np.linspace(-margin, margin, 2001)[:, None]
    y = np.array([-1.0, 1.0])
    reached = np.max(np.abs(loss(name).slope(z, y)))
    assert loss(name).slope_bound(margin, 1.0) == pytest.approx(reached, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("margin", [0.1, 0.9, 1.05, 3.0])
@pytest.mark.parametrize("target", [0.4, 1.0])
def test_span_is_the_supremum_of_the_range(name, margin, target):
    one, z = loss(name), np.linspace(-margin, margin, 20001)[:, None]
    y = np.array([-1.0, 1.0]) if "regression" not in one.tasks else np.linspace(-target, target, 9)
    values = one.value(z, y)
    reached = np.max(np.ptp(values, axis=0))
    assert one.span(margin, target) == pytest.approx(reached, rel=1e-3)
    assert one.span(margin, target) >= reached * (1 - 1e-12)


def exact_huber(u, h):
    """f(u) in fractions."""
    return 0 if u < -h else u if u > h else (u + h) ** 2 / (4 * h)


@pytest.mark.parametrize("margin", [1e-50, 1e-25, 3e-17, 1e-12, 1e-5, 0.3, 0.8, 1.0, 1.7, 1e20])
@pytest.mark.parametrize("target", [1e-30, 0.2, 1.0])
def test_spans_of_small_margins_are_not_lost_in_rounding(margin, target):
    """Against fractions: a span that is too small is a sensitivity that is too small."""
    m, t, one = Fraction(margin), Fraction(target), Fraction(1)
    square = ((m + t) ** 2 - max(Fraction(0), t - m) ** 2) / 2
    assert loss("squared").span(margin, target) == pytest.approx(float(square), rel=1e-14)
    for width in (1e-3, 0.2, 0.5, 3.0):
        h = Fraction(width)
        for name, at in (("huberized_hinge", one), ("huberized_positive_part", t)):
            exact = exact_huber(at + m, h) - exact_huber(at - m, h)
            found = loss(name, width=width).span(margin, target)
            assert found == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("classes", [2, 3, 7, 1000])
def test_the_multinomial_span_of_small_margins(classes):
    """Its slope in the largest difference of scores is (2 K - 2) / K at 0."""
    for row in (1e-50, 1e-20, 1e-9):
        b = Bounds(row, 1.0, 1.0, columns=2, classes=classes)
        ball = L2Ball(1.0, 2 * classes)
        gap = math.sqrt(2.0) * row
        span = (2.0 * classes - 2.0) / classes * gap
        least = min(2.0 * span, 2.0 * loss("multinomial").lipschitz(b) * 2.0)
        assert loss("multinomial").oscillation(b, ball) == pytest.approx(least, rel=1e-6)
        assert loss("multinomial").oscillation(b, ball) > 0.0


@pytest.mark.parametrize("name", sorted(ROUNDED))
@pytest.mark.parametrize("width", WIDTHS)
def test_rounding_off_a_kink(name, width):
    """[BST14, App. A]: z^2 / 4h + z / 2 + h / 4 on [-h, h], the kinked loss outside."""
    one, kinked = loss(name, width=width), loss(ROUNDED[name])
    z, y = np.linspace(-6, 6, 12001)[:, None], np.array([-1.0, 1.0])
    u = 1 - y * z if name == "huberized_hinge" else y - z
    added = one.value(z, y) - kinked.value(z, y)
    assert np.all(added >= -1e-15)
    assert np.max(added) == pytest.approx(width / 4, rel=1e-9)
    np.testing.assert_allclose(added[np.abs(u) >= width], 0.0, atol=1e-15)
    inside = np.abs(u) <= width
    formula = u**2 / (4 * width) + u / 2 + width / 4
    np.testing.assert_allclose(one.value(z, y)[inside], formula[inside], atol=1e-14)
    assert one.smoothness == pytest.approx(1 / (2 * width))


@pytest.mark.parametrize("name", sorted(ROUNDED))
@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf, True, "0.1"])
def test_a_width_must_be_positive(name, width):
    with pytest.raises(InputError, match=r"loss\.width"):
        loss(name, width=width)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_slopes_agree(name):
    z = np.r_[np.linspace(-40, 40, 801), -1.0, 0.0, 1.0, -800.0, 800.0]
    for one in [loss(name, width=w) for w in WIDTHS] if name in ROUNDED else [loss(name)]:
        for target in (-1.0, 1.0) if one.tasks == ("binary",) else (-1.0, -0.3, 0.0, 1.0):
            compiled = [slopes.slope(one.code, a, target, one.width) for a in z]
            expected = one.slope(z, np.full_like(z, target))
            np.testing.assert_allclose(compiled, expected, rtol=1e-14, atol=1e-14)


def test_every_margin_loss_is_here():
    classes = [registry.load("loss", name) for name in registry.names("loss")]
    assert {cls.name for cls in classes if cls.code is not None} == set(NAMES)


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_conjugate_is_the_supremum(name, y):
    """Over a wide grid, inside the domain where the supremum is attained on it."""
    one, z = loss(name), np.linspace(-12, 12, 480001)
    for share in (0.02, 0.3, 0.5, 0.98):
        a = -y if name == "linear" else -share if "positive" in name else -share * y
        reached = np.max(a * z - one.value(z, np.full_like(z, y)))
        assert one.conjugate(np.array([a]), np.array([y]))[0] == pytest.approx(reached, abs=1e-8)


@pytest.mark.parametrize("name", ["logistic", "hinge", "absolute", "linear", "huberized_hinge"])
def test_conjugate_is_infinite_outside_its_domain(name):
    y = np.array([1.0, -1.0])
    assert np.all(np.isfinite(loss(name).conjugate(-y, y)))
    assert np.all(np.isposinf(loss(name).conjugate(-1.001 * y, y)))
    if name != "absolute":
        assert np.all(np.isposinf(loss(name).conjugate(0.001 * y, y)))


@pytest.mark.parametrize("name", ["positive_part", "huberized_positive_part"])
def test_conjugate_of_one_sided_slopes(name):
    y = np.array([1.0, -1.0])
    assert np.all(np.isfinite(loss(name).conjugate(np.array([-1.0, 0.0]), y)))
    for a in (-1.001, 0.001):
        assert np.all(np.isposinf(loss(name).conjugate(np.full(2, a), y)))


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
