"""C cut down to a ball about one of its points."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.fields import keys_of
from dperm_cli.sets.shared.localized_set import Localised

SETS = ["l2_ball", "l1_ball", "box", "simplex", "ellipsoid", "intersection"]
P = 3


def localised(name, reach, seed=0, rows=()):
    cls = registry.load("constraint", name)
    field = keys_of(cls)["radius"].name
    body = cls(**{field: 1.0}, p=P)
    point = body.project(np.random.default_rng(seed).standard_normal((*rows, P)))
    return Localised(body, point, reach)


@pytest.mark.parametrize("reach", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("name", SETS)
def test_projection_is_the_nearest_point(name, reach):
    """<x - P x, z - P x> <= 0 for the points z of the set, and P of them is themselves."""
    body, rng = localised(name, reach), np.random.default_rng(1)
    x = body.point + rng.standard_normal((60, P)) * rng.choice([0.02, 0.3, 4.0], (60, 1))
    nearest = body.project(x)
    assert np.all(body.contains(nearest))
    z = np.concatenate([nearest, body.lmo(rng.standard_normal((20, P))), body.centre()[None]])
    assert np.all(body.contains(z))
    products = np.einsum("ip,jip->ji", x - nearest, z[:, None] - nearest)
    assert np.max(products) <= 1e-9
    np.testing.assert_allclose(body.project(nearest), nearest, atol=1e-12)
    np.testing.assert_allclose(body.project(x[0]), nearest[0], atol=1e-14)


@pytest.mark.parametrize("name", SETS)
def test_support_is_reached_and_never_too_small(name):
    body, rng = localised(name, 0.4), np.random.default_rng(2)
    g = rng.standard_normal((20, P))
    reached = np.sum(g * body.lmo(-g), axis=1)
    assert np.all(body.support(g) >= reached - 1e-12)
    np.testing.assert_allclose(body.support(g), reached, atol=1e-6)
    points = body.project(body.point + rng.standard_normal((200, P)))
    assert np.all(points @ g.T <= body.support(g) + 1e-9)


@pytest.mark.parametrize("name", SETS)
def test_one_ball_for_each_row(name):
    many = localised(name, 0.3, rows=(7,))
    x = np.random.default_rng(3).standard_normal((7, P))
    alone = [Localised(many.inner, c, 0.3).project(r) for c, r in zip(many.point, x, strict=True)]
    np.testing.assert_allclose(many.project(x), alone, atol=1e-13)
    assert np.all(many.contains(many.project(x)))
    assert many.centre().shape == (7, P)


@pytest.mark.parametrize("reach", [0.1, 5.0])
@pytest.mark.parametrize("name", SETS)
def test_sizes_hold_wherever_the_point_is(name, reach):
    sizes = set()
    for seed in range(5):
        body = localised(name, reach, seed)
        g = np.random.default_rng(4).standard_normal((40, P))
        ends = body.lmo(g)
        spread = np.max(np.linalg.norm(ends[:, None] - ends[None], axis=2))
        assert np.max(np.linalg.norm(ends, axis=1)) <= body.radius + 1e-12
        assert 0.0 < body.least_diameter <= body.diameter
        assert spread <= body.diameter + 1e-12
        sizes.add((body.radius, body.diameter))
    assert len(sizes) == 1


@pytest.mark.parametrize("name", SETS)
def test_what_the_width_is_made_of_is_the_support(name):
    """The maximisers that the simulated width takes reach as far as the proved bound says."""
    body = localised(name, 0.5)
    g = np.random.default_rng(3).standard_normal((8, P))
    np.testing.assert_allclose(body._reach_along(g), body.support(g), rtol=1e-6)
