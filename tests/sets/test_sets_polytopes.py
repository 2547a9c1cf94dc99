"""Polytopes, images and inner sets: an independent solver, files, and every way to be wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from dperm_cli.core.errors import InputError, UnknownKey
from dperm_cli.sets.shared import rounding_ellipsoids
from dperm_cli.sets.shared.gaussian_widths import expected_norm, expected_root
from tests.sets.test_sets_all import build

CUBE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
SQUARE = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]


def quadratic_program(x, matrix, offset):
    """The projection by a general solver."""
    found = minimize(
        lambda t: 0.5 * np.sum((t - x) ** 2), np.zeros(len(x)), jac=lambda t: t - x,
        constraints=LinearConstraint(matrix, -np.inf, offset), method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize("seed", range(6))
def test_half_spaces_agree_with_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    matrix = np.vstack([rng.standard_normal((12, 3)), np.eye(3), -np.eye(3)])
    offset = rng.uniform(0.2, 2.0, 18)
    c = build("polytope", 3, 1.0, matrix=matrix.tolist(), offset=offset.tolist())
    for x in 3.0 * rng.standard_normal((5, 3)):
        np.testing.assert_allclose(c.project(x), quadratic_program(x, matrix, offset), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_two_descriptions_agree(seed):
    rng = np.random.default_rng(seed)
    matrix = np.vstack([rng.standard_normal((10, 3)), np.eye(3), -np.eye(3)])
    offset = rng.uniform(0.2, 2.0, 16)
    halves = build("polytope", 3, 1.3, matrix=matrix.tolist(), offset=offset.tolist())
    hull = build("polytope", 3, 1.0, vertices=halves.vertices().tolist())
    theta = 4.0 * rng.standard_normal((30, 3))
    np.testing.assert_allclose(halves.project(theta), hull.project(theta), atol=1e-11)
    np.testing.assert_allclose(halves.gauge(theta), hull.gauge(theta), rtol=1e-9)
    np.testing.assert_allclose(halves.support(theta), hull.support(theta), rtol=1e-12)
    assert halves.radius == pytest.approx(hull.radius, rel=1e-12)
    assert halves.diameter == pytest.approx(hull.diameter, rel=1e-12)


def test_known_sets_in_other_words():
    theta = 3.0 * np.random.default_rng(1).standard_normal((20, 4))
    pairs = [
        (build("polytope", 4), build("l1_ball", 4)),
        (build("lp_ball", 4, power=2.0), build("l2_ball", 4)),
        (build("ellipsoid", 4, axes=[1, 1, 1, 1]), build("l2_ball", 4)),
        (build("image", 4, inner={"name": "box"}, matrix=np.eye(4).tolist()), build("box", 4)),
        (build("polytope", 4, vertices=np.eye(4).tolist()), build("simplex", 4)),
        (build("intersection", 4, inner={"name": "box", "radius": 9.0}), build("l2_ball", 4)),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one.project(theta), other.project(theta), atol=1e-12)
        np.testing.assert_allclose(one.support(theta), other.support(theta), rtol=1e-12)
        assert one.radius == pytest.approx(other.radius, rel=1e-12)
        assert one.diameter == pytest.approx(other.diameter, rel=1e-12)
        assert one.inner_radius == pytest.approx(other.inner_radius, rel=1e-9)
        assert one.outer_radius == pytest.approx(other.outer_radius, rel=1e-12)


def test_simplex_starts_at_its_barycentre():
    np.testing.assert_allclose(build("simplex", 4, 2.0).centre(), np.full(4, 0.5))
    assert build("simplex", 1).diameter == 0.0


def test_closed_form_widths():
    assert build("l2_ball", 3, 2.0).width() == (pytest.approx(4 * math.sqrt(2 / math.pi)), 0.0)
    assert build("box", 5, 2.0).width() == (pytest.approx(10 * math.sqrt(2 / math.pi)), 0.0)
    assert build("l1_ball", 2).width()[0] == pytest.approx(1.7 * 2 / math.sqrt(math.pi))
    assert build("simplex", 2).width()[0] == pytest.approx(1.7 / math.sqrt(math.pi))
    assert build("simplex", 3).width()[0] == pytest.approx(1.7 * 1.5 / math.sqrt(math.pi))
    assert expected_root(np.ones(7)) == pytest.approx(expected_norm(7, 2.0), rel=1e-12)
    for power in (1.001, 1.2, 3.0, 50.0, 1e6):
        assert expected_norm(1, power) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-10)
    assert expected_norm(9, 2.0 + 1e-9) == pytest.approx(expected_norm(9, 2.0), rel=1e-8)


def test_rounding_finds_the_known_ellipsoids():
    root, centre = rounding_ellipsoids.fit_enclosing_ellipsoid(
        np.array(SQUARE) * [3.0, 1.0] + 5.0, False
    )
    np.testing.assert_allclose(root, np.diag([3.0, 1.0]) * math.sqrt(2), rtol=1e-4)
    np.testing.assert_allclose(centre, [5.0, 5.0], atol=1e-4)
    matrix, room = np.array(CUBE), np.array([4.0, -2.0, 1.0, 1.0])
    root, centre = rounding_ellipsoids.fit_inscribed_ellipsoid(matrix, room, np.array([2.5, 0.3]))
    np.testing.assert_allclose(root, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(centre, [3.0, 0.0], atol=1e-6)


def test_files_hold_what_lists_hold(tmp_path):
    np.savez(tmp_path / "a.npz", matrix=np.array(CUBE), offset=np.ones(4))
    np.savetxt(tmp_path / "v.csv", np.array(SQUARE), delimiter=",")
    halves = build("polytope", 2, path=str(tmp_path / "a.npz"))
    assert halves == build("polytope", 2, matrix=CUBE, offset=[1.0] * 4)
    hull = build("polytope", 2, path=str(tmp_path / "v.csv"))
    assert hull == build("polytope", 2, vertices=SQUARE)
    image = build("image", 4, path=str(tmp_path / "v.csv"))
    assert image == build("image", 4, matrix=SQUARE)


@pytest.mark.parametrize(
    ("key", "name", "fields"),
    [
        ("vertices", "polytope", {"vertices": [[1.0, 2.0, 3.0]]}),
        ("matrix", "polytope", {"matrix": [[1.0], [-1.0]], "offset": [1.0, 1.0]}),
        ("axes", "ellipsoid", {"axes": [1.0, 2.0, 3.0]}),
        ("matrix", "image", {"matrix": [[1.0], [1.0], [2.0]]}),
    ],
)
def test_a_wrong_dimension_names_both(key, name, fields):
    with pytest.raises(InputError, match=rf"^constraint\.{key}=.*has 2 parameters") as error:
        build(name, 2, **fields)
    given = len(fields.get("axes", ())) or {"vertices": 3, "matrix": 1}[key]
    given = 3 if name == "image" else given
    assert f"lies in {given} dimensions" in str(error.value)
    assert build(name, 0, **fields).p == given


@pytest.mark.parametrize(
    ("key", "name", "fields"),
    [
        ("matrix", "polytope", {"matrix": [[1.0, 0.0]], "offset": [1.0]}),
        ("matrix", "polytope", {"matrix": CUBE, "offset": [1.0, -2.0, 1.0, 1.0]}),
        ("offset", "polytope", {"matrix": CUBE}),
        ("offset", "polytope", {"matrix": CUBE, "offset": [1.0]}),
        ("vertices", "polytope", {"vertices": SQUARE, "offset": [1.0]}),
        ("vertices", "polytope", {"vertices": [[1.0, float("nan")]]}),
        ("vertices", "polytope", {"vertices": [[1.0, 2.0], [1.0]]}),
        ("vertices", "polytope", {"vertices": [[True, False]]}),
        ("vertices", "polytope", {"vertices": "corner"}),
        ("path", "polytope", {"path": "no-such-file.npz"}),
        ("axes", "ellipsoid", {"axes": [1.0, 0.0]}),
        ("condition", "ellipsoid", {"condition": 0.5}),
        ("condition", "ellipsoid", {"axes": [1.0, 1.0], "condition": 2.0}),
        ("matrix", "ellipsoid", {"matrix": [[1.0, 2.0], [2.0, 1.0]]}),
        ("matrix", "image", {"matrix": [[0.0], [0.0]]}),
        ("power", "lp_ball", {"power": 0.5}),
        ("power", "lp_ball", {"power": "two"}),
        ("inner", "image", {"inner": 3}),
        ("inner.name", "image", {"inner": {"name": "bowl"}}),
        ("inner.radius", "intersection", {"inner": {"name": "box", "radius": -1.0}}),
        ("radius", "intersection", {"inner": {"name": "simplex", "radius": 9.0}}),
    ],
)
def test_bad_fields_name_the_users_key(key, name, fields):
    with pytest.raises(InputError, match=rf"^constraint\.{key}="):
        build(name, 2, **fields)


def test_an_unknown_inner_key_is_named():
    with pytest.raises(UnknownKey, match=r"^constraint\.inner\.size: unknown key"):
        build("image", 2, inner={"name": "box", "size": 1.0})


def test_a_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / "p.npz", vertices=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="pickled"):
        build("polytope", 2, path=str(tmp_path / "p.npz"))


@pytest.mark.parametrize("far", [1e20, 1e100, 1e250, 1e300])
def test_points_beyond_what_a_double_resolves_come_into_the_half_spaces(far):
    """A step size out of all proportion must not lead to a gradient outside the set."""
    rng = np.random.default_rng(4)
    matrix = rng.standard_normal((60, 8))
    c = build("polytope", 8, matrix=matrix.tolist(), offset=[1.0] * 60)
    points = far * rng.standard_normal((20, 8))
    found = c.project(points)
    assert np.all(c.contains(found))
    assert np.all(np.linalg.norm(found, axis=1) <= c.radius * (1 + 1e-9))
