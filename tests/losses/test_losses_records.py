"""Every loss of records: sums, subgradients and what lies below them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from dperm_cli.losses.shared import median_loss
from tests.losses.losses_data import CLASSES, NAMES, data, loss, random_data

every = pytest.mark.parametrize("name", NAMES)
forms = pytest.mark.parametrize("form", ["dense", "csr"])
MEDIANS = ("l1_median", "l2_median")


def points(name, records, count, seed=1, scale=1.5):
    p = loss(name).dimension(records.facts())
    return scale * np.random.default_rng(seed).standard_normal((count, p))


def total(name, theta, records):
    return np.sum(loss(name).values(theta, records), axis=-1)


@every
def test_dimension_and_default_class(name):
    records = random_data(name)
    expected = records.p * CLASSES if name == "multinomial" else records.p
    assert loss(name).dimension(records.facts()) == expected
    assert (loss(name).code is None) == (name in (*MEDIANS, "multinomial"))


@every
@forms
def test_gradient_by_finite_differences(name, form):
    records, h = random_data(name, form=form), 1e-6
    for theta in points(name, records, 5):
        steps = h * np.eye(theta.size)
        numeric = (total(name, theta + steps, records) - total(name, theta - steps, records)) / h
        gradient = loss(name).gradient(theta, records)
        np.testing.assert_allclose(gradient, numeric / 2, atol=2e-4)


@every
def test_subgradient_inequality(name):
    """From random points and from points on kinks."""
    records = random_data(name, n=20)
    starts = points(name, records, 8)
    if name in MEDIANS:
        starts[:4] = records.x[:4]
    elif name != "multinomial":
        x = records.x[:4]
        starts[:4] = x * (records.y[:4] / np.sum(x * x, axis=1))[:, None]
    ends = points(name, records, 200, seed=2, scale=3.0)
    values = total(name, ends, records)
    for theta in starts:
        gradient = loss(name).gradient(theta, records)
        below = total(name, theta, records) + (ends - theta) @ gradient
        assert np.all(values >= below - 1e-11)


@every
@forms
def test_broadcasts_over_leading_axes(name, form):
    records = random_data(name, form=form)
    theta = points(name, records, 6).reshape(2, 3, -1)
    values, gradients = loss(name).values(theta, records), loss(name).gradient(theta, records)
    assert values.shape == (2, 3, records.n)
    assert gradients.shape == theta.shape
    one = theta[1, 2]
    np.testing.assert_allclose(values[1, 2], loss(name).values(one, records), rtol=1e-13)
    np.testing.assert_allclose(gradients[1, 2], loss(name).gradient(one, records), atol=1e-13)


@every
def test_sparse_rows_give_the_same_numbers(name):
    dense, csr = random_data(name), random_data(name, form="csr")
    theta = points(name, dense, 3)
    one, near = loss(name), dict(rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.values(theta, csr), one.values(theta, dense), **near)
    np.testing.assert_allclose(one.gradient(theta, csr), one.gradient(theta, dense), **near)
    dual = one.dual(theta[0], dense)
    np.testing.assert_allclose(one.dual(theta[0], csr), dual, **near)
    for a, b in zip(one.minorant(dual, csr), one.minorant(dual, dense), strict=True):
        np.testing.assert_allclose(a, b, **near)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MEDIANS])
def test_sparse_rows_stay_sparse(name):
    """100 rows of 200,000 columns are 160 MB dense, 16 kB sparse."""
    n, columns = 100, 200_000
    rng = np.random.default_rng(0)
    x = sparse.csr_array(
        (np.full(10 * n, 0.3), rng.integers(0, columns, 10 * n), np.arange(0, 10 * n + 1, 10)),
        shape=(n, columns),
    )
    records = data(x, np.arange(n) % 2, loss(name).tasks[0])
    theta = np.zeros(loss(name).dimension(records.facts()))
    tracemalloc.start()
    loss(name).values(theta, records)
    loss(name).gradient(theta, records)
    loss(name).minorant(loss(name).dual(theta, records), records)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


@pytest.mark.parametrize("name", MEDIANS)
@forms
def test_blocks_change_nothing(name, form, monkeypatch):
    records = random_data(name, form=form)
    theta = points(name, records, 2)
    one = loss(name)
    whole = one.values(theta, records), one.gradient(theta, records), one.dual(theta[0], records)
    below = one.minorant(whole[2], records)
    monkeypatch.setattr(median_loss, "_BLOCK", 7 * records.p)
    np.testing.assert_array_equal(one.values(theta, records), whole[0])
    np.testing.assert_allclose(one.gradient(theta, records), whole[1], atol=1e-13)
    np.testing.assert_array_equal(one.dual(theta[0], records), whole[2])
    np.testing.assert_allclose(one.minorant(whole[2], records).slope, below.slope, atol=1e-13)


@every
@forms
def test_minorant_is_below_everywhere_and_tight_at_its_point(name, form):
    """Fenchel-Young, for the sum."""
    records = random_data(name, form=form)
    one, ends = loss(name), points(name, records, 300, seed=3, scale=3.0)
    values = total(name, ends, records)
    for theta in points(name, records, 4):
        below = one.minorant(one.dual(theta, records), records)
        touched = below.slope @ theta + below.constant
        assert touched == pytest.approx(total(name, theta, records), rel=1e-12)
        np.testing.assert_allclose(below.slope, one.gradient(theta, records), atol=1e-12)
        assert np.all(values >= ends @ below.slope + below.constant - 1e-11)


@every
def test_minorant_from_any_dual_point(name):
    """Mixtures of duals of other points, other for every record."""
    records, rng = random_data(name), np.random.default_rng(4)
    one, ends = loss(name), points(name, records, 300, seed=3, scale=3.0)
    values = total(name, ends, records)
    duals = np.array([one.dual(theta, records) for theta in points(name, records, 3, scale=4.0)])
    for _ in range(10):
        shares = rng.dirichlet(np.ones(3), records.n).T
        dual = np.sum(shares.reshape(shares.shape + (1,) * (duals.ndim - 2)) * duals, axis=0)
        dual *= 1 - 1e-12  # a mixture may be rounded out of the domain
        below = one.minorant(dual, records)
        assert np.isfinite(below.constant)
        assert np.all(values >= ends @ below.slope + below.constant - 1e-11)


@every
def test_minorant_says_how_large_its_terms_are(name):
    records = random_data(name)
    dual = loss(name).dual(points(name, records, 1)[0], records)
    below = loss(name).minorant(dual, records)
    assert below.slopes >= np.linalg.norm(below.slope) * (1 - 1e-12)
    assert below.terms >= abs(below.constant) * (1 - 1e-12)


@every
def test_a_dual_outside_its_domain_proves_nothing(name):
    records = random_data(name)
    dual = loss(name).dual(points(name, records, 1)[0], records)
    if name in ("linear", "squared"):  # one is affine, the other's domain is the line
        assert np.isfinite(loss(name).minorant(dual + 1.0, records).constant)
        return
    outside = np.array(dual)
    outside[3] = 1.001 if name in (*MEDIANS, "multinomial") else -1.001 * (records.y[3] or 1.0)
    if "positive" in name or name == "absolute":
        outside[3] = -1.001
    assert loss(name).minorant(outside, records).constant == -np.inf
    assert np.all(loss(name).minorant(outside, records).slope == 0)
    outside[3] = np.nan
    assert loss(name).minorant(outside, records).constant == -np.inf


@pytest.mark.parametrize("name", MEDIANS)
def test_a_dual_out_by_rounding_is_put_back(name):
    records = random_data(name)
    dual = loss(name).dual(points(name, records, 1)[0], records)
    exact = loss(name).minorant(dual, records)
    near = loss(name).minorant(dual * (1 + 1e-10), records)
    assert near.constant == pytest.approx(exact.constant, rel=1e-12)


def test_medians_at_a_record():
    x = np.array([[0.3, -0.4], [0.0, 0.5]])
    records = data(x, np.zeros(2), "location")
    np.testing.assert_array_equal(loss("l1_median").gradient(x[0], records), [1.0, -1.0])
    away = np.array([0.3, -0.9]) / np.hypot(0.3, 0.9)
    np.testing.assert_allclose(loss("l2_median").gradient(x[0], records), away)
    np.testing.assert_allclose(loss("l1_median").values(np.zeros(2), records), [0.7, 0.5])
    np.testing.assert_allclose(loss("l2_median").values(np.zeros(2), records), [0.5, 0.5])


def test_multinomial_is_softmax_cross_entropy():
    records = random_data("multinomial", n=30)
    theta = points("multinomial", records, 1, scale=5.0)[0]
    z = records.x @ theta.reshape(records.p, CLASSES)  # row after row: [columns, classes]
    own = z[np.arange(30), records.y.astype(int)]
    np.testing.assert_allclose(
        loss("multinomial").values(theta, records), logsumexp(z, axis=1) - own, rtol=1e-12
    )
    q = np.exp(z - logsumexp(z, axis=1, keepdims=True))
    np.testing.assert_allclose(loss("multinomial").dual(theta, records), q, atol=1e-14)


def test_multinomial_takes_slopes_for_probabilities():
    records = random_data("multinomial")
    q = loss("multinomial").dual(points("multinomial", records, 1)[0], records)
    slopes = q - np.eye(CLASSES)[records.y.astype(int)]
    a, b = (loss("multinomial").minorant(dual, records) for dual in (q, slopes))
    assert a.constant == b.constant
    np.testing.assert_array_equal(a.slope, b.slope)


def test_two_classes_are_logistic():
    records = random_data("logistic")
    two = data(records.x, (records.y + 1) / 2, "multiclass", classes=2)
    theta = points("logistic", records, 1)[0]
    w = np.stack([np.full_like(theta, 0.7), theta + 0.7], axis=1).ravel()
    np.testing.assert_allclose(
        loss("multinomial").values(w, two), loss("logistic").values(theta, records), rtol=1e-13
    )
    g = loss("multinomial").gradient(w, two).reshape(-1, 2)
    np.testing.assert_allclose(g[:, 1], loss("logistic").gradient(theta, records), atol=1e-13)
    np.testing.assert_allclose(g[:, 0], -g[:, 1], atol=1e-13)


@pytest.mark.parametrize("size", [1e3, 1e8, 1e200])
def test_multinomial_at_extreme_margins(size):
    records = data(np.array([[1.0], [1.0]]), [0, 2], "multiclass")
    theta = size * np.array([1.0, 0.0, -1.0])
    np.testing.assert_allclose(loss("multinomial").values(theta, records), [0.0, 2 * size])
    np.testing.assert_allclose(loss("multinomial").gradient(theta, records), [1.0, 0.0, -1.0])
    small = loss("multinomial").values(np.array([40.0, 0.0, -40.0]), records)[0]
    assert small == pytest.approx(np.exp(-40.0), rel=1e-12)  # not rounded away against 1
