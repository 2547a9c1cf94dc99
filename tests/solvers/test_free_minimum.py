"""The optimum over sets so wide that they do not bind."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import free_minimum, optimum

WIDE = (1e3, 1e6, 1e12, 1e30)


def make_problem(loss, radius, seed=0, n=60, p=3, body="l2_ball", **penalty):
    """Rows in the unit ball; labels with noise, so that the minimum is at a finite point."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    noisy = x[:, 0] + 0.5 * rng.standard_normal(n)
    task = "regression" if loss == "squared" else "binary"
    y = np.clip(noisy, -1.0, 1.0) if task == "regression" else np.where(noisy < 0.0, -1.0, 1.0)
    data = Data.of_records("drawn", task, x, y, 1.0, 1.0, fingerprint="")
    made = registry.load("constraint", body)(radius, p)
    return Problem(data, registry.load("loss", loss)(), made, **penalty)


@pytest.mark.parametrize("body", ["l2_ball", "l1_ball", "box"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_set_without_end_has_the_minimum_of_a_wide_one(loss, body):
    near = optimum.solve(make_problem(loss, 20.0, body=body))
    for radius in WIDE:
        problem = make_problem(loss, radius, body=body)
        found = optimum.solve(problem)
        start = float(problem.objective(np.zeros(3)))
        assert found.converged
        assert found.gap <= 1e-6 * (start - found.value)
        assert found.value == pytest.approx(near.value, rel=1e-5)
        assert found.lower <= near.value


@pytest.mark.parametrize("penalty", [{}, {"ridge": 0.01}, {"lasso": 0.01}])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_bound_is_below_the_minimum_wherever_it_is_taken(loss, penalty):
    rng = np.random.default_rng(1)
    for seed in range(5):
        problem = make_problem(loss, 20.0, seed, **penalty)
        least = optimum.solve(problem, relative_gap=1e-9)
        tight, _ = free_minimum.lower_bound(problem, least.theta)
        assert least.value - tight <= 1e-6 * problem.data.n
        for far in (1e-6, 1e-3, 0.1, 1.0, 100.0):
            point = least.theta + far * rng.standard_normal(3)
            assert free_minimum.lower_bound(problem, point)[0] <= least.value


def test_a_bound_far_from_the_minimum_of_a_logistic_is_that_of_slopes_of_zero():
    """There the curvature tells nothing of what is beyond a distance of 1."""
    problem = make_problem("logistic", 1e12)
    bound, _ = free_minimum.lower_bound(problem, np.full(3, 40.0))
    assert bound == pytest.approx(0.0, abs=1e-12)


def test_labels_that_can_be_told_apart_have_a_least_loss_of_zero():
    problem = make_problem("logistic", 1e12)
    clear = np.where(problem.data.x[:, 0] < 0.0, -1.0, 1.0)
    data = Data.of_records("clear", "binary", problem.data.x, clear, 1.0, 1.0, fingerprint="")
    found = optimum.solve(Problem(data, problem.loss, problem.constraint))
    assert found.converged
    assert 0.0 <= found.value <= 1e-4


def test_fewer_records_than_columns_and_a_column_twice():
    rng = np.random.default_rng(2)
    x = 0.1 * rng.standard_normal((3, 6))
    few = Data.of_records("few", "regression", x, np.ones(3), 1.0, 1.0, fingerprint="")
    ball = registry.load("constraint", "l2_ball")(1e12, 6)
    found = optimum.solve(Problem(few, registry.load("loss", "squared")(), ball))
    assert found.converged
    assert found.gap <= 1e-12
    twice = np.hstack([rng.standard_normal((40, 3))] * 2) / 10.0
    y = np.clip(rng.standard_normal(40), -1.0, 1.0)
    data = Data.of_records("twice", "regression", twice, y, 1.0, 1.0, fingerprint="")
    found = optimum.solve(Problem(data, registry.load("loss", "squared")(), ball))
    narrow = registry.load("constraint", "l2_ball")(50.0, 6)
    near = optimum.solve(Problem(data, registry.load("loss", "squared")(), narrow))
    assert found.value == pytest.approx(near.value, rel=1e-9)
    assert found.gap <= found.value


def test_a_set_of_ordinary_size_is_left_to_the_other_methods():
    for loss in ("squared", "logistic"):
        assert not optimum.is_vast(make_problem(loss, 10.0), optimum.RELATIVE_GAP)
        assert optimum.is_vast(make_problem(loss, 1e8), optimum.RELATIVE_GAP)


def test_a_stored_optimum_of_a_wide_set_is_read_back(tmp_path):
    problem = make_problem("squared", 1e12)
    first, again = (optimum.solve_or_load(problem, tmp_path) for _ in range(2))
    assert (first.value, first.lower, first.gap) == (again.value, again.lower, again.gap)
    assert np.array_equal(first.theta, again.theta)
