"""The noise that reaches an output has the law the plan says, and a wrong scale is noticed.

Each test accepts a true law except with probability 1e-6 (its level), and each is run once more on
the same draws scaled by 1.05, which it must reject: at 50,000 draws a 5 % error of the scale lies
15 standard errors of the variance away. A Kolmogorov-Smirnov test alone needs 200,000 draws for
that: the distance is 0.012 for a normal and 0.009 for a Laplace law, and the limit then 0.006.

Secure noise is made here of the words of a seeded generator, so that its tests repeat.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit.replay import replace_record
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.mechanisms.gradient.noisy_sgd import NoisySgd
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian, Laplace
from dperm_cli.privacy.gate import Gate
from dperm_cli.privacy.secure_grid import grid_for, put_on_grid
from dperm_cli.views.central import CentralView
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
        problem = replace_record(problem, index, np.zeros(P), 1.0)
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
    stream = gate.stream(Gaussian(7.0, 0.5, 3), P)
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
    one, two = (gate.stream(Gaussian(1.0, 0.5, 2), P) for _ in range(2))
    columns = np.hstack([one.add(zero, 0), one.add(zero, 1), two.add(zero, 0)])
    correlation = np.corrcoef(columns.T)[np.triu_indices(3 * P, 1)]
    limit = stats.norm.isf(LEVEL / 2 / correlation.size) / np.sqrt(TRIALS)
    assert np.max(np.abs(correlation)) < limit
    # neighbouring trials, which have neighbouring names in the seed tree
    lagged = np.corrcoef(columns[:-1, 0], columns[1:, 0])[0, 1]
    assert abs(lagged) < limit
    again = one.add(zero, 0)
    assert abs(np.corrcoef(columns[:, 0], again[:, 0])[0, 1]) > limit


# --- every kind of noise that the gate hands out -------------------------------------------------

CHAINS, SCALE, SENSITIVITY = 500, 7.0, 2.0
LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}
KINDS = {"gaussian": Gaussian, "laplace": Laplace, "gamma_norm": GammaNorm}


def seeded(kind, dim, count):
    """Draws of a seeded stream in units of its scale, [CHAINS * count, dim]."""
    event = KINDS[kind](SCALE, SENSITIVITY / 2, count)
    return _drawn(Gate(seeds(CHAINS, start=1000)), event, dim)


def secure(kind, dim, count):
    """Draws of a secure stream, the same way; the grid is 2^-30 of the scale or finer."""
    event = KINDS[kind](SCALE, SENSITIVITY / 2, count)
    grid = grid_for([event], 100.0)
    event = put_on_grid(event, dim, grid, "replace_one")
    rng = np.random.default_rng(12)

    def words(number):
        return rng.integers(0, 2**64, number, dtype=np.uint64)

    gate = Gate.secure(CHAINS, grid, ([event], "replace_one"), source=words)
    return _drawn(gate, event, dim)


def _drawn(gate, event, dim):
    stream, zero = gate.stream(event, dim), np.zeros((CHAINS, dim))
    return np.vstack([stream.add(zero, step) for step in range(event.count)]) / event.scale


def ks(sample, law):
    return stats.kstest(np.ravel(sample), law.cdf).pvalue


def spread(sample, law):
    """Two-sided p-value of the sample's second moment, by its normal limit.

    For the normal law that is the chi-square test of the variance.
    """
    square, fourth = law.moment(2), law.moment(4)
    score = (np.mean(np.square(sample)) - square) / np.sqrt((fourth - square**2) / sample.size)
    return 2.0 * stats.norm.sf(abs(score))


def holds(test, sample, *facts, wrong):
    """The test accepts the sample at LEVEL and rejects each of the wrong ones."""
    assert test(sample, *facts) > LEVEL
    for other in wrong:
        assert test(other, *facts) < LEVEL


@pytest.mark.parametrize("source", [seeded, secure])
@pytest.mark.parametrize("kind", LAWS)
def test_independent_noise_has_its_law(kind, source):
    sample, law = source(kind, 4, 100), LAWS[kind]
    for test in (ks, spread):
        holds(test, sample, law, wrong=(1.05 * sample, sample / 1.05))
    holds(ks, sample, law, wrong=(np.abs(sample), sample + 0.04))
    # at 50,000 draws as well, scale and all
    part = sample[:12_500]
    assert ks(part, law) > LEVEL
    assert spread(1.05 * part, law) < LEVEL


@pytest.mark.parametrize("source", [seeded, secure])
@pytest.mark.parametrize("kind", LAWS)
def test_coordinates_trials_and_steps_are_uncorrelated(kind, source):
    """Of values and of sizes, all pairs; one coordinate mixed into another by 3 % is rejected."""
    sample = source(kind, 3, 200)  # steps of CHAINS rows each
    lagged = [sample[:-1], sample[1:]], [sample[:-CHAINS], sample[CHAINS:]]

    def worst(a, b, change=lambda v: v):
        scores = [
            np.corrcoef(change(a[:, i]), change(b[:, j]))[0, 1] * np.sqrt(len(a))
            for i in range(3)
            for j in range(3)
            if a is not b or i < j
        ]
        return np.max(np.abs(scores))

    limit = stats.norm.isf(LEVEL / 2 / 42)
    for a, b in ((sample, sample), *lagged):
        assert worst(a, b) < limit
        assert worst(a, b, np.abs) < limit
    mixed = sample + 0.03 * sample[:, [1, 2, 0]]
    assert worst(mixed, mixed) > limit


@pytest.mark.parametrize(
    ("p", "source"), [(1, seeded), (2, seeded), (20, seeded), (1, secure), (3, secure)]
)
def test_gamma_norm_has_its_radius(p, source):
    """|b| / scale is Gamma(p): KS, and the chi-square-like test of its second moment."""
    radius = np.linalg.norm(source("gamma_norm", p, 400), axis=1)
    assert radius.size == 200_000
    for test in (ks, spread):
        holds(test, radius, stats.gamma(p), wrong=(1.05 * radius, radius / 1.05))
    assert ks(radius, stats.gamma(p + 1)) < LEVEL
    assert ks(radius[:50_000], stats.gamma(p)) > LEVEL


def direction(sample, bins=64):
    """Least p-value, times their number, of chi-square tests of a uniform direction.

    Of the angle in the planes of the first, the middle and the last pair of axes, and of the share
    of the first axis in the square, which is Beta(1/2, (p - 1) / 2).
    """
    p = sample.shape[1]
    if p == 1:
        count = int(np.sum(sample > 0))
        return stats.binomtest(count, len(sample)).pvalue
    chances = []
    for i in {0, p // 2 - 1, p - 2}:
        angle = np.arctan2(sample[:, i + 1], sample[:, i])
        counts = np.histogram(angle, bins=bins, range=(-np.pi, np.pi))[0]
        chances.append(stats.chisquare(counts).pvalue)
    share = sample[:, 0] ** 2 / np.sum(sample**2, axis=1)
    mass = stats.beta(0.5, (p - 1) / 2).cdf(share)
    chances.append(stats.chisquare(np.histogram(mass, bins=bins, range=(0, 1))[0]).pvalue)
    return min(1.0, len(chances) * min(chances))


@pytest.mark.parametrize(("p", "source"), [(1, seeded), (2, seeded), (20, seeded), (3, secure)])
def test_gamma_norm_has_a_uniform_direction(p, source):
    """An axis stretched by 1.05 is rejected (one axis: a sign of chance 0.525)."""
    sample = source("gamma_norm", p, 400)
    if p == 1:
        wrong = np.where(np.random.default_rng(0).random((len(sample), 1)) < 0.05, 1.0, sample)
    else:
        wrong = sample * np.r_[1.05, np.ones(p - 1)]
    holds(direction, sample, wrong=(wrong, np.abs(sample)))


@pytest.mark.parametrize(("p", "source"), [(2, seeded), (20, seeded), (4, secure)])
def test_radius_and_direction_of_gamma_norm_are_independent(p, source):
    """Correlation of |b| with the first axis's share and sign; a share that grows is rejected."""
    sample = source("gamma_norm", p, 200)

    def test(b):
        radius = np.linalg.norm(b, axis=1)
        scores = [
            np.corrcoef(radius, other)[0, 1] * np.sqrt(len(b))
            for other in (b[:, 0] ** 2 / radius**2, b[:, 0] / radius, np.sign(b[:, -1]))
        ]
        return min(1.0, 3 * 2.0 * stats.norm.sf(np.max(np.abs(scores))))

    radius = np.linalg.norm(sample, axis=1)
    stretched = sample.copy()
    stretched[:, 0] *= 1.0 + 0.05 * (radius > p)
    holds(test, sample, wrong=(stretched,))
