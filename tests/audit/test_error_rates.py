"""From error rates to epsilon: the bounds hold as often as they say, and are sharp."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dperm_cli.audit import error_rates
from dperm_cli.audit.error_rates import (
    AnyOutputs,
    GaussianOutputs,
    Profile,
    Rates,
    Signs,
    lower,
    scale_noise,
    upper,
)
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.events import Exponential, Gaussian, SampledGaussian


@pytest.mark.parametrize("runs", [10, 500])
def test_clopper_pearson_is_the_inverse_of_the_binomial_tail(runs):
    """At the upper bound, as few successes or fewer have chance ERROR / 2; likewise below."""
    counts = np.arange(1, runs)
    high, low = upper(counts, runs), lower(counts, runs)
    np.testing.assert_allclose(binom.cdf(counts, runs, high), error_rates.ERROR / 2, rtol=1e-6)
    np.testing.assert_allclose(binom.sf(counts - 1, runs, low), error_rates.ERROR / 2, rtol=1e-6)
    assert lower(0, runs) == 0.0
    assert upper(runs, runs) == 1.0
    assert upper(0, runs) == pytest.approx(1.0 - (error_rates.ERROR / 2) ** (1.0 / runs))


def test_gaussian_rates_give_the_mu_of_their_pair():
    for mu in (0.2, 1.0, 4.0):
        rates = Rates(float(norm.sf(mu / 2)), float(norm.cdf(mu / 2)))
        expected = account((Gaussian(1.0 / mu, 1.0),), delta=1e-5, relation="add_remove").epsilon
        assert GaussianOutputs(1e-5).epsilon(rates) == pytest.approx(expected, rel=1e-6)
    assert GaussianOutputs(1e-5).epsilon(Rates(0.5, 0.4)) == 0.0


def test_any_outputs_is_the_definition():
    assert AnyOutputs(0.01).epsilon(Rates(0.1, 0.31)) == pytest.approx(math.log(3.0))
    assert AnyOutputs(0.0).epsilon(Rates(0.5, 0.4)) == 0.0


def test_profile_recovers_the_epsilon_of_the_true_noise():
    """Rates of the best threshold on one Gaussian step, of noise 0.7 times what was planned."""
    planned = Gaussian(1.0 / calibrate.mu(1.0, 1e-5), 1.0)
    how = Profile((planned,), 1.0, 1e-5, "add_remove")
    true = scale_noise(planned, 0.7)
    mu = 1.0 / true.scale
    expected = account((true,), delta=1e-5, relation="add_remove").epsilon
    # thresholds near the middle touch the profile at small epsilon'
    best = max(
        how.epsilon(Rates(float(norm.sf(t)), float(norm.sf(t - mu)))) for t in (0.3, 0.6, 1.0)
    )
    assert 0.97 * expected < best <= expected * 1.0001


def test_profile_of_sampled_steps_never_exceeds_the_truth():
    """One Poisson step: exact rates of any threshold give at most the planned epsilon."""
    event = SampledGaussian(3.0, 2.0, 1, 2, "poisson")
    claim = account((event,), delta=1e-5, relation="add_remove").epsilon
    how = Profile((event,), claim, 1e-5, "add_remove")
    shift, found = 2.0 / 3.0, []
    for t in (0.2, 2.0):
        with_record = 0.5 * norm.sf(t) + 0.5 * norm.sf(t - shift)
        found.append(how.epsilon(Rates(float(norm.sf(t)), float(with_record))))
    assert max(found) <= claim * (1.0 + 1e-9)
    assert max(found) > 0.9 * claim


@pytest.mark.parametrize(("claim", "cut"), [(0.5, 0.5), (1.0, 0.5), (30.0, 0.05)])
def test_interval_rates_give_the_difference_of_slopes(claim, cut):
    how = error_rates.make_argument("interval", (), claim, 0.0, "replace_one")
    assert how.attack == (cut, True, True)
    flat, steep = cut, math.expm1(-claim * cut) / math.expm1(-claim)
    assert how.epsilon(Rates(flat, steep)) == pytest.approx(claim, rel=1e-9)
    rising = math.expm1(claim * cut) / math.expm1(claim)
    assert how.epsilon(Rates(rising, steep)) == pytest.approx(2.0 * claim, rel=1e-6)
    assert how.epsilon(Rates(steep, flat)) == 0.0
    assert how.epsilon(Rates(1.0, steep)) == 0.0


def test_scaled_turns_the_noise_up():
    assert scale_noise(Gaussian(2.0, 1.0), 1.5).scale == 3.0
    assert scale_noise(Exponential(2.0, 1.0), 2.0).exponent == 1.0


def test_a_private_sign_gives_its_epsilon_with_no_run_spent_on_choosing():
    """Kept with chance e^eps / (1 + e^eps); a sign that tells nothing gives 0."""
    for epsilon in (0.1, 1.0, 5.0):
        kept = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        assert Signs().epsilon(Rates(1.0 - kept, kept)) == pytest.approx(epsilon)
    assert Signs().epsilon(Rates(0.6, 0.4)) == 0.0
    assert Signs().attack == (0.0, True, False)
    assert isinstance(error_rates.make_argument("sign", (), 1.0, 0.0, "replace_one"), Signs)
