"""Random matrices, images of sets under them, and the way back."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize

from dperm_cli.core import registry
from dperm_cli.core.fields import keys_of
from dperm_cli.core.memo import clear_memos
from dperm_cli.problem import random_projection
from dperm_cli.problem.random_projection import KINDS, Cosines, draw
from dperm_cli.sets.polytope import Polytope
from dperm_cli.sets.shared import image_set
from dperm_cli.sets.shared.atomic_hull import Atomic, PointAtoms
from dperm_cli.sets.shared.hull_quadratic import Mixture, solve
from dperm_cli.sets.shared.vertex_hull import Hull
from dperm_cli.solvers import lift

SETS = ("l1_ball", "l2_ball", "simplex", "box", "lp_ball", "ellipsoid", "polytope", "intersection")

SLOW = ("lp_ball", "intersection")  # their images have tests of their own elsewhere


def a_set(name, p, radius=1.5):
    cls = registry.load("constraint", name)
    field = keys_of(cls)["radius"].name
    return cls(**{field: radius}, p=p)


# matrices -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_kept_on_average(kind):
    """The mean of |Phi x|^2 over 1000 matrices is |x|^2 = 1 within 5 of its standard errors (chance
    6e-7 a kind); a matrix 1.05 times too large would be 4 of them further off."""
    x = np.zeros((1, 20))
    x[0, :2] = 0.8, -0.6
    values = np.array(
        [float(np.sum(draw(kind, 16, 20, seed).apply(x) ** 2)) for seed in range(1000)]
    )
    error = float(np.std(values)) / math.sqrt(len(values))
    assert abs(np.mean(values) - 1.0) < 5.0 * error + 1e-12
    assert 9.0 * error < 1.05**2 - 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_maps_columns_and_transposes_agree(kind):
    phi = draw(kind, 5, 37, 3)
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((11, 37)), rng.standard_normal((2, 5))
    dense = phi.columns(np.arange(37)).T
    np.testing.assert_allclose(phi.apply(x), x @ dense.T, atol=1e-12)
    np.testing.assert_allclose(phi.apply(sparse.csr_array(x)), x @ dense.T, atol=1e-12)
    np.testing.assert_allclose(phi.back(g), g @ dense, atol=1e-12)
    np.testing.assert_allclose(random_projection.gram(phi), dense @ dense.T, atol=1e-12)
    np.testing.assert_allclose(
        random_projection.column_norms(phi), np.linalg.norm(dense, axis=0), atol=1e-12
    )
    exact = float(np.linalg.norm(dense, 2))
    assert exact <= random_projection.norm(phi) * (1 + 1e-12)
    if kind != "fast":
        assert random_projection.norm(phi) == pytest.approx(exact)
    assert random_projection.exceeds(phi, 0.9 * exact)
    assert not random_projection.exceeds(phi, exact * (1 + 1e-12))


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_follows_from_its_name_alone(kind):
    tables = {}
    for seed, path in ((0, ()), (1, ()), (0, ("trial", 3))):
        phi = draw(kind, 4, 9, seed, *path)
        clear_memos()
        again = draw(kind, 4, 9, seed, *path)
        tables[seed, path] = phi.columns(np.arange(9))
        np.testing.assert_array_equal(tables[seed, path], again.columns(np.arange(9)))
    first, *others = tables.values()
    assert all(not np.array_equal(first, other) for other in others)


def test_what_the_kinds_are():
    sphere, signs = draw("sphere", 6, 50, 0), draw("rademacher", 6, 50, 0)
    np.testing.assert_allclose(random_projection.column_norms(sphere), 1.0)
    np.testing.assert_allclose(np.abs(signs.columns(np.arange(50))), 1 / math.sqrt(6))
    few = draw("sparse_sign", 20, 50, 0).columns(np.arange(50))
    assert np.all(np.sum(few != 0, axis=1) == 8)
    np.testing.assert_allclose(np.linalg.norm(few, axis=1), 1.0)
    cube = draw("cube", 6, 50, 0).columns(np.arange(50))
    assert 0.9 * math.sqrt(3 / 6) < np.max(np.abs(cube)) <= math.sqrt(3 / 6)
    fast = draw("fast", 6, 50, 0)
    assert isinstance(fast, Cosines)
    assert fast.entries == 56
    assert np.max(np.abs(fast.columns(np.arange(50)))) <= math.sqrt(2 / 6) + 1e-12
    identity = draw("gaussian", 50, 50, 0)
    assert identity.entries == 0
    np.testing.assert_array_equal(identity.columns(np.arange(50)), np.eye(50))


def test_rows_go_through_in_blocks(monkeypatch):
    x = np.random.default_rng(0).standard_normal((23, 9))
    whole = [draw(kind, 4, 9, 0).apply(sparse.csr_array(x)) for kind in KINDS]
    monkeypatch.setattr(random_projection, "_BLOCK_ENTRIES", 20)
    parts = [draw(kind, 4, 9, 0).apply(sparse.csr_array(x)) for kind in KINDS]
    assert len(random_projection.blocks(23, 9)) == 12
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


# images -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SETS if name not in SLOW])
@pytest.mark.parametrize("kind", ["gaussian", "fast"])
def test_images_are_what_their_support_says(name, kind):
    """Support and linear minimiser are the set's own at Phi^T g; projections are optimal."""
    inner = a_set(name, 7)
    phi = draw(kind, 3, 7, 1)
    body = image_set.image(inner, phi)
    rng = np.random.default_rng(2)
    g = rng.standard_normal((6, 3))
    np.testing.assert_allclose(body.support(g), inner.support(phi.back(g)), rtol=1e-9)
    np.testing.assert_allclose(np.sum(g * body.lmo(g), axis=1), -body.support(-g), rtol=1e-9)
    points = 3.0 * rng.standard_normal((6, 3))
    near = body.project(points)
    normal = points - near
    slack = body.support(normal) - np.sum(normal * near, axis=1)
    assert np.all(slack <= 1e-7 * body.radius * np.linalg.norm(normal, axis=1) + 1e-13)
    np.testing.assert_allclose(body.project(near), near, atol=1e-8)
    inside = inner.project(rng.standard_normal((40, 7)))
    assert np.max(np.linalg.norm(phi.apply(inside), axis=1)) <= body.radius * (1 + 1e-9)
    gaps = phi.apply(inside[:20]) - phi.apply(inside[20:])
    assert np.max(np.linalg.norm(gaps, axis=1)) <= body.diameter * (1 + 1e-9)
    assert np.all(body.contains(phi.apply(inside), 1e-7))
    assert bool(body.contains(body.centre()))


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_the_active_set_method_agrees_with_the_other_one(signed, scale):
    rng = np.random.default_rng(4)
    table = rng.standard_normal((60, 9))
    many = Atomic(PointAtoms(table, signed))
    few = Hull(np.vstack([table, -table]) if signed else table)
    x = scale * 3.0 * rng.standard_normal((8, 9))
    found = many.project(x)
    np.testing.assert_allclose(found, few.project(x), atol=1e-11)
    assert np.all(many.error_bound(x, found) <= 1e-6 * many.radius)
    assert many.radius == pytest.approx(few.radius)
    assert many.diameter == pytest.approx(few.diameter)
    assert 0.0 < many.inner_radius <= few.inner_radius * (1 + 1e-9)
    for point in found:
        _, mixture = many.mixture(point)
        assert len(mixture.labels) <= 10
        assert np.all(mixture.weights > 0)
        assert np.sum(mixture.weights) == pytest.approx(1.0)
        np.testing.assert_allclose(mixture.weights @ many.atoms.take(mixture.labels), point,
                                   atol=1e-12)  # fmt: skip


def test_atoms_that_coincide_or_lie_in_a_plane_do_no_harm():
    rng = np.random.default_rng(5)
    flat = np.hstack([rng.standard_normal((12, 2)), np.zeros((12, 1))])
    table = np.vstack([flat, flat, np.ones((3, 3))[:, :1] * flat[:3]])
    body = Atomic(PointAtoms(table))
    x = rng.standard_normal((10, 3)) * 2.0
    np.testing.assert_allclose(body.project(x), Hull(flat).project(x), atol=1e-10)
    assert body.directions().shape == (3, 2)


@pytest.mark.parametrize("seed", range(4))
def test_quadratics_over_a_hull(seed):
    """Against a general solver over the mixing weights."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((12, 4))
    root = rng.standard_normal((4, 4))
    hessian, b = root @ root.T + 0.1 * np.eye(4), 3.0 * rng.standard_normal(4)
    body = Atomic(PointAtoms(table))

    def value(v):
        return 0.5 * v @ hessian @ v - b @ v

    found, mixture = solve(body, hessian, b)
    general = minimize(
        lambda w: value(w @ table), np.full(12, 1 / 12), bounds=[(0, 1)] * 12, method="SLSQP",
        constraints={"type": "eq", "fun": lambda w: np.sum(w) - 1.0}, options={"ftol": 1e-14},
    )  # fmt: skip
    assert value(found) <= general.fun + 1e-9
    down = b - hessian @ found
    assert float(body.support(down) - down @ found) <= 1e-11
    warm, _ = solve(body, hessian, b, mixture)
    np.testing.assert_allclose(warm, found, atol=1e-12)


def test_a_face_of_many_atoms_is_looked_at_to_its_end():
    """The gap of a point near the middle of a hull in R^500 halves once in more than eight rounds
    of 32 atoms; a search that gave up then was left with a gap of 0.0015."""
    phi = draw("gaussian", 500, 1200, 0)
    hull = image_set.image(a_set("l1_ball", 1200, 1.0), phi).mixtures
    far = np.random.default_rng(1).standard_normal(500)
    x = 0.1 * far / np.linalg.norm(far)
    found, mixture = solve(hull, None, x)
    assert len(mixture.labels) > 300
    assert float(hull.support(x - found) - (x - found) @ found) <= 1e-14


# lifting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_lifted_points_are_in_the_set_and_have_the_least_gauge(name):
    inner, phi = a_set(name, 9), draw("gaussian", 4, 9, 2)
    body = image_set.image(inner, phi)
    rng = np.random.default_rng(3)
    v = body.project(
        np.vstack([0.3 * rng.standard_normal((3, 4)), 5 * rng.standard_normal((3, 4))])
    )
    found = lift.lift(inner, phi, body, v)
    assert np.all(inner.contains(found.theta, 1e-8))
    assert np.all(found.residual <= 1e-8 * body.radius)
    assert np.all(found.gauge <= 1.0 + 1e-8)
    np.testing.assert_allclose(phi.apply(found.theta), v, atol=1e-8)
    # nothing that maps to v has a smaller gauge: the dual's bound meets it
    np.testing.assert_allclose(found.gauge, found.lower, rtol=1e-6)
    for theta, gauge in zip(found.theta, found.gauge, strict=True):
        assert gauge == pytest.approx(_gauge_about_centre(inner, theta), rel=1e-6, abs=1e-9)


def _gauge_about_centre(inner, theta):
    centre = inner.centre()
    if not np.any(centre):
        return float(inner.gauge(theta))
    vertices = inner.vertices() - centre
    found = linprog(np.ones(len(vertices)), A_eq=vertices.T, b_eq=theta - centre, bounds=(0, None))
    return float(found.fun)


@pytest.mark.parametrize("name", ["l1_ball", "box", "l2_ball", "lp_ball"])
def test_lifting_agrees_with_an_independent_solver(name):
    """The L1 norm split into two parts, the largest modulus, and general descents along the kernel
    of Phi: formulations that share nothing with ours."""
    inner, phi = a_set(name, 10), draw("rademacher", 4, 10, 5)
    matrix = phi.columns(np.arange(10)).T
    body = image_set.image(inner, phi)
    v = body.project(np.array([[0.4, -0.3, 0.2, 0.1], [2.0, 1.0, -3.0, 0.5]]))
    found = lift.lift(inner, phi, body, v)
    for row, gauge in zip(v, found.gauge, strict=True):
        assert gauge == pytest.approx(_least_gauge(name, inner, matrix, row), rel=1e-5)


def _least_gauge(name, inner, matrix, v):
    d = matrix.shape[1]
    if name == "l1_ball":
        both = np.hstack([matrix, -matrix])
        return linprog(np.ones(2 * d), A_eq=both, b_eq=v, method="highs-ipm").fun / inner.radius
    if name == "box":
        cost = np.append(np.zeros(d), 1.0)
        rows = np.vstack([np.hstack([s * np.eye(d), -np.ones((d, 1))]) for s in (1.0, -1.0)])
        equal = np.hstack([matrix, np.zeros((len(v), 1))])
        bounds = [(None, None)] * (d + 1)
        return linprog(cost, rows, np.zeros(2 * d), equal, v, bounds).fun / inner.size
    start = np.linalg.lstsq(matrix, v, rcond=None)[0]
    kernel = np.linalg.svd(matrix)[2][len(v) :].T
    best = minimize(lambda u: float(inner.gauge(start + kernel @ u)) ** 2, np.zeros(d - len(v)),
                    method="BFGS", options={"gtol": 1e-10})  # fmt: skip
    return math.sqrt(best.fun)


def test_the_paper_s_gauge_would_leave_the_simplex():
    """Of all theta with Phi theta = v the least sum of theta >= 0 is not 1: it is no point of the
    simplex, which does not hold the origin."""
    inner, phi = a_set("simplex", 9, 1.0), draw("gaussian", 3, 9, 2)
    theta = np.full(9, 1 / 9)
    v = phi.apply(theta[None])
    matrix = phi.columns(np.arange(9)).T
    least = linprog(np.ones(9), A_eq=matrix, b_eq=v[0], bounds=(0, None))
    assert least.fun < 0.9
    assert not inner.contains(least.x)
    found = lift.lift(inner, phi, image_set.image(inner, phi), v)
    assert bool(inner.contains(found.theta[0]))


@pytest.mark.parametrize("most", [10**9, 0], ids=["at_once", "columns_generated"])
def test_the_least_gauge_among_many_columns(most, monkeypatch):
    """2000 atoms in R^60: the least gauge of a point well inside the hull, against the program
    over all atoms. Where these are too many, columns are generated."""
    monkeypatch.setattr(lift, "_MOST_AT_ONCE", most)
    inner, phi = a_set("l1_ball", 1000, 1.0), draw("gaussian", 60, 1000, 0)
    body = image_set.image(inner, phi)
    theta = np.zeros(1000)
    theta[[3, 50, 700]] = 0.2, -0.15, 0.25
    v = phi.apply(theta[None])
    found = lift.lift(inner, phi, body, v)
    table = phi.columns(np.arange(1000)).T
    whole = linprog(np.ones(2000), A_eq=np.hstack([table, -table]), b_eq=v[0], bounds=(0, None))
    assert found.gauge[0] == pytest.approx(whole.fun, rel=1e-8)
    assert found.gauge[0] <= 0.6 * (1 + 1e-9)
    assert found.residual[0] <= 1e-9
    # three coordinates in 60 equations: the least L1 norm finds them again
    np.testing.assert_allclose(found.theta[0], theta, atol=1e-9)


def test_a_point_of_the_boundary_is_not_searched_for_hours(monkeypatch):
    """Its weights come from a projection and its prices from the program, here with an error of
    5e-8. That used to start programs over thousands of columns, which prove a little more."""
    inner, phi = a_set("l1_ball", 1000, 1.0), draw("gaussian", 60, 1000, 0)
    body = image_set.image(inner, phi)
    far = 5.0 * np.random.default_rng(0).standard_normal((1, 60))
    v = body.project(far)
    exact = lift.find_weights

    def find_roughly(*some):
        found = exact(*some)
        return dataclasses.replace(
            found, weights=0.9 * found.weights, prices=found.prices * 0.99999995
        )

    def give_up(search):
        raise AssertionError("columns are generated")

    monkeypatch.setattr(lift, "find_weights", find_roughly)
    monkeypatch.setattr(lift, "_make_exact", lambda atoms, target: None)
    monkeypatch.setattr(lift, "_even_price", lambda atoms: np.zeros(atoms.shape[1]))
    monkeypatch.setattr(lift._Search, "generate_columns", give_up)
    found = lift.lift(inner, phi, body, v)
    assert 1.0 - 1e-6 < found.lower[0] < 1.0 - 1e-9
    assert found.gauge[0] <= 1.0 + 1e-12
    assert found.residual[0] <= 1e-8


def test_a_point_of_a_large_face_is_proved_without_programs(monkeypatch):
    """The shortest price of the face alone is above 1 on other atoms, the shortest of all is not;
    without it, programs over thousands of columns followed, for minutes and hours."""
    phi = draw("gaussian", 200, 700, 0)
    inner = a_set("l1_ball", 700, 1.0)
    body = image_set.image(inner, phi)
    far = np.random.default_rng(1).standard_normal(200)
    v = body.project(0.25 * far[None] / np.linalg.norm(far))
    face = body.mixtures.mixture(v[0])[1].labels
    even = lift._even_price(body.mixtures.atoms.take(face))
    assert np.max(np.abs(body.mixtures.atoms.scores(even))) > 1.1

    def give_up(search):
        raise AssertionError("columns are generated")

    monkeypatch.setattr(lift, "_MOST_AT_ONCE", 0)
    monkeypatch.setattr(lift._Search, "generate_columns", give_up)
    found = lift.lift(inner, phi, body, v)
    assert 1.0 - 1e-6 <= found.lower[0] <= 1.0 + 1e-12
    assert found.gauge[0] == pytest.approx(1.0, abs=1e-12)
    assert found.residual[0] <= 1e-12
    assert bool(inner.contains(found.theta[0]))


def test_the_shortest_step_within_half_spaces():
    """Against a general solver; and None where no step is."""
    rng = np.random.default_rng(7)
    rows, room = rng.standard_normal((6, 4)), np.array([-0.5, -0.2, 0.3, 1.0, 0.1, 0.4])
    step = lift._least_step(rows, room)
    general = minimize(
        lambda z: 0.5 * z @ z, np.zeros(4), jac=lambda z: z, method="SLSQP",
        options={"ftol": 1e-15},
        constraints={"type": "ineq", "fun": lambda z: room - rows @ z, "jac": lambda z: -rows},
    )  # fmt: skip
    assert step is not None
    assert np.max(rows @ step - room) <= 1e-12
    np.testing.assert_allclose(step, general.x, atol=1e-6)
    assert lift._least_step(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])) is None


def test_a_lifted_point_follows_from_what_was_released_and_not_from_the_search_for_it():
    """Columns of a matrix of few signs coincide, so that many mixtures make the same point; the one
    that a search among the records came by would say more of them than the point does."""
    phi = draw("rademacher", 2, 24, 0)
    simplex = a_set("simplex", 24)
    image = image_set.image(simplex, phi)
    columns, hull = phi.columns(np.arange(24)), image.mixtures
    assert hull is not None
    alike = np.flatnonzero(np.all(columns == columns[0], axis=1))
    others = np.flatnonzero(np.any(columns != columns[0], axis=1))
    found = []
    for first in (*alike[:3], None):
        v = 0.5 * 1.5 * (columns[0] + columns[others[0]])
        hull._known.clear()
        if first is not None:
            hull.remember(v, Mixture(np.array([first, others[0]]), np.array([0.5, 0.5])))
        found.append(lift.lift(simplex, phi, image, v[None]).theta)
    for theta in found:
        np.testing.assert_array_equal(theta, found[-1])


def test_refusals_follow_from_sizes():
    ball = a_set("l1_ball", 10**6)
    assert "set mechanism.m to at most 200" in image_set.reason_against(ball, "gaussian", 300)
    assert image_set.reason_against(ball, "fast", 300) is None
    assert image_set.reason_against(a_set("l2_ball", 10**5), "gaussian", 30) is None
    assert "no closed form" in image_set.reason_against(a_set("box", 10**4), "gaussian", 30)
    assert lift.reason_against(a_set("l1_ball", 5)) is None
    halves = Polytope(1.0, 2, matrix=((1, 0), (-1, 0), (0, 1), (0, -1)), offset=(1, 1, 1, 1))
    assert lift.reason_against(halves) is None


def test_half_spaces_are_lifted_by_a_linear_program():
    rows = np.vstack([np.eye(6), -np.eye(6), np.ones((1, 6))])
    offset = np.append(np.ones(12), 1.5)
    inner = Polytope(1.0, 6, matrix=rows.tolist(), offset=offset.tolist())
    phi = draw("gaussian", 2, 6, 0)
    body = image_set.image(inner, phi)
    v = body.project(np.array([[0.1, 0.2], [5.0, -5.0]]))
    found = lift.lift(inner, phi, body, v)
    assert np.all(inner.contains(found.theta, 1e-8))
    assert np.all(found.residual <= 1e-7)
    np.testing.assert_allclose(found.gauge, found.lower, rtol=1e-6)
