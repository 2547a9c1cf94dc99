"""Restricted Gaussians against their densities.

All seeds are fixed. Each p-value test is made once at level 1e-4: the whole file would fail with
probability below 1e-2 on other seeds.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import gamma, kstest

from dperm_cli.core import registry
from dperm_cli.samplers.shared.interval_pieces import find_depth
from dperm_cli.samplers.shared.truncated_gaussian import (
    HalfSpace,
    Segment,
    choose_truncated_sampler,
    draw_positive,
    invert_normal,
    on_interval,
    positive_moments,
)
from tests.samplers import Numbers, cell_p_value

LEVEL = 1e-4


def build(name, size, p, **keys):
    return registry.load("constraint", name)(size, p, **keys)


QUAD = ((0.0, 0.0), (1.0, 0.0), (0.3, 0.8), (-0.5, 0.5))
PLANE = {
    "l2_ball": build("l2_ball", 1.0, 2),
    "box": build("box", 0.7, 2),
    "l1_ball": build("l1_ball", 1.0, 2),
    "simplex": build("simplex", 1.0, 3),
    "ellipsoid": build("ellipsoid", 1.0, 2, matrix=((1.0, 0.4), (0.4, 0.5))),
    "lp_ball": build("lp_ball", 1.0, 2, power=3.0),
    "intersection": build("intersection", 1.0, 2, inner={"name": "l1_ball", "radius": 1.2}),
    "polytope": build("polytope", 1.0, 2, points=QUAD),
}
LINE = {
    "ball": build("l2_ball", 0.5, 1),
    "segment": build("simplex", 1.0, 2),
    "interval": build("polytope", 1.0, 1, points=((-0.3,), (1.0,))),
}


def draws(body, mean, variance, count, seed):
    sampler, source = choose_truncated_sampler(body), Numbers(seed)
    return np.array([sampler(mean, variance, source) for _ in range(count)])


def gaussian(mean, variance):
    return lambda z: -np.sum((z - mean) ** 2, axis=-1) / (2 * variance)


# a draw from these takes long: one mean and variance in the default suite
LONG = {"lp_ball": (0.03, 1.2), "polytope": (2.0, 0.0)}
CELLS = [
    pytest.param(*cell, marks=[pytest.mark.slow] if LONG.get(cell[0], cell[1:]) != cell[1:] else ())
    for cell in product(PLANE, (0.03, 2.0), (0.0, 1.2))
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("name", "variance", "shift"), CELLS)
def test_cells_in_the_plane(name, variance, shift):
    body = PLANE[name]
    mean = body.centre() + shift * np.linspace(0.4, 1.0, body.p)
    slow = name in ("polytope", "lp_ball")
    count = {"lp_ball": 80, "polytope": 200}.get(name, 2000)
    found = draws(body, mean, variance, count, seed=5)
    assert np.all(body.contains(found, 1e-9))
    p_value = cell_p_value(
        body, found, gaussian(mean, variance), 4 if slow else 6, 15 if slow else 60
    )
    assert p_value > LEVEL


@pytest.mark.parametrize("name", LINE)
@pytest.mark.parametrize(("variance", "shift"), [(0.02, 0.0), (0.02, 1.0), (3.0, 2.0)])
def test_cells_on_a_line(name, variance, shift):
    body = LINE[name]
    assert isinstance(choose_truncated_sampler(body), Segment)
    mean = body.centre() + shift * np.linspace(0.4, 1.0, body.p)
    found = draws(body, mean, variance, 2000, seed=6)
    assert cell_p_value(body, found, gaussian(mean, variance), cells=10) > LEVEL


def test_the_cells_see_a_wrong_scale():
    """Power: a standard deviation 5 % too large fails, with the draws a test of a scale takes."""
    body, mean = PLANE["l2_ball"], np.array([0.3, 0.2])
    found = draws(body, mean, 0.04 * 1.05**2, 12_000, seed=7)
    assert cell_p_value(body, found, gaussian(mean, 0.04)) < LEVEL
    found = draws(body, mean, 0.04, 12_000, seed=7)
    assert cell_p_value(body, found, gaussian(mean, 0.04)) > LEVEL


@pytest.mark.parametrize("variance", [0.01, 0.1, 5.0])
def test_radius_in_many_dimensions(variance):
    """About the origin |z|^2 / variance is a chi-square, cut off."""
    p, body = 20, build("l2_ball", 1.0, 20)
    square = np.sum(draws(body, np.zeros(p), variance, 2000, seed=8) ** 2, axis=1)
    law = gamma(p / 2, scale=2 * variance)
    most = law.cdf(1.0)
    assert kstest(square, lambda t: law.cdf(t) / most).pvalue > LEVEL
    wrong = gamma(p / 2, scale=2 * variance * 1.05**2)
    cut = kstest(square, lambda t: wrong.cdf(t) / wrong.cdf(1.0)).pvalue
    assert variance > 0.05 or cut < LEVEL


def test_first_coordinate_in_many_dimensions():
    """On the box coordinates are independent: the L1 ball and the simplex inside it agree with
    rejection from it."""
    p, variance, mean = 6, 0.01, np.full(6, 0.1)
    simplex, ball = build("simplex", 1.0, p), build("l1_ball", 1.0, p)
    source = Numbers(9)
    free = mean + math.sqrt(variance) * source.normal(60_000, p)
    kept = free[np.sum(np.abs(free), axis=1) <= 1.0]
    assert len(kept) > 20_000
    found = draws(ball, mean, variance, 2000, seed=10)
    assert kstest(found[:, 0], kept[:, 0]).pvalue > LEVEL
    assert kstest(np.sum(np.abs(found), axis=1), np.sum(np.abs(kept), axis=1)).pvalue > LEVEL
    basis, centre = simplex.directions(), simplex.centre()
    flat = centre + (free - centre) @ basis @ basis.T
    kept = flat[np.all(flat >= 0, axis=1)]
    assert len(kept) > 5_000
    found = draws(simplex, mean, variance, 2000, seed=11)
    assert kstest(found[:, 0], kept[:, 0]).pvalue > LEVEL
    assert kstest(found[:, -1], kept[:, -1]).pvalue > LEVEL
    assert np.allclose(np.sum(found, axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("name", ["l2_ball", "l1_ball", "box", "simplex", "ellipsoid"])
@pytest.mark.parametrize("variance", [1e-6, 1e-2, 100.0])
@pytest.mark.parametrize("pull", [0.0, 30.0, 3000.0])
def test_ends_quickly(name, variance, pull):
    """Proposals for a draw in 50 dimensions, the mean being moved by noise and a slope ``pull``."""
    body = build(name, 1.0, 50)
    direction = np.linspace(-1.0, 1.0, 50) / np.linalg.norm(np.linspace(-1.0, 1.0, 50))
    mean = body.project(direction) + (pull * variance + 7.0 * math.sqrt(variance)) * direction
    counting, sampler = Counting(12), choose_truncated_sampler(body)
    found = np.array([sampler(mean, variance, counting) for _ in range(5)])
    assert np.all(body.contains(found, 1e-9))
    assert counting.numbers < 5 * 50 * 2000


@pytest.mark.parametrize("t", [3.0, 0.0, -20.0, -299.0, -301.0, -9e3, -2e4])
def test_positive_normals(t):
    """Moments and quantiles of a normal given that it is positive, by 60 digits of the tail."""
    from mpmath import erfc, exp, inf, log, mp, mpf, quad

    mp.dps = 60
    unit = 1 / mpf(max(1.0, -t))

    def density(z):
        return exp(-z * z / 2 + mpf(t) * z)

    cuts = [0, unit, 5 * unit, 20 * unit, 60 * unit, inf]
    mass = quad(density, cuts)
    mean = quad(lambda z: z * density(z), cuts) / mass
    square = quad(lambda z: z * z * density(z), cuts) / mass
    found = positive_moments(np.array([t]))
    assert float(found[0][0]) == pytest.approx(float(mean), rel=1e-8)
    assert float(found[1][0]) == pytest.approx(float(square), rel=1e-4)
    for u in (0.9, 0.3, 1e-6):
        z = float(draw_positive(np.array([t]), log_ndtr(np.array([t])), np.array([u]))[0])
        tail = log(erfc((mpf(z) - mpf(t)) / mp.sqrt(2))) - log(erfc(-mpf(t) / mp.sqrt(2)))
        assert float(tail) == pytest.approx(math.log(u), rel=1e-6)


class Counting(Numbers):
    numbers = 0

    def uniform(self, *shape):
        self.numbers += math.prod(shape)
        return super().uniform(*shape)

    def normal(self, *shape):
        self.numbers += math.prod(shape)
        return super().normal(*shape)


def test_half_space_and_ball_agree():
    """Two methods for one law."""
    body, mean, variance = build("l2_ball", 1.0, 3), np.array([0.9, 0.6, 0.0]), 0.05
    half, source = HalfSpace(body), Numbers(13)
    first = np.array([half(mean, variance, source) for _ in range(2000)])
    second = draws(body, mean, variance, 2000, seed=14)
    assert kstest(first[:, 0], second[:, 0]).pvalue > LEVEL
    assert kstest(np.sum(first**2, axis=1), np.sum(second**2, axis=1)).pvalue > LEVEL


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 2.0), (5.0, 6.0), (-40.0, -39.0), (30.0, math.inf)]
)
def test_between_inverts_the_distribution_function(low, high):
    from mpmath import mp, mpf, ncdf

    mp.dps = 300
    for u in (1e-9, 0.25, 0.5, 0.999, 1.0 - 1e-12):
        z = float(invert_normal(low, high, np.array([u]))[0])
        assert low <= z <= high
        bottom, top = ncdf(mpf(low)), ncdf(mpf(high)) if high < math.inf else mpf(1)
        level = float((ncdf(mpf(z)) - bottom) / (top - bottom))
        expected = 1.0 - u if low + high > 0 else u
        assert level == pytest.approx(expected, rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("ratio", [400.0, 1e5, 1e8, 1e12])
def test_a_normal_far_out_keeps_its_law(ratio):
    """A slope of 250 and little or no curvature on [0, 2]: the density is nearly exp(-250 x).

    Both ends of a set, and the pieces of a line; a quantile of the normal itself has five values
    at 1e8.
    """
    scale, slope, width = ratio / 250.0, 250.0, 2.0
    u = (np.arange(200) + 0.5) / 200.0
    away = slope * scale**2
    low = on_interval(-1.0 - away, scale, -1.0, 1.0, u) + 1.0
    high = 1.0 - on_interval(1.0 + away, scale, -1.0, 1.0, u)
    line = np.array([find_depth(slope, scale**-2.0, width, level) for level in u])
    bent = slope * line + 0.5 * line**2 / scale**2 + np.log1p(line / (slope * scale**2))
    for depth in (low, high, line):
        assert np.exp(-bent) == pytest.approx(u, rel=1e-8)
        assert depth == pytest.approx(line, rel=1e-6)
        assert len(np.unique(depth)) == 200
