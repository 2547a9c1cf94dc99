"""The generated sets of the [KJ16] experiments: sparse linear losses and rows like word counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.generated.sparse_linear import SparseLinear
from dperm_cli.datasets.generated.zipf_regression import ZipfRegression
from dperm_cli.datasets.shared.row_rules import row_norms
from dperm_cli.losses.linear import Linear
from dperm_cli.problem.problem import Problem
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.solvers import optimum


@pytest.mark.parametrize(("n", "signal", "spread"), [(100, 40, 5), (101, 101, 1), (60, 0, 8)])
def test_sparse_linear_sums_to_its_signal(n, signal, spread):
    data = SparseLinear(n=n, p=50, signal=signal, spread=spread).load()
    assert sparse.issparse(data.x)
    assert data.x.nnz == n * spread
    assert np.all(row_norms(data.x) <= 1.0)
    assert np.all(row_norms(data.x) >= 1.0 - 1e-12)
    total = float(np.linalg.norm(data.x[:signal].sum(axis=0)))
    assert total == pytest.approx(signal)
    whole = float(np.linalg.norm(data.x.sum(axis=0)))
    assert abs(whole - signal) <= 1.0 + 1e-9


def test_its_optimum_lies_on_a_face_of_spread_vertices():
    data = SparseLinear(n=100, p=50, signal=60, spread=4, seed=3).load()
    body = L1Ball(2.0, 50)
    found = optimum.solve(Problem(data, Linear(), body))  # type: ignore[arg-type]
    assert found.value == pytest.approx(-2.0 * 60 / np.sqrt(4), rel=1e-9)
    assert found.method == "vertex"
    assert found.converged
    scores = np.asarray(data.x.sum(axis=0)).ravel()
    assert np.sum(np.abs(scores) > 0.99 * np.max(np.abs(scores))) == 4


def test_sparse_linear_refuses():
    for wrong in ({"signal": 11}, {"spread": 6}, {"spread": 0}, {"n": 0}):
        with pytest.raises(InputError, match=r"dataset\."):
            SparseLinear(**{"n": 10, "p": 10, "signal": 5, "spread": 2, **wrong})


def test_zipf_rows_are_sparse_and_a_prefix():
    small, large = (ZipfRegression(n=n, p=5000, n_test=0).load() for n in (50, 200))
    assert sparse.issparse(large.x)
    np.testing.assert_array_equal(small.x.toarray(), large.x[:50].toarray())
    np.testing.assert_array_equal(small.y, large.y[:50])
    assert np.all(row_norms(large.x) <= 1.0)
    assert np.max(np.diff(large.x.indptr)) <= 10
    popular = np.asarray((large.x > 0).sum(axis=0)).ravel()
    assert np.argmax(popular) == 0
    assert np.all(np.abs(large.y) <= 1.0)


def test_zipf_targets_are_linear_up_to_noise():
    made = ZipfRegression(n=300, p=100, noise=0.05, signal=1.2, nonzeros=3)
    data, theta = made.load(), made._parameter()
    assert np.sum(np.abs(theta)) == pytest.approx(1.2)
    assert np.max(np.abs(data.y - data.x @ theta)) <= 0.05
    assert np.std(data.y - data.x @ theta) > 0.02


def test_zipf_refuses_targets_beyond_1():
    with pytest.raises(InputError, match=r"dataset\.signal"):
        ZipfRegression(signal=4.0)
