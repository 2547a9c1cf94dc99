"""Products with sparse rows: the right numbers, and the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.loops import sparse_rows
from dperm_cli.loops.record_parts import divide
from dperm_cli.loops.thread_count import use_threads
from dperm_cli.problem.row_products import add_rows, multiply_rows


def make_rows(n, p, density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
    x[n // 2] = 0.0
    return sparse.csr_array(x)


def make_arrays(shape, count, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((shape[1], count)), rng.standard_normal((shape[0], count))


@pytest.mark.parametrize("count", [1, 2, 4, 7, 9, 16, 21])
@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (65, 4), (700, 31)])
def test_products_are_those_of_exact_sums(shape, count):
    x = make_rows(*shape)
    dense, (v, w) = x.toarray(), make_arrays(shape, count)
    exact = [[math.fsum(row * column) for column in v.T] for row in dense]
    added = [[math.fsum(row * column) for column in w.T] for row in dense.T]
    np.testing.assert_allclose(sparse_rows.multiply(x, v), exact, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sparse_rows.add(x, w), added, rtol=1e-12, atol=1e-13)
    assert sparse_rows.multiply(x, v[:, 0]).shape == (shape[0],)
    assert sparse_rows.add(x, w[:, 0]).shape == (shape[1],)


def test_no_bit_depends_on_the_threads_or_on_other_vectors():
    x = make_rows(40_000, 11)
    assert len(divide(*x.shape, is_sparse=True)) == 9
    v, w = make_arrays(x.shape, 6)
    with use_threads(1):
        product, added = multiply_rows(x, v), add_rows(x, w)
    for threads in (2, 7, None):
        with use_threads(threads):
            assert multiply_rows(x, v).tobytes() == product.tobytes()
            assert add_rows(x, w).tobytes() == added.tobytes()
    for some in (slice(0, 1), slice(2, 4)):
        assert np.array_equal(multiply_rows(x, v[:, some]), product[:, some])
        assert np.array_equal(add_rows(x, w[:, some]), added[:, some])
    assert np.array_equal(multiply_rows(x, v[:, 3]), product[:, 3])
    assert np.array_equal(add_rows(x, w[:, 3]), added[:, 3])


@pytest.mark.parametrize(
    "change",
    [
        lambda x: sparse.csr_matrix(x),
        lambda x: x.tocsc(),
        lambda x: sparse.csr_array(
            (x.data, x.indices.astype(np.int64), x.indptr.astype(np.int64)), shape=x.shape
        ),
    ],
    ids=["matrix", "columns", "long indices"],
)
def test_rows_of_any_layout_give_the_same(change):
    x = make_rows(300, 20)
    v, w = make_arrays(x.shape, 2)
    assert np.array_equal(sparse_rows.multiply(change(x), v), sparse_rows.multiply(x, v))
    assert np.array_equal(sparse_rows.add(change(x), w), sparse_rows.add(x, w))


def test_vectors_that_do_not_fit_are_refused():
    x = make_rows(30, 5)
    for call, wrong in ((sparse_rows.multiply, 6), (sparse_rows.multiply, 4),
                        (sparse_rows.add, 29), (sparse_rows.add, 31)):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit"):
            call(x, np.ones(wrong))


def test_the_sums_of_parts_are_no_more_than_the_records():
    for n, p in ((10**6, 1000), (10**5, 10**5), (10**6, 10**6), (5000, 3)):
        parts = divide(n, p, is_sparse=True)
        assert len(parts) <= 4 or len(parts) * p <= n
        assert parts[-1][1] == n
