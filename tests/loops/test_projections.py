"""Compiled projections: optimality, idempotence, and a sorting reference for the L1 ball."""

import numpy as np
import pytest

from dperm_cli.loops import projections
from dperm_cli.loops.vector_lanes import dot

SETS = (projections.L2_BALL, projections.L1_BALL, projections.BOX)
NORMS = {
    projections.L2_BALL: np.linalg.norm,
    projections.L1_BALL: lambda v: np.abs(v).sum(),
    projections.BOX: lambda v: np.abs(v).max(),
}


def projected(code, size, theta):
    out = np.array(theta, dtype=float)
    projections.project(code, size, out)
    return out


def points(p):
    rng = np.random.default_rng(p)
    return [
        rng.standard_normal(p),
        10 * rng.standard_normal(p),
        np.ones(p),
        np.zeros(p),
        0.5 ** np.arange(p),
        1e12 * rng.standard_cauchy(p),
        np.round(3 * rng.standard_normal(p)),
    ]


@pytest.mark.parametrize("code", SETS)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16, 37, 300])
def test_nearest_point(code, p):
    """In the set; <theta - P theta, v - P theta> <= 0 for v in the set; P P = P."""
    rng = np.random.default_rng(100 + p)
    for theta in points(p):
        best = projected(code, 0.7, theta)
        assert NORMS[code](best) <= 0.7 * (1 + 1e-13)
        for _ in range(20):
            v = rng.standard_normal(p)
            v *= 0.7 / NORMS[code](v)
            assert (theta - best) @ (v - best) <= 1e-14 * max(100.0, np.linalg.norm(theta))
        assert np.allclose(projected(code, 0.7, best), best, rtol=0, atol=1e-15)


@pytest.mark.parametrize("code", SETS)
def test_interior_points_stay(code):
    theta = np.array([0.1, -0.2, 0.05, 0.0, 0.3])
    assert np.array_equal(projected(code, 0.7, theta), theta)


@pytest.mark.parametrize("p", [1, 5, 64, 1000])
def test_l1_ball_against_sorting(p):
    for theta in points(p):
        u = np.sort(np.abs(theta))[::-1]
        excess = (np.cumsum(u) - 0.7) / np.arange(1, p + 1)
        tau = max(0.0, excess[np.nonzero(u > excess)[0][-1]]) if u.sum() > 0.7 else 0.0
        expected = np.sign(theta) * np.maximum(np.abs(theta) - tau, 0)
        scale = 1e-14 * max(1.0, u[0])
        assert np.allclose(projected(projections.L1_BALL, 0.7, theta), expected, atol=scale)


@pytest.mark.parametrize("p", [1, 3, 4, 15, 16, 17, 100])
def test_dot(p):
    rng = np.random.default_rng(p)
    a, b = rng.standard_normal((2, 3, p))
    assert dot(a, 2 * p, b, p, p) == pytest.approx(a[2] @ b[1], abs=1e-13)
