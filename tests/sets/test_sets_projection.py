"""Projection, support and linear minimisation are one set: each is checked against the others."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry

KINDS = [(name, {}) for name in registry.names("constraint")]
KINDS += [("lp_ball", {"power": power}) for power in (1.1, 4.0)]
KINDS += [("image", {"inner": {"name": "box"}}), ("intersection", {"inner": {"name": "simplex"}})]
DIMENSION = 5


def violation(body, x, point):
    """How far <x - point, theta - point> goes above 0 over the set, in units of both lengths.

    It is 0 for the projection of x alone [the variational inequality].
    """
    away = x - point
    excess = body.support(away) - np.sum(away * point, axis=-1)
    return excess / (body.radius * np.maximum(np.linalg.norm(away, axis=-1), body.radius))


@pytest.mark.parametrize(("name", "keys"), KINDS, ids=str)
def test_a_projection_is_the_nearest_point_by_the_support(name, keys):
    rng = np.random.default_rng(7)
    body = registry.load("constraint", name)(1.5, DIMENSION, **keys)
    x = body.radius * rng.standard_normal((40, DIMENSION)) * np.array([0.3, 3.0])[:, None, None]
    near = body.project(x)
    assert np.max(violation(body, x, near)) <= 1e-9
    assert np.all(body.contains(near))
    # not so for a point that is only in the set
    far = near + 0.1 * (body.centre() - near)
    assert np.max(violation(body, x, far)) > 1e-3


@pytest.mark.parametrize(("name", "keys"), KINDS, ids=str)
def test_a_linear_minimiser_is_in_the_set_and_reaches_the_support(name, keys):
    rng = np.random.default_rng(8)
    body = registry.load("constraint", name)(1.5, DIMENSION, **keys)
    g = rng.standard_normal((30, DIMENSION))
    least = body.lmo(g)
    scale = body.radius * np.linalg.norm(g, axis=1)
    assert np.all(np.abs(np.sum(g * least, axis=1) + body.support(-g)) <= 1e-9 * scale)
    assert np.max(np.linalg.norm(least - body.project(least), axis=1)) <= 1e-8 * body.radius


@pytest.mark.parametrize(("name", "keys"), KINDS, ids=str)
def test_a_set_under_a_name_projects_no_better_than_its_body(name, keys):
    # what is proved of a perturbed minimiser's distance counts on it
    body = registry.load("constraint", name)(1.5, DIMENSION, **keys)
    assert body.accuracy >= body.inner_body.accuracy


def test_an_image_without_closed_form_says_its_solver_s_accuracy():
    image = registry.load("constraint", "image")
    exact = image(1.0, 2, inner={"name": "l2_ball", "radius": 1.0})
    computed = image(1.0, 2, inner={"name": "lp_ball", "power": 1.5, "radius": 1.0})
    assert computed.accuracy > exact.accuracy
