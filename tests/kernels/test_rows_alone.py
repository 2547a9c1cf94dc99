"""Features made row by row: they are those of the kernel, and a row's bits follow from it alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.kernels.histogram_intersection import HistogramIntersection
from dperm_cli.kernels.laplacian import Laplacian
from dperm_cli.kernels.linear import Linear
from dperm_cli.kernels.polynomial import Polynomial
from dperm_cli.kernels.precomputed import Precomputed
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.kernels.shared.feature_maps import Explicit, Landmarks

KERNELS = [
    Rbf(gamma=0.7), Laplacian(gamma=0.3), Linear(), Polynomial(degree=3, offset=1.0),
    Polynomial(degree=1, offset=0.0), HistogramIntersection(),
    HistogramIntersection(normalise=False, columns=5),
]  # fmt: skip


def rows_of(n, p=5, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x[rng.random((n, p)) < 0.3] = 0.0
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)


def require_alone(made, x):
    """``made(x)`` has the same bits for every row, whatever rows stand beside it."""
    found = made(x)
    order = np.random.default_rng(2).permutation(len(x))
    assert made(np.ascontiguousarray(x[order])).tobytes() == found[order].tobytes()
    for i in (0, len(x) // 2, len(x) - 1):
        assert made(x[i : i + 1].copy()).tobytes() == found[i : i + 1].tobytes()
    assert made(sparse.csr_array(x)).tobytes() == found.tobytes()
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernel_values_made_alone_are_those_of_the_kernel(kernel):
    x, points = rows_of(5000), rows_of(40, seed=3)
    found = require_alone(lambda rows: kernel.gram_alone(rows, points), x)
    np.testing.assert_allclose(found, kernel.gram(x, points), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_landmark_features_made_alone_are_the_features(kernel):
    features = Landmarks(kernel, rows_of(6, seed=4), kernel.bound(1.0))
    x = rows_of(5000)
    assert features.maps_alone
    found = require_alone(features.apply_alone, x)
    np.testing.assert_allclose(found, features.apply(x), rtol=1e-6, atol=1e-6)
    assert np.linalg.norm(found, axis=1).max() <= features.bound


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.monomials(5)], ids=str)
def test_explicit_features_made_alone_are_the_features(kernel):
    features = Explicit(kernel, 5, 0.5 * kernel.bound(1.0))
    found = require_alone(features.apply_alone, rows_of(5000))
    np.testing.assert_allclose(found, features.apply(rows_of(5000)), rtol=1e-12, atol=1e-13)
    assert np.linalg.norm(found, axis=1).max() <= features.bound


def test_a_matrix_is_looked_up(tmp_path):
    np.save(tmp_path / "k.npy", np.array([[1.0, 0.5], [0.5, 0.75]]))
    kernel = Precomputed(path=str(tmp_path / "k.npy"))
    x, points = np.array([[1.0], [0.0], [1.0]]), np.array([[0.0], [1.0]])
    features = Landmarks(kernel, points, 1.0)
    assert kernel.gram_alone(x, points).tolist() == [[0.5, 0.75], [1.0, 0.5], [0.5, 0.75]]
    np.testing.assert_allclose(features.apply_alone(x), features.apply(x), atol=1e-12)


@pytest.mark.parametrize("number", [2.0, -1.0, 0.5, 1e300, np.inf, np.nan])
def test_a_row_that_is_no_objects_number_has_no_features(tmp_path, number):
    """A refusal would tell of the record. Beside secure noise it is refused as before."""
    np.save(tmp_path / "k.npy", np.array([[1.0, 0.5], [0.5, 0.75]]))
    kernel = Precomputed(path=str(tmp_path / "k.npy"))
    x, points = np.array([[1.0], [number]]), np.array([[0.0], [1.0]])
    assert kernel.gram_alone(x, points).tolist() == [[0.5, 0.75], [0.0, 0.0]]
    assert np.array_equal(Landmarks(kernel, points, 1.0).apply_alone(x)[1], [0.0, 0.0])
    with np.errstate(invalid="ignore"), pytest.raises(InputError, match="objects numbered 0 to 1"):
        kernel.gram(x, points)
    with pytest.raises(InputError, match="rows of one column"):
        kernel.gram_alone(np.zeros((1, 2)), points)


class Outsider(Rbf):
    """A kernel from outside, with a ``gram`` alone."""

    name = "outsider"
    maps_alone = False


def test_a_kernel_that_maps_rows_together_says_so():
    assert not Landmarks(Outsider(), rows_of(4), 1.0).maps_alone
    with pytest.raises(NotImplementedError, match="maps rows together"):
        super(Rbf, Outsider()).gram_alone(rows_of(2), rows_of(2))
