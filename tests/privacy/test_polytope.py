"""The channel of Theorem 3: closed forms where there are any, and its three promises elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dperm_cli.core.errors import Unsupported
from dperm_cli.privacy import channels
from dperm_cli.privacy.channels.polytope import PolytopeChannel, max_entropy, multiplier_for
from tests.privacy.blahut_arimoto import capacity

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0


def cube(d):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=d)))


def cross(d):
    return np.vstack([np.eye(d), -np.eye(d)])


def polygon(k):
    turn = 2.0 * np.pi * np.arange(k) / k
    return np.column_stack([np.cos(turn), np.sin(turn)])


def cyclic(a, b):
    """All (0, +-a, +-b) and their cyclic shifts."""
    return [
        np.roll([0.0, s * a, t * b], k) for s, t, k in itertools.product((-1, 1), (-1, 1), range(3))
    ]


SOLIDS = {
    "heptagon": polygon(7),
    "icosahedron": np.array(cyclic(1.0, GOLDEN)),
    "dodecahedron": np.vstack([cube(3), cyclic(1.0 / GOLDEN, GOLDEN)]),
    "simplex": np.eye(5) - 0.2,  # in a hyperplane
    # not regular, but a group of isometries joins its corners: three kinds of edge
    "rectangle": np.array([[3.0, 1.0], [-3.0, 1.0], [3.0, -1.0], [-3.0, -1.0]]),
    "permutations": np.array(list(itertools.permutations([-1.5, -0.5, 0.5, 1.5]))),
    "segment": np.array([[2.0], [-2.0]]),
}


@pytest.mark.parametrize("multiplier", [1.001, 2.0, 30.0, 1e5])
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_it_is_proposition_1_on_the_cube(d, multiplier):
    found, known = (
        PolytopeChannel(cube(d), multiplier),
        channels.by_multiplier("l_inf", d, multiplier),
    )
    assert found.information == pytest.approx(known.information, rel=1e-9)
    assert found.epsilon == pytest.approx(known.epsilon, rel=1e-9)
    signs = found.vertices[:, None] * found.vertices[None]
    product = np.prod(0.5 + signs / (2.0 * multiplier), axis=2)
    assert found.laws == pytest.approx(product, abs=1e-13)


@pytest.mark.parametrize("multiplier", [1.001, 2.0, 30.0, 1e5])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 30])
def test_it_is_proposition_2_on_the_cross_polytope(d, multiplier):
    found, known = (
        PolytopeChannel(cross(d), multiplier),
        channels.by_multiplier("l_1", d, multiplier),
    )
    assert found.information == pytest.approx(known.information, rel=1e-9)
    assert found.epsilon == pytest.approx(known.epsilon, rel=1e-9)
    assert found.laws == pytest.approx(known.law(cross(d)), abs=1e-12)
    assert known.outputs() == pytest.approx(found.outputs(), rel=1e-12)


def test_the_vectors_of_ten_dimensions():
    box, corner = PolytopeChannel(cube(10), 2.0), PolytopeChannel(cross(10), 2.0)
    assert box.information == pytest.approx(1.30812, abs=5e-6)
    assert box.epsilon == pytest.approx(10.9861, abs=5e-5)
    assert corner.information == pytest.approx(0.855868, abs=5e-7)
    assert corner.epsilon == pytest.approx(5.79901, abs=1e-5)


@pytest.mark.parametrize("multiplier", [1.2, 3.0])
@pytest.mark.parametrize("name", SOLIDS)
def test_answers_are_unbiased_private_and_tell_no_more(name, multiplier):
    channel = PolytopeChannel(SOLIDS[name], multiplier)
    laws = channel.laws
    assert np.abs(laws @ channel.outputs() - channel.vertices).max() < 1e-12
    assert laws.sum(axis=1) == pytest.approx(1.0, abs=1e-13)
    log = np.log(laws)
    assert (log.max(axis=0) - log.min(axis=0)).max() == pytest.approx(channel.epsilon, rel=1e-10)
    low, high = capacity(laws)
    assert low - 1e-9 <= channel.information <= high + 1e-9
    assert high - low < 1e-6


@pytest.mark.parametrize("name", ["heptagon", "rectangle", "permutations"])
def test_no_channel_with_that_mean_tells_less(name):
    """Feasible changes of the law given each vertex raise the information for uniform vertices."""
    channel = PolytopeChannel(SOLIDS[name], 2.0)
    laws, outputs = channel.laws, channel.outputs()
    system = np.vstack([outputs.T, np.ones(len(outputs))])
    free = np.eye(len(outputs)) - np.linalg.pinv(system) @ system
    rng = np.random.default_rng(1)
    for _ in range(20):
        move = rng.standard_normal(laws.shape) @ free
        moved = laws + 0.3 * np.min(laws) * move / np.abs(move).max()
        assert np.abs(moved @ outputs - channel.vertices).max() < 1e-12
        assert divergence(moved) > channel.information


def divergence(laws):
    return float(np.mean(np.sum(laws * np.log(laws / laws.mean(axis=0)), axis=1)))


def test_a_point_inside_is_rounded_to_vertices_without_bias():
    channel = PolytopeChannel(SOLIDS["icosahedron"], 2.0)
    rng = np.random.default_rng(2)
    points = rng.dirichlet(np.ones(12), 40) @ channel.vertices
    points = np.vstack([points, channel.vertices, np.zeros(3)])
    laws = channel.law(points)
    assert np.abs(laws @ channel.outputs() - points).max() < 1e-12
    assert channel.distance(points, points[::-1]).max() <= channel.epsilon * (1.0 + 1e-12)
    with pytest.raises(ValueError, match="outside"):
        channel.law(1.01 * channel.vertices[:1])


@pytest.mark.stat
def test_samples_follow_the_law():
    """Chi-square of 40000 draws: a false alarm in 1e-6, and sign errors of 2 % are found."""
    from scipy.stats import chi2

    channel, rng = PolytopeChannel(cross(3), 2.0), np.random.default_rng(3)
    x = np.array([0.5, -0.2, 0.1])
    drawn = channel.sample(np.tile(x, (40_000, 1)), rng.random(40_000))
    hits = (drawn[:, None] == channel.outputs()[None]).all(axis=2).sum(axis=0)
    assert hits.sum() == 40_000

    def distance(law):
        return float(np.sum((hits - 40_000 * law) ** 2 / (40_000 * law)))

    law = channel.law(x)[0]
    assert distance(law) < chi2.isf(1e-6, 5)
    off = law + 0.02 * (law - law[[3, 4, 5, 0, 1, 2]]) + 0.01 * np.array([1, 0, 0, -1, 0, 0])
    assert distance(off / off.sum()) > chi2.isf(1e-6, 5)


@pytest.mark.parametrize("name", SOLIDS)
def test_multiplier_of_an_information(name):
    for multiplier in (1.01, 1.7, 40.0):
        told = PolytopeChannel(SOLIDS[name], multiplier).information
        assert multiplier_for(SOLIDS[name], told) == pytest.approx(multiplier, rel=1e-8)
    with pytest.raises(ValueError, match="between 0 and"):
        multiplier_for(SOLIDS[name], math.log(len(SOLIDS[name])))


@pytest.mark.parametrize("name", SOLIDS)
def test_leading_term(name):
    channel = PolytopeChannel(SOLIDS[name], 1e4)
    assert channel.information == pytest.approx(channel.expansion, rel=1e-3)


@pytest.mark.parametrize(
    ("vertices", "reason"),
    [
        (np.eye(3), "not the origin"),
        ([[1.0, 0], [-1, 0], [0, 2], [0, -2]], "different lengths"),
        ([[1.0, 0], [-1, 0], [0.6, 0.8], [-0.6, -0.8], [0, 1], [0, -1]], "does not see"),
        ([[1.0, 0], [1, 0], [-1, 0], [-1, 0]], "same point"),
        ([[0.0, 0], [0, 0]], "is the origin"),
        ([[1.0]], "1 vertices"),
    ],
)
def test_other_polytopes_are_refused_with_the_reason(vertices, reason):
    with pytest.raises(Unsupported, match=reason):
        PolytopeChannel(np.array(vertices, dtype=float), 2.0)


def test_equal_angles_are_not_enough():
    """Chang's graph: 28 points in 7 dimensions, each sees the others alike, no isometry joins all.

    Pairs of 8 things, joined when they share one, but turned about between a perfect matching and
    the rest: strongly regular, with 384 symmetries, which 28 does not divide.
    """
    pairs = list(itertools.combinations(range(8), 2))
    join = np.array([[float(len({*a, *b}) == 3) for b in pairs] for a in pairs])
    with_pairs = PolytopeChannel(_embedded(join), 2.0)
    assert with_pairs.laws.shape == (28, 28)
    side = np.array([pair in ((0, 1), (2, 3), (4, 5), (6, 7)) for pair in pairs])
    turned = np.where(side[:, None] != side[None], 1.0 - join, join)
    gram = _embedded(turned) @ _embedded(turned).T
    assert np.ptp(np.sort(gram, axis=1), axis=0).max() < 1e-12
    with pytest.raises(Unsupported, match="no isometry"):
        PolytopeChannel(_embedded(turned), 2.0)


def _embedded(join):
    """The graph's corners in the eigenspace of 4."""
    values, vectors = np.linalg.eigh(join)
    return vectors[:, np.abs(values - 4.0) < 1e-9]


def test_a_multiplier_of_one_or_less_is_refused():
    with pytest.raises(ValueError, match="above 1"):
        PolytopeChannel(cube(2), 1.0)


def test_a_mean_outside_has_no_law():
    with pytest.raises(ValueError, match="no law"):
        max_entropy(cube(2), np.array([1.5, 0.0]))
