"""The risk bound of noisy second moments: its parts against draws, and whole releases below it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.bounds import all_bounds, noisy_moments
from dperm_cli.bounds.base import Setting
from dperm_cli.bounds.noisy_moments import NoiseSizes
from dperm_cli.core import registry
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.perturbation.sufficient_statistics import find_edge
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import WishartDifference
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.data import Data
from dperm_cli.problem.problem import Problem
from dperm_cli.sets import make_ball
from dperm_cli.solvers.optimum import solve
from dperm_cli.views.central import CentralView

DRAWS = 2000


def draw_gaussian(p, rng):
    entries = rng.standard_normal((DRAWS, p, p))
    return (entries + np.swapaxes(entries, 1, 2)) / 2.0, rng.standard_normal((DRAWS, p))


def draw_wishart(p, rng):
    left, right = rng.standard_normal((2, DRAWS, p + 2, p + 1))
    found = (np.swapaxes(left, 1, 2) @ left - np.swapaxes(right, 1, 2) @ right) / 2.0
    return found[:, :-1, :-1], found[:, :-1, -1] / math.sqrt(noisy_moments.TARGET_SHARE)


@pytest.mark.parametrize("p", [1, 2, 5, 20])
@pytest.mark.parametrize("law", ["gaussian", "wishart"])
def test_sizes_of_the_noise(p, law):
    rng = np.random.default_rng(p)
    if law == "gaussian":
        sizes, (matrix, vector) = NoiseSizes.of_gaussian(p, 1.0), draw_gaussian(p, rng)
    else:
        edge = find_edge(WishartDifference(1.0, 1.5), p)
        sizes, (matrix, vector) = NoiseSizes.of_wishart(p, 1.0, edge), draw_wishart(p, rng)
        assert sizes.edge == edge
    largest = np.maximum(np.linalg.eigvalsh(matrix)[:, -1], 0.0)
    error = 5.0 * largest.std() / math.sqrt(DRAWS)
    assert largest.mean() <= sizes.spectrum + error
    assert sizes.spectrum <= 2.5 * largest.mean()
    lengths = np.linalg.norm(vector, axis=1)
    assert lengths.mean() == pytest.approx(sizes.length, rel=0.35)
    assert lengths.mean() <= sizes.length + 5.0 * lengths.std() / math.sqrt(DRAWS)
    if p > 1:
        assert np.var(matrix[:, 0, 1]) == pytest.approx(sizes.entry, rel=0.2)
    assert np.var(vector[:, 0]) == pytest.approx(sizes.target, rel=0.2)


def release(noise, n, p, radius, signal, epsilon, trials=100):
    """The setting of a plan, and the mean excess risk with its standard error."""
    rng = np.random.default_rng([n, p, signal])
    x = rng.standard_normal((n, p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    y = np.clip(signal * x.sum(axis=1) + 0.3 * rng.standard_normal(n), -1.0, 1.0)
    data = Data.of_records("rows", "regression", 3.0 * x, 2.0 * y, 3.0, 2.0, fingerprint="rows")
    problem = Problem(data, registry.load("loss", "squared")(), make_ball(radius, p), ridge=0.01)
    mechanism = registry.load("mechanism", "sufficient_statistics")(noise)
    spec, budget = problem.spec(), Budget(epsilon, 0.0 if noise == "wishart" else 1e-5)
    plan = mechanism.plan(spec, budget)
    seeds = [seed_sequence(1, "moments", str(trial)) for trial in range(trials)]
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
    risk = problem.objective(theta) - solve(problem).value
    kind = "approx" if budget.delta else "pure"
    at = Setting(
        spec, budget, kind, "sufficient_statistics", plan.noise_scale, plan.steps, plan.settings
    )
    return at, float(risk.mean()), float(risk.std()) / math.sqrt(trials)


@pytest.mark.parametrize("noise", ["gaussian", "wishart"])
@pytest.mark.parametrize("p", [1, 6])
@pytest.mark.parametrize("n", [3, 400])
@pytest.mark.parametrize("signal", [0, 1])
def test_releases_stay_below_it(noise, p, n, signal):
    for radius, epsilon in ((0.1, 0.3), (0.1, 5.0), (1.0, 0.3), (1.0, 5.0)):
        at, risk, error = release(noise, n, p, radius, signal, epsilon)
        bound = noisy_moments.sufficient_statistics.value(at)
        assert risk - 5.0 * error <= bound
        assert risk <= bound / 4.0  # and are not far below it by accident: see the next test


def test_it_is_within_a_factor_of_ten_of_some_release():
    at, risk, _ = release("gaussian", 100, 3, 0.1, 1, 0.3)
    assert noisy_moments.sufficient_statistics.value(at) <= 10.0 * risk


def test_it_scales_as_its_terms():
    sizes = NoiseSizes(edge=1.0, spectrum=2.0, entry=0.0, length=3.0, target=0.0)
    assert sizes.add_up(p=4, radius=2.0, rows=0.5, cross=0.0) == pytest.approx(0.5 * 2 * 5)
    assert sizes.add_up(p=4, radius=2.0, rows=0.0, cross=0.5) == pytest.approx(0.5 * 2 * 3)
    spread = NoiseSizes(edge=0.0, spectrum=0.0, entry=1.0, length=0.0, target=4.0)
    expected = 0.5 * math.sqrt(4 * (0.25 * 4 + 1.0 * 4)) * 2.0
    assert spread.add_up(p=4, radius=2.0, rows=0.5, cross=1.0) == pytest.approx(expected)


def test_a_row_of_least_squares_has_a_factor():
    at, _, _ = release("gaussian", 400, 6, 1.0, 1, 5.0, trials=1)
    found = all_bounds.choose_best_bounds(at)
    assert found["bound_upper_id"] == "sufficient_statistics Thm 4"
    assert found["bound_factor"] == pytest.approx(found["bound_upper"] / found["bound_lower"])
    assert found["minimax_factor"] <= found["bound_factor"]
