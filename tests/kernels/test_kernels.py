"""Kernels are positive semidefinite, bounded as they say, and their feature maps stand for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.kernels.histogram_intersection import HistogramIntersection
from dperm_cli.kernels.laplacian import Laplacian
from dperm_cli.kernels.linear import Linear
from dperm_cli.kernels.polynomial import Polynomial
from dperm_cli.kernels.precomputed import Precomputed
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.kernels.shared.feature_maps import Explicit, Fourier, Landmarks, shorten_rows

KERNELS = [
    Linear(),
    Polynomial(),
    Polynomial(degree=2, offset=0.0),
    Rbf(gamma=0.7),
    Laplacian(gamma=0.4),
    HistogramIntersection(),
    HistogramIntersection(normalise=False, columns=5),
]
ROW = 1.5


def rows(n=30, columns=5, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, columns))
    return ROW * x / np.maximum(ROW, np.linalg.norm(x, axis=1, keepdims=True))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_is_symmetric_semidefinite_and_bounded(kernel):
    x = rows()
    x[0] *= ROW / np.linalg.norm(x[0])
    gram = kernel.gram(x, x)
    assert np.allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-10
    assert np.allclose(np.diag(gram), kernel.diagonal(x), atol=1e-12)
    assert np.all(kernel.diagonal(x) <= kernel.bound(ROW) ** 2 * (1 + 1e-12))
    assert np.allclose(kernel.gram(sparse.csr_array(x), x[:7]), gram[:, :7], atol=1e-12)
    assert np.allclose(kernel.gram(sparse.csr_array(x), sparse.csr_array(x)), gram, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_phi_moves_no_faster_than_its_lipschitz_constant(kernel):
    """sup |phi(x) - phi(z)| / |x - z|, which pairs that are near each other come close to."""
    if math.isinf(kernel.lipschitz(ROW)):
        x = np.array([[1.0] + [0.0] * 4, [1.0 + 1e-8] + [0.0] * 4])
        if isinstance(kernel, HistogramIntersection) and kernel.normalise:
            x = np.array([[1.0, 0.0, 0, 0, 0], [1.0, 1e-8, 0, 0, 0]])
        ratio = _stretch(kernel, x[:1], x[1:])
        assert ratio[0] > 1e3  # no constant holds
        return
    x = rows(400)
    x *= ROW / np.linalg.norm(x, axis=1, keepdims=True)
    radial = x * (1.0 - 1e-4)
    ratios = np.concatenate([_stretch(kernel, x, radial), _stretch(kernel, x, rows(400, seed=1))])
    assert np.max(ratios) <= kernel.lipschitz(ROW) * (1 + 1e-6)
    assert np.max(ratios) >= 0.99 * kernel.lipschitz(ROW)


def _stretch(kernel, a, b):
    both = np.array([kernel.gram(a[i : i + 1], b[i : i + 1])[0, 0] for i in range(len(a))])
    square = kernel.diagonal(a) + kernel.diagonal(b) - 2.0 * both
    return np.sqrt(np.maximum(square, 0.0)) / np.linalg.norm(a - b, axis=1)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), Polynomial(degree=2, offset=0.0)])
def test_monomials_give_the_kernel_itself(kernel):
    x, features = rows(), Explicit(kernel, 5, kernel.bound(ROW))
    psi = features.apply(sparse.csr_array(x))
    assert psi.shape == (30, kernel.monomials(5)) == (30, features.dim)
    assert np.allclose(psi @ psi.T, kernel.gram(x, x), atol=1e-12)


@pytest.mark.parametrize("kernel", [Rbf(gamma=0.7), Laplacian(gamma=0.4)])
def test_frequencies_give_the_kernel_in_the_mean(kernel):
    x, size = rows(), 20_000
    psi = Fourier(kernel, 5, size).apply(x)
    assert np.allclose(np.linalg.norm(psi, axis=1), 1.0, atol=1e-12)
    # 900 entries, each a mean of ``size`` cosines with variance at most 1/2: 6 standard errors
    off = np.abs(psi @ psi.T - kernel.gram(x, x))
    assert np.max(off) <= 6.0 * math.sqrt(0.5 / size)
    other = type(kernel)(gamma=1.1 * kernel.gamma)
    assert np.max(np.abs(psi @ psi.T - other.gram(x, x))) > 6.0 * math.sqrt(0.5 / size)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_landmarks_project_on_their_span(kernel):
    x, points = rows(), rows(8, seed=3)
    features = Landmarks(kernel, points, kernel.bound(ROW))
    psi, own = features.apply(x), features.apply(points)
    assert np.allclose(own @ own.T, kernel.gram(points, points), atol=1e-8)
    assert np.allclose(psi @ own.T, kernel.gram(x, points), atol=1e-8)
    assert np.all(np.linalg.norm(psi, axis=1) <= np.sqrt(kernel.diagonal(x)) * (1 + 1e-9) + 1e-9)
    single = features.apply(x, np.float32)
    assert np.max(np.linalg.norm(single.astype(float), axis=1)) <= kernel.bound(ROW)


def test_equal_landmarks_count_once():
    points = np.vstack([rows(4)] * 3)
    assert Landmarks(Rbf(), points, 1.0).dim == 4
    assert Landmarks(HistogramIntersection(), np.zeros((3, 5)), 1.0).dim == 1


def test_rows_are_held_to_the_bound():
    long = shorten_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    assert np.linalg.norm(long[0]) <= 1.0
    assert np.allclose(long, [[0.6, 0.8], [0.3, 0.4]])


def test_a_matrix_over_objects_is_checked_and_capped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("k.npy", np.array([[4.0, 1.0], [1.0, 0.5]]))
    kernel = Precomputed(path="k.npy", cap=1.0)
    x = np.array([[0.0], [1.0], [1.0]])
    assert np.allclose(kernel.gram(x, x)[0], [1.0, 0.5, 0.5])
    assert np.all(kernel.diagonal(x) <= 1.0)
    with pytest.raises(InputError, match="numbered 0 to 1"):
        kernel.gram(np.array([[2.0]]), x)
    np.save("bad.npy", np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(InputError, match="eigenvalue -1"):
        Precomputed(path="bad.npy").diagonal(x)
    np.save("skew.npy", np.array([[1.0, 0.5], [0.2, 1.0]]))
    with pytest.raises(InputError, match="symmetric"):
        Precomputed(path="skew.npy").diagonal(x)
    with pytest.raises(InputError, match="not a file"):
        Precomputed(path="none.npy").diagonal(x)


@pytest.mark.parametrize("name", registry.names("kernel"))
@pytest.mark.parametrize(
    ("field", "value"),
    [("features", "best"), ("size", 0), ("queries", 0), ("radius", -1.0), ("seed", -1),
     ("landmarks", 3), ("gamma", 0.0), ("degree", 0), ("offset", -1.0), ("cap", 0.0)],
)  # fmt: skip
def test_wrong_values_are_refused_by_name(name, field, value):
    cls = registry.load("kernel", name)
    if field not in cls.__dataclass_fields__:
        pytest.skip("not a key of this kernel")
    needed = {"path": "k.npy"} if name == "precomputed" else {}
    with pytest.raises(InputError, match=f"kernel.{field}"):
        cls(**{**needed, field: value})
