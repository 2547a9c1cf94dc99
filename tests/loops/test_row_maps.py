"""Maps of rows: a row's bits follow from that row alone, and it keeps to its bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.kernels.laplacian import Laplacian
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.kernels.shared.feature_maps import Fourier
from dperm_cli.loops import row_maps

RNG = np.random.default_rng(1)


def rows_of(n, p):
    x = RNG.standard_normal((n, p))
    x[RNG.random((n, p)) < 0.3] = 0.0
    return x


@pytest.mark.parametrize(("n", "p", "m"), [(1, 1, 1), (7, 5, 3), (33, 64, 17), (5, 301, 129)])
def test_a_product_is_that_of_each_row_alone(n, p, m):
    x, matrix = rows_of(n, p), RNG.standard_normal((p, m))
    out = np.empty((n, m))
    row_maps.multiply_rows(x, matrix, 1e9, out)
    np.testing.assert_allclose(out, x @ matrix, rtol=1e-11, atol=1e-11)
    order = RNG.permutation(n)
    moved = np.empty((n, m))
    row_maps.multiply_rows(np.ascontiguousarray(x[order]), matrix, 1e9, moved)
    assert moved.tobytes() == out[order].tobytes()
    for i in range(n):
        alone = np.empty((1, m))
        row_maps.multiply_rows(x[i : i + 1].copy(), matrix, 1e9, alone)
        assert alone.tobytes() == out[i : i + 1].tobytes()


def test_rows_keep_to_their_bound():
    x, matrix = rows_of(200, 9), RNG.standard_normal((9, 6))
    out = np.empty((200, 6))
    row_maps.multiply_rows(x, matrix, 0.7, out)
    norms = np.linalg.norm(out, axis=1)
    assert norms.max() <= 0.7
    plain = x @ matrix
    short = np.linalg.norm(plain, axis=1) <= 0.7
    np.testing.assert_allclose(out[short], plain[short], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", [Rbf(gamma=0.7), Laplacian()])
@pytest.mark.parametrize("columns", [1, 4, 30])
def test_features_made_alone_are_the_features(kernel, columns):
    features = Fourier(kernel, columns, 25)
    x = rows_of(5000, columns) if columns == 4 else rows_of(40, columns)
    found = features.apply_alone(x)
    np.testing.assert_allclose(found, features.apply(x), rtol=1e-10, atol=1e-11)
    assert np.linalg.norm(found, axis=1).max() <= features.bound
    assert features.apply_alone(sparse.csr_array(x)).tobytes() == found.tobytes()
    for i in (0, len(x) // 2, len(x) - 1):
        assert features.apply_alone(x[i : i + 1]).tobytes() == found[i : i + 1].tobytes()
