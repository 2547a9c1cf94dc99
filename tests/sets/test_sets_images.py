"""Images under matrices that are not injective: exact projections, and the bound on their error."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.sets.shared.linear_image import LinearImage

COLUMNS, ROWS = 6, 3
CUBE = np.vstack([np.eye(COLUMNS), -np.eye(COLUMNS)]).tolist()
INNER = {
    "Lp ball below 2": ("lp_ball", {"reach": 1.0, "power": 1.5}),
    "Lp ball above 2": ("lp_ball", {"reach": 1.0, "power": 4.0}),
    "intersection": ("intersection", {"ball": 1.0}),
    "cube": ("box", {"half_width": 1.0}),
    "cube of half-spaces": (
        "polytope",
        {"scale": 1.0, "matrix": CUBE, "offset": [1.0] * 2 * COLUMNS},
    ),
}
MATRICES = {
    "round": np.random.default_rng(0).standard_normal((ROWS, COLUMNS)),
    "long": np.random.default_rng(1).standard_normal((ROWS, COLUMNS)) * [[1.0], [0.1], [0.01]],
}


def image(inner, matrix="round"):
    name, fields = INNER[inner]
    return LinearImage(MATRICES[matrix], registry.load("constraint", name)(**fields, p=COLUMNS))


def rays(count):
    rows = np.random.default_rng(2).standard_normal((count, ROWS))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.in_turn
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("far", [1e-6, 1e-3, 1.0, 100.0])
def test_a_point_beyond_a_farthest_one_is_projected_back_on_it(inner, matrix, far):
    c = image(inner, matrix)
    normal = rays(2)
    nearest = c.lmo(-normal)
    theta = nearest + far * c.radius * normal
    found = c.project(theta)
    assert np.max(np.linalg.norm(found - nearest, axis=1)) <= 1e-13 * c.radius
    assert np.max(c.error_bound(theta, found)) <= 1e-10 * c.radius


@pytest.mark.parametrize("inner", INNER)
def test_points_of_the_set_stay(inner):
    c = image(inner)
    inside = 0.6 * c.lmo(rays(3)) + 0.3 * c.lmo(-rays(3))
    assert np.allclose(c.project(inside), inside, rtol=0, atol=1e-10 * c.radius)


@pytest.mark.parametrize("inner", INNER)
def test_the_error_bound_is_one(inner):
    c = image(inner)
    rng = np.random.default_rng(3)
    theta = 2.0 * c.radius * rays(4)
    exact = c.project(theta)
    for spread in (1e-6, 1e-3, 1.0):
        share = spread * rng.random((4, 1))
        near = (1 - share) * exact + share * c.lmo(rng.standard_normal((4, ROWS)))
        error = np.linalg.norm(near - exact, axis=1)
        assert np.all(error <= c.error_bound(theta, near) + 1e-9 * c.radius)


def test_faces_of_a_cube_by_two_methods():
    theta = 1.2 * image("cube").radius * rays(6)
    one, other = image("cube"), image("cube of half-spaces")
    found = one.project(theta)
    assert np.allclose(found, other.project(theta), rtol=0, atol=1e-10 * one.radius)
    # On a flat face a gap of rounding size proves no more than its root.
    assert np.max(one.error_bound(theta, found)) <= 1e-7 * one.radius
