"""The analytic Gaussian profile against 60-digit arithmetic, and its inverses."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from dperm_cli.privacy.accounting import gaussian_profile

mpmath.mp.dps = 60


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.01, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 0.24, 0.26, 1.0, 5.0, 40.0, 60.0])
def test_log_delta_against_mpmath(epsilon, mu):
    # where the true delta is below e^-3000 mpmath's 60 digits cancel; nothing is left to compare
    if epsilon / mu - mu / 2 > 75:
        assert gaussian_profile.log_delta(epsilon, mu) < -2800
        return
    mpmath.mp.dps = 60 + int(2e-1 * (epsilon / mu) ** 2)
    expected = mpmath.log(exact_delta(epsilon, mu))
    mpmath.mp.dps = 60
    # relative error of delta is absolute error of its log
    assert abs(gaussian_profile.log_delta(epsilon, mu) - float(expected)) < 4e-13 * max(
        1, abs(expected)
    )


@pytest.mark.parametrize("delta", [0.4, 1e-2, 1e-6, 1e-15, 1e-100, 1e-300])
@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 100.0, 1e3])
def test_inverses_are_private_and_tight(epsilon, delta):
    mu = gaussian_profile.mu(epsilon, delta)
    assert gaussian_profile.log_delta(epsilon, mu) <= math.log(delta)
    assert gaussian_profile.log_delta(epsilon, mu * (1 + 1e-10)) > math.log(delta)
    again = gaussian_profile.epsilon(delta, mu)
    assert again <= epsilon * (1 + 1e-9)
    assert gaussian_profile.log_delta(again, mu) <= math.log(delta)


def test_limits():
    # epsilon = 0: total variation 2 Phi(mu/2) - 1, erf form; small mu: mu / sqrt(2 pi)
    assert gaussian_profile.delta(0.0, 1.0) == pytest.approx(
        math.erf(0.5 / math.sqrt(2.0)), rel=1e-13
    )
    assert gaussian_profile.delta(0.0, 1e-9) == pytest.approx(
        1e-9 / math.sqrt(2 * math.pi), rel=1e-12
    )
    assert gaussian_profile.delta(1.0, 0.0) == 0.0
    assert gaussian_profile.epsilon(0.0, 1.0) == math.inf
    assert gaussian_profile.epsilon(0.0, 0.0) == 0.0
    assert gaussian_profile.epsilon(0.5, 0.1) == 0.0


def test_monotone():
    epsilons = np.geomspace(1e-4, 50, 60)
    profile = [gaussian_profile.log_delta(e, 0.7) for e in epsilons]
    assert np.all(np.diff(profile) < 0)
    assert np.all(np.diff([gaussian_profile.mu(e, 1e-6) for e in epsilons]) > 0)
    assert np.all(
        np.diff([gaussian_profile.log_delta(1.0, m) for m in np.geomspace(1e-3, 10, 80)]) > 0
    )


def test_the_written_nodes_are_those_of_gauss_and_legendre():
    nodes, weights = np.polynomial.legendre.leggauss(10)
    assert np.max(np.abs(gaussian_profile._NODES - nodes)) <= 2.0**-53
    assert np.max(np.abs(gaussian_profile._WEIGHTS / weights - 1.0)) <= 2.0**-50


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.3, 7.0, 200.0])
def test_many_deltas_at_once_have_the_bits_of_each(epsilon):
    mus = [0.0, 1e-6, 1e-3, 0.02, 0.1, 0.1, 0.2499, 0.25, 0.3, 2.0, 40.0]
    assert gaussian_profile.list_deltas(epsilon, mus) == [
        gaussian_profile.delta(epsilon, mu) for mu in mus
    ]
    assert gaussian_profile.list_deltas(epsilon, []) == []
