"""Normals from uniforms: against the textbook formula, and the half-planes."""

from __future__ import annotations

import numpy as np

from dperm_cli.loops.box_muller import normals


def test_is_the_textbook_formula():
    u = np.random.default_rng(0).uniform(2.0**-53, 1.0 - 2.0**-53, 2000)
    length, angle = np.sqrt(-2.0 * np.log(u[::2])), 2.0 * np.pi * u[1::2]
    # a half-turn per bit: the first half of the uniforms is the right half-plane, from -y to y
    side = np.where(u[1::2] >= 0.5, -1.0, 1.0)
    turn = np.pi * (np.mod(2.0 * u[1::2], 1.0) - 0.5)
    expected = side * length * np.stack([np.cos(turn), np.sin(turn)])
    np.testing.assert_allclose(normals(u).reshape(-1, 2).T, expected, rtol=1e-13, atol=1e-14)
    # the same angle up to a quarter of a turn
    full = np.mod(np.arctan2(expected[1], expected[0]) + np.pi / 2.0 - angle, 2.0 * np.pi)
    np.testing.assert_allclose(np.minimum(full, 2.0 * np.pi - full), 0.0, atol=1e-9)


def test_the_ends_of_the_range_are_finite():
    low, high = 2.0**-53, 1.0 - 2.0**-53
    out = normals(np.array([low, low, low, high, high, low, high, high]))
    assert np.all(np.isfinite(out))
    assert np.hypot(out[0], out[1]) == np.sqrt(2.0 * 53.0 * np.log(2.0))


def test_one_at_a_time_or_all_at_once():
    u = np.random.default_rng(1).uniform(size=100)
    parts = [normals(u[i : i + 2]) for i in range(0, 100, 2)]
    assert np.concatenate(parts).tobytes() == normals(u).tobytes()
