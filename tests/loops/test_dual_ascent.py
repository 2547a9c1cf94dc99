"""One coordinate of the dual is maximised exactly, and passes climb."""

from __future__ import annotations

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.loops import dual_ascent

LOSSES = ("hinge", "logistic", "squared", "huberized_hinge")


def made(name):
    one = registry.load("loss", name)()
    return one, np.array([0.3, -1.0]) if name == "squared" else np.array([1.0, -1.0])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("q", [1e-6, 0.3, 5.0, 1e6])
@pytest.mark.parametrize("z", [-3.0, 0.0, 0.999, 1.7, 40.0])
def test_one_pass_over_one_record_minimises_its_coordinate(name, q, z):
    """a' minimises l*(a') - (a' - a) z + (q / 2) (a' - a)^2."""
    loss, labels = made(name)
    for y in labels:
        start = -0.3 * y if name != "squared" else 0.2
        a, w = np.array([start]), np.array([z])
        # a row of length 1 whose modulus makes |x|^2 / m = q
        moved = dual_ascent.ascend_rows(
            np.ones((1, 1)), np.array([y]), loss.code, float(loss.width), 1.0 / q, np.ones(1),
            np.arange(1), a, w,
        )  # fmt: skip
        assert moved == pytest.approx(abs(a[0] - start), abs=1e-15)
        assert w[0] == pytest.approx(z - q * (a[0] - start), rel=1e-9, abs=1e-9)

        def objective(b, y=y, start=start):
            there = loss.conjugate(b, np.full(np.shape(b), y))
            return there - (b - start) * z + 0.5 * q * (b - start) ** 2

        around = a[0] + np.linspace(-1.0, 1.0, 4001) * max(1e-3, abs(a[0] - start))
        assert np.all(objective(np.array([a[0]])) <= objective(around) + 1e-9 * (1 + q))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rows_and_gram_make_the_same_passes(kind):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 19)).astype(kind)
    y, order = np.sign(rng.standard_normal(30)), np.arange(30)
    full = x.astype(float)
    square = np.einsum("ij,ij->i", full, full)
    a, b, w, z = np.zeros(30), np.zeros(30), np.zeros(19), np.zeros(30)
    values = []
    for _ in range(6):
        dual_ascent.ascend_rows(x, y, 1, 0.0, 3.0, square, order, a, w)
        dual_ascent.ascend_gram((full @ full.T).astype(kind), y, 1, 0.0, 3.0, order, b, z)
        values.append(-np.sum(a * y) - 1.5 * w @ w)
    assert np.allclose(w, -full.T @ a / 3.0, atol=1e-9)
    assert np.allclose(a, b, atol=1e-3 if kind is np.float32 else 1e-9)
    assert np.all(np.diff(values) >= -1e-12)
    assert values[-1] > values[0]


def test_margins_do_not_depend_on_their_neighbours():
    rng = np.random.default_rng(1)
    x, theta = rng.standard_normal((11, 21)).astype(np.float32), rng.standard_normal((4, 21))
    together = dual_ascent.margins(x, theta)
    assert np.allclose(together, theta @ x.astype(float).T, atol=1e-12)
    for k in range(4):
        assert np.array_equal(dual_ascent.margins(x, theta[k : k + 1])[0], together[k])
