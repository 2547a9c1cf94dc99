"""The compiled proximal chain: one step against its density, gaps, and where numbers are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.loops import proximal_chain as loop
from dperm_cli.samplers.shared import compiled_chain
from dperm_cli.samplers.shared.potential import Records
from tests.samplers import cell_p_value, problem, target
from tests.samplers.test_ball_intersections import two_balls
from tests.samplers.test_truncated_gaussian import build

LEVEL = 1e-4
GLM = ("logistic", "hinge", "squared", "absolute", "linear", "positive_part", "huberized_hinge",
       "huberized_positive_part")  # fmt: skip
LOSSES = (*GLM, "l1_median", "l2_median")


def law(loss, body, n=21, epsilon=4.0, **regulariser):
    """(target, f, records, the loop's law)."""
    made = problem(loss, n, body, **regulariser)
    facts = target(made, epsilon)
    potential = Records(made.loss, made.data, facts)
    found = body.balls()
    shape = loop.Law(
        compiled_chain.find_loss_code(facts), getattr(made.loss, "width", 0.0),
        facts.exponent, facts.ridge, facts.lasso, np.ascontiguousarray(found.centres), found.radii,
    )  # fmt: skip
    return facts, potential, compiled_chain.pack_records(made.data), shape


def conditional(records, shape, h, y, count, seed=1, touching=0.0):
    """``count`` draws of x given y."""
    rng, found = np.random.default_rng(seed), []
    chain = loop.Chain(np.zeros(len(y)))
    for done in range(count):
        chain.y[:], chain.touching[:] = y, touching
        chain.state[:4] = 1, 0, 0, 0
        while chain.done == done:
            assert loop.advance(records, shape, h, chain, done + 1, rng.random(256)) >= 0
        found.append(chain.x.copy())
    return np.array(found)


@pytest.mark.parametrize("regulariser", [{}, {"ridge": 0.3, "lasso": 0.2}])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_step_is_exact(loss, regulariser):
    """x given y in the part that two discs share; the level is that of one test."""
    body = two_balls(1.0, np.array([0.5, 0.3]), 0.8)
    _facts, potential, records, shape = law(loss, body, **regulariser)
    y, h = np.array([0.7, 0.4]), 0.2
    found = conditional(records, shape, h, y, 2000)

    def log_density(z):
        return -potential.value(z) - np.sum((z - y) ** 2, axis=-1) / (2 * h)

    assert np.all(body.contains(found, 1e-12))
    assert cell_p_value(body, found, log_density, 6, 20) > LEVEL


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic"])
def test_a_loss_of_another_weight_is_seen(loss):
    """f half as large again fails: the test above can see a term that is lost."""
    body = build("l2_ball", 2.0, 1)
    _facts, potential, records, shape = law(loss, body, epsilon=8.0)
    y, h = np.array([0.2]), 0.5

    def log_density(z):
        return -potential.value(z) - np.sum((z - y) ** 2, axis=-1) / (2 * h)

    right = conditional(records, shape, h, y, 3000)
    assert cell_p_value(body, right, log_density, 16, 40) > LEVEL
    wrong = conditional(records, shape._replace(weight=1.5 * shape.weight), h, y, 4000)
    assert cell_p_value(body, wrong, log_density, 16, 40) < LEVEL


def test_the_touching_point_does_not_enter_the_law():
    body = build("l2_ball", 1.0, 1)
    _facts, potential, records, shape = law("absolute", body, epsilon=6.0)
    y, h = np.array([0.3]), 0.5
    found = conditional(records, shape, h, y, 2500, touching=-0.9)

    def log_density(z):
        return -potential.value(z) - np.sum((z - y) ** 2, axis=-1) / (2 * h)

    assert cell_p_value(body, found, log_density, 16, 40) > LEVEL


@pytest.mark.parametrize("loss", GLM)
def test_gaps_are_those_of_the_loss(loss):
    _facts, potential, _records, shape = law(loss, build("l2_ball", 1.0, 3))
    rng, form = np.random.default_rng(5), potential.loss
    y = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    z, z0 = 3.0 * rng.standard_normal((2, 200))
    slopes = form.slope(z0, y)
    expected = form.value(z, y) - form.value(z0, y) - slopes * (z - z0)
    found = [loop.gap(shape.code, *each, shape.width) for each in zip(z, z0, slopes, y)]  # noqa: B905
    assert np.allclose(found, expected, atol=1e-13)
    assert min(found) >= -1e-15


@pytest.mark.parametrize("loss", LOSSES)
def test_where_the_numbers_are_cut_does_not_show(loss):
    """All at once, or a few at a time with what is left over put in front of the next."""
    body = two_balls(1.0, np.array([0.5, 0.3, 0.0]), 0.8)
    _facts, _potential, records, shape = law(loss, body)
    numbers = np.random.default_rng(6).random(200_000)
    whole = loop.Chain(np.array(body.point))
    used = loop.advance(records, shape, 0.05, whole, 200, numbers)
    assert whole.done == 200
    parts, at = loop.Chain(np.array(body.point)), 0
    for size in np.random.default_rng(7).integers(7, 90, 100_000):
        at += loop.advance(records, shape, 0.05, parts, 200, numbers[at : at + size])
        if parts.done == 200:
            break
    assert (parts.done, at) == (200, used)
    assert np.array_equal(parts.x, whole.x)


def test_a_gaussian_is_left_where_no_ball_is_near():
    """Two balls that hold nearly all of it: no tilt, and the moments of N(y, h)."""
    body = two_balls(50.0, np.zeros(3), 40.0)
    found = body.balls()
    k = np.ones(2)
    middle, variance = loop.tilts(np.ones(3), 0.5, found.centres, found.radii, k)
    assert np.allclose(middle, 1.0)
    assert variance == 0.5
    assert np.all(k == 0.0)


def test_tilts_bring_the_mean_squares_to_the_balls():
    """Two balls in 30 dimensions that both cut the Gaussian."""
    p = 30
    point = np.zeros(p)
    point[0] = 0.9
    found = two_balls(1.0, point, 0.5).balls()
    k, mean = np.zeros(2), np.full(p, 0.4)
    middle, variance = loop.tilts(mean, 0.3, found.centres, found.radii, k)
    assert variance == pytest.approx(1.0 / (1.0 / 0.3 + 2.0 * np.sum(k)))
    expected = variance * (mean / 0.3 + 2.0 * k @ found.centres)
    assert np.allclose(middle, expected)
    squares = np.sum((middle - found.centres) ** 2, axis=1) + p * variance
    assert np.all(squares <= found.radii**2 * 1.01)
    assert np.any(k > 0)
    for b in np.flatnonzero(k > 1e-9):
        assert squares[b] == pytest.approx(found.radii[b] ** 2, rel=0.01)


def test_packed_rows_come_back():
    x, y = np.random.default_rng(8).standard_normal((37, 5)), np.arange(37.0)
    records = loop.pack_records(x, y)
    assert records.rows.shape == (3, 5, loop.ROWS)
    back = records.rows.transpose(0, 2, 1).reshape(-1, 5)
    assert np.array_equal(back[:37], x)
    assert not np.any(back[37:])
    assert np.array_equal(records.labels[:37], y)


def test_softplus():
    for w in (-800.0, -40.0, -1.0, 0.0, 1e-9, 3.0, 700.0):
        assert loop.softplus(w) == pytest.approx(float(np.logaddexp(0.0, w)), rel=1e-15, abs=1e-16)
    assert math.isfinite(loop.softplus(1e300))
