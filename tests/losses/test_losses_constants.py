"""The constants of every loss by adversarial search: never exceeded, and reached where tight."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from dperm_cli.losses.shared import logistic_gap
from tests.losses.losses_data import NAMES, bounds, data, loss

every = pytest.mark.parametrize("name", NAMES)
ROUNDING = 1 + 1e-11
MEDIANS = ("l1_median", "l2_median")


def directions(p):
    """Unit vectors: axes, diagonals, a few others; and their negatives."""
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=p)))[: 2 ** (p - 1)] / np.sqrt(p)
    other = np.random.default_rng(0).standard_normal((6, p))
    all_of = np.vstack([np.eye(p), signs, other / np.linalg.norm(other, axis=1, keepdims=True)])
    return np.vstack([all_of, -all_of])


def labels(task, target, classes):
    if task == "binary":
        return [-1.0, 1.0]
    if task == "multiclass":
        return list(range(classes))
    return [0.0] if task == "location" else [-target, 0.3 * target, target]


def records(name, b):
    """Rows of the greatest length (and a shorter one, and none) with every label."""
    task = loss(name).tasks[-1]
    rows = np.vstack([b.row * directions(b.columns), 0.4 * b.row * directions(b.columns)[:1]])
    rows = np.vstack([rows, np.zeros(b.columns)])
    pairs = list(itertools.product(range(len(rows)), labels(task, b.target, b.classes)))
    x, y = rows[[i for i, _ in pairs]], [y for _, y in pairs]
    return data(x, y, task, b.row, b.target, b.classes)


def parameters(name, b):
    """Points of the ball; for the multinomial loss along differences of two classes too."""
    flat = directions(b.columns)
    if name == "multinomial":
        away = -np.ones((1, b.classes)) + b.classes * np.eye(b.classes)[:1]
        pair = np.eye(b.classes)[:1] - np.eye(b.classes)[1:2]
        kinds = np.vstack([away, -away, pair, -pair])
        kinds /= np.linalg.norm(kinds, axis=1, keepdims=True)
        flat = np.einsum("ip,jk->ijpk", flat, kinds).reshape(-1, b.columns * b.classes)
    return np.vstack([b.radius * flat, 0.37 * b.radius * flat, 0 * flat[:1]])


def gradients(name, theta, all_of):
    """Each record's, [m, n, p]."""
    singles = [all_of.take(np.array([i])) for i in range(all_of.n)]
    return np.stack([loss(name).gradient(theta, one) for one in singles], axis=1)


CASES = [
    bounds(),
    bounds(row=2.0, target=0.5, radius=0.3, columns=2),
    bounds(row=0.7, radius=6.0, columns=2, classes=2),
    bounds(radius=2.5, columns=1),
]
cases = pytest.mark.parametrize("b", CASES, ids=["unit", "long_rows", "large_set", "line"])


@every
@cases
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_lipschitz_in_every_norm(name, b, norm):
    """[DJW12, Def. 2]: the largest |g|_norm over subgradients g. Tight for all but the multinomial
    loss of three classes or more, whose bound takes every other class at its worst."""
    g = gradients(name, parameters(name, b), records(name, b))
    reached = np.max(np.linalg.norm(g, norm, axis=-1))
    constant = loss(name).lipschitz_norm(b, norm)
    assert reached <= constant * ROUNDING
    tight = not (name == "multinomial" and b.classes > 2)
    assert reached >= constant * (1 - 1e-11 if tight else 0.6)
    if norm == 2:
        assert loss(name).lipschitz(b) == constant


@every
def test_other_norms_are_refused(name):
    with pytest.raises(ValueError, match="must be 1, 2 or inf"):
        loss(name).lipschitz_norm(bounds(), 3)


@every
@cases
def test_curvature(name, b):
    constant = loss(name).curvature_bound(b)
    if constant is None:
        assert name in (*MEDIANS, "hinge", "absolute", "positive_part")
        return
    rng, all_of = np.random.default_rng(1), records(name, b)
    theta = parameters(name, b)
    along = directions(theta.shape[1])
    along = along[rng.integers(0, len(along), len(theta))]
    if name == "multinomial":
        theta[0] = 0.0
        first, second = np.eye(b.classes)[:2]
        along[0] = np.outer(np.eye(b.columns)[0], first - second).ravel()
    for length in (1e-3, 1.0):
        change = gradients(name, theta + length * along, all_of) - gradients(name, theta, all_of)
        steps = np.linalg.norm(along, axis=1)[:, None] * length
        assert np.all(np.linalg.norm(change, axis=-1) <= constant * steps * (1 + 1e-9))
        if length == 1e-3 and name == "multinomial" and b.classes == 2:
            reached = np.max(np.linalg.norm(change, axis=-1) / steps)
            assert reached == pytest.approx(constant, rel=1e-5)


@every
@cases
def test_gradient_gap(name, b):
    """Reached to the share given: 1 where a worst pair is a row and its negative."""
    constant = loss(name).gradient_gap(b)
    assert constant <= 2 * loss(name).lipschitz(b) * ROUNDING
    reached = 0.0
    for g in gradients(name, parameters(name, b), records(name, b)):
        square = np.sum(g * g, axis=1)
        apart = square[:, None] + square - 2 * g @ g.T
        reached = max(reached, math.sqrt(np.max(apart)))
    assert reached <= constant * ROUNDING
    tight = name in (*MEDIANS, "linear", "hinge", "huberized_hinge", "absolute", "positive_part")
    assert reached >= constant * (1 - 1e-11 if tight else 0.5)


@every
@cases
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_oscillation(name, b, shift):
    """Over a ball around the origin, or around another point. The first is reached for monotone
    losses, medians and two classes."""
    theta = parameters(name, b)
    theta += shift * np.eye(theta.shape[1])[0]
    ball = SimpleNamespace(radius=b.radius + shift, diameter=2 * b.radius)
    values = loss(name).values(theta, records(name, b))
    reached = 0.0
    for own in values.T:
        reached = max(reached, np.max(np.ptp(own[:, None] - values, axis=0)))
    constant = loss(name).oscillation(b, ball)
    assert reached <= constant * ROUNDING
    assert constant <= 2 * loss(name).lipschitz(bounds_on(b, ball)) * ball.diameter * ROUNDING
    loose = name in ("squared", "absolute") or (name == "multinomial" and b.classes > 2)
    assert reached >= constant * (0.3 if loose or shift else 1 - 1e-11)


def bounds_on(b, ball):
    return bounds(b.row, b.target, ball.radius, b.columns, b.classes)


@pytest.mark.parametrize("radius", [0.2, 1.0, 1.27, 2.0, 5.0])
def test_logistic_gap_in_the_plane_is_exact(radius):
    """Pairs of unit and shorter rows of the plane at fine angles: the printed grid values too."""
    b = bounds(radius=radius, columns=2)
    angles = np.linspace(0, 2 * np.pi, 721)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rows = np.vstack([rows, 0.5 * rows])
    constant, reached = loss("logistic").gradient_gap(b), 0.0
    for t in (0.5 * radius, radius):
        g = rows / (1 + np.exp(-t * rows[:, :1]))  # the record u = -y x at theta = t e_1
        apart = np.sum(g * g, axis=1)[:, None] + np.sum(g * g, axis=1) - 2 * g @ g.T
        reached = max(reached, math.sqrt(np.max(apart)))
    assert reached <= constant * ROUNDING
    assert reached >= constant * (1 - 1e-5)


@pytest.mark.parametrize(
    ("radius", "printed"), [(0.5, 1.029), (1, 1.099), (2, 1.270), (5, 1.617), (10, 1.821)]
)
def test_logistic_gap_values(radius, printed):
    for columns in (2, 50):
        gap = loss("logistic").gradient_gap(bounds(radius=radius, columns=columns))
        assert gap == pytest.approx(printed, abs=5e-4)
    assert loss("logistic").gradient_gap(bounds(row=0.5, radius=2 * radius, columns=2)) == (
        pytest.approx(gap / 2, rel=1e-11)
    )


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.278, 1.5, 3.0, 4.0316, 7.0, 60.0])
def test_logistic_gap_on_the_line_is_exact(radius):
    """Rows of every length, theta of every size: above 1 once the margin passes 1.278."""
    rows, reached = np.linspace(-1, 1, 2001), 0.0
    for t in np.linspace(0, radius, 301):
        g = rows / (1 + np.exp(-t * rows))
        reached = max(reached, np.ptp(g))
    constant = loss("logistic").gradient_gap(bounds(radius=radius, columns=1))
    assert reached <= constant * ROUNDING
    assert reached >= constant * (1 - 1e-4)
    assert (constant > 1) == (radius > 1.2785)


def test_logistic_gap_limits():
    assert logistic_gap.in_the_plane(0.0) == pytest.approx(1.0, rel=1e-11)
    assert 1.99 < logistic_gap.in_the_plane(1e4) < 2.0
    assert logistic_gap.on_the_line(1e6) == pytest.approx(1.0516339915453221, rel=1e-11)
    at = logistic_gap.PEAK_AT
    assert logistic_gap.on_the_line(at * (1 + 1e-9)) == pytest.approx(1.0, rel=1e-11)
    values = [logistic_gap.in_the_plane(m) for m in np.linspace(0, 30, 400)]
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("margin", [0.1, 1.0, 3.0])
def test_monotone_losses_oscillate_less_than_two_lipschitz_diameters(margin):
    ball = SimpleNamespace(radius=margin, diameter=2 * margin)
    b = bounds(radius=margin)
    assert loss("logistic").oscillation(b, ball) == pytest.approx(2 * margin, rel=1e-15)
    assert loss("hinge").oscillation(b, ball) == pytest.approx(min(4 * margin, 2 + 2 * margin))
    two = bounds(radius=margin, classes=2)
    assert loss("multinomial").oscillation(two, ball) == pytest.approx(2 * math.sqrt(2) * margin)
    small = SimpleNamespace(radius=margin, diameter=1e-3)  # far from the origin: the default wins
    lipschitz = loss("logistic").lipschitz(b)
    assert loss("logistic").oscillation(b, small) == pytest.approx(2e-3 * lipschitz)


def test_constants_of_the_papers_examples():
    """[DJW12, Sec. 2]: the l1 median is a (1, inf)-loss, a margin loss of rows |x|_inf <= 1 too;
    [BST14, Sec. 1]: the l2 median is 1-Lipschitz."""
    b = bounds(columns=100, radius=1e9)
    assert loss("l1_median").lipschitz_norm(b, math.inf) == 1
    assert loss("l1_median").lipschitz(b) == 10
    assert loss("l2_median").lipschitz(b) == 1
    for name in ("hinge", "logistic"):
        assert loss(name).lipschitz_norm(b, math.inf) == pytest.approx(1)
        assert loss(name).lipschitz_norm(b, 1) == pytest.approx(10)
    assert loss("multinomial").lipschitz(b) == pytest.approx(math.sqrt(2))
    assert loss("multinomial").curvature_bound(b) == 0.5
    assert loss("huberized_hinge", width=0.2).curvature_bound(b) == pytest.approx(2.5)
