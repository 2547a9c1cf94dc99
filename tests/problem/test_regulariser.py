"""The regulariser: subgradients and constants by search."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.problem.regulariser import Regulariser

CASES = [Regulariser(), Regulariser(ridge=0.3), Regulariser(lasso=0.2), Regulariser(0.3, 0.2)]
every = pytest.mark.parametrize("r", CASES)


def points(count, p=4, seed=0):
    theta = np.random.default_rng(seed).standard_normal((count, p))
    theta[: count // 2] *= np.random.default_rng(1).random((count // 2, p)) < 0.5
    return theta


def test_values():
    theta = np.array([[3.0, -4.0], [0.0, 2.0]])
    np.testing.assert_allclose(Regulariser(0.5, 0.1).value(theta), [6.95, 1.2])
    np.testing.assert_allclose(Regulariser(0.5, 0.1).subgradient(theta), [[1.6, -2.1], [0.0, 1.1]])


@every
def test_subgradient_inequality_with_strong_convexity(r):
    """On kinks as well (half of the points have zeros)."""
    starts, ends = points(40), points(200, seed=2)
    for theta in starts:
        step = ends - theta
        linear = r.value(theta) + step @ r.subgradient(theta)
        curved = linear + 0.5 * r.strong_convexity * np.sum(step * step, axis=1)
        assert np.all(r.value(ends) >= curved - 1e-12)


def test_no_more_strongly_convex_than_said():
    """Along a ray the l1 norm is straight."""
    r, theta, step = Regulariser(0.3, 0.2), np.ones(3), 0.1 * np.ones(3)
    second = r.value(theta + step) + r.value(theta - step) - 2 * r.value(theta)
    assert second == pytest.approx(r.strong_convexity * step @ step)


@every
@pytest.mark.parametrize("radius", [0.1, 5.0])
def test_lipschitz_is_reached_in_the_ball(r, radius):
    theta = points(300)
    theta = theta[np.any(theta != 0, axis=1)]
    theta *= radius / np.linalg.norm(theta, axis=1, keepdims=True)
    lengths = np.linalg.norm(r.subgradient(theta), axis=1)
    assert np.all(lengths <= r.lipschitz(radius, 4) * (1 + 1e-12))
    corner = np.full(4, radius / 2)
    assert np.linalg.norm(r.subgradient(corner)) == pytest.approx(r.lipschitz(radius, 4))


def test_smooth_means_a_lipschitz_gradient():
    assert [r.smooth for r in CASES] == [True, True, False, False]


@pytest.mark.parametrize("key", ["ridge", "lasso"])
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, True, "1"])
def test_refusals(key, value):
    with pytest.raises(InputError, match=key):
        Regulariser(**{key: value})
