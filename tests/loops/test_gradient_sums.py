"""Sums of gradients and losses by blocks of records: the right numbers, and the same bits."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.loops import dense_rows, gradient_sums
from dperm_cli.loops.record_parts import divide
from dperm_cli.loops.slopes import log_of_one_plus
from dperm_cli.loops.thread_count import count_threads, use_threads
from dperm_cli.losses.shared.margin_loss import Glm, margins
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball

LOSSES = [registry.load("loss", name)() for name in registry.names("loss")]
COMPILED = [loss for loss in LOSSES if isinstance(loss, Glm) and loss.code is not None]
LOGISTIC = registry.load("loss", "logistic")()


def make_data(n, p, seed=0, density=None):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p)) / math.sqrt(p)
    if density is not None:
        x = sparse.csr_array(x * (rng.random((n, p)) < density))
    return Data.of_records("made", "binary", x, np.sign(rng.standard_normal(n)), 9.0, 1.0, "")


def sum_plainly(loss, theta, data):
    """The same sums by whole arrays, each record's part exactly added."""
    slopes = loss.slope(margins(theta, data), data.y)
    rows = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
    exact = [[math.fsum(row * rows[:, j]) for j in range(data.p)] for row in slopes]
    return np.array(exact), np.array([math.fsum(row) for row in loss.values(theta, data)])


@pytest.mark.parametrize("density", [None, 0.3])
@pytest.mark.parametrize("loss", COMPILED, ids=lambda loss: loss.name)
def test_the_sums_are_those_of_whole_arrays(loss, density):
    assert len(COMPILED) >= 8
    for n, p in ((1, 1), (7, 3), (64, 15), (301, 19), (260, 70)):
        data = make_data(n, p, density=density)
        theta = np.random.default_rng(1).standard_normal((6, p))
        gradient, total = sum_plainly(loss, theta, data)
        np.testing.assert_allclose(loss.gradient(theta, data), gradient, rtol=1e-12, atol=1e-12 * n)
        np.testing.assert_allclose(loss.sum_values(theta, data), total, rtol=1e-13)


@pytest.mark.parametrize("density", [None, 0.2])
def test_no_bit_depends_on_the_threads_or_on_other_points(density):
    data = make_data(40_000, 11, density=density)
    problem = Problem(data, LOGISTIC, make_ball(1.0, 11))
    theta = np.random.default_rng(2).standard_normal((9, 11))
    with use_threads(1):
        gradient, value = problem.data_gradient(theta), problem.objective(theta)
    assert len(divide(data.n, data.p)) > 7
    for threads in (2, 7, None):
        with use_threads(threads):
            assert problem.data_gradient(theta).tobytes() == gradient.tobytes()
            assert problem.objective(theta).tobytes() == value.tobytes()
    for some in (slice(0, 1), slice(3, 8)):
        assert problem.data_gradient(theta[some]).tobytes() == gradient[some].tobytes()
        assert problem.objective(theta[some]).tobytes() == value[some].tobytes()


# short rows, long ones, and those next to where a margin or a sum is made in another way
WIDTHS = (1, 3, 4, 10, 15, 16, 23, 29, 54, 1023, 1024, 1026)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("p", WIDTHS)
def test_every_width_and_number_of_points_has_the_bits_of_one_point(p, single):
    for n in (1, 2, 5, 35) if p > 100 else (1, 2, 5, 35, 421):
        data = make_data(n, p)
        rows = data.x.astype(np.float32) if single else data.x
        records, theta = gradient_sums.wrap_rows(rows, data.y), 3.0 * np.ones((7, p)) / p
        theta *= np.random.default_rng(3).standard_normal((7, p))
        each = [
            gradient_sums.sum_gradients(records, one[None], LOGISTIC.code, 0.0) for one in theta
        ]
        plain = LOGISTIC.slope(theta @ rows.T.astype(float), data.y) @ rows.astype(float)
        np.testing.assert_allclose(np.concatenate(each), plain, rtol=1e-11, atol=1e-11 * n)
        for points in range(1, 8):
            found = gradient_sums.sum_gradients(records, theta[:points], LOGISTIC.code, 0.0)
            assert found.tobytes() == np.concatenate(each[:points]).tobytes()


def test_no_record_is_read_beyond_the_end_of_the_rows():
    count_readable = dense_rows._count_readable.py_func
    for p, n in itertools.product(range(1, 14), range(1, 7)):
        x = np.zeros((n, p))
        ends = [i * p + dense_rows.pad(p) for i in range(n)]  # of the last four of each record
        for begin in range(n):
            for end in range(begin + 1, n + 1):
                wanted = sum(place <= x.size for place in ends[begin:end])
                assert count_readable(x, begin, np.zeros((1, end - begin)), p) == wanted


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_slope_has_the_same_bits_wherever_its_record_stands(kind):
    """A column of its own, in which the others are zero, shows every record's slope."""
    n, p = 300, 13
    data = make_data(n, p)
    theta = np.append(np.random.default_rng(3).standard_normal(p), np.zeros(n))
    data = data.with_rows(kind(np.hstack([data.x, np.eye(n)])))
    slopes = LOGISTIC.gradient(theta, data)[p:]
    rng = np.random.default_rng(4)
    for count in (n, 57, 1):
        order = rng.permutation(n)[:count]
        assert np.array_equal(LOGISTIC.gradient(theta, data.take(order))[p:][order], slopes[order])


def test_single_precision_rows_are_computed_with_in_doubles():
    data = make_data(5000, 21)
    single = data.with_rows(data.x.astype(np.float32))
    double = data.with_rows(single.x.astype(np.float64))
    theta = np.random.default_rng(4).standard_normal((2, 21))
    for loss in COMPILED:
        assert np.array_equal(loss.gradient(theta, single), loss.gradient(theta, double))
        assert np.array_equal(loss.sum_values(theta, single), loss.sum_values(theta, double))


def test_parts_cover_the_records_and_are_few():
    for n in (0, 1, 4095, 8192, 10**6, 10**9):
        for p in (1, 1000, 10**7):
            parts = divide(n, p)
            assert parts[0][0] == 0
            assert parts[-1][1] == n
            assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
            assert len(parts) <= 64
            assert len(parts) == 1 or len(parts) * p <= 1 << 22


def test_the_logarithm_is_right_to_a_few_units():
    rng = np.random.default_rng(5)
    tried = [*rng.random(400), *10.0 ** rng.uniform(-300, 0, 200), 1.0, 0.4142135623730949]
    assert log_of_one_plus(0.0) == 0.0
    with mpmath.workdps(40):
        errors = [abs(log_of_one_plus(e) / mpmath.log1p(mpmath.mpf(e)) - 1) for e in tried]
    assert max(errors) < 4e-16


def test_threads_are_those_asked_for_and_else_all_cores():
    cores = count_threads()
    with use_threads(5):
        assert count_threads() == 5
        with use_threads(None):
            assert count_threads() == cores
    assert count_threads() == cores
