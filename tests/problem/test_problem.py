"""Problem and its public facts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.losses.shared.margin_loss import margins
from dperm_cli.problem.data import Bounds
from dperm_cli.problem.problem import make_spec
from dperm_cli.problem.regulariser import Regulariser
from tests.conftest import small_problem

PAIRS = [
    (loss, shape)
    for loss in ("logistic", "hinge", "squared", "absolute")
    for shape in ("l2_ball", "l1_ball", "box")
]


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_objective_is_the_sum_of_losses_and_the_ridge(loss, shape):
    problem = small_problem(loss, shape, n=7, p=3, ridge=0.3)
    theta = np.array([0.2, -0.4, 0.1])
    total = sum(
        float(problem.loss.value(np.array([x @ theta]), np.array([y]))[0])
        for x, y in zip(problem.data.x, problem.data.y, strict=True)
    )
    assert float(problem.objective(theta)) == pytest.approx(total + 7 * 0.15 * (theta @ theta))


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_gradient_is_a_subgradient_of_the_objective(loss, shape):
    problem = small_problem(loss, shape, ridge=0.1)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20, 3))
    linear = problem.objective(a) + np.sum(problem.gradient(a) * (b - a), axis=1)
    assert np.all(problem.objective(b) >= linear - 1e-9)
    middle = 0.5 * problem.data.n * 0.1 * np.sum((b - a) ** 2, axis=1)
    assert np.all(problem.objective(b) >= linear + middle - 1e-9)  # n * ridge strongly convex


def test_rows_of_parameters_and_sparse_data():
    dense = small_problem("squared", n=6)
    data = dataclasses.replace(dense.data, x=sparse.csr_array(dense.data.x))
    csr = dataclasses.replace(dense, data=data)
    theta = np.random.default_rng(1).normal(size=(4, 3))
    assert margins(theta, dense.data).shape == (4, 6)
    stacked = theta.reshape(2, 2, 3)
    for method in ("objective", "data_gradient", "gradient"):
        whole = getattr(dense, method)(theta)
        nested = getattr(dense, method)(stacked)
        np.testing.assert_allclose(nested.reshape(whole.shape), whole, rtol=1e-12)
        np.testing.assert_allclose(getattr(csr, method)(theta), whole, rtol=1e-12)
        np.testing.assert_allclose(getattr(dense, method)(theta[2]), whole[2], rtol=1e-12)


@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_public_constants_bound_every_record(loss, shape):
    """Per-record Lipschitz and smoothness constants against differences inside the set."""
    problem = small_problem(loss, shape, n=30, p=3, radius=2.0, ridge=0.2)
    spec, rng = problem.spec(), np.random.default_rng(2)
    points = problem.constraint.project(3 * rng.normal(size=(60, 3)))
    z = margins(points, problem.data)
    value, slope = (f(z, problem.data.y) for f in (problem.loss.value, problem.loss.slope))
    distance = np.linalg.norm(points[1:] - points[:-1], axis=1)[:, None]
    keep = distance[:, 0] > 1e-9
    steps = np.abs(np.diff(value, axis=0))[keep]
    assert np.all(steps <= spec.lipschitz * distance[keep] * (1 + 1e-9))
    penalty = 0.1 * np.sum(points**2, axis=1)[:, None]
    steps = np.abs(np.diff(value + penalty, axis=0))[keep]
    assert np.all(steps <= spec.lipschitz_total * distance[keep] * (1 + 1e-9))
    if spec.smoothness is not None:
        lengths = np.linalg.norm(problem.data.x, axis=1)
        turns = np.abs(np.diff(slope, axis=0)) * lengths
        assert np.all(turns[keep] <= spec.smoothness * distance[keep] * (1 + 1e-9))


def test_spec_of_a_ridge_problem():
    spec = small_problem("squared", "box", n=40, p=4, radius=0.5, ridge=0.2).spec()
    assert spec.constraint.radius == 1.0
    assert spec.lipschitz == 2.0  # rows of norm 1: |z| <= 1, |y| <= 1
    assert spec.lipschitz_total == pytest.approx(2.0 + 0.2)
    assert spec.strong_convexity == 0.2
    assert spec.smoothness == 1.0
    assert spec.curvature_bound == 40.0
    assert small_problem("hinge").spec().curvature_bound is None


def test_the_lasso_counts():
    plain = small_problem("squared", "box", n=40, p=4, radius=0.5, ridge=0.2)
    problem = dataclasses.replace(plain, lasso=0.1)
    spec, theta = problem.spec(), np.array([[0.5, -0.25, 0.0, 0.25]])
    assert (spec.ridge, spec.lasso) == (0.2, 0.1)
    assert spec.penalty == problem.penalty == Regulariser(40 * 0.2, 40 * 0.1)
    assert spec.lipschitz == plain.spec().lipschitz
    assert spec.lipschitz_total == pytest.approx(2.0 + 0.2 * 1.0 + 0.1 * 2.0)
    assert spec.strong_convexity == 0.2
    assert problem.objective(theta) - plain.objective(theta) == pytest.approx(40 * 0.1 * 1.0)
    slope = problem.gradient(theta) - plain.gradient(theta)
    np.testing.assert_allclose(slope, 40 * 0.1 * np.sign(theta), atol=1e-12)
    np.testing.assert_array_equal(problem.data_gradient(theta), plain.data_gradient(theta))


def test_constants_scale_with_the_row_bound():
    make = registry.load("constraint", "l2_ball")
    loss = registry.load("loss", "logistic")()
    bounds = (Bounds(row=b, target=1.0, radius=1.0, columns=2) for b in (1.0, 3.0))
    ball, none = make(1.0, 2), Regulariser()
    one, three = (make_spec(5, loss, ball, none, "binary", bound) for bound in bounds)
    assert three.smoothness == pytest.approx(9 * one.smoothness)
    assert one.lipschitz == pytest.approx(1 / (1 + np.exp(-1.0)))
    assert three.lipschitz == pytest.approx(3 / (1 + np.exp(-3.0)))


def test_fingerprint_tells_problems_apart():
    problems = [
        small_problem(),
        small_problem(seed=1),
        small_problem(loss="hinge"),
        small_problem(constraint="box"),
        small_problem(radius=1.5000001),
        small_problem(ridge=1e-9),
        dataclasses.replace(small_problem(), lasso=1e-9),
    ]
    assert len({p.fingerprint() for p in problems}) == len(problems)
    assert small_problem().fingerprint() == problems[0].fingerprint()


@pytest.mark.parametrize("layout", ["dense", "sparse", "single"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute"])
@pytest.mark.parametrize("p", [1, 3, 10, 23])
def test_values_of_many_points_have_the_bits_that_each_has_alone(loss, layout, p):
    problem = small_problem(loss, n=70, p=p, ridge=0.3)
    rows = problem.data.x.astype(np.float32)
    made = {"dense": problem.data.x, "sparse": sparse.csr_array(problem.data.x), "single": rows}
    problem = dataclasses.replace(
        problem,
        data=dataclasses.replace(problem.data, x=made[layout]),
        tilt=np.linspace(-0.5, 1.0, p),
    )
    points = np.random.default_rng(3).normal(size=(11, p))
    alone = [float(problem.objective(one)) for one in points]
    assert problem.evaluate_apart(points).tolist() == alone
