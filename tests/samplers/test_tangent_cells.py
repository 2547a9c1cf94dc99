"""The adaptive cover: below f, complete, exact on sets without closed forms; refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.samplers.base import Target
from dperm_cli.samplers.shared.tangent_boxes import Frame, cover, quantile
from dperm_cli.samplers.shared.uniform import draw_uniform
from dperm_cli.samplers.tangent_cells import TangentCells
from tests.conftest import small_problem
from tests.samplers.laws import Numbers, case, colder, draw

SETS = [("l2_ball", 2), ("l1_ball", 3), ("simplex", 3), ("simplex", 4), ("lp_ball", 2), ("box", 1)]


WEIGHTS = np.array([0.0, 0.5, 1.0])  # a coordinate that is not an axis of the triangle


def located(cells, u):
    """The number of a box that holds each u [m, d], -1 where none does."""
    inside = np.all(np.abs(u[:, None] - cells.centre) <= cells.half * (1 + 1e-9) + 1e-12, axis=2)
    return np.where(np.any(inside, axis=1), np.argmax(inside, axis=1), -1)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "absolute", "squared"])
@pytest.mark.parametrize(("constraint", "p"), SETS)
def test_the_cover_holds_the_set_and_lies_below_f(loss, constraint, p):
    _, target, potential = case(loss, constraint, p, f=60.0)
    frame = Frame.of(target.constraint)
    cells = cover(potential, frame, 20, 0.8, 800)
    source = Numbers(3)
    theta = np.array([draw_uniform(target.constraint, source) for _ in range(300)])
    u = (theta - frame.origin) @ frame.basis
    at = located(cells, u)
    assert np.all(at >= 0)
    tangent = cells.base[at] + np.sum(cells.slope[at] * (u - cells.centre[at]), axis=1)
    gap = potential.value(theta) - tangent
    assert np.min(gap) >= -1e-9
    assert np.max(gap) < 60.0
    assert np.max(gap) > 1e-6 or loss in ("hinge", "absolute")  # hinge is linear on the unit ball


def test_boxes_do_not_overlap():
    _, target, potential = case("logistic", "l2_ball", 2, f=60.0)
    cells = cover(potential, Frame.of(target.constraint), 20, 0.8, 800)
    inner = np.all(
        np.abs(cells.centre[:, None] - cells.centre) < 0.999 * (cells.half[:, None] + cells.half),
        axis=2,
    )
    assert len(cells.base) > 16
    assert np.sum(inner) == len(cells.base)


def test_refining_helps():
    _, target, potential = case("logistic", "l2_ball", 2, f=300.0)
    frame = Frame.of(target.constraint)
    coarse, fine = (cover(potential, frame, 20, goal, 3000) for goal in (0.05, 0.7))
    assert len(coarse.base) < len(fine.base) < 3000
    assert coarse.acceptance < fine.acceptance


@pytest.mark.parametrize("slope", [-40.0, -1.0, -1e-12, 0.0, 1e-12, 0.3, 40.0, 1e5])
def test_quantiles_of_a_truncated_exponential(slope):
    level, half = np.linspace(0.0, 1.0, 11)[1:], 0.7
    t = quantile(np.full(10, slope), np.full(10, half), level)
    away = t + half if slope >= 0 else half - t
    steep = abs(slope)
    share = (
        away / (2 * half) if steep < 1e-9 else np.expm1(-steep * away) / np.expm1(-steep * 2 * half)
    )
    np.testing.assert_allclose(share, level, rtol=1e-6)
    assert np.all(np.abs(t) <= half)


def exact_shares(potential, edges):
    """Of <WEIGHTS, theta> over the triangle of the unit vectors: a fine rule along its sides."""
    grid = (np.arange(250) + 0.5) / 250
    s, b = (a.ravel() for a in np.meshgrid(grid, grid))
    theta = np.stack([(1 - s) * (1 - b), s * (1 - b), b], axis=1)
    weight = (1 - b) * np.exp(-potential.value(theta))
    mass, _ = np.histogram(theta @ WEIGHTS, edges, weights=weight)
    return mass / np.sum(mass)


@pytest.mark.stat
def test_law_on_a_triangle():
    """False-alarm rate 1e-5; an exponent off by a factor 2 fails."""
    _, target, potential = case("absolute", "simplex", 3, f=24.0)
    theta = draw(TangentCells(), target, potential, 1000)
    edges = np.linspace(0.0, 1.0, 9)
    seen, _ = np.histogram(theta @ WEIGHTS, edges)

    def p_value(factor):
        expected = 1000 * exact_shares(colder(potential, factor), edges)
        return stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), len(seen) - 1)

    assert np.all(target.constraint.contains(theta))
    assert p_value(1.0) > 1e-5
    assert max(p_value(2.0), p_value(0.5)) < 1e-6


def test_a_polytope_of_vertices():
    _, target, potential = case("absolute", "polytope", 2)
    theta = draw(TangentCells(acceptance=0.2), target, potential, 10)
    assert np.all(np.abs(theta).sum(axis=1) <= 1.0 + 1e-9)
    assert len(np.unique(theta, axis=0)) == 10


def test_same_numbers_same_point_whatever_was_drawn_before():
    _, target, potential = case("hinge", "l2_ball", 2, radius=3.0)
    sampler = TangentCells()
    certificate = sampler.plan(target, 0.0)
    first = sampler.draw(potential, target, certificate, Numbers(5))
    sampler.draw(potential, target, certificate, Numbers(6))
    _, _, fresh = case("hinge", "l2_ball", 2, radius=3.0)
    again = sampler.draw(fresh, target, certificate, Numbers(5))
    assert first.tobytes() == again.tobytes()
    other = case("hinge", "l2_ball", 2, radius=3.0, seed=9)[2]
    assert sampler.draw(other, target, certificate, Numbers(5)).tobytes() != first.tobytes()


def test_an_envelope_above_f_aborts():
    _, target, potential = case("logistic", "l2_ball", 2)
    slope = potential.gradient
    potential.gradient = lambda theta: slope(theta) + 0.05
    with pytest.raises(ArithmeticError, match="not a private outcome"):
        draw(TangentCells(), target, potential, 200)


def test_plans():
    point = small_problem("hinge", "simplex", p=1).spec()
    assert TangentCells().plan(case("hinge", "simplex", 4)[1], 0.0).exact
    with pytest.raises(Unsupported, match="sampler=proximal"):
        TangentCells().plan(case("hinge", "l2_ball", 4)[1], 0.0)
    with pytest.raises(Unsupported, match="point"):
        TangentCells().plan(Target(point, 1.0), 0.0)
    with pytest.raises(InputError, match=r"sampler\.acceptance"):
        TangentCells(acceptance=1.0)
    with pytest.raises(InputError, match=r"sampler\.most_cells"):
        TangentCells(most_cells=0)
