"""Certified optima with an l1 norm in the objective: every pair, closed forms, other solvers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import conic, interior_point, linear_minimum, optimum
from tests.solvers.test_optimum_pairs import (
    LOSSES,
    OTHERS,
    PAIRS,
    SETS,
    assert_certified,
    feasible,
    pair,
    shaped,
)


def pulled(loss, shape, lasso=0.05, ridge=0.0, **fields):
    return dataclasses.replace(pair(loss, shape, ridge, **fields), lasso=lasso)


@pytest.mark.in_turn
@pytest.mark.parametrize("ridge", [0.0, 1e-2])
@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_every_pair_of_the_registry_is_certified(loss, shape, ridge):
    problem = pulled(loss, shape, ridge=ridge)
    found = optimum.solve(problem)
    assert_certified(problem, found)
    # a bound from the wrong objective would be below every point, too: this one is not far below
    assert found.lower > found.value - 1e-5 * problem.spec().lipschitz_total * problem.data.n


@pytest.mark.parametrize("shape", OTHERS)
@pytest.mark.parametrize("loss", ["logistic", "absolute", "l1_median"])
def test_every_form_of_the_sets(loss, shape):
    problem = pulled(loss, shape, ridge=1e-3)
    assert_certified(problem, optimum.solve(problem))


@pytest.mark.in_turn
@pytest.mark.parametrize("lasso", [1e-4, 10.0])
@pytest.mark.parametrize("radius", [1e-2, 30.0])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "l2_median"])
@pytest.mark.parametrize("shape", SETS)
def test_small_and_large_sets_and_weights(loss, shape, radius, lasso):
    problem = pulled(loss, shape, lasso, radius=radius)
    assert_certified(problem, optimum.solve(problem))


@pytest.mark.parametrize("shape", ["l2_ball", "l1_ball", "box"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "huberized_hinge", "squared", "absolute"])
def test_two_methods_agree(loss, shape, monkeypatch):
    problem = pulled(loss, shape, ridge=1e-3)
    own = optimum.solve(problem)
    monkeypatch.setattr(interior_point, "applies", lambda problem: False)
    other = optimum.solve(problem)
    assert (own.method, other.method) == ("interior_point", "conic")
    assert own.lower <= other.value
    assert other.lower <= own.value


@pytest.mark.in_turn
@pytest.mark.parametrize("loss", ["logistic", "hinge", "multinomial"])
@pytest.mark.parametrize("shape", ["l2_ball", "box", "l1_ball", "simplex", "ellipsoid", "lp_ball"])
def test_first_order_alone_certifies_more_slowly(loss, shape, monkeypatch):
    for method in (conic, interior_point):
        monkeypatch.setattr(method, "applies", lambda problem: False)
    problem = pulled(loss, shape, ridge=1e-2)
    found = optimum.solve(problem, relative_gap=1e-3)
    assert found.method == "first_order"
    assert_certified(problem, found, 1e-3)


def test_without_an_answer_of_the_conic_solver_signs_still_certify(monkeypatch):
    monkeypatch.setattr(conic, "l1_slope", lambda problem, g: None)
    monkeypatch.setattr(conic, "applies", lambda problem: False)
    problem = pulled("logistic", "simplex", ridge=0.1)
    found = optimum.solve(problem, relative_gap=1e-3)
    assert_certified(problem, found, 1e-3)


# bounds that hold


@pytest.mark.in_turn
@pytest.mark.parametrize(("loss", "shape"), PAIRS)
def test_no_dual_certifies_above_a_feasible_point(loss, shape):
    """Duals scaled, negated and permuted; bounds against many feasible points."""
    rng = np.random.default_rng(1)
    problem = pulled(loss, shape, ridge=1e-2 * (len(loss + shape) % 2), n=12)
    points = feasible(problem, rng)
    lowest = min(float(problem.objective(v)) for v in points)
    found = optimum.solve(problem)
    assert found.lower <= lowest
    for dual in (found.dual, 0.5 * found.dual, -found.dual, rng.permutation(found.dual)):
        for theta in (points[0], found.theta):
            assert optimum.certificate(problem, theta, dual) <= lowest


@pytest.mark.in_turn
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("shape", [*SETS, *(s for s in OTHERS if s != "image of an Lp ball")])
def test_the_inner_minimum_is_the_minimum(shape, ridge):
    """Below every point, whatever point is said to be near; met by a solved linear problem."""
    rng = np.random.default_rng(len(shape))
    problem = pulled("linear", shape, 0.2, ridge)
    g = 10.0 * rng.standard_normal(4)
    points = np.array(feasible(problem, rng))
    values = points @ g + problem.penalty.value(points)
    bound = linear_minimum.lower_bound(problem, g, points[np.argmin(values)])
    size = np.linalg.norm(g) + problem.penalty.lipschitz(2.0, 4)
    assert bound <= values.min() + 1e-9 * size
    # the same minimum by another route: records whose slopes sum to g
    y, x = np.full(30, -1.0), np.tile(g / 30.0, (30, 1))
    data = problem.data.with_records(x, y, row_bound=float(np.linalg.norm(x[0])))
    found = optimum.solve(dataclasses.replace(problem, data=data), seconds=3.0)
    assert bound == pytest.approx(found.value, abs=2e-6 * size)


# closed forms and other solvers


def orthogonal(rng, n=40, p=5):
    """x with X^T X = I / 2 and rows in the unit ball, and targets."""
    x = np.linalg.qr(rng.standard_normal((n, p)))[0] / np.sqrt(2.0)
    return x, np.clip(3.0 * x @ rng.standard_normal(p) + 0.1 * rng.standard_normal(n), -1, 1)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize("lasso", [1e-4, 3e-3, 1.0])
@pytest.mark.parametrize("shape", ["l2_ball", "box", "lp_ball"])
def test_orthogonal_least_squares_is_thresholded(shape, lasso, ridge):
    """min |X theta - y|^2 / 2 + n r(theta): soft(X^T y, n lasso) / (1/2 + n ridge)."""
    x, y = orthogonal(np.random.default_rng(0))
    data = Data.of_records("orthogonal", "regression", x, y, 1.0, 1.0, "orthogonal")
    problem = Problem(
        data, registry.load("loss", "squared")(), shaped(shape, 5, 50.0), ridge, lasso
    )
    found = optimum.solve(problem, relative_gap=1e-9)
    moments = x.T @ y
    expected = np.sign(moments) * np.maximum(np.abs(moments) - 40 * lasso, 0) / (0.5 + 40 * ridge)
    np.testing.assert_allclose(found.theta, expected, atol=2e-4)
    assert found.value == pytest.approx(
        float(problem.objective(expected)), abs=2 * found.gap + 1e-12
    )


def test_agrees_with_the_lasso_of_scikit_learn():
    from sklearn.linear_model import ElasticNet

    problem = pulled("squared", "l2_ball", 0.1, ridge=0.02, radius=100.0, n=60)
    x, y = problem.data.x, problem.data.y
    model = ElasticNet(alpha=0.12, l1_ratio=5 / 6, fit_intercept=False, tol=1e-12, max_iter=10**6)
    theta = model.fit(x, y).coef_
    found = optimum.solve(problem)
    assert found.lower <= float(problem.objective(theta)) <= found.value + 1e-9
    np.testing.assert_allclose(found.theta, theta, atol=1e-4)
    assert np.any(theta == 0)


def test_on_the_simplex_the_l1_norm_is_a_constant():
    for loss in LOSSES:
        bare = pair(loss, "simplex")
        found = [optimum.solve(p) for p in (bare, dataclasses.replace(bare, lasso=0.1))]
        shift = bare.data.n * 0.1 * bare.constraint.size
        gaps = found[0].gap + found[1].gap
        assert found[1].value - found[0].value == pytest.approx(shift, abs=gaps + 1e-9)


def test_a_strong_lasso_leaves_zero():
    problem = pulled("logistic", "l2_ball", 2.0)
    found = optimum.solve(problem)
    np.testing.assert_allclose(found.theta, 0.0, atol=1e-9)
    assert found.converged


def test_wide_sparse_rows_are_thresholded_and_never_dense(monkeypatch):
    n, p = 3100, 20_000
    rng = np.random.default_rng(0)
    x = sparse.csr_array(sparse.random_array((n, p), density=5e-4, rng=rng, format="csr"))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    bound = float(np.sqrt((x.multiply(x)).sum(axis=1).max()))
    data = Data.of_records("wide", "binary", x, y, bound, 1.0, "wide")
    ball = shaped("l2_ball", p, 5.0)
    problem = Problem(data, registry.load("loss", "logistic")(), ball, 0.0, 2e-4)
    monkeypatch.setattr(type(x), "toarray", lambda self: pytest.fail("made dense"))
    found = optimum.solve(problem)
    assert found.method == "first_order"
    assert_certified(problem, found)
    assert 0 < np.mean(found.theta == 0) < 1


def test_the_cache_tells_lassos_apart(tmp_path):
    values = [
        optimum.solve_or_load(pulled("hinge", "box", v), tmp_path).value for v in (0.0, 0.1, 0.1)
    ]
    assert values[0] < values[1] == values[2]
    assert len(list(tmp_path.iterdir())) == 2
