"""Minimisers of a quadratic model over a ball, for numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.solvers import trust_region

SIZES = (1e-150, 1e-60, 1.0, 1e60, 1e150)


@pytest.mark.parametrize("radius", [1e-300, 1e-200, 1e-50, 1.0, 1e50, 1e200])
def test_no_size_is_too_small_or_too_large(radius):
    """The point is in the ball, and nothing overflows; what no unit changes is as with unit 1."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((2, 3, 3)))[0]
    values = np.sort(rng.uniform(0.1, 1.0, (2, 3)))
    slope, at = rng.standard_normal((2, 2, 3))
    at *= 0.5 / np.linalg.norm(at, axis=1, keepdims=True)
    plain = trust_region.minimise_in_ball(values, basis, slope, at, 1.0)
    assert np.all(np.linalg.norm(at + plain, axis=1) <= 1.0 + 1e-12)
    here = at * radius
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        for bend in SIZES:
            for steep in SIZES:
                moved = trust_region.minimise_in_ball(
                    values * bend, basis, slope * steep, here, radius
                )
                assert np.all(np.linalg.norm((here + moved) / radius, axis=1) <= 1.0 + 1e-9)
            steep = bend * radius
            if 1e-290 < steep < 1e290:
                moved = trust_region.minimise_in_ball(
                    values * bend, basis, slope * steep, here, radius
                )
                assert moved / radius == pytest.approx(plain, rel=1e-9)


def test_no_slope_moves_nothing():
    values, basis = np.array([[1e-80, 1.0]]), np.eye(2)[None]
    at = np.array([[0.0, 1e-300]])
    moved = trust_region.minimise_in_ball(values, basis, np.zeros((1, 2)), at, 1e-300)
    assert not np.any(moved)
