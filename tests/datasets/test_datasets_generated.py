"""Generated data sets: known minimisers, and the instances of the papers' lower bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError


def make(name, **fields):
    return registry.load("dataset", name)(**fields)


# --- sparse_regression


def test_sparse_regression_targets_and_minimiser():
    data = make("sparse_regression", n=20000, p=20, nonzeros=4, n_test=10).load()
    theta = data.minimiser
    assert np.count_nonzero(theta) == 4
    assert np.linalg.norm(theta) == pytest.approx(0.75)
    assert np.linalg.norm(data.x, axis=1).max() <= 1.0
    assert np.abs(data.y).max() <= 1.0
    noise = data.y - data.x @ theta
    assert np.abs(noise).max() <= 0.25 + 1e-12
    # Mean gradients at theta* of both losses are means of n vectors of norm <= 1 and mean zero:
    # their squared norms exceed 25 / n with probability below e^-8 (fixed seed).
    for slope in (noise, np.sign(noise)):
        assert np.linalg.norm(data.x.T @ slope) / data.n < 5 / math.sqrt(data.n)
    # Power: a parameter off by 0.5 in one coordinate has a mean gradient of about 0.5 / p.
    off = theta + 0.5 * np.eye(20)[np.flatnonzero(theta)[0]] * np.sign(theta[theta != 0][0])
    at_truth = np.linalg.norm(data.x.T @ noise) / data.n
    assert np.linalg.norm(data.x.T @ (data.y - data.x @ off)) / data.n > 3 * at_truth


@pytest.mark.parametrize("rows", ["unit", "clip"])
def test_sparse_regression_scales_and_prefixes(rows):
    fields = {"p": 7, "nonzeros": 7, "rows": rows, "row_bound": 2.0, "signal": 0.25, "noise": 0.5}
    small = make("sparse_regression", n=50, **fields).load()
    large = make("sparse_regression", n=90, **fields).load()
    assert np.array_equal(small.x, large.x[:50])
    assert np.array_equal(small.y, large.y[:50])
    norms = np.linalg.norm(large.x, axis=1)
    assert norms.max() <= 2.0
    assert (norms.min() > 1.99) == (rows == "unit")
    other = make("sparse_regression", n=50, seed=1, **fields).load()
    assert small.fingerprint != other.fingerprint


@pytest.mark.parametrize("p", [5, 11, 20])
def test_sparse_regression_adds_in_an_order_of_its_own(p):
    """A matrix product has other last bits at the end of a block, elsewhere on each processor."""
    fields = {"p": p, "nonzeros": p, "n_test": 0}
    large = make("sparse_regression", n=120, **fields).load()
    for n in range(30, 120, 5):
        assert np.array_equal(make("sparse_regression", n=n, **fields).load().y, large.y[:n])


def test_sparse_regression_keeps_targets_within_the_bound():
    with pytest.raises(InputError, match=r"dataset\.noise=0.5.*row_bound \* signal \+ noise"):
        make("sparse_regression", noise=0.5)
    edge = make("sparse_regression", signal=1.0, noise=0.0, nonzeros=1, p=1).load()
    assert np.abs(edge.y).max() <= 1.0


# --- median_cloud


@pytest.mark.parametrize("shape", ["ball", "box"])
def test_median_cloud_is_symmetric_about_its_median(shape):
    data = make("median_cloud", n=20000, p=5, shape=shape, n_test=3).load()
    assert data.task == "location"
    assert not data.y.any()
    assert not data.y_test.any()
    assert np.linalg.norm(data.minimiser) == pytest.approx(0.5)
    assert np.linalg.norm(data.x, axis=1).max() <= 1.0
    away = data.minimiser - data.x
    # Mean subgradients of the Euclidean and of the coordinate-wise median at the minimiser: means
    # of n zero-mean vectors of norm <= 1 (<= sqrt(5)); 5 bounds fail with probability < e^-8.
    unit = away / np.linalg.norm(away, axis=1)[:, None]
    assert np.linalg.norm(unit.mean(axis=0)) < 5 / math.sqrt(data.n)
    assert np.linalg.norm(np.sign(away).mean(axis=0)) < 5 * math.sqrt(5 / data.n)
    # Power: a point off by 0.1 in every coordinate is noticed.
    off = away + 0.1
    assert np.linalg.norm(np.sign(off).mean(axis=0)) > 5 * math.sqrt(5 / data.n)
    shapes = {"ball": np.linalg.norm(away, axis=1).max(), "box": np.abs(away).max() * math.sqrt(5)}
    assert shapes[shape] == pytest.approx(0.5, rel=0.02)


def test_median_cloud_prefix_and_bad_shift():
    small, large = (make("median_cloud", n=n).load() for n in (50, 80))
    assert np.array_equal(small.x, large.x[:50])
    with pytest.raises(InputError, match=r"dataset\.shift=1.*below row_bound"):
        make("median_cloud", shift=1.0)


# --- the lower-bound instances [BST14, Lemma 5.1]

INSTANCES = ("bst14_packing", "bst14_fingerprint")


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("n", [200, 201, 1000])
@pytest.mark.parametrize("p", [1, 7, 40])
def test_corners_of_the_cube_with_the_sum_of_lemma_5_1(name, n, p):
    if name == "bst14_fingerprint" and p == 1:
        pytest.skip("one column may be balanced: no signal is promised")
    data = make(name, n=n, p=p, signal=60, seed=2).load()
    assert data.x.shape == (n, p)
    assert np.allclose(np.abs(data.x), 1 / math.sqrt(p), rtol=1e-14)
    assert np.linalg.norm(data.x, axis=1).max() <= 1.0 + 1e-15
    assert np.all(data.y == 1.0)
    total = np.linalg.norm(data.x.sum(axis=0))
    slack = 1.0 if name == "bst14_packing" else 1.5
    assert abs(total - 60) <= slack + 1e-9
    if name == "bst14_packing" and n % 2 == 0:
        assert total == pytest.approx(60)


@pytest.mark.parametrize("name", INSTANCES)
def test_the_informative_records_do_not_depend_on_n(name):
    small, large = (make(name, n=n, p=12, signal=50).load() for n in (300, 3000))
    m = int(small.preprocessing[0].split()[0])
    assert large.preprocessing[0].startswith(f"{m} informative")
    assert np.array_equal(small.x[:m], large.x[:m])
    padding = small.x[m:]
    assert np.linalg.norm(padding.sum(axis=0)) <= 1 + 1e-9
    assert not np.array_equal(small.x, make(name, n=300, p=12, signal=50, seed=1).load().x)


def test_packing_corners_are_far_apart():
    """Random corners at distance >= 1/8, as App. C.1 asks (here near sqrt(2))."""
    corners = np.array(
        [make("bst14_packing", n=1, p=64, signal=1, seed=s).load().x[0] for s in range(40)]
    )
    distance = np.linalg.norm(corners[:, None] - corners[None], axis=2)[np.triu_indices(40, 1)]
    assert distance.min() >= 0.125
    assert abs(distance.mean() - math.sqrt(2)) < 0.05


def test_fingerprint_rows_follow_the_arcsine_law():
    """m rows add up to a norm near m / sqrt(2): E (2 q - 1)^2 = 1/2 for q = sin^2(t)."""
    data = make("bst14_fingerprint", n=2000, p=2000, signal=500).load()
    m = int(data.preprocessing[0].split()[0])
    # Relative standard deviation of |sum|^2 over columns: sqrt(1/2) / sqrt(p) = 0.016; allow 6.
    assert 500**2 / (m**2 / 2) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", INSTANCES)
def test_instances_as_locations_and_their_limits(name):
    data = make(name, task="location").load()
    assert (data.task, bool(data.y.any())) == ("location", False)
    with pytest.raises(InputError, match=r"dataset\.signal"):
        make(name, n=10, signal=11)
    for bad in ({"signal": -1}, {"signal": math.nan}, {"task": "regression"}, {"p": 0}):
        with pytest.raises(InputError, match=rf"dataset\.{next(iter(bad))}"):
            make(name, **bad)
    silent = make("bst14_packing", signal=0, n=10).load()
    assert np.abs(silent.x.sum(axis=0)).max() < 1e-12


def test_fingerprint_that_cannot_reach_its_signal():
    with pytest.raises(InputError, match=r"dataset\.signal=100.*n=100 rows of the code add up"):
        make("bst14_fingerprint", n=100, p=50, signal=100).load()


# --- D1 and D2 [BST14, App. A]


def risk(data, theta):
    return float(np.sum(np.maximum(0.0, data.y - data.x[:, 0] * theta)))


def test_d1_has_its_minimum_at_minus_one_where_hinge_is_flat():
    data = make("bst14_d1", n=300).load()
    assert [int(np.sum((data.x[:, 0] == x) & (data.y == -x))) for x in (-1, 1)] == [100, 200]
    values = {theta: risk(data, theta) for theta in (-2.0, -1.1, -1.0, -0.9, 2.0)}
    assert min(values, key=values.get) == -1.0
    # Slopes -2n/3 and n/3 on the two sides of the kink [Lemma A.2].
    assert values[-1.1] - values[-1.0] == pytest.approx(200 * 0.1)
    assert values[-0.9] - values[-1.0] == pytest.approx(100 * 0.1)
    hinge = [np.sum(np.maximum(0, 1 - data.y * data.x[:, 0] * t)) for t in (-2, -1.5, -1)]
    assert np.ptp(hinge) == 0


@pytest.mark.parametrize(("n", "width"), [(3000, 0.01), (3000, 1 / 64), (100, 1e-6), (11, 1.0)])
def test_d2_has_the_slope_that_its_width_asks_for(n, width):
    data = make("bst14_d2", n=n, width=width).load()
    assert data.n == n
    slope = risk(data, 0.5) - risk(data, -0.5)
    assert slope == pytest.approx(-min(1 / (16 * width), n), abs=1.01)
    assert slope < 0
    assert set(data.x[data.y == 1][:, 0]) <= {-1.0, 1.0}
    assert not np.any(data.y == -1)


def test_digits_as_ten_classes():
    data = make("digits", contrast="classes", test_fraction=0).load()
    assert (data.task, data.classes) == ("multiclass", 10)
    assert data.y[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert make("digits", contrast="classes").default_loss == "multinomial"
    assert make("digits").load().classes == 2
