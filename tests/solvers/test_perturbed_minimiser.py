"""Certified distances to the minimiser, against problems whose minimiser is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dperm_cli.solvers import perturbed_minimiser
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
