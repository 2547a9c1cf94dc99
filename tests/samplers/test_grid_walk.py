"""The paper's walk: step counts, their corrections, the chain, powers of its matrix, refusals."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from dperm_cli.core.errors import InputError, Unsupported
from dperm_cli.loops.grid_walk import advance
from dperm_cli.samplers.grid_walk import GridWalk, walk_cells
from dperm_cli.samplers.shared import walk_grid, walk_spectrum
from dperm_cli.samplers.shared.walk_steps import Walk
from tests.samplers.laws import Bins, Numbers, built, case, colder, draw, p_value, small_problem

DIMENSIONS = (1, 2, 3, 5, 10)
# (epsilon, n) -> t_inf on the unit ball, m and t_inf on the cube, each for all DIMENSIONS
TABLE = {
    (0.1, 50): (
        (5.7e10, 1.7e12, 1.4e13, 2.3e14, 1.3e16),
        (9, 10, 10, 12, 15),
        (1.5e06, 8.3e06, 2.4e07, 9.9e07, 7.2e08),
    ),
    (0.1, 100): (
        (1.6e11, 3.4e12, 2.4e13, 3.4e14, 1.5e16),
        (12, 13, 14, 15, 18),
        (6.9e06, 3.8e07, 1.1e08, 4.6e08, 3.4e09),
    ),
    (0.1, 1000): (
        (3.3e13, 3.2e14, 1.3e15, 8.8e15, 1.5e17),
        (72, 73, 74, 75, 78),
        (1.8e09, 7.9e09, 2.1e10, 7.6e10, 5.2e11),
    ),
    (1.0, 50): (
        (7.4e10, 8.4e11, 3.9e12, 3.1e13, 7.1e14),
        (37, 37, 38, 39, 43),
        (3.1e06, 1.4e07, 3.7e07, 1.4e08, 9.7e08),
    ),
    (1.0, 100): (
        (4.8e11, 4.7e12, 1.9e13, 1.2e14, 2e15),
        (70, 71, 71, 73, 76),
        (2.1e07, 8.1e07, 2e08, 7.2e08, 4.7e09),
    ),
    (1.0, 1000): (
        (3.9e14, 3.2e15, 1.1e16, 5.3e16, 4.8e17),
        (670, 671, 671, 673, 676),
        (1.6e10, 4.8e10, 9.6e10, 2.5e11, 1.1e12),
    ),
}
# n -> cells of the cube's grid, whatever epsilon
CELLS = {
    50: (50, 2.5e03, 1.2e05, 3e08, 1e17),
    100: (1e02, 1e04, 1e06, 1e10, 1e20),
    1000: (1e03, 1e06, 1e09, 1e15, 1e30),
}
ROWS = [
    (epsilon, n, *row)
    for (epsilon, n), columns in TABLE.items()
    for row in zip(DIMENSIONS, *columns, CELLS[n], strict=True)
]


def paper(epsilon, n, p, cube, printed=True):
    """Algorithm 7 on the unit ball of diameter 2, or on the cube of edge 2, for L = 1."""
    size = 2.0 * math.sqrt(p) if cube else 2.0
    return Walk(n * epsilon / (6.0 * size), size, 2.0, p, epsilon / 3.0, cube, printed)


def log_distance(table, steps):
    """max |log(P^steps(start, .) / pi)|."""
    row = np.linalg.matrix_power(walk_spectrum.transitions(table), steps)[table.start()]
    return np.max(np.abs(np.log(row / walk_spectrum.stationary(table))))


@pytest.mark.parametrize(("epsilon", "n", "p", "ball", "m", "box", "cells"), ROWS)
def test_step_counts_as_printed(epsilon, n, p, ball, m, box, cells):
    """Two digits are known: half a unit of the second one is at most 5 %."""
    round_, cube = paper(epsilon, n, p, False), paper(epsilon, n, p, True)
    assert round_.steps == pytest.approx(ball, rel=0.05)
    assert abs(round_.attempts - m) <= 0.51
    assert cube.steps == pytest.approx(box, rel=0.05)
    assert cube.cells**p == pytest.approx(cells, rel=0.1)


@pytest.mark.parametrize(("epsilon", "n", "p"), list(product((0.1, 1.0), (50, 1000), (1, 3, 10))))
def test_corrections(epsilon, n, p):
    printed, walk = paper(epsilon, n, p, False), paper(epsilon, n, p, False, printed=False)
    accuracy = epsilon / 3.0
    # a failure of all attempts, times what a uniform draw may have over the law at its thinnest
    log_miss = -walk.attempts * math.log(2.0)
    thin = 2.0 * walk.eta * walk.size + p * math.log(walk.size)
    room = math.log(math.exp(accuracy / 2) * math.expm1(accuracy / 2))
    assert log_miss + thin <= room
    assert math.log1p(-math.exp(log_miss)) >= -accuracy / 4
    assert walk.attempts == math.ceil(printed.attempts / math.log(2.0))
    # the least weight on the cube's diagonal; on a line nothing changes
    assert walk.steps >= printed.steps
    assert walk.steps <= (1.3 if p == 1 else math.sqrt(p) + 0.1) * printed.steps
    assert walk.tau / walk.cells <= walk.spacing * (1 + 1e-12)


def test_no_whole_walk_on_a_disc_is_within_reach():
    """What the README of bst14_samplers says: one record at epsilon 3 takes the fewest steps."""
    steps = {
        (n, epsilon): paper(epsilon, n, 2, False, printed=False).steps
        for n in (1, 2, 5) for epsilon in (1.0, 3.0, 6.0)
    }  # fmt: skip
    assert min(steps, key=steps.get) == (1, 3.0)
    assert steps[1, 3.0] == pytest.approx(4.8e9, rel=0.01)


def test_printed_relative_error_does_not_bound_the_log():
    """|ratio - 1| <= a/2 allows a log of -log(1 - a/2) > a/2; 1 - e^{-a/2} allows a/2."""
    for a in (0.1, 1.0):
        relative = -math.expm1(-a / 2)
        assert -math.log1p(-a / 2) > a / 2
        assert max(-math.log1p(-relative), math.log1p(relative)) <= a / 2 * (1 + 1e-12)


def test_printed_least_weight_is_too_large_on_a_diagonal():
    """f = slope <u, (1, 1)> / sqrt 2 varies by slope tau sqrt 2 over the square."""
    printed, walk = paper(1.0, 500, 2, True), paper(1.0, 500, 2, True, printed=False)
    cells = int(walk.cells)
    centre = walk.tau * (np.arange(cells) + 0.5) / cells
    f = walk.slope * (centre[:, None] + centre) / math.sqrt(2.0)
    least = -(-f.max() - np.log(np.sum(np.exp(-f))))
    assert printed.log_least < least <= walk.log_least


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", ["logistic", "absolute", "linear"])
def test_conductance_bound_on_a_line(loss, seed):
    """Of every interval cut, exactly: for log-concave weights the worst sets are intervals."""
    _, target, potential = case(loss, "l2_ball", 1, f=9.0, radius=2.0, seed=seed)
    place, walk = walk_grid.describe(target, 0.3)
    table = walk_grid.grid(potential, 20, place, walk)
    pi, chain = walk_spectrum.stationary(table), walk_spectrum.transitions(table)
    least = math.inf
    for i in range(table.cells):
        for j in range(i, table.cells):
            mass = pi[i : j + 1].sum()
            if mass <= 0.5:
                flow = (pi[i] * chain[i, i - 1] if i else 0.0) + (
                    pi[j] * chain[j, j + 1] if j + 1 < table.cells else 0.0
                )
                least = min(least, flow / mass)
    assert walk.conductance <= least <= 20.0 * walk.conductance


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_chain_is_lazy_reversible_and_keeps_the_law(dim):
    energy = np.random.default_rng(dim).uniform(0, 4, (5,) * dim)
    accept, jump = walk_grid.moves(energy)
    flat, size = energy.ravel(), energy.size
    chain = np.zeros((size, size))
    for k in range(2 * dim):
        for i in np.flatnonzero(accept[:, k]):
            chain[i, i + jump[k]] += accept[i, k] / (4 * dim)
    chain[np.diag_indices(size)] = 1.0 - chain.sum(axis=1)
    pi = np.exp(-flat) / np.sum(np.exp(-flat))
    flow = pi[:, None] * chain
    np.testing.assert_allclose(flow, flow.T, atol=1e-16)
    assert np.min(np.diag(chain)) >= 0.5
    index = np.stack(np.unravel_index(np.arange(size), energy.shape))
    for i, j in zip(*np.nonzero(chain - np.diag(np.diag(chain))), strict=True):
        assert np.sum(np.abs(index[:, i] - index[:, j])) == 1


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_compiled_walk_is_the_plain_one(dim):
    accept, jump = walk_grid.moves(np.random.default_rng(dim).uniform(0, 3, (6,) * dim))
    uniforms = 1.0 - np.random.default_rng(9).random(20_000)
    at = start = accept.shape[0] // 2
    visited = set()
    for u in uniforms:
        k, coin = divmod(4 * dim * u, 1.0)
        if k < 2 * dim and coin < accept[at, int(k)]:
            at += jump[int(k)]
        visited.add(at)
    assert advance(accept, jump, start, uniforms) == at
    assert len(visited) == accept.shape[0]
    assert advance(accept, jump, start, np.ones(5)) == start


def test_powers_of_the_chain():
    """The certified length is enough, an eighth of it is not, the theorem's is far more."""
    _, target, potential = case("logistic", "l2_ball", 1, n=50, f=2.5)
    place, walk = walk_grid.describe(target, 0.1 / 3)
    table = walk_grid.grid(potential, 50, place, walk)
    steps = walk_spectrum.certify_steps(table, 0.5 * walk.inner, walk.steps)
    assert log_distance(table, steps) <= 0.5 * walk.inner
    assert log_distance(table, steps // 8) > 0.5 * walk.inner
    assert 100 * steps < walk.steps
    with pytest.raises(ArithmeticError, match="not a private outcome"):
        walk_spectrum.certify_steps(table, 1e-13, walk.steps)


@pytest.mark.parametrize("loss", ["logistic", "absolute"])
def test_density_of_the_whole_draw(loss):
    """Walk, then a uniform point of its cell: |log(law / pi)| <= dist_inf at every point."""
    distance = 0.2
    _, target, potential = case(loss, "l2_ball", 1, f=9.0, radius=2.0)
    place, walk = walk_grid.describe(target, distance)
    table = walk_grid.grid(potential, 20, place, walk)
    steps = walk_spectrum.certify_steps(table, 0.5 * walk.inner, walk.steps)
    row = np.linalg.matrix_power(walk_spectrum.transitions(table), steps)[table.start()]
    offsets = (np.arange(40) + 0.5) / 40
    theta = np.array([table.point(i, np.array([o])) for i in range(table.cells) for o in offsets])
    density = np.exp(-potential.value(theta))
    ratio = np.repeat(row, 40) / 40 / (density / density.sum())
    worst = float(np.max(np.abs(np.log(ratio))))
    assert 0.02 * distance < worst <= distance


@pytest.mark.stat
def test_law():
    """False-alarm rate 1e-5 at a distance of .1; an exponent off by a factor 2 fails."""
    _, target, potential = case("logistic", "l2_ball", 1, f=6.0, radius=2.0)
    theta = draw(GridWalk(steps="spectral"), target, potential, 800, dist_inf=0.2)
    bins = Bins(target, 10)
    assert p_value(bins, bins.probabilities(potential), theta) > 1e-5
    for factor in (2.0, 0.5):
        assert p_value(bins, bins.probabilities(colder(potential, factor)), theta) < 1e-6


SETS = [("l2_ball", 2), ("l1_ball", 2), ("simplex", 3), ("ellipsoid", 2)]


@pytest.mark.parametrize(("constraint", "p"), SETS)
def test_weights_of_the_cube(constraint, p):
    """-log F = f inside, f + alpha (gauge - 1) outside, the unit ball inside, Lipschitz, convex."""
    _, target, potential = case("logistic", constraint, p, f=3.0, radius=2.0)
    place, walk = walk_grid.describe(target, 2.0)
    coarse = SimpleNamespace(cells=61.0, alpha=walk.alpha, slope=walk.slope)
    table = walk_grid.grid(potential, 20, place, coarse)
    energy = table.energy.reshape((table.cells,) * place.dim)
    centres = place.points(
        place.low + table.side * (np.indices(energy.shape).reshape(place.dim, -1).T + 0.5)
    )
    inside = target.constraint.contains(centres, 1e-12)
    f = potential.value(centres)
    np.testing.assert_allclose(table.energy[inside], f[inside])
    assert 0.2 < inside.mean() < 0.95
    assert np.all(table.energy[~inside] > f[~inside])
    steepest = max(np.max(np.abs(np.diff(energy, axis=a))) for a in range(place.dim)) / table.side
    assert steepest <= coarse.slope
    assert steepest > 0.3 * coarse.alpha
    for axis in range(place.dim):
        assert np.min(np.diff(energy, n=2, axis=axis)) >= -1e-6 * coarse.alpha
    angle = np.linspace(0, 2 * np.pi, 50)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert np.all(target.constraint.contains(place.points(unit), 1e-6))


def test_gauge_about_another_point():
    _, target, _ = case("hinge", "simplex", 3)
    place = walk_grid.round_body(target.constraint)
    vertex = np.array([1.0, 0.0, 0.0])
    away = place.shift + np.array([[0.5], [1.0], [2.5]]) * (vertex - place.shift)
    np.testing.assert_allclose(walk_grid.gauge(place, away), [1.0, 1.0, 2.5], rtol=1e-9)


def test_retries_end_inside():
    """A walk that has hardly begun and one cut short both stay in the set."""
    _, target, potential = case("hinge", "l2_ball", 2, n=2, f=1.0)
    sampler = GridWalk(most_steps=3e4, allow_heuristic=True)
    certificate = sampler.plan(target, 3.0)
    assert certificate.dist_inf == math.inf
    assert certificate.theorem == "none: heuristic"
    assert certificate.steps == 30_000
    theta = draw(sampler, target, potential, 20, dist_inf=3.0)
    assert np.all(target.constraint.contains(theta))
    assert len(np.unique(theta, axis=0)) == 20
    table = walk_grid.grid(potential, 2, *walk_grid.describe(target, 3.0))
    ends = [table.point(walk_cells(table, 200_000, Numbers(s)), np.full(2, 0.5)) for s in range(60)]
    share = np.mean(target.constraint.contains(np.array(ends)))
    assert share >= 0.5


class PolarBins(Bins):
    """Rings and sectors of equal width of a disc, or of its image under a linear map."""

    def __init__(self, target, rings, sectors):
        self.place = walk_grid.round_body(target.constraint)
        self.radius = 0.5 * self.place.tau
        self.edges = [
            np.linspace(0, self.radius, rings + 1),
            np.linspace(-np.pi, np.pi, sectors + 1),
        ]
        self.shape = (rings, sectors)

    def number(self, theta):
        u = np.linalg.solve(self.place.matrix, (theta - self.place.shift).T).T
        polar = np.hypot(u[:, 0], u[:, 1]), np.arctan2(u[:, 1], u[:, 0])
        where = [
            np.clip(np.searchsorted(e, c, side="right") - 1, 0, len(e) - 2)
            for e, c in zip(self.edges, polar, strict=True)
        ]
        return np.ravel_multi_index(where, self.shape)

    def probabilities(self, potential):
        """Of the law exp(-f), by the midpoint rule on 40 x 40 points of every bin."""
        fine = [np.linspace(e[0], e[-1], 40 * (len(e) - 1) + 1) for e in self.edges]
        r, angle = np.meshgrid(*(0.5 * (e[1:] + e[:-1]) for e in fine), indexing="ij")
        u = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1).reshape(-1, 2)
        weight = r.ravel() * np.exp(-potential.value(self.place.points(u)))
        mass = weight.reshape(self.shape[0], 40, self.shape[1], 40).sum(axis=(1, 3))
        return mass.ravel() / mass.sum()


@pytest.mark.stat
@pytest.mark.parametrize("body", ["l2_ball", "ellipsoid"])
def test_law_in_the_plane_with_retries(monkeypatch, body):
    """Walks of six million steps on a thousand cells each way; one that ends outside is run again.

    That is seven relaxation times of the chain; the theorem asks for 1e11 steps. About one walk in
    forty ends outside. False-alarm rate 1e-5; an exponent three times as large fails.
    """
    from dperm_cli.samplers import grid_walk

    walks = []

    def count(table, steps, source):
        walks.append(steps)
        return walk_cells(table, steps, source)

    monkeypatch.setattr(grid_walk, "walk_cells", count)
    draws = 1500
    _, target, potential = case("hinge", body, 2, n=2, f=3.0)
    sampler = GridWalk(most_steps=6e6, allow_heuristic=True)
    facts = sampler.plan(target, 3.0).facts
    assert facts["cells"] > 1000**2
    assert facts["theorem_steps"] > 1e10
    theta = draw(sampler, target, potential, draws, dist_inf=3.0)
    assert np.all(target.constraint.contains(theta, 1e-9))
    assert 10 <= len(walks) - draws <= 100
    bins = PolarBins(target, 3, 6)
    assert p_value(bins, bins.probabilities(potential), theta) > 1e-5
    assert p_value(bins, bins.probabilities(colder(potential, 3.0)), theta) < 1e-6


def test_none_kept_gives_a_point_of_the_unit_ball(monkeypatch):
    from dperm_cli.samplers import grid_walk

    _, target, potential = case("hinge", "l2_ball", 2, n=2, f=1.0, radius=3.0)
    monkeypatch.setattr(grid_walk, "walk_cells", lambda table, steps, source: 0)
    sampler = GridWalk(most_steps=10.0, allow_heuristic=True)
    theta = draw(sampler, target, potential, 200, dist_inf=3.0)
    length = np.linalg.norm(theta, axis=1)
    assert np.max(length) <= 3.0
    assert 2.0 < np.median(length) < 2.25  # 3 / sqrt 2: uniform on the disc


class TestPlans:
    def test_theorem_on_a_cube(self):
        _, target, _ = case("logistic", "box", 2, f=2.0)
        certificate = GridWalk().plan(target, 0.5)
        assert certificate.facts["mode"] == "theorem"
        assert certificate.constant_time
        assert certificate.dist_inf == 0.5
        assert certificate.steps == math.ceil(certificate.facts["theorem_steps"])
        assert certificate.facts["alpha"] == 0.0

    def test_spectral_only_on_a_line(self):
        _, target, _ = case("logistic", "l2_ball", 1, n=1000, f=16.0)
        certificate = GridWalk().plan(target, 0.1 / 3)
        assert certificate.facts["mode"] == "spectral"
        assert not certificate.constant_time
        with pytest.raises(Unsupported):
            GridWalk(steps="theorem").plan(target, 0.1 / 3)
        with pytest.raises(Unsupported):
            GridWalk(steps="spectral").plan(case("logistic", "box", 2, f=2.0)[1], 0.5)

    def test_refusal_names_the_cost_and_another_sampler(self):
        """Years at n = 1000, p = 5 and epsilon = .1, as [BST14, Alg. 7] splits it."""
        problem = small_problem("hinge", "l2_ball", n=1000, p=5, radius=1.0)
        _, target, _ = built(problem, 0.1 / 3 * 1000 / 2)
        with pytest.raises(Unsupported) as refused:
            GridWalk().plan(target, 0.1 / 3)
        text = str(refused.value)
        for words in ("n=1000, p=5", "steps per attempt, 2 attempts", "years at 50 ns",
                      "sampler=proximal (T=", "sampler.allow_heuristic=true"):  # fmt: skip
            assert words in text

    def test_needs_a_share_of_epsilon(self):
        with pytest.raises(Unsupported, match="part of epsilon"):
            GridWalk().plan(case("logistic", "l2_ball", 1)[1], 0.0)

    def test_inputs(self):
        with pytest.raises(InputError, match=r"sampler\.steps"):
            GridWalk(steps="short")
        with pytest.raises(InputError, match=r"sampler\.most_steps"):
            GridWalk(most_steps=0.5)
        with pytest.raises(InputError, match=r"sampler\.allow_heuristic"):
            GridWalk(allow_heuristic=1)

    def test_lipschitz_constant_on_the_cube_around_the_ball(self):
        """The hinge loss's is that of the ball; the squared loss's grows with the corner."""
        for loss, grows in (("hinge", False), ("squared", True)):
            _, target, _ = case(loss, "l2_ball", 2)
            place = walk_grid.round_body(target.constraint)
            assert place.reach == pytest.approx(math.sqrt(2.0))
            eta = walk_grid.lipschitz(target, place.reach)
            assert (eta > target.lipschitz * 1.05) == grows
