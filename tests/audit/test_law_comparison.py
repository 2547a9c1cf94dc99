"""Two samples of releases are one law or not; each comparison has power.

False alarms: 1e-9 a comparison.
"""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.audit import law_comparison


def normal(seed, trials, p, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((trials, p))


@pytest.mark.parametrize("p", [1, 3, 40])
def test_one_law_is_one_law(p):
    assert law_comparison.compare(normal(1, 600, p), normal(2, 600, p)).is_alike
    ends = np.sign(normal(1, 600, p)), np.sign(normal(2, 600, p)) * (1.0 + 1e-12)
    assert law_comparison.compare(*ends).is_alike


@pytest.mark.parametrize(("p", "scale"), [(3, 0.75), (20, 0.85), (400, 0.97)])
def test_another_size_is_another_law(p, scale):
    found = law_comparison.compare(normal(1, 600, p), normal(2, 600, p, scale))
    assert not found.is_alike
    assert "differs" in found.said


def test_the_same_draw_at_every_step_is_another_law():
    steps = np.random.default_rng(1).standard_normal((36, 500, 20))
    same = np.random.default_rng(2).standard_normal((500, 20))
    assert not law_comparison.compare(np.sum(steps, axis=0), 36 * same).is_alike
    assert not law_comparison.compare(np.sum(steps[:2], axis=0), 2 * same).is_alike


def test_a_shift_and_a_shape_are_another_law():
    assert not law_comparison.compare(normal(1, 600, 3), normal(2, 600, 3) + 0.5).is_alike
    uniform = np.sqrt(3.0) * np.random.default_rng(3).uniform(-1, 1, (4000, 1))
    assert not law_comparison.compare(normal(1, 4000, 1), uniform).is_alike


def test_equal_numbers_up_to_rounding():
    one = normal(1, 3, 4, 1e12)
    assert law_comparison.same_numbers(one, one * (1.0 + 1e-9))
    assert not law_comparison.same_numbers(one, one * (1.0 + 1e-4))
    assert not law_comparison.same_numbers(one, np.full_like(one, np.nan))


def test_points_that_are_mostly_zero_are_compared():
    corners = [np.eye(20)[np.random.default_rng(seed).integers(0, 4, 500)] for seed in (1, 2)]
    assert law_comparison.compare(*corners).is_alike
    assert not law_comparison.compare(corners[0], np.roll(corners[1], 1, axis=1)).is_alike
    nothing = np.zeros((500, 20))
    assert law_comparison.compare(nothing, nothing).is_alike
    assert not law_comparison.compare(nothing, corners[0]).is_alike


def test_a_blur_hides_what_is_far_below_it_and_nothing_else():
    def on_sphere(seed):
        points = normal(seed, 500, 8)
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    one, other = on_sphere(1), on_sphere(2) + normal(3, 500, 8, 1e-3)
    assert not law_comparison.compare(one, other).is_alike
    assert law_comparison.compare(one, other, blur=0.05).is_alike
    assert not law_comparison.compare(one, 1.5 * other, blur=0.05).is_alike
