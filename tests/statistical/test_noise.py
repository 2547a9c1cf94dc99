"""The noise that reaches an output has the law the plan says, and a wrong scale is noticed.

Each test accepts a true law except with probability 1e-6 (its level), and each is run once more on
the same draws scaled by 1.05, which it must reject: at 50,000 draws a 5 % error of the scale lies
15 standard errors of the variance away.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit.replay import neighbour
from dperm_cli.core.rng import seed_sequence
from dperm_cli.mechanisms._views import CentralView
from dperm_cli.mechanisms.noisy_gd import NoisyGd
from dperm_cli.mechanisms.noisy_sgd import NoisySgd
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.noise import Gate
from tests.conftest import small_problem

pytestmark = pytest.mark.stat
LEVEL = 1e-6
TRIALS, P = 25_000, 2


def seeds(count, start=0):
    return [seed_sequence(11, "stat", start + k) for k in range(count)]


def silent_problem(**options):
    """Records without features: gradients vanish, and only noise is left."""
    problem = small_problem(n=4, p=P, radius=1.0, **options)
    for index in range(4):
        problem = neighbour(problem, index, np.zeros(P), 1.0)
    return problem


def is_normal(draws, scale):
    """KS at LEVEL/2 and a two-sided chi-square test of the variance at LEVEL/2."""
    draws = np.ravel(draws)
    ks = stats.kstest(draws, stats.norm(scale=scale).cdf).pvalue
    square = float(np.sum((draws / scale) ** 2))
    tail = min(stats.chi2.cdf(square, draws.size), stats.chi2.sf(square, draws.size))
    return ks > LEVEL / 2 and 2 * tail > LEVEL / 2


def holds_and_has_power(draws, scale):
    assert is_normal(draws, scale)
    assert not is_normal(1.05 * draws, scale)
    assert not is_normal(draws / 1.05, scale)


def test_gate_adds_the_scale_it_was_given():
    gate = Gate(seeds(TRIALS))
    stream = gate.gaussian(dim=P, count=3, scale=7.0, sensitivity=1.0)
    holds_and_has_power(stream.add(np.full((TRIALS, P), 2.0), 1) - 2.0, 7.0)


def test_noisy_sgd_adds_sigma_in_the_compiled_loop():
    # one step of the strongly convex rate, so small that the projection never acts
    problem = silent_problem(ridge=1e6)
    plan = NoisySgd(steps=1).plan(problem.spec(), Budget(1.0, 1e-5))
    theta = NoisySgd(steps=1).release(CentralView(problem), plan, Gate(seeds(TRIALS))).theta
    holds_and_has_power(theta / plan.settings["eta0"], plan.noise_scale)


def test_noisy_gd_adds_sigma():
    problem = silent_problem()
    mechanism = NoisyGd(steps=1, step_size=1e-6, momentum=0.0, averaging="last")
    plan = mechanism.plan(problem.spec(), Budget(1.0, 1e-5))
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds(TRIALS))).theta
    holds_and_has_power(theta / 1e-6, plan.noise_scale)


def test_steps_streams_and_trials_are_uncorrelated():
    """Level 1e-6 over all pairs; a shared key (correlation 1) is rejected."""
    gate = Gate(seeds(TRIALS))
    zero = np.zeros((TRIALS, P))
    one = gate.gaussian(dim=P, count=2, scale=1.0, sensitivity=1.0)
    two = gate.gaussian(dim=P, count=2, scale=1.0, sensitivity=1.0)
    columns = np.hstack([one.add(zero, 0), one.add(zero, 1), two.add(zero, 0)])
    correlation = np.corrcoef(columns.T)[np.triu_indices(3 * P, 1)]
    limit = stats.norm.isf(LEVEL / 2 / correlation.size) / np.sqrt(TRIALS)
    assert np.max(np.abs(correlation)) < limit
    # neighbouring trials, which have neighbouring names in the seed tree
    lagged = np.corrcoef(columns[:-1, 0], columns[1:, 0])[0, 1]
    assert abs(lagged) < limit
    again = one.add(zero, 0)
    assert abs(np.corrcoef(columns[:, 0], again[:, 0])[0, 1]) > limit
