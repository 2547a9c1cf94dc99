"""Certified distances to the minimiser, against problems whose minimiser is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.problem.random_projection import draw
from dperm_cli.sets.shared import image_set
from dperm_cli.sets.shared.vertex_hull import Hull
from dperm_cli.solvers import hull_newton, perturbed_minimiser
from dperm_cli.solvers.optimum import solve
from tests.conftest import small_problem

SETS = ("l2_ball", "l1_ball", "box", "simplex", "ellipsoid", "polytope", "lp_ball", "intersection")


@pytest.mark.parametrize("constraint", SETS)
def test_two_ways_to_the_same_point(constraint):
    """By steps and by the certified gap of the general solver."""
    problem = small_problem(constraint=constraint, ridge=2.0 / 40)
    tilts = 6.0 * np.random.default_rng(0).standard_normal((3, problem.p))
    distance = perturbed_minimiser.provable_distance(problem.spec(), 2.0)
    points, bounds = perturbed_minimiser.locate(problem, tilts, 2.0, distance)
    assert np.all(bounds <= distance)
    assert np.all(problem.constraint.contains(points))
    for point, tilt in zip(points, tilts, strict=True):
        found = solve(replace(problem, tilt=tilt), relative_gap=1e-9)
        assert np.linalg.norm(point - found.theta) <= distance + np.sqrt(2.0 * found.gap / 2.0)


def test_bound_covers_the_true_distance():
    """Linear losses and a ridge: the minimiser is a projection, in closed form."""
    problem = small_problem(loss="linear", ridge=1.0)
    tilts = 30.0 * np.random.default_rng(1).standard_normal((20, 3))
    points, bounds = perturbed_minimiser.locate(problem, tilts, 40.0, 1e-8)
    slope = problem.data_gradient(np.zeros(3))
    exact = problem.constraint.project(-(slope + tilts) / 40.0)
    assert np.all(np.linalg.norm(points - exact, axis=1) <= bounds)
    assert np.all(bounds <= 1e-8)


def test_a_linear_loss_over_a_hull_needs_no_matrix(monkeypatch):
    """The projection of one point, in however many dimensions. Hessians are held in up to 3000, and
    beyond that the problem was left to steps that proved nothing. Both ways lead to one point."""
    inner, phi = (
        registry.load("constraint", "l1_ball")(radius=1.0, p=60),
        draw("gaussian", 12, 60, 0),
    )
    body = image_set.image(inner, phi)
    problem = replace(small_problem(loss="linear", p=12), constraint=body, ridge=2.0 / 40)
    tilts = 3.0 * np.random.default_rng(5).standard_normal((4, 12))
    distance = perturbed_minimiser.provable_distance(problem.spec(), 2.0, 15.0)
    monkeypatch.setattr(hull_newton, "_LARGEST_ORDER", 11)
    assert hull_newton.applies(problem)
    assert not hull_newton.applies(replace(problem, loss=small_problem(p=12).loss))
    assert not hull_newton.applies(replace(problem, ridge=0.0))
    points, bounds = perturbed_minimiser.locate(problem, tilts, 2.0, distance)
    assert np.all(bounds <= distance)
    assert np.all(body.contains(points))
    np.testing.assert_array_equal(
        perturbed_minimiser.locate(problem, tilts, 2.0, distance)[0], points
    )
    slope = problem.data_gradient(np.zeros(12))
    columns = phi.columns(np.arange(60))
    exact = Hull(np.vstack([columns, -columns])).project(-(slope + tilts) / 2.0)
    assert np.all(np.linalg.norm(points - exact, axis=1) <= bounds)
    # a ridge as a matrix: the way that problems of fewer dimensions went
    monkeypatch.setattr(hull_newton, "_LARGEST_ORDER", 3000)
    monkeypatch.setattr(hull_newton, "_is_round", lambda problem: False)
    others, other_bounds = perturbed_minimiser.locate(problem, tilts, 2.0, distance)
    assert np.all(np.linalg.norm(points - others, axis=1) <= bounds + other_bounds)


@pytest.mark.parametrize("loss", ["logistic", "squared", "huberized_hinge", "multinomial"])
def test_a_lasso_is_thresholded(loss):
    problem = replace(small_problem(loss=loss, ridge=0.05), lasso=0.05)
    tilts = np.random.default_rng(2).standard_normal((2, problem.p))
    points, bounds = perturbed_minimiser.locate(problem, tilts, 2.0, 1e-7)
    assert np.all(bounds <= 1e-7)
    for point, tilt in zip(points, tilts, strict=True):
        found = solve(replace(problem, tilt=tilt), relative_gap=1e-9)
        assert np.linalg.norm(point - found.theta) <= 1e-7 + np.sqrt(found.gap)


def test_a_distance_that_cannot_be_had_is_not_claimed():
    problem = small_problem(ridge=0.05)
    _, bounds = perturbed_minimiser.locate(problem, np.ones((1, 3)), 2.0, 1e-2)
    assert bounds[0] <= 1e-2
    _, bounds = perturbed_minimiser.locate(problem, np.ones((1, 3)), 2.0, 1e-30)
    assert 1e-30 < bounds[0] < 1e-9


@pytest.mark.parametrize("lasso", [0.0, 0.05])
@pytest.mark.parametrize("constraint", ["l2_ball", "l1_ball", "box"])
def test_one_dimension_is_bisected(constraint, lasso):
    """Inside, at an end and at the lasso's kink; as near as a certified gap says."""
    problem = replace(small_problem(constraint=constraint, p=1, ridge=0.05), lasso=lasso)
    tilts = np.array([[-200.0], [-7.0], [-0.5], [0.0], [3.0], [9.0], [200.0]])
    points, bounds = perturbed_minimiser.locate(problem, tilts, 2.0, 1e-8)
    assert np.all(bounds <= 1e-8)
    assert np.all(problem.constraint.contains(points))
    for point, tilt in zip(points, tilts, strict=True):
        found = solve(replace(problem, tilt=tilt), relative_gap=1e-10)
        assert abs(point - found.theta)[0] <= 1e-8 + np.sqrt(found.gap)
    ends = problem.constraint.project(np.array([[-9.0], [9.0]]))
    np.testing.assert_allclose(points[[-1, 0]], ends, atol=2e-8)


def test_tilt_enters_objective_gradient_and_fingerprint():
    problem = small_problem()
    tilted = replace(problem, tilt=np.array([1.0, -2.0, 0.5]))
    theta = np.array([0.1, 0.2, -0.3])
    assert tilted.objective(theta) - problem.objective(theta) == pytest.approx(-0.45)
    np.testing.assert_allclose(tilted.gradient(theta) - problem.gradient(theta), tilted.tilt)
    assert tilted.fingerprint() != problem.fingerprint()
    assert tilted.spec() == problem.spec()


@pytest.mark.parametrize("loss", ["logistic", "hinge", "l2_median", "multinomial", "linear"])
@pytest.mark.parametrize("constraint", ["l2_ball", "simplex", "polytope"])
def test_the_solver_certifies_tilted_problems(loss, constraint):
    problem = small_problem(loss=loss, constraint=constraint, n=25)
    tilt = 4.0 * np.random.default_rng(3).standard_normal(problem.p)
    tilted = replace(problem, tilt=tilt)
    found = solve(tilted)
    assert found.converged
    # no point of the set is below the certified bound
    points = problem.constraint.project(np.random.default_rng(4).standard_normal((500, problem.p)))
    assert np.all(tilted.objective(points) >= found.lower - 1e-9)
    assert tilted.objective(found.theta) <= np.min(tilted.objective(points)) + 1e-6
