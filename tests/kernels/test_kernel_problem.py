"""Kernel minimisers are what they are proved to be, and no farther apart than stated."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.core import registry
from dperm_cli.kernels.linear import Linear
from dperm_cli.kernels.polynomial import Polynomial
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.kernels.shared import dual_solver as duals
from dperm_cli.kernels.shared.feature_maps import Explicit, Fourier, Landmarks
from dperm_cli.kernels.shared.kernel_problem import Fit, KernelProblem, norm_bound
from dperm_cli.kernels.shared.mapped_rows import FeatureRows
from dperm_cli.problem.data import Data

LOSSES = ("hinge", "logistic", "squared", "huberized_hinge")


def data(loss, n=60, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, columns))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    y = np.sign(x[:, 0] * x[:, 1] + 0.2 * rng.standard_normal(n))
    y = y if loss != "squared" else 0.7 * y
    task = "regression" if loss == "squared" else "binary"
    return Data.of_records("test", task, x, y, 1.0, 1.0, f"{loss} {n} {seed} {columns}")


def problem(loss, ridge=0.05, kernel=None, features=None, **more):
    records = data(loss, **more)
    kernel = Rbf(gamma=2.0) if kernel is None else kernel
    made = registry.load("loss", loss)()
    return KernelProblem(records, made, kernel, ridge, records.x[:10], features)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ridge", [0.3, 0.01, 1e-4])
def test_the_certificate_closes_and_the_gradient_vanishes(loss, ridge):
    one = problem(loss, ridge)
    fit, spec = one.solve(), one.spec()
    assert fit.distance <= spec.close
    modulus, weights = ridge * 60, fit.solution.weights
    gram = one.kernel.gram(one.data.x, one.data.x)
    z = gram @ weights
    assert np.allclose(fit.values(one.data.x), z, atol=1e-10)
    value = np.sum(one.loss.value(z, one.data.y)) + 0.5 * modulus * weights @ z
    assert fit.value == pytest.approx(value, rel=1e-12)
    # P'(w) = sum (l'(z_i) + m c_i) phi_i, where the loss is differentiable at the margins
    rest = one.loss.slope(z, one.data.y) + modulus * weights
    if loss == "hinge":
        smooth = np.abs(one.data.y * z - 1.0) > 1e-5
        assert np.allclose(rest[smooth], 0.0, atol=1e-6)
    else:
        assert math.sqrt(max(0.0, rest @ gram @ rest)) / modulus <= spec.close
    # no function nearby is better
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = weights + 1e-3 * rng.standard_normal(60)
        there = np.sum(one.loss.value(gram @ other, one.data.y))
        assert there + 0.5 * modulus * other @ gram @ other >= value - fit.gap


@pytest.mark.parametrize("loss", LOSSES)
def test_a_bad_point_has_an_honest_gap_and_distance(loss):
    """Both bounds hold at points that are far from the minimiser."""
    one = problem(loss)
    exact = one.solve(1e-9)
    run = duals.DualSolver(one.system, one.loss, one.data.y, 0.05 * 60)
    rng = np.random.default_rng(0)
    for shrink in (1.0, 0.5, 0.9):
        a = shrink * exact.solution.slopes * rng.uniform(0.5, 1.0, 60)
        found = run.certify(a)
        assert found.value - exact.value <= found.gap
        off = found.weights - exact.solution.weights
        gram = one.kernel.gram(one.data.x, one.data.x)
        assert math.sqrt(off @ gram @ off) <= found.distance + 2e-9
    if one.loss.smoothness is not None:
        weights = exact.solution.weights + 0.1 * rng.standard_normal(60)
        found = run._at(weights, one.system.values(weights))
        off = weights - exact.solution.weights
        assert math.sqrt(off @ gram @ off) <= found.distance + 2e-9
        assert found.value - exact.value <= found.gap


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_and_gram_agree_on_the_explicit_map(loss):
    kernel = Polynomial(degree=2)
    exact = problem(loss, kernel=kernel)
    finite = problem(loss, kernel=kernel, features=Explicit(kernel, 3, kernel.bound(1.0)))
    a, b = exact.solve(), finite.solve()
    assert a.value == pytest.approx(b.value, rel=1e-9)
    assert np.allclose(a.values(exact.data.x), b.values(exact.data.x), atol=1e-4)
    assert a.norm == pytest.approx(b.norm, rel=1e-4)
    assert exact.fingerprint() != finite.fingerprint()


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_rows_are_solved_as_they_are(loss):
    features = Fourier(Rbf(gamma=2.0), 3, 40)
    one = problem(loss, features=features)
    rows = FeatureRows(features.apply(one.data.x, np.float32))
    single = dataclasses.replace(one, rows=rows, data=dataclasses.replace(one.data, name="single"))
    system = duals.FeatureSystem(rows.array)
    found = duals.solve(system, one.loss, one.data.y, 3.0, gap=1e-9, seconds=20)
    assert found.gap <= 1e-9
    assert np.max(np.abs(found.weights - single.solve().theta)) < 1e-3
    z = rows.array.astype(float) @ found.weights
    assert np.allclose(z, found.margins, atol=1e-12)
    assert np.allclose(rows @ found.weights, z, atol=1e-12)
    assert np.allclose(rows.T @ z, rows.array.astype(float).T @ z, atol=1e-10)
    several = np.stack([found.weights, 2.0 * found.weights])
    alone = rows @ several[1]
    rows.remember(several)
    assert np.array_equal(rows @ several[1], alone)  # whatever stands beside it


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ridge", [1.0, 0.03])
def test_neighbours_are_no_farther_apart_than_the_stability(loss, ridge):
    """[JT13, proof of Thm 2]: |w* - w*'| <= 2 L R / (lambda n), over replaced records."""
    worst = 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        one = problem(loss, ridge, n=12, seed=seed)
        x, y = one.data.x.copy(), one.data.y.copy()
        x[0] = rng.standard_normal(3)
        x[0] /= np.linalg.norm(x[0])
        y[0] = -y[0]
        other = dataclasses.replace(
            one, data=one.data.with_records(x, y, fingerprint=f"other {loss} {seed}")
        )
        a, b, spec = one.solve(1e-7), other.solve(1e-7), one.spec()
        points = np.vstack([one.data.x, x])
        weights = np.concatenate([a.solution.weights, -b.solution.weights])
        square = weights @ one.kernel.gram(points, points) @ weights
        worst = max(worst, math.sqrt(max(0.0, square)) / spec.stability)
        assert a.norm <= spec.radius * (1 + 1e-9)
        off = np.abs(a.values(points) - b.values(points))
        assert np.max(off) <= spec.prediction_sensitivity * (1 + 1e-6)
    assert 0.04 < worst <= 1.0 + 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_the_norm_bound_is_reached_up_to_little(loss):
    """C^2 = max(-z l'(z)) / lambda: by equal records, whose minimiser is a multiple of phi."""
    made, best = registry.load("loss", loss)(), 0.0
    for ridge in np.logspace(-3, 1, 60):
        radius, lipschitz = norm_bound(made, 1.0, ridge, 1.0)
        # one record with K = 1, y = 1: minimise l(t; 1) + ridge t^2 / 2
        t = np.linspace(0.0, 60.0, 600_001)
        least = t[np.argmin(made.value(t, np.ones(1)) + 0.5 * ridge * t**2)]
        assert least <= radius * (1 + 1e-9) + 1e-4
        assert made.slope_bound(radius, 1.0) <= lipschitz + 1e-12
        best = max(best, least / radius)
    assert best > 0.85


def test_predictions_on_the_queries_are_those_of_theta():
    for features in (None, Fourier(Rbf(gamma=2.0), 3, 30)):
        one = problem("logistic", features=features)
        fit, spec = one.solve(), one.spec()
        assert np.allclose(spec.rows @ fit.theta, fit.values(spec.queries), atol=1e-8)
        assert spec.rows.shape == (10, spec.dim) == (spec.count, spec.p)
        assert np.allclose(spec.gram, spec.rows @ spec.rows.T, atol=1e-8)
        again = spec.interpolant(fit.values(spec.queries))
        assert np.allclose(spec.rows @ again, fit.values(spec.queries), atol=1e-6)
        assert np.allclose(spec.kernel_of(one.data.x, spec.queries),
                           spec.coordinates(one.data.x) @ spec.rows.T, atol=1e-8)  # fmt: skip


def test_a_nearer_solution_is_found_when_it_is_asked_for():
    one = problem("hinge", ridge=0.02, seed=5)
    rough = one.solve(0.05)
    fine = one.solve(1e-5)
    assert fine.distance <= 1e-5
    assert fine.gap <= rough.gap
    assert one.solve(0.05).solution is rough.solution  # remembered, and by what was asked
    assert one.solve(1e-5).solution is fine.solution
    assert one.has_solution()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_stored_solution_comes_back_to_the_last_bit(loss, exact):
    """What its slopes and weights prove by themselves is all that was remembered of it."""
    one = problem(loss, ridge=0.02)
    if not exact:
        one = dataclasses.replace(one, features=Fourier(one.kernel, 3, 20, 1.0))
    found = one.solve().solution
    again = one.verify_dual(found.slopes, found.weights)
    for name in ("slopes", "weights", "margins", "norm", "value", "gap", "distance"):
        assert np.array_equal(getattr(found, name), getattr(again, name)), name


def test_stored_slopes_outside_the_duals_domain_prove_nothing():
    """Beyond it the terms of the gap are negative: -2 would prove w = 1 where w* is 1/2."""
    one = Data.of_records("test", "binary", np.ones((1, 1)), np.ones(1), 1.0, 1.0, "one")
    own = KernelProblem(one, registry.load("loss", "hinge")(), Linear(), 2.0, one.x)
    for slope in (-2.0, -1.5, 3.0):
        found = own.verify_dual(np.array([slope]), np.zeros(1))
        assert abs(found.norm - 0.5) <= found.distance


@pytest.mark.parametrize("loss", ["logistic", "squared", "huberized_hinge"])
def test_stored_weights_that_cancel_prove_nothing(loss):
    """Of two equal records what one weighs the other may take away, and rounding all the rest."""
    one = problem(loss, ridge=0.1, n=30)
    x, y = one.data.x, one.data.y
    x[1], x[15], y[1] = x[0], x[14], -y[0]
    own = dataclasses.replace(one, data=dataclasses.replace(one.data, fingerprint=f"twins {loss}"))
    solved = own.solve().solution
    for size in (1e10, -1e10, 1e16, -1e16, 1e17, -1e17):
        weights = solved.weights.copy()
        weights[[0, 1, 14, 15]] += size * np.array([1.0, -1.0, 1.37, -1.37])
        found = own.verify_dual(solved.slopes, weights)
        off = Fit(own.spec(), found, x).values(x) - solved.margins
        assert np.max(np.abs(off)) <= found.distance + solved.distance


def test_landmarks_that_hold_the_data_change_nothing():
    one = problem("logistic", ridge=0.05)
    features = Landmarks(one.kernel, one.data.x, 1.0)
    finite = dataclasses.replace(one, features=features)
    assert finite.solve().value == pytest.approx(one.solve().value, rel=1e-6)


def test_an_order_of_passes_is_a_permutation():
    for turn in range(3):
        assert sorted(duals.shuffle(np.arange(50), turn)) == list(range(50))
    assert not np.array_equal(duals.shuffle(np.arange(50), 0), duals.shuffle(np.arange(50), 1))
