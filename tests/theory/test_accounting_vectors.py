"""Reference values of the accounting: analytic Gaussian, [BST14, Alg. 1] as stated and calibrated,
pure noise, exponential mechanisms, channels, two stages, and the peer's conventions.

The 12 settings of [BST14, Alg. 1] are n = 1e2 .. 1e5 and nominal epsilon 0.1, 1, 5 with
delta = 1/n^2 and T = n^2 steps of one record; figures to the digits given.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import (
    Channel,
    Exponential,
    GammaNorm,
    Gaussian,
    Laplace,
    SampledGaussian,
)
from tests.privacy.dp_accounting_peer import epsilon_pld, epsilon_rdp

NOMINAL = (0.1, 1.0, 5.0)
STATED = {
    100: (638.111, 63.8111, 12.7622),
    1_000: (957.167, 95.7167, 19.1433),
    10_000: (1276.22, 127.622, 25.5244),
    100_000: (1595.28, 159.528, 31.9056),
}
CERTIFIED = {
    100: (0.0045944, 0.075006, 0.49149),
    1_000: (0.0061418, 0.075042, 0.43529),
    10_000: (0.0063136, 0.071370, 0.39467),
    100_000: (0.0061782, 0.067425, 0.36364),
}
REALIZABLE = {
    100: (0.0045871, 0.073991, 0.46155),
    1_000: (0.0061362, 0.074384, 0.41718),
    10_000: (0.0063095, 0.070908, 0.38235),
    100_000: (0.0061750, 0.067079, 0.35457),
}
CALIBRATED = {
    100: (49.807, 7.1675, 2.3998),
    1_000: (73.407, 9.2520, 2.7795),
    10_000: (92.673, 11.003, 3.0962),
    100_000: (109.21, 12.537, 3.3779),
}
GRID = [(n, i) for n in STATED for i in range(3)]


def one_record(scale, n, steps=None):
    return [SampledGaussian(scale, n, 1, n, "fixed", steps or n * n)]


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.1, 0.0408028), (1.0, 0.313902), (5.0, 1.25638)]
)
def test_mu_at_delta_1e_4(epsilon, expected):
    assert calibrate.mu(epsilon, 1e-4) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 4.22468), (0.1, 36.3047), (5.0, 0.980049)])
def test_gaussian_scale_at_delta_1e_6(epsilon, expected):
    assert calibrate.gaussian_scale(epsilon, 1e-6, 1.0) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize(("n", "i"), GRID)
def test_bst14_algorithm_1_stated(n, i):
    scale = calibrate.bst14_stated_scale(n, 1.0, NOMINAL[i], n**-2.0)
    assert scale / n == pytest.approx(STATED[n][i], rel=5e-6)
    certified = account(one_record(scale, n), delta=n**-2.0, relation="replace_one")
    assert certified.epsilon == pytest.approx(CERTIFIED[n][i], rel=2e-5)
    # the stated noise is private, with an order of magnitude to spare
    assert certified.epsilon < NOMINAL[i] / 10


@pytest.mark.parametrize(("n", "i"), GRID)
def test_bst14_algorithm_1_realizable(n, i):
    # removing one record from the rest is one particular neighbour: a lower bound on the truth
    scale = calibrate.bst14_stated_scale(n, 1.0, NOMINAL[i], n**-2.0)
    event = SampledGaussian(scale, 2.0 * n, 1, n, "poisson", n * n)
    removed = account([event], delta=n**-2.0, relation="add_remove")
    assert removed.epsilon == pytest.approx(REALIZABLE[n][i], rel=2e-5)
    assert removed.epsilon < CERTIFIED[n][i]


@pytest.mark.parametrize(("n", "i"), GRID)
def test_bst14_algorithm_1_calibrated(n, i):
    scale = calibrate.scale_for(
        lambda s: one_record(s, n), epsilon=NOMINAL[i], delta=n**-2.0, relation="replace_one"
    )
    assert scale / n == pytest.approx(CALIBRATED[n][i], rel=5e-5)


def test_stated_noise_at_n_100():
    certified = account(one_record(6381.110991, 100), delta=1e-4, relation="replace_one")
    assert certified.epsilon == pytest.approx(0.0750059, rel=1e-5)


def test_one_record_calibrated_at_n_1000():
    scale = calibrate.scale_for(
        lambda s: one_record(s, 1000), epsilon=1.0, delta=1e-6, relation="replace_one"
    )
    assert scale / 1000 == pytest.approx(9.25196, rel=5e-6)


def test_poisson_calibrated():
    scale = calibrate.scale_for(
        lambda s: [SampledGaussian(s, 100, 1, 100, "poisson", 10_000)],
        epsilon=1.0,
        delta=1e-4,
        relation="replace_one",
    )
    assert scale / 100 == pytest.approx(6.3710, rel=1e-5)


def test_full_gradient_calibrated():
    scale = calibrate.scale_for(
        lambda s: [Gaussian(s, 1.0, 100)], epsilon=1.0, delta=1e-6, relation="replace_one"
    )
    assert scale == pytest.approx(84.494, rel=1e-5)


@pytest.mark.parametrize(
    ("batch", "steps", "fixed", "poisson"),
    [
        (10, 1_000, 348.9, 267.5),
        (100, 1_000, 274.4, 267.2),
        (100, 100, 92.31, 84.47),
        (1, 100_000, 3487.0, 2676.0),
        (10, 10_000, 924.4, 844.9),
    ],
)
def test_mini_batches_at_n_1000(batch, steps, fixed, poisson):
    for kind, expected in (("fixed", fixed), ("poisson", poisson)):
        events = [SampledGaussian(expected, 1000 / batch, batch, 1000, kind, steps)]
        level = account(events, delta=1e-6, relation="replace_one").epsilon
        assert math.isclose(level, 1.0, rel_tol=5e-4)


def test_exponential_mechanism_nearly_spends_its_epsilon():
    # losses d theta with d = +-1 on [-1/2, 1/2]: a record moves the objective by an oscillation 2
    n, epsilon = 1000, 1.0
    c = calibrate.exponent(epsilon, 2.0)
    assert c == 0.5
    event = Exponential(c, 1.0)
    assert account([event], delta=0.0, relation="replace_one").epsilon == epsilon
    # all records d = 1 against all but one: the largest log ratio of the densities, by quadrature
    nodes, weights = np.polynomial.legendre.leggauss(400)
    edges = np.linspace(-0.5, 0.5, 41)
    half = np.diff(edges)[:, None] / 2
    theta = (edges[:-1, None] + half * (nodes + 1)).ravel()
    weight = (half * weights).ravel()
    slopes = (n, n - 2)
    logs = [-c * m * theta - math.log(weight @ np.exp(-c * m * theta)) for m in slopes]
    # the ratio is monotone: its largest value is at an end of the set
    ends = [
        [-c * m * end - math.log(weight @ np.exp(-c * m * theta)) for end in (-0.5, 0.5)]
        for m in slopes
    ]
    worst = max(abs(ends[0][i] - ends[1][i]) for i in (0, 1))
    assert worst == pytest.approx(0.997998, abs=1e-6)
    assert np.max(np.abs(logs[0] - logs[1])) <= worst < epsilon


def test_output_perturbation_scales():
    # n = 1000, L = 1, Delta = 0.1: sensitivity 2 L / (n Delta) = 0.02
    sensitivity = 2.0 / (1000 * 0.1)
    gamma = calibrate.pure_scale(0.5, sensitivity)
    assert gamma == pytest.approx(0.04, rel=1e-12)
    searched = calibrate.scale_for(
        lambda s: [GammaNorm(s, sensitivity / 2)], epsilon=0.5, delta=0.0, relation="replace_one"
    )
    assert searched == pytest.approx(0.04, rel=3e-6)
    normal = calibrate.gaussian_scale(1.0, 1e-6, sensitivity)
    assert normal == pytest.approx(0.0844936, rel=2e-6)


@pytest.mark.parametrize(("queries", "scale"), [(10, 9.98979), (100, 41.4875), (1000, 133.242)])
def test_laplace_noise_for_many_queries(queries, scale):
    # scale in units of one answer's sensitivity
    found = calibrate.scale_for(
        lambda s: [Laplace(s, 0.5, queries)], epsilon=1.0, delta=1e-6, relation="replace_one"
    )
    assert found == pytest.approx(scale, rel=6e-6)
    assert found < math.sqrt(8 * queries * math.log(1e6))  # the explicit constant of [JT13]
    assert queries == 10 or found < queries  # adding epsilons up


def test_local_channels_in_dimension_10():
    # l_inf: d ln((M+1)/(M-1)), inverse M = coth(eps / (2 d)); l_1: eps = 2 gamma
    dimension, size = 10, 2.0
    cube = dimension * math.log((size + 1) / (size - 1))
    assert cube == pytest.approx(10.9861, abs=5e-5)
    assert 1 / math.tanh(cube / (2 * dimension)) == pytest.approx(size, rel=1e-12)
    gamma = 2.8995
    # the inverse M = (cosh g + d - 1) / sinh g of the l_1 channel
    assert (math.cosh(gamma) + dimension - 1) / math.sinh(gamma) == pytest.approx(size, abs=1e-4)
    for epsilon, expected in ((cube, 10.9861), (2 * gamma, 5.79901)):
        level = account([Channel(epsilon)], delta=0.0, relation="replace_one")
        assert level.epsilon == pytest.approx(expected, abs=5e-5)
        thrice = account([Channel(epsilon, 3)], delta=0.0, relation="replace_one").epsilon
        assert thrice == pytest.approx(3 * expected, abs=2e-4)


def test_two_equal_stages():
    # mu_1^2 + mu_2^2 = mu^2 at (1, 1e-6), against halving epsilon and delta
    each = calibrate.scale_for(
        lambda s: [Gaussian(s, 0.5), Gaussian(s, 0.5)],
        epsilon=1.0,
        delta=1e-6,
        relation="replace_one",
    )
    assert 1 / each == pytest.approx(0.167375, rel=1e-5)
    assert calibrate.mu(0.5, 5e-7) == pytest.approx(0.119785, rel=1e-5)


def test_replace_one_of_the_peer():
    events = [Gaussian(84.494, 1.0, 100)]
    level = {"delta": 1e-6, "relation": "replace_one"}
    assert epsilon_pld(events, **level) == pytest.approx(0.999995, rel=2e-6)
    assert epsilon_rdp(events, **level) == pytest.approx(1.078057, rel=1e-6)
    # what the Renyi accountant says when the factor 2 is forgotten
    assert epsilon_rdp([Gaussian(84.494, 0.5, 100)], **level) == pytest.approx(0.514320, rel=1e-5)
