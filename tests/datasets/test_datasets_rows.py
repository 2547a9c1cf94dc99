"""Rows, columns, split and fingerprint: the pipeline every data set shares."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import column_rules, row_rules
from dperm_cli.datasets.shared.row_pipeline import (
    Raw,
    RowOptions,
    check_finite,
    fingerprint,
    prepare,
)

MATRICES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)
X = np.array([[3.0, 4.0], [0.0, 0.0], [0.3, 0.4], [-1.0, 0.0]])


def true_norm(row, bound):
    """|row| / bound without overflow."""
    return math.hypot(*(float(v) / bound for v in row))


@settings(max_examples=150, deadline=None)
@given(MATRICES, st.sampled_from(["unit", "clip", "none"]), st.sampled_from([1.0, 0.1, 3.7]))
def test_the_bound_holds_for_any_finite_rows(x, rule, bound):
    dense = row_rules.bound_rows(x, rule, bound)
    thin = row_rules.bound_rows(sparse.csr_array(x), rule, bound).toarray()
    for before, row, same in zip(x, dense, thin, strict=True):
        norm = true_norm(row, bound)
        assert norm <= 1 + 1e-15
        assert np.allclose(row, same, rtol=1e-12, atol=0)
        if not before.any():
            assert not row.any()
        elif rule == "unit":
            assert norm == pytest.approx(1.0, abs=1e-12)
        elif true_norm(before, bound) <= 1 - 1e-12:
            assert np.array_equal(row, before)
        else:
            assert norm == pytest.approx(1.0, abs=2e-12)


def test_row_rules_on_known_rows():
    unit = row_rules.bound_rows(X, "unit", 1.0)
    assert np.allclose(unit, [[0.6, 0.8], [0, 0], [0.6, 0.8], [-1, 0]])
    clip = row_rules.bound_rows(X, "clip", 1.0)
    assert np.allclose(clip, [[0.6, 0.8], [0, 0], [0.3, 0.4], [-1, 0]])
    assert np.array_equal(X[0], [3.0, 4.0])


def test_each_row_is_scaled_without_the_others():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 4)) * 10.0 ** rng.integers(-3, 4, (20, 1))
    options = RowOptions(scaling="bounds", intercept=True, test_fraction=0)
    raw = Raw(x=x, y=np.ones(20), bounds=np.array([-2.0, 5.0]))
    neighbour = replace(raw, x=np.vstack([np.full(4, 1e6), x[1:]]))
    before = prepare("toy", "binary", options, raw).x
    after = prepare("toy", "binary", options, neighbour).x
    assert np.array_equal(before[1:], after[1:])
    assert not np.array_equal(before[0], after[0])


def test_fitted_scaling_is_not_record_by_record():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 4))
    options = RowOptions(scaling="standardise", unsafe_scaling=True, test_fraction=0)
    raw = Raw(x=x, y=np.ones(20))
    before = prepare("toy", "binary", options, raw).x
    after = prepare("toy", "binary", options, replace(raw, x=np.vstack([[1e6] * 4, x[1:]]))).x
    assert not np.array_equal(before[1:], after[1:])


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_intercept_counts_in_the_norm(make):
    raw = Raw(x=make(X), y=np.ones(4))
    options = RowOptions(intercept=True, test_fraction=0)
    data = prepare("toy", "binary", options, raw)
    x = data.x.toarray() if sparse.issparse(data.x) else data.x
    assert data.p == 3
    assert np.allclose(np.linalg.norm(x, axis=1), 1.0)
    assert np.allclose(x[1], [0, 0, 1])
    assert x[0, 2] == pytest.approx(1 / math.sqrt(26))


def test_sparse_rows_stay_sparse_with_narrow_indices():
    raw = Raw(x=sparse.csr_array(X), y=np.ones(4), bounds=np.array([-5.0, 5.0]))
    for fields in ({}, {"intercept": True}, {"scaling": "bounds"}, {"rows": "clip"}):
        data = prepare("toy", "binary", RowOptions(test_fraction=0.5, **fields), raw)
        for x in (data.x, data.x_test):
            assert isinstance(x, sparse.csr_array)
            assert x.indices.dtype == x.indptr.dtype == np.int32
            assert x.has_sorted_indices


def test_zero_rows_survive():
    for x in (X, sparse.csr_array(X)):
        data = prepare("toy", "binary", RowOptions(test_fraction=0), Raw(x=x, y=np.ones(4)))
        assert data.n == 4
        assert row_rules.row_norms(data.x)[1] == 0.0


def test_automatic_row_bounds():
    raw = Raw(x=X, y=np.ones(4), bounds=np.array([0.0, 1.0]), longest=5.0)
    for options, bound in [
        (RowOptions(), 1.0),
        (RowOptions(rows="clip"), 1.0),
        (RowOptions(rows="clip", row_bound=2), 2.0),
        (RowOptions(rows="none"), 5.0),
        (RowOptions(rows="none", intercept=True), math.sqrt(26)),
        (RowOptions(rows="none", scaling="bounds"), math.sqrt(2)),
        (RowOptions(rows="none", scaling="bounds", intercept=True), math.sqrt(3)),
    ]:
        data = prepare("toy", "binary", options, raw)
        assert data.row_bound == pytest.approx(bound)
        assert row_rules.row_norms(data.x).max() <= data.row_bound * (1 + 1e-12)
    with pytest.raises(InputError, match=r"dataset\.row_bound"):
        prepare("toy", "binary", RowOptions(rows="none"), replace(raw, longest=None))


def test_rows_none_leaves_rows_alone_within_the_bound():
    options = RowOptions(rows="none", row_bound=5.0, test_fraction=0)
    data = prepare("toy", "binary", options, Raw(x=X, y=np.ones(4)))
    assert np.array_equal(data.x, X)


def test_columns_by_bounds():
    bounds = np.array([[0.0, 2.0], [-1.0, 3.0]])
    x = np.array([[1.0, 1.0], [5.0, -7.0]])
    assert np.allclose(column_rules.by_bounds(x, bounds, True), [[0, 0], [1, -1]])
    assert np.allclose(column_rules.by_bounds(x, bounds, False), [[0.5, 0.5], [1, 0]])


def test_sparse_columns_keep_zero_at_zero():
    x = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 9.0]]))
    scaled = column_rules.by_bounds(x, np.array([0.0, 4.0]), False)
    assert scaled.toarray().tolist() == [[0.25, 0], [0, 1]]
    assert np.array_equal(
        column_rules.by_bounds(x, np.array([-4.0, 4.0]), True).toarray(), scaled.toarray()
    )
    for bounds, centred in [([0.0, 4.0], True), ([-1.0, 4.0], False)]:
        with pytest.raises(InputError, match=r"dataset\.scaling"):
            column_rules.by_bounds(x, np.array(bounds), centred)


@pytest.mark.parametrize("kind", ["minmax", "standardise"])
def test_fitted_maps(kind):
    x = np.array([[0.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    scaled = column_rules.apply_map(x, *column_rules.fitted_map(x, kind, True))
    assert np.allclose(
        scaled[:, 0], [-1, 0, 1] if kind == "minmax" else np.array([-1, 0, 1]) * 1.5**0.5
    )
    assert np.allclose(scaled[:, 1], 0)
    thin = sparse.csr_array(x)
    scaled = column_rules.apply_map(thin, *column_rules.fitted_map(thin, kind, True)).toarray()
    peak = 4.0 if kind == "minmax" else math.sqrt(20 / 3)
    assert np.allclose(scaled[:, 0], x[:, 0] / peak)
    assert np.allclose(scaled[:, 1], 1)


def test_overflowing_scaling_is_one_line():
    raw = Raw(x=np.array([[1.7e308], [-1.7e308]]), y=np.ones(2))
    options = RowOptions(scaling="standardise", unsafe_scaling=True, test_fraction=0)
    with pytest.raises(InputError, match=r"dataset\.scaling"):
        prepare("toy", "binary", options, raw)


def test_split_is_a_permutation_of_the_records():
    x = np.arange(1.0, 11.0)[:, None]
    raw = Raw(x=x, y=np.sign(x[:, 0] - 5.5))
    options = RowOptions(rows="none", row_bound=10.0, test_fraction=0.25, split_seed=3)
    data = prepare("toy", "binary", options, raw)
    order = np.random.default_rng(3).permutation(10)
    assert data.x[:, 0].tolist() == x[order[:8], 0].tolist()
    assert data.x_test[:, 0].tolist() == x[order[8:], 0].tolist()
    assert np.array_equal(data.y, np.sign(data.x[:, 0] - 5.5))
    assert np.array_equal(data.y_test, np.sign(data.x_test[:, 0] - 5.5))


def test_one_record_and_a_published_test_set():
    one = prepare("toy", "binary", RowOptions(), Raw(x=X[:1], y=np.ones(1)))
    assert (one.n, one.x_test) == (1, None)
    raw = Raw(x=X, y=np.ones(4), x_test=X[:2] * 9, y_test=np.ones(2))
    data = prepare("toy", "binary", RowOptions(), raw)
    assert (data.n, len(data.x_test)) == (4, 2)
    assert np.allclose(data.x_test[0], [0.6, 0.8])


def test_targets_are_mapped_and_clipped():
    raw = Raw(x=X, y=np.array([0.0, 10.0, 5.0, 99.0]), target_bounds=(0.0, 10.0))
    data = prepare("toy", "regression", RowOptions(test_fraction=0), raw)
    assert data.y.tolist() == [-1.0, 1.0, 0.0, 1.0]
    assert data.target_bound == 1.0


def test_fingerprint_sees_every_part():
    y = np.ones(4)
    base = ("binary", (1.0, 1.0), (X, y, None, None))
    seen = {fingerprint(*base)}
    assert fingerprint("binary", (1.0, 1.0), (X.copy(), y.copy(), None, None)) in seen
    assert fingerprint("binary", (1.0, 1.0), (np.asfortranarray(X), y, None, None)) in seen
    changed = X.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], 1)
    others = [
        ("regression", *base[1:]),
        ("binary", (2.0, 1.0), base[2]),
        ("binary", (1.0, 1.0), (changed, y, None, None)),
        ("binary", (1.0, 1.0), (X, -y, None, None)),
        ("binary", (1.0, 1.0), (X, y, X, y)),
        ("binary", (1.0, 1.0), (X.reshape(2, 4), y, None, None)),
        ("binary", (1.0, 1.0), (sparse.csr_array(X), y, None, None)),
    ]
    seen |= {fingerprint(*other) for other in others}
    assert len(seen) == 1 + len(others)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_check_finite_names_the_entry(make, bad):
    x = X.copy()
    x[2, 1] = bad
    with pytest.raises(InputError, match="record 3, column 2"):
        check_finite("dataset.path", "f", make(x), np.ones(4))
    with pytest.raises(InputError, match="target of record 2"):
        check_finite("dataset.path", "f", make(X), np.array([1.0, bad, 1.0, 1.0]))


# --- norms other than the Euclidean one


@settings(max_examples=100, deadline=None)
@given(MATRICES, st.sampled_from(["unit", "clip"]), st.sampled_from([1.0, math.inf]))
def test_the_bound_holds_in_norm_one_and_infinity(x, rule, norm):
    dense = row_rules.bound_rows(x, rule, 2.0, norm)
    thin = row_rules.bound_rows(sparse.csr_array(x), rule, 2.0, norm).toarray()
    assert np.allclose(dense, thin, rtol=1e-12, atol=0)
    for before, row in zip(x, dense, strict=True):
        size = np.linalg.norm(row, norm)
        assert size <= 2.0
        if before.any() and rule == "unit":
            assert size == pytest.approx(2.0, abs=1e-11)
        with np.errstate(over="ignore"):
            within = np.linalg.norm(before / 2.0, norm) <= 1 - 1e-12
        if rule == "clip" and within:
            assert np.array_equal(row, before)


def test_the_euclidean_bound_that_follows_from_another_norm():
    raw = Raw(x=X, y=np.ones(4))
    for norm, bound, intercept, follows in [
        (1, 3.0, False, 3.0),
        (2, 3.0, False, 3.0),
        ("inf", 3.0, False, 3.0 * math.sqrt(2)),
        (math.inf, 1.0, True, math.sqrt(3)),
    ]:
        options = RowOptions(norm=norm, row_bound=bound, intercept=intercept, test_fraction=0)
        data = prepare("toy", "binary", options, raw)
        assert data.row_bound == pytest.approx(follows)
        assert row_rules.row_norms(data.x).max() <= data.row_bound
        size = np.linalg.norm(data.x[0], float(norm))
        assert size == pytest.approx(bound)
    for bad in (0, 3, "two", True, None):
        with pytest.raises(InputError, match=r"dataset\.norm"):
            RowOptions(norm=bad)
    with pytest.raises(InputError, match=r"dataset\.norm"):
        RowOptions(norm=1, rows="none", row_bound=1.0)


@pytest.mark.parametrize("centred", [False, True])
def test_sparse_columns_that_move_zero_are_filled_when_they_are_few(centred):
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((40, 30)) < 0.2, rng.integers(-3, 9, (40, 30)), 0).astype(float)
    bounds = np.tile([0.0, 6.0] if not centred else [-6.0, 6.0], (30, 1))
    bounds[3], bounds[17] = [2.0, 8.0], [-1.0, 3.0]
    scaled = column_rules.by_bounds(sparse.csr_array(dense), bounds, centred)
    assert np.allclose(scaled.toarray(), column_rules.by_bounds(dense, bounds, centred))
    assert scaled.has_sorted_indices
