"""Proved rounding errors and distances, against arithmetic with 60 digits."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import Unsupported
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.solvers import perturbed_minimiser, rounding_bounds
from tests.conftest import small_problem

SETS = ("l2_ball", "l1_ball", "box", "simplex")
LOSSES = ("logistic", "squared", "huberized_hinge", "huberized_positive_part", "linear")


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


def exact_slope(loss, z, y):
    """l'(z; y) of the losses above, in mpmath."""
    if loss.name == "logistic":
        return -y / (1 + mpmath.exp(y * z))
    if loss.name == "squared":
        return z - y
    if loss.name == "linear":
        return -y
    h = mpmath.mpf(loss.width)
    if loss.name == "huberized_hinge":
        return -y * min(max((1 - y * z + h) / (2 * h), 0), 1)
    sign = mpmath.mpf(1)
    return sign * min(max((y * z + h) / (2 * h), 0), 1)


def exact_gradient(problem, theta, tilt, modulus):
    """Of the smooth part of the objective, with 60 digits."""
    x, y = problem.data.x, problem.data.y
    theta = [mpmath.mpf(float(t)) for t in theta]
    out = [mpmath.mpf(modulus) * t + mpmath.mpf(float(b)) for t, b in zip(theta, tilt, strict=True)]
    for row, label in zip(x, y, strict=True):
        entries = [mpmath.mpf(float(v)) for v in row]
        z = mpmath.fsum(a * t for a, t in zip(entries, theta, strict=True))
        slope = exact_slope(problem.loss, z, mpmath.mpf(float(label)))
        out = [g + slope * a for g, a in zip(out, entries, strict=True)]
    return out


def length(v):
    return mpmath.sqrt(mpmath.fsum(a * a for a in v))


@pytest.mark.parametrize("radius", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("loss", ["logistic", "squared", "huberized_hinge", "linear"])
def test_the_slope_error_covers_the_true_one(loss, radius):
    problem = small_problem(loss=loss, radius=radius, ridge=0.05, p=7)
    rng = np.random.default_rng(0)
    for _ in range(4):
        theta = problem.constraint.project(radius * rng.standard_normal((1, 7)))
        tilt = 10.0 * rng.standard_normal(7)
        facts = rounding_bounds.rounding(problem.spec(), 2.0, float(np.linalg.norm(tilt)))
        found = problem.data_gradient(theta)[0] + problem.penalty.ridge * theta[0] + tilt
        exact = exact_gradient(problem, theta[0], tilt, problem.penalty.ridge)
        error = length([mpmath.mpf(float(a)) - b for a, b in zip(found, exact, strict=True)])
        assert error <= facts.slope
        # not a bound without meaning: the product's own error is within a few thousand of it
        assert facts.slope <= 1e-11 * facts.length


@pytest.mark.parametrize("constraint", SETS)
def test_points_are_where_their_normals_are_known(constraint):
    """Of norm exactly the radius on L1 balls and simplices, within ``off_set`` on the ball, and no
    further from the exact projection than ``step`` allows for."""
    for p, radius in ((2, 1.0), (9, 0.3), (60, 7.1), (60, 1e12)):
        body = registry.load("constraint", constraint)(radius, p)
        facts = rounding_bounds.rounding(_spec(constraint, p, radius), 1.0, 0.0)
        rng = np.random.default_rng(p)
        rows = np.concatenate([s * radius * rng.standard_normal((5, p)) for s in (1e-3, 1.0, 1e6)])
        found = body.normals.project(rows)
        again = body.normals.project(found)
        assert np.max(np.abs(found - again)) <= facts.off_set + 1e-15 * radius
        assert np.max(np.linalg.norm(found - body.project(rows), axis=1)) <= 1e-13 * p * radius
        for row, v in zip(found, rows, strict=True):
            exact = [mpmath.mpf(float(a)) for a in row]
            if constraint == "l2_ball":
                outside = length([mpmath.mpf(float(a)) for a in v]) > radius
                if outside:
                    assert abs(length(exact) - radius) <= facts.off_set
            elif constraint == "simplex":
                assert mpmath.fsum(exact) == radius
                assert np.all(row >= 0.0)
            elif constraint == "l1_ball":
                total = mpmath.fsum(abs(a) for a in exact)
                assert total == radius or total == mpmath.fsum(abs(mpmath.mpf(float(a))) for a in v)


def _spec(constraint, p, radius):
    return small_problem(constraint=constraint, p=p, radius=radius).spec()


@pytest.mark.parametrize("lasso", [0.0, 0.7])
@pytest.mark.parametrize("constraint", SETS)
def test_what_is_left_is_the_distance_to_the_normals(constraint, lasso):
    """No element found at random is nearer to 0, and at a minimiser nothing is left."""
    body = registry.load("constraint", constraint)(1.0, 5)
    rng = np.random.default_rng(1)
    lasso = 0.0 if constraint == "simplex" else lasso
    for _ in range(30):
        slope = 3.0 * rng.standard_normal((1, 5))
        start = body.normals.project(2.0 * rng.standard_normal((1, 5)))
        start[0, start[0] == np.min(np.abs(start))] = 0.0
        at = body.normals.project(start)
        left = body.normals.residual(at, slope, lasso)[0]
        for _ in range(60):
            element = slope + _normal(constraint, body, at, rng)
            kink = np.where(at == 0.0, rng.uniform(-1.0, 1.0, at.shape), np.sign(at))
            assert left <= np.linalg.norm(element + lasso * kink) * (1.0 + 1e-9) + 1e-12
        # the minimiser of |theta - v|^2 / 2 + lasso |theta|_1
        v = 3.0 * rng.standard_normal((1, 5))
        shrunk = np.sign(v) * np.maximum(np.abs(v) - lasso, 0.0)
        best = body.normals.project(shrunk)
        assert body.normals.residual(best, best - v, lasso)[0] <= 1e-13


def _normal(constraint, body, at, rng):
    """A random element of the normal cone at a point of the set."""
    push = rng.exponential(2.0)
    if constraint == "l2_ball":
        return push * at if np.linalg.norm(at) >= 1.0 - 1e-12 else 0.0 * at
    if constraint == "box":
        return rng.exponential(2.0, at.shape) * np.where(np.abs(at) == body.half_width, at, 0.0)
    elsewhere = rng.uniform(-1.0, 1.0, at.shape)
    if constraint == "l1_ball":
        if abs(np.sum(np.abs(at)) - 1.0) > 1e-12:
            return 0.0 * at
        return push * np.where(at != 0.0, np.sign(at), elsewhere)
    level = 4.0 * rng.standard_normal()
    return np.where(at > 0.0, level, level - push * np.abs(elsewhere))


def exact_minimiser(problem, tilt, modulus, guess, steps=40):
    """Newton's steps with 60 digits, on the face of the ball that ``guess`` is on.

    With a multiplier t for the sphere: grad F(theta) + t theta = 0, |theta| = R.
    """
    p, radius = problem.p, mpmath.mpf(problem.constraint.radius)
    theta = mpmath.matrix([mpmath.mpf(float(a)) for a in guess])
    bend = problem.loss.curvature
    sphere = float(np.linalg.norm(guess)) >= float(radius) * (1.0 - 1e-9)
    push = mpmath.mpf(0)
    if sphere:
        g = exact_gradient(problem, guess, tilt, modulus)
        push = -mpmath.fsum(a * b for a, b in zip(g, theta, strict=True)) / radius**2
    for _ in range(steps):
        at = [theta[i] for i in range(p)]
        slope = _mp_gradient(problem, at, tilt, modulus)
        z = problem.data.x @ np.array([float(a) for a in at])
        weights = bend(z, problem.data.y)
        hessian = (problem.data.x.T * weights) @ problem.data.x + modulus * np.eye(p)
        size = p + (1 if sphere else 0)
        system = mpmath.zeros(size, size)
        right = mpmath.zeros(size, 1)
        for i in range(p):
            right[i] = -(slope[i] + push * at[i])
            for j in range(p):
                system[i, j] = mpmath.mpf(float(hessian[i, j])) + (push if i == j else 0)
            if sphere:
                system[i, p] = system[p, i] = at[i]
        if sphere:
            right[p] = (radius**2 - mpmath.fsum(a * a for a in at)) / 2
        move = mpmath.lu_solve(system, right)
        for i in range(p):
            theta[i] += move[i]
        push = push + move[p] if sphere else push
        if length([move[i] for i in range(p)]) < radius * mpmath.mpf(10) ** -30:
            break
    assert length([move[i] for i in range(p)]) < radius * mpmath.mpf(10) ** -25
    assert push >= 0
    return [theta[i] for i in range(p)]


def _mp_gradient(problem, at, tilt, modulus):
    out = [mpmath.mpf(modulus) * t + mpmath.mpf(float(b)) for t, b in zip(at, tilt, strict=True)]
    for row, label in zip(problem.data.x, problem.data.y, strict=True):
        z = mpmath.fsum(mpmath.mpf(float(a)) * t for a, t in zip(row, at, strict=True))
        slope = exact_slope(problem.loss, z, mpmath.mpf(float(label)))
        out = [g + slope * mpmath.mpf(float(a)) for g, a in zip(out, row, strict=True)]
    return out


@pytest.mark.parametrize("radius", [1.0, 1e4, 1e12])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_bounds_cover_the_distance_to_the_exact_minimiser(loss, radius):
    """Inside the ball and on its sphere, with 60 digits."""
    problem = small_problem(loss=loss, radius=radius, ridge=0.05, n=12, p=4)
    modulus = problem.penalty.ridge
    rng = np.random.default_rng(2)
    for size in (1.0, 8.0, 20.0 * radius):
        tilt = size * rng.standard_normal((1, 4))
        wanted = perturbed_minimiser.provable_distance(
            problem.spec(), modulus, float(np.linalg.norm(tilt)), 0.0
        )
        points, bounds = perturbed_minimiser.locate(problem, tilt, modulus, wanted)
        assert bounds[0] <= wanted
        exact = exact_minimiser(problem, tilt[0], modulus, points[0])
        away = length([mpmath.mpf(float(a)) - b for a, b in zip(points[0], exact, strict=True)])
        assert away <= bounds[0]


@pytest.mark.parametrize("constraint", SETS)
@pytest.mark.parametrize("loss", ["logistic", "squared", "huberized_hinge"])
def test_a_distance_that_is_promised_is_always_had(loss, constraint, monkeypatch):
    """Where the quick method gives up at once, the plain steps get there in their public number."""
    problem = small_problem(loss=loss, constraint=constraint, ridge=0.5, n=10)
    tilts = 9.0 * np.random.default_rng(3).standard_normal((3, problem.p))
    size = float(np.max(np.linalg.norm(tilts, axis=1)))
    distance = perturbed_minimiser.provable_distance(problem.spec(), 5.0, size)
    points, _ = perturbed_minimiser.locate(problem, tilts, 5.0, distance)
    monkeypatch.setattr(
        perturbed_minimiser.TiltedDescent, "run", lambda self, start, _: (start, np.full(3, np.inf))
    )
    again, bounds = perturbed_minimiser.locate(problem, tilts, 5.0, distance)
    assert np.all(bounds <= distance)
    assert np.all(np.linalg.norm(points - again, axis=1) <= 2.0 * distance)
    assert np.all(problem.constraint.contains(again))
    # ... and that they do needs no look at the point: the theorem says so
    monkeypatch.setattr(
        perturbed_minimiser.TiltedDescent, "_proof", lambda self, *_: np.full(3, np.inf)
    )
    blind, bounds = perturbed_minimiser.locate(problem, tilts, 5.0, distance)
    assert np.all(bounds <= distance)
    assert np.all(np.linalg.norm(points - blind, axis=1) <= 2.0 * distance)


def test_what_no_number_of_steps_is_sure_to_reach_is_refused_beforehand():
    spec = small_problem(n=40, p=3).spec()
    least = perturbed_minimiser.least_modulus(spec)
    assert perturbed_minimiser.provable_distance(spec, 1.001 * least) > 0.0
    with pytest.raises(Unsupported, match="at least"):
        perturbed_minimiser.provable_distance(spec, 0.5 * least)
    # a bracket in one dimension needs no such thing
    line = small_problem(n=40, p=1).spec()
    assert perturbed_minimiser.least_modulus(line) == 0.0
    assert perturbed_minimiser.provable_distance(line, 1e-9) > 0.0


def test_the_distance_follows_from_public_facts_alone():
    problem = small_problem(n=30, radius=1e9, ridge=0.01)
    other = replace(
        problem, data=replace(problem.data, x=np.zeros_like(problem.data.x), fingerprint="zeros")
    )
    assert problem.spec() == other.spec()
    far = perturbed_minimiser.provable_distance(problem.spec(), 0.3, 4.0)
    assert far == perturbed_minimiser.provable_distance(other.spec(), 0.3, 4.0)
    # what rounding does grows with the radius, and is no more than a share of it
    assert far >= 1e-11 * 2e9
    assert perturbed_minimiser.provable_distance(problem.spec(), 0.3, 4.0, 1e-3) < 1.0


@pytest.mark.parametrize("n", [rounding_bounds.LEAST_BLOCK + 1, 20_007])
def test_sums_in_blocks_are_the_sums(n):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((n, 3))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    y = rng.choice([-1.0, 1.0], n)
    data = Data.of_records("blocks", "binary", x, y, 1.0, 1.0, "blocks")
    loss, ball = registry.load("loss", "logistic")(), registry.load("constraint", "l2_ball")(1.0, 3)
    problem = Problem(data, loss, ball)
    theta = rng.standard_normal((2, 3))
    whole = problem.data_gradient(theta)
    facts = rounding_bounds.rounding(problem.spec(), 1.0, 0.0)
    apart = np.linalg.norm(perturbed_minimiser.BlockSums(problem)(theta) - whole, axis=1)
    assert np.all(apart <= 10.0 * facts.slope)
    # n^2 u / 2 without blocks
    assert facts.slope < 200.0 * n * rounding_bounds.U


@pytest.mark.parametrize(("n", "most"), [(1, 2), (128, 129), (129, 130), (524_288, 141),
                                         (10**8, 24_428)])  # fmt: skip
def test_additions_of_a_record_are_few(n, most):
    """A block in any order, one addition for each halving of the blocks, one for the first."""
    assert rounding_bounds.most_additions(n) == most


def test_a_gap_is_never_wider_than_it_is_computed_to_be():
    """The bound on the rounding of gaps is above the allowance made for one data set."""
    from dperm_cli.solvers import dual_points, optimum

    for loss in ("logistic", "hinge", "squared"):
        problem = small_problem(loss=loss, ridge=0.1, n=50)
        theta = optimum.solve(problem).theta
        allowance = optimum.rounding_allowance(
            problem, theta, dual_points.make_dual_point(problem, theta)
        )
        assert perturbed_minimiser.gap_error(problem.spec(), 5.0) > allowance
