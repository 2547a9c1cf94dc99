"""Coordinate-wise medians from sorted columns, against the other methods and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.box import Box
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.solvers import optimum, sorted_medians


def cloud(seed, n, p, constraint, ridge=0.0, digits=None):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    x += 0.3 * np.eye(p)[0]
    x = x if digits is None else np.round(x, digits)
    name = f"cloud {seed} {n} {p} {digits}"
    data = Data.of_records(name, "location", x, np.zeros(n), 1.5, 1.0, fingerprint=name)
    return Problem(data, registry.load("loss", "l1_median")(), constraint, ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("constraint", [L2Ball(0.2, 3), L2Ball(2.0, 3), Box(0.2, 3), Box(2.0, 3)])
@pytest.mark.parametrize("n", [1, 2, 17])
def test_no_other_method_finds_less(ridge, digits, constraint, n, monkeypatch):
    problem = cloud(n, n, 3, constraint, ridge, digits)
    found = optimum.solve(problem)
    assert (found.method, found.converged) == ("sorted", True)
    assert constraint.contains(found.theta)
    monkeypatch.setattr(sorted_medians, "applies", lambda problem: False)
    other = optimum.solve(problem)
    assert other.method != "sorted"
    assert found.value <= other.value + 1e-9
    assert found.lower >= other.lower - 1e-9


def test_the_middle_of_three_and_what_a_ridge_makes_of_it():
    problem = cloud(0, 3, 1, Box(9.0, 1))
    found = optimum.solve(problem)
    assert found.theta == pytest.approx(np.median(problem.data.x, axis=0), abs=0)
    # so strong a ridge pulls to 0 as far as the slopes of all three let it
    strong = cloud(0, 3, 1, Box(9.0, 1), ridge=1e6)
    slopes = float(np.sum(np.sign(strong.data.x)))
    assert optimum.solve(strong).theta[0] == pytest.approx(slopes / 3e6, rel=1e-9)


def test_many_records_are_solved_to_rounding():
    problem = cloud(1, 100_000, 5, L2Ball(0.1, 5))
    found = optimum.solve(problem)
    assert (found.method, found.converged, found.iterations) == ("sorted", True, 0)
    assert found.gap < 1e-10 * found.value


def test_left_to_the_others():
    problem = cloud(2, 20, 3, registry.load("constraint", "l1_ball")(0.5, 3))
    assert not sorted_medians.applies(problem)
    with_lasso = Problem(problem.data, problem.loss, L2Ball(1.0, 3), 0.0, 0.1)
    assert not sorted_medians.applies(with_lasso)
