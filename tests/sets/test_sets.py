"""Constraints: projection, support, gauge and the two Euclidean sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import keys_of

NAMES = ["l2_ball", "l1_ball", "box"]
CODES = {"l2_ball": 0, "l1_ball": 1, "box": 2}
P = 4
coordinates = st.floats(-50, 50).map(lambda v: v if abs(v) > 1e-100 else 0.0)
points = arrays(float, P, elements=coordinates)
sizes = st.sampled_from([1e-3, 0.7, 10.0, 1e3])

few = settings(max_examples=40, deadline=None)


def constraint(name, size=2.0, p=P):
    return registry.load("constraint", name)(size, p)


def vertices(c, rng, count=200):
    """Extreme points of the set (all kinds of them, at random for the ball)."""
    g = rng.normal(size=(count, c.p))
    return {
        "l2_ball": c.size * g / np.linalg.norm(g, axis=1)[:, None],
        "l1_ball": c.size * np.vstack([np.eye(c.p), -np.eye(c.p)]),
        "box": c.size * np.sign(g),
    }[c.name]


@pytest.mark.parametrize("name", NAMES)
def test_identity_and_sizes(name):
    c = constraint(name, 2.0, 9)
    assert (c.name, c.code, c.p, c.size) == (name, CODES[name], 9, 2.0)
    radius = 6.0 if name == "box" else 2.0
    assert c.radius == pytest.approx(radius)
    assert c.diameter == pytest.approx(2 * radius)
    farthest = vertices(c, np.random.default_rng(0))
    assert np.max(np.linalg.norm(farthest, axis=1)) == pytest.approx(c.radius)
    assert np.max(np.linalg.norm(farthest - farthest[:1], axis=1)) <= c.diameter * (1 + 1e-12)
    np.testing.assert_array_equal(c.centre(), np.zeros(9))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), True, "1"])
def test_bad_radius_names_the_users_key(name, value):
    with pytest.raises(InputError, match=r"^constraint\.radius="):
        constraint(name, value)


def test_box_maps_the_users_key():
    cls = registry.load("constraint", "box")
    assert cls(**{keys_of(cls)["radius"].name: 3.0}, p=4).size == 3.0


@pytest.mark.parametrize("name", NAMES)
@few
@given(theta=points, size=sizes)
def test_projection_is_feasible_and_idempotent(name, theta, size):
    c = constraint(name, size)
    once = c.project(theta)
    assert c.contains(once, 4e-16)
    np.testing.assert_allclose(c.project(once), once, rtol=1e-15, atol=1e-15 * size)
    if c.contains(theta, 0.0):
        np.testing.assert_array_equal(once, theta)


@pytest.mark.parametrize("name", NAMES)
@few
@given(theta=points, size=sizes)
def test_projection_is_optimal(name, theta, size):
    """<theta - P theta, v - P theta> <= 0 for all v in the set: the support of the residual."""
    c = constraint(name, size)
    residual = theta - c.project(theta)
    scale = (1 + np.linalg.norm(theta)) * (1 + c.radius)
    assert c.support(residual) - residual @ c.project(theta) <= 1e-12 * scale


@pytest.mark.parametrize("name", NAMES)
@few
@given(theta=points, size=sizes)
def test_moreau_decomposition(name, theta, size):
    """The residual theta - P theta attains its support at P theta."""
    c = constraint(name, size)
    inside = c.project(theta)
    residual = theta - inside
    scale = (1 + np.linalg.norm(theta)) * (1 + c.radius)
    assert c.support(residual) == pytest.approx(residual @ inside, abs=1e-12 * scale)


@pytest.mark.parametrize("name", NAMES)
@few
@given(g=points, size=sizes)
def test_support_and_linear_minimiser(name, g, size):
    c = constraint(name, size)
    best = c.lmo(g)
    assert c.contains(best, 1e-12)
    assert -(g @ best) == pytest.approx(float(c.support(-g)), rel=1e-12, abs=1e-300)
    values = vertices(c, np.random.default_rng(1)) @ g
    assert np.max(values) <= c.support(g) * (1 + 1e-12)
    if name != "l2_ball":
        exact = np.array(np.meshgrid(*[[-1.0, 1.0]] * P)).reshape(P, -1).T * size
        corners = exact if name == "box" else vertices(c, np.random.default_rng(1))
        assert np.max(corners @ g) == pytest.approx(float(c.support(g)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("name", NAMES)
@few
@given(theta=points, t=st.floats(0, 5))
def test_gauge_is_the_scaled_norm(name, theta, t):
    c = constraint(name)
    assert c.gauge(t * theta) == pytest.approx(t * float(c.gauge(theta)), rel=1e-12)
    if c.gauge(theta) > 1e-9:
        assert c.gauge(theta / c.gauge(theta)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", NAMES)
def test_contains_is_strict_beyond_its_tolerance(name):
    c = constraint(name)
    edge = vertices(c, np.random.default_rng(2))
    assert np.all(c.contains(edge))
    assert not np.any(c.contains(edge * (1 + 1e-8)))
    assert not c.contains(np.full(P, np.nan))


@pytest.mark.parametrize("name", NAMES)
def test_methods_work_on_rows(name):
    c, rng = constraint(name), np.random.default_rng(3)
    rows = 3 * rng.normal(size=(2, 5, P))
    for method in (c.project, c.lmo, c.support, c.gauge, c.contains):
        whole = method(rows)
        assert whole.shape[:2] == (2, 5)
        np.testing.assert_allclose(whole[1, 3], method(rows[1, 3]), rtol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_projection_from_far_away_keeps_its_digits(name):
    c = constraint(name, 1e-3)
    far = np.array([1e12, 1e12 - 0.25, -3.0, 0.0])
    assert c.contains(c.project(far), 4e-16)
    assert c.gauge(c.project(far)) == pytest.approx(1.0, rel=1e-12)


def test_l1_projection_of_a_known_point():
    c = constraint("l1_ball", 2.0, 3)
    np.testing.assert_allclose(c.project(np.array([3.0, -2.0, 0.5])), [1.5, -0.5, 0.0])


def test_linear_minimiser_of_nothing_is_the_centre():
    for name in NAMES:
        np.testing.assert_array_equal(constraint(name).lmo(np.zeros(P)), np.zeros(P))
