"""Explicit lower bounds against their own instances, and the attack that proves one of them.

Proofs: docs/proofs/_lower_bounds.md. Every statistical test fixes its seeds and says how many
standard errors it allows.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta as beta_law

from dperm_cli.bounds import random_directions
from dperm_cli.bounds.bst14_lower import (
    caps,
    code_length,
    marginals_pure,
    tracing_bound,
    two_points,
)
from dperm_cli.core import registry
from dperm_cli.core.seeds import generator, seed_sequence
from dperm_cli.datasets.lower_bounds.bst14_fingerprint import accusation, tracing_limit
from dperm_cli.privacy.accounting.calibrate import gaussian_scale
from tests.theory.bounds_data import bare

# --- caps: the correlation of a reweighted direction


def gain(p, x, draws=400_000):
    """E (t - x)_+ by drawing, and its standard error."""
    rng = generator(seed_sequence(1, "test", p))
    t = rng.standard_normal((draws, p))
    t = t[:, 0] / np.linalg.norm(t, axis=1)
    values = np.maximum(t - x, 0.0)
    return values.mean(), values.std() / math.sqrt(draws)


@pytest.mark.parametrize(("p", "x"), [(1, 0.3), (2, 0.5), (3, 0.2), (10, 0.4)])
def test_gain_of_the_sphere(p, x):
    expected, error = gain(p, x)
    assert math.exp(random_directions.log_gain(p, np.array(x))) == pytest.approx(
        expected, abs=5 * error
    )


def test_gain_in_three_dimensions_is_a_square():
    # t is uniform on [-1, 1]
    x = np.array([0.1, 0.5, 0.9])
    assert np.exp(random_directions.log_gain(3, x)) == pytest.approx((1 - x) ** 2 / 4, rel=1e-6)


@pytest.mark.parametrize("p", [2, 5, 200, 9_999, 10_001, 10**6])
def test_gain_bound_of_high_dimension_is_above_and_close(p):
    x = np.array([0.3, 0.5, 0.77, 0.9])
    exact = random_directions.log_gain(p, x)
    log_c = math.lgamma(p / 2) - math.lgamma((p - 1) / 2) - 0.5 * math.log(math.pi)
    above = log_c + (p + 1) / 2 * np.log(1 - x**2) - 2 * np.log(x) - math.log(p * p - 1)
    assert np.all(exact <= above + 1e-6)
    if p > 1000:
        assert exact == pytest.approx(above, abs=0.05)


@pytest.mark.parametrize("log_ratio", [0.1, 1.0, 4.0])
def test_lean_is_the_best_reweighting_of_a_circle(log_ratio):
    """A linear program over weights on 240 equal arcs, each within a factor e^a of the least."""
    angles = (np.arange(240) + 0.5) * 2 * np.pi / 240
    t = np.cos(angles)
    # variables: 240 weights and their floor w; sum of weights 240, w <= weight <= e^a w
    eye, column = np.eye(240), np.ones((240, 1))
    rows = np.block([[-eye, column], [eye, -math.exp(log_ratio) * column]])
    found = linprog(
        np.append(-t, 0.0), A_ub=rows, b_ub=np.zeros(480),
        A_eq=np.append(np.ones(240), 0.0)[None], b_eq=[240.0],
    )  # fmt: skip
    correlation = float(random_directions.bound_correlation(2, np.array(log_ratio)))
    # arcs taken at their middles: within (pi / 240)^2 of the integral
    assert correlation == pytest.approx(-found.fun / 240, rel=2e-4)


def test_lean_on_a_line_is_randomised_response():
    a = np.array([0.2, 1.0, 3.0])
    assert random_directions.bound_correlation(1, a) == pytest.approx(np.tanh(a / 2))
    assert random_directions.bound_one_sided_correlation(1, a) == pytest.approx(
        -np.expm1(-a), rel=1e-6
    )


def test_one_sided_correlation_is_between_what_a_cap_reaches_and_one():
    # the weights e^b on a cap of measure 1 / (e^b + 1), e^-b elsewhere
    for b in (0.3, 1.0, 3.0):
        x = 1 - 2 / (math.exp(b) + 1)  # in three dimensions
        mean = (1 - x * x) / 4  # E t 1{t > x}
        reached = (math.exp(b) - math.exp(-b)) * mean
        found = float(random_directions.bound_one_sided_correlation(3, np.array(b)))
        assert reached <= found <= reached * 1.001 + 1e-6


@pytest.mark.parametrize("log_ratio", [0.3, 2.0])
@pytest.mark.parametrize("shape", ["box", "l1_ball"])
def test_lean_of_corners_and_axes_is_the_best_reweighting(shape, log_ratio):
    """A linear program over weights on the 2^4 corners, or the 8 axes, of four dimensions."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    t = signs.mean(axis=1) if shape == "box" else np.array([1.0, -1.0, *[0.0] * 6])
    count = len(t)
    eye, column = np.eye(count), np.ones((count, 1))
    rows = np.block([[-eye, column], [eye, -math.exp(log_ratio) * column]])
    found = linprog(
        np.append(-t, 0.0), A_ub=rows, b_ub=np.zeros(2 * count),
        A_eq=np.append(np.ones(count), 0.0)[None], b_eq=[count],
    )  # fmt: skip
    gain = random_directions.choose_gain(registry.load("constraint", shape)(1.0, 4))
    correlation = float(random_directions.bound_correlation(4, np.array(log_ratio), gain))
    assert correlation == pytest.approx(-found.fun / count, rel=1e-6)


def test_chernoff_is_above_the_sum_and_close():
    x = np.array([0.05, 0.3, 0.7, 0.95])
    exact = random_directions.log_gain_of_corners(200, x)
    divergence = (1 + x) / 2 * np.log1p(x) + (1 - x) / 2 * np.log1p(-x)
    above = -200 * divergence - 1 - np.log(200 * np.arctanh(x))
    assert np.all(exact <= above)
    assert exact == pytest.approx(above, abs=4.5)  # a factor of about 200^{1/2} * 200^{1/4}
    assert random_directions.log_gain_of_corners(201, x) == pytest.approx(above, abs=1.5)


def test_caps_on_other_sets():
    box = bare(p=10**6, epsilon=0.1, n=10**9, constraint="box", radius=1e-3)  # corners at norm 1
    assert caps.value(box) == pytest.approx(0.0811 * 10**7, rel=1e-2)
    axes = [caps.value(bare(p=p, epsilon=0.1, constraint="l1_ball")) for p in (10, 10**4)]
    assert axes[1] == pytest.approx(math.log(10**4) / 0.1, rel=0.35)
    assert 3 * axes[0] < axes[1] < 5 * axes[0]
    for shape in ("box", "l1_ball"):  # an interval is an interval
        at = bare(p=1, epsilon=0.3, constraint=shape)
        assert caps.value(at) == pytest.approx(two_points.value(at), rel=2e-3)


def test_tracing_on_a_box():
    """Coordinates in [-1/sqrt(p), 1/sqrt(p)]: within a constant of the ball that holds it."""
    box = bare(p=100, epsilon=0.1, delta=1e-9, constraint="box", radius=0.1)
    ball = bare(p=100, epsilon=0.1, delta=1e-9)
    assert (
        0.3 * tracing_bound.value(ball) <= tracing_bound.value(box) <= (tracing_bound.value(ball))
    )


def test_on_an_interval_caps_is_the_two_point_bound():
    at = bare(p=1, epsilon=0.3)
    assert caps.value(at) == pytest.approx(two_points.value(at), rel=2e-3)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_caps_is_attained_by_the_mechanism_that_leans_as_far_as_it_may(p):
    """Weights e^a on the cap around u and 1 elsewhere: exactly a-DP, risk k L R (1 - rho)."""
    epsilon, k = 0.5, 4
    rho = float(random_directions.bound_correlation(p, np.array(k * epsilon)))
    rng = generator(seed_sequence(2, "test", p))
    theta = rng.standard_normal((400_000, p))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    weights = np.where(theta[:, 0] > rho, math.exp(k * epsilon), 1.0)
    mean = float(np.average(theta[:, 0], weights=weights))
    assert mean == pytest.approx(rho, abs=6e-3)  # 5 standard errors at most
    at = bare(p=p, epsilon=epsilon, n=k)
    assert caps.value(at) >= k * (1 - rho) * 0.999


def test_caps_holds_for_the_exponential_mechanism_and_is_near_it():
    """Linear losses on the disc: exp(-c F) at the exponent of epsilon, by quadrature."""
    p, epsilon = 2, 1.0
    bound = caps.value(bare(p=p, epsilon=epsilon))
    worst = 0.0
    x = np.linspace(-1, 1, 200_001)
    for k in (1, 2, 3, 5, 8, 20, 200):
        # k records, |C| = 2: c = epsilon / 4; the marginal of the disc is sqrt(1 - x^2)
        law = np.exp(epsilon / 4 * k * (x - 1)) * np.sqrt(np.maximum(1 - x**2, 0.0))
        worst = max(worst, float(k * np.sum(law * (1 - x)) / np.sum(law)))
    assert bound <= worst <= 10 * bound


def test_caps_three_orders_above_the_papers_constants():
    for p in (10, 100, 10_000):
        at = bare(p=p, epsilon=0.1, n=10**9)
        signal, error = marginals_pure(10**9, p, 0.1)
        assert signal == pytest.approx(p / 2, abs=1)
        assert error == pytest.approx(signal / 16e9)
        assert caps.value(at) > 1000 * signal / 1024
    assert caps.value(at) == pytest.approx(0.1034 * p / 0.1, rel=5e-3)


def test_caps_with_a_ridge():
    at = bare(p=10_000, epsilon=0.1, n=10**8, ridge=0.5)
    limit = math.exp(-2) / 2 * (10_000 / 0.1) ** 2 / (10**8 * 0.5)
    assert caps.value(at) == pytest.approx(limit, rel=2e-2)
    # a ridge that holds every minimiser at the centre leaves nothing to lose; none, the linear one
    small, none = bare(p=5, ridge=1e-9), bare(p=5)
    assert caps.value(small) == pytest.approx(caps.value(none), rel=1e-3)
    assert caps.value(bare(p=5, ridge=1e6)) < 1e-3


def test_caps_under_add_remove_is_lower_and_above_half():
    for p in (1, 2, 10, 1000):
        one = caps.value(bare(p=p, epsilon=0.5))
        other = caps.value(bare(p=p, epsilon=0.5, relation="add_remove"))
        assert 0.49 * one <= other <= one


def test_small_data_sets_bound_the_bound():
    """n records cannot lose more than n L |C|, and with few of them nothing tells them apart."""
    for n in (1, 3, 30):
        at = bare(p=200, epsilon=0.01, n=n)
        assert 0.9 * n <= caps.value(at) <= n
        approx = bare(p=200, epsilon=0.01, n=n, delta=1e-9)
        assert 0.6 * n <= tracing_bound.value(approx) <= n


# --- tracing: fingerprinting codes


@pytest.mark.parametrize(("m", "a"), [(1, 0.5), (5, 1.0), (12, 0.1), (40, 30.0)])
def test_moments_of_the_code(m, a):
    """E |T|^2 exactly, E |T| from below and close, by drawing; 5 standard errors."""
    p, draws = 6, 20_000
    rng = generator(seed_sequence(3, "test", m))
    mean = 2 * rng.beta(a, a, (draws, p)) - 1
    total = (2 * rng.binomial(m, (1 + mean) / 2) - m) / math.sqrt(p)
    square = np.sum(total**2, axis=1)
    length, second = code_length(p, np.array(float(m)), np.array(a))
    error = 5 * square.std() / math.sqrt(draws) + 1e-12
    assert float(second) == pytest.approx(square.mean(), abs=error)
    root = np.sqrt(square)
    assert (
        0.9 * root.mean()
        <= float(length)
        <= root.mean() + 5 * root.std() / math.sqrt(draws) + 1e-12
    )


@pytest.mark.parametrize("a", [0.5, 1.0, 4.0])
def test_fingerprinting_lemma(a):
    """E sum_i f(X) (X_i - P) = 2 a E P f(X), for any f of the column, by quadrature over P."""
    m = 7
    rng = generator(seed_sequence(4, "test", "f"))
    f = rng.uniform(-1, 1, m + 1)  # a function of the number of +1
    nodes = beta_law.ppf((np.arange(20_000) + 0.5) / 20_000, a, a)
    ones = np.arange(m + 1)
    chances = np.array([math.comb(m, k) for k in ones]) * (
        nodes[:, None] ** ones * (1 - nodes[:, None]) ** (m - ones)
    )
    mean = 2 * nodes - 1
    left = np.mean(np.sum(chances * f * (2 * ones - m - m * mean[:, None]), axis=1))
    right = 2 * a * np.mean(mean * (chances @ f))
    assert left == pytest.approx(right, abs=2e-4)


@pytest.mark.parametrize("n", [500, 5000])
def test_tracing_bound_holds_for_the_gaussian_mechanism_on_its_code(n):
    """theta = T + noise, brought back to the ball: its risk on the code exceeds the bound."""
    p, epsilon, delta = 40, 0.2, 1e-6
    at = bare(p=p, epsilon=epsilon, delta=delta, n=n)
    bound = tracing_bound.value(at)
    assert bound > 0.1 * math.sqrt(p) / epsilon
    scale = gaussian_scale(epsilon, delta, 2.0)
    rng = generator(seed_sequence(5, "test", n))
    risks = []
    for m, a in ((n, 30.0), (round(math.sqrt(p) / epsilon), 1.0), (n // 4, 10.0)):
        mean = 2 * rng.beta(a, a, (400, p)) - 1
        total = (2 * rng.binomial(m, (1 + mean) / 2) - m) / math.sqrt(p)
        noisy = total + scale * rng.standard_normal(total.shape)
        theta = noisy / np.maximum(1.0, np.linalg.norm(noisy, axis=1, keepdims=True))
        risk = np.linalg.norm(total, axis=1) - np.sum(theta * total, axis=1)
        risks.append(risk.mean() - 5 * risk.std() / 20)
    assert bound <= max(risks)


def test_tracing_bound_limits():
    # n >> p / epsilon^2: L R sqrt(p) / (4 epsilon), and with a ridge L^2 p / (8 n Delta epsilon^2)
    at = bare(p=400, epsilon=0.05, n=10**8, delta=1e-16)
    assert tracing_bound.value(at) == pytest.approx(math.sqrt(400) / 0.2, rel=2e-2)
    curved = bare(p=400, epsilon=0.05, n=10**8, delta=1e-16, ridge=1.0)
    assert tracing_bound.value(curved) == pytest.approx(400 / (8e8 * 0.05**2), rel=2e-2)
    # twice the Lipschitz constant, twice the bound; delta costs, and a large epsilon leaves none
    twice = dataclasses.replace(at, spec=dataclasses.replace(at.spec, lipschitz=2.0))
    assert tracing_bound.value(twice) == pytest.approx(2 * tracing_bound.value(at))
    values = [tracing_bound.value(bare(p=50, epsilon=0.1, delta=d)) for d in (0, 1e-4, 1e-3, 0.1)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1.0 < 10 * values[-1]  # one record is left, and 2 R delta of it
    assert tracing_bound.value(bare(p=50, epsilon=30.0)) == 0.0


def test_tracing_under_add_remove():
    plain, other = (
        bare(p=50, epsilon=0.1, delta=1e-9, relation=r) for r in ("replace_one", "add_remove")
    )
    assert tracing_bound.value(other) == tracing_bound.value(plain)
    curved = bare(p=50, epsilon=0.1, delta=1e-9, relation="add_remove", ridge=0.5)
    twice = bare(p=50, epsilon=0.2, delta=(1 + math.exp(0.1)) * 1e-9, ridge=0.5)
    assert tracing_bound.value(curved) == tracing_bound.value(twice) > 0


# --- the attack itself


def instance(seed, p=1000, signal=10, n=200):
    return registry.load("dataset", "bst14_fingerprint")(n=n, p=p, signal=signal, seed=seed)


def sums(code):
    return code.load().x.sum(axis=0)


def test_outsiders_are_rarely_accused():
    """Rows drawn like the code's, theta ignorant of them: mean 0, |z| <= 1, tails as stated."""
    code = instance(0)
    rng = generator(seed_sequence(6, "test", "outsiders"))
    theta = sums(code)
    theta /= np.linalg.norm(theta)
    fresh = np.where(rng.random((20_000, 1000)) < code.likely(), 1.0, -1.0)
    scores = (fresh - (2 * code.likely() - 1)) @ theta
    assert abs(scores.mean()) < 5 / math.sqrt(20_000)
    assert scores.std() <= 1.0
    for chance in (0.1, 0.01):
        allowed = chance * 20_000
        assert np.sum(scores >= accusation(chance)) <= allowed + 4 * math.sqrt(allowed)


def test_the_non_private_minimiser_is_traced():
    """Every row of every code is accused at a chance of 1e-3: sqrt(p / 2) / m is 6, 7 sd above."""
    for seed in range(8):
        code = instance(seed, p=5000, signal=6)
        scores = code.scores(sums(code))
        assert scores.min() >= accusation(1e-3)
        found = code.diagnose(sums(code), 0.5, 1e-6)
        assert found["tracing_score"] > 5 * found["tracing_limit"]


def test_a_private_release_is_not_traced():
    """The Gaussian mechanism at (0.5, 1e-6): the mean over 60 codes stays below the limit."""
    epsilon, delta = 0.5, 1e-6
    scale = gaussian_scale(epsilon, delta, 2.0)
    rng = generator(seed_sequence(7, "test", "private"))
    found, exact = [], []
    for seed in range(60):
        code = instance(seed)
        total = sums(code)
        noisy = total + scale * rng.standard_normal(1000)
        found.append(code.diagnose(noisy, epsilon, delta)["tracing_score"])
        exact.append(code.diagnose(total, epsilon, delta)["tracing_score"])
    limit = tracing_limit(1000, epsilon, delta)
    error = np.std(found) / math.sqrt(60)
    assert np.mean(found) + 3 * error < limit
    assert np.mean(found) > 0.0  # it does leave a trace
    # what no noise at all would have shown: the test has the power to see a broken mechanism
    assert np.mean(exact) - 5 * np.std(exact) / math.sqrt(60) > 2 * limit


def test_scores_of_points_that_are_none():
    code = instance(0)
    assert not code.scores(np.zeros(1000)).any()
    assert code.diagnose(np.zeros(7), 1.0, 0.0) == {"tracing_score": None, "tracing_limit": None}
    silent = instance(0, signal=0).diagnose(np.ones(1000), 1.0, 0.0)
    assert silent["tracing_score"] is None


def test_tracing_limit():
    assert tracing_limit(100, 0.1, 0.0) == pytest.approx(math.sinh(0.1))
    more = 20 * (1 + math.exp(-0.1)) * 1e-3
    assert tracing_limit(100, 0.1, 1e-3) == pytest.approx(math.sinh(0.1) + more)
    assert tracing_limit(100, 1e4, 0.0) == tracing_limit(100, 50.0, 0.0) == 20.0
