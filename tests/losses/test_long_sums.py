"""Sums over very many records: the same numbers as with whole arrays, whatever the threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.loops.thread_count import use_threads
from dperm_cli.losses.huberized_hinge import HuberizedHinge
from dperm_cli.losses.logistic import Logistic
from dperm_cli.losses.shared import long_sums
from dperm_cli.losses.squared import Squared
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.solvers import optimum

LOSSES = [Logistic(), Squared(), HuberizedHinge(0.5)]


def make_problem(loss, dtype=np.float64, n=1301, p=5):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.sign(x @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n))
    data = Data.of_records("toy", "binary", x.astype(dtype), y, 1.0, 1.0, fingerprint=f"{dtype}")
    return Problem(data, loss, make_ball(3.0, p))


def compute(problem):
    """What a solver asks for at one point: a dual point, a bound below, the Hessian."""
    theta, loss, data = np.linspace(-1.0, 1.0, problem.p), problem.loss, problem.data
    dual = loss.dual(theta, data)
    below = loss.minorant(dual, data)
    numbers = [below.constant, below.slopes, below.terms]
    hessian = [] if loss.hessian is None else [loss.hessian(theta, data)]
    return [dual, below.slope, np.array(numbers), *hessian]


@pytest.fixture
def few(monkeypatch):
    """A hundred records are many, and a part has several blocks."""

    def lower() -> None:
        monkeypatch.setattr(long_sums, "MANY", 100)
        monkeypatch.setattr(long_sums, "_BLOCK_NUMBERS", 64)

    return lower


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_equal_the_sums_of_whole_arrays(few, loss, dtype):
    problem = make_problem(loss, dtype)
    whole = compute(problem)
    few()
    assert long_sums.has_many_records(problem.data)
    for mine, plain in zip(compute(problem), whole, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_bits_do_not_depend_on_threads(few, loss):
    few()
    problem = make_problem(loss, n=9001)
    found = []
    for threads in (1, 2, 7):
        with use_threads(threads):
            found.append(b"".join(np.ascontiguousarray(a).tobytes() for a in compute(problem)))
    assert found[0] == found[1] == found[2]


def test_a_slope_outside_of_the_conjugate_proves_nothing(few):
    few()
    problem = make_problem(Logistic())
    dual = problem.loss.dual(np.zeros(problem.p), problem.data)
    dual[1234] = 2.0 * problem.data.y[1234]
    assert problem.loss.minorant(dual, problem.data).constant == -math.inf


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: type(loss).__name__)
def test_the_optimum_is_certified_by_newton_steps(few, loss):
    problem = make_problem(loss)
    before = optimum.solve(problem)
    few()
    after = optimum.solve(problem)
    assert (before.method, after.method) == ("interior_point", "conic")
    assert after.converged
    assert after.value - before.value <= before.gap
    assert before.lower <= after.value
    assert after.lower <= before.value


def test_more_numbers_get_more_time(monkeypatch):
    problem, told, real = make_problem(Logistic()), [], optimum._Clock

    def start_clock(seconds: float):
        told.append(seconds)
        return real(seconds)

    monkeypatch.setattr(optimum, "_Clock", start_clock)
    optimum.solve(problem)
    monkeypatch.setattr(optimum, "_NUMBERS", problem.data.n * problem.p / 4)
    optimum.solve(problem)
    assert told == [optimum.SECONDS, 4 * optimum.SECONDS]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000, 4097])
def test_a_sum_is_rounded_about_once(count):
    rng = np.random.default_rng(count)
    values = rng.standard_normal(count) * 10.0 ** rng.integers(-12, 12, count)
    exact = math.fsum(values)
    size = math.fsum(np.abs(values))
    assert abs(long_sums.add_up(values) - exact) <= 2.0**-52 * abs(exact) + 2.0**-98 * size
