"""Private selection: what its accounting allows, the law of the number of runs, and the gate."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.privacy.accounting import calibrate, gaussian_profile, ledger_totals
from dperm_cli.privacy.accounting.accountant import account, delta_of
from dperm_cli.privacy.accounting.random_stopping import NegativeBinomial, Poisson
from dperm_cli.privacy.events import (
    Approx,
    GammaNorm,
    Gaussian,
    Laplace,
    NegativeBinomialSelection,
    PoissonSelection,
    SampledGaussian,
    SparseAnswers,
)
from dperm_cli.privacy.gate import Gate

REPLACE, REMOVE = "replace_one", "add_remove"
LAWS = {
    "geometric .1": NegativeBinomial(1.0, 0.1),
    "eta 0, gamma .02": NegativeBinomial(0.0, 0.02),
    "geometric 1/3": NegativeBinomial(1.0, 1.0 / 3.0),
    "poisson 10": Poisson(10.0),
    "poisson 3": Poisson(3.0),
}
# the largest base mu that fits (epsilon, delta), computed apart from this code
TABLE = {
    (1.0, 1e-6): (0.11116, 0.13098, 0.13426, 0.12670, 0.17787),
    (0.1, 1e-9): (0.01011, 0.01181, 0.01194, 0.01141, 0.01557),
    (10.0, 1e-6): (1.12085, 1.24276, 1.37483, 1.10731, 1.48605),
}
CELLS = [(law, level) for level in TABLE for law in LAWS]


def one_run(mu):
    return (Gaussian(1.0 / mu, 1.0),)


def select(law, base):
    if isinstance(law, Poisson):
        return PoissonSelection((base,), law.mean)
    return NegativeBinomialSelection((base,), law.eta, law.gamma)


@pytest.mark.parametrize(("name", "level"), CELLS)
def test_the_base_that_fits_a_budget(name, level):
    """The calibrated mu is the one of the table, its events fit the budget, and 1 % more do not."""
    epsilon, delta = level
    law, expected = LAWS[name], TABLE[level][list(LAWS).index(name)]
    mu = calibrate.selection_mu(law, epsilon, delta)
    assert mu == pytest.approx(expected, abs=5.1e-6)
    for factor, fits in ((1.0, True), (1.01, False)):
        event = select(law, one_run(factor * mu))
        found = account((event,), delta=delta, relation=REMOVE).epsilon
        assert (found <= epsilon) == fits
        # the tilt is searched more coarsely for a delta
        assert (delta_of((event,), epsilon=epsilon, relation=REMOVE) <= 1.005 * delta) == fits


def best_of_runs_delta(law, mu, epsilon):
    """delta of a run whose score is its output, by adding up densities: no accounting is below."""
    x = np.linspace(-12.0, 12.0 + mu, 400_001)
    step = x[1] - x[0]

    def density(centre):
        passed = 1.0 - (1.0 - law.gamma) * ndtr(x - centre)
        shape = np.exp(-((x - centre) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
        return law.gamma * shape / passed**2

    first, second = density(mu), density(0.0)
    return max(
        float(np.sum(np.maximum(a - math.exp(epsilon) * b, 0.0)) * step)
        for a, b in ((first, second), (second, first))
    )


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 0.21374), (10.0, 1.72540)])
def test_no_accounting_may_allow_more_than_the_best_of_runs_spends(epsilon, most):
    law = LAWS["geometric .1"]
    bound = brentq(lambda mu: best_of_runs_delta(law, mu, epsilon) - 1e-6, 0.05, 2.0, xtol=1e-7)
    assert bound == pytest.approx(most, abs=2e-5)
    assert calibrate.selection_mu(law, epsilon, 1e-6) < bound


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.1, 0.5])
def test_the_certified_delta_is_above_the_one_of_an_example(mu, epsilon):
    law = LAWS["geometric .1"]
    claimed = delta_of((select(law, one_run(mu)),), epsilon=epsilon, relation=REMOVE)
    assert claimed >= best_of_runs_delta(law, mu, epsilon)


@pytest.mark.parametrize("level", list(TABLE))
def test_dp_accounting_finds_the_same(level):
    events = pytest.importorskip("dp_accounting.dp_event")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = [1.0 + x for x in np.geomspace(0.05, 3000.0, 300)]
    epsilon, delta = level
    for law in LAWS.values():
        mu = calibrate.selection_mu(law, epsilon, delta)
        shape = math.inf if isinstance(law, Poisson) else law.eta
        one = events.GaussianDpEvent(1.0 / mu)
        peer = rdp.RdpAccountant(orders)
        peer.compose(events.RepeatAndSelectDpEvent(one, law.expected_runs, shape))
        found = peer.get_epsilon(delta)
        assert found >= 0.9999 * epsilon
        # of a Poisson number the library knows a run's profile by its Renyi bound alone
        assert found <= (1.3 if isinstance(law, Poisson) else 1.002) * epsilon


def test_of_pure_runs_a_selection_is_two_and_eta_times_as_much():
    """Whatever gamma is; exactly, not by a bound at some delta."""
    base = (Laplace(8.0, 0.5), GammaNorm(8.0, 0.5))
    for eta, gamma in ((1.0, 0.1), (0.0, 0.02), (-0.5, 0.01), (1.0, 0.9)):
        event = NegativeBinomialSelection([base], eta, gamma)
        assert event.kind() == "pure"
        for relation, one in ((REPLACE, 0.25), (REMOVE, 0.125)):
            found = account((event,), delta=0.0, relation=relation).epsilon
            assert found == pytest.approx((2.0 + eta) * one, rel=1e-12)
            assert found >= (2.0 + eta) * one


def two_sided_runs(epsilon, law, likely=1e-4):
    """The largest log ratio for runs with three outcomes, the rarest of the best score.

    It is the pair of laws that reaches (2 + eta) epsilon: the second outcome is as much likelier
    as the first, which hides it, is rarer.
    """

    def chance(high, low):
        def below(rest):  # the generating function of the number of runs
            q = 1.0 - law.gamma
            return ((1.0 - q * rest) ** -law.eta - 1.0) / (law.gamma**-law.eta - 1.0)

        return below(1.0 - high) - below(1.0 - high - low)

    rise = math.exp(epsilon)
    low = likely * 1e-6
    return math.log(chance(likely, low * rise) / chance(likely * rise, low))


def test_the_pure_bound_is_reached():
    law = NegativeBinomial(1.0, 1e-9)
    assert 0.99 * 3.0 < two_sided_runs(1.0, law) <= 3.0
    assert NegativeBinomial(1.0, 1e-9).pure_epsilon(1.0) >= two_sided_runs(1.0, law)


@pytest.mark.parametrize("name", list(LAWS))
def test_the_number_of_runs_has_its_law(name):
    law = LAWS[name]
    uniforms = (np.arange(40_000) + 0.5) / 40_000
    numbers = np.array([law.find_number(float(one)) for one in uniforms])
    assert numbers.mean() == pytest.approx(law.expected_runs, rel=1e-3)
    assert numbers.min() == (0 if isinstance(law, Poisson) else 1)
    if isinstance(law, Poisson):
        assert np.mean(numbers == 0) == pytest.approx(math.exp(-law.mean), abs=5e-5)
    else:
        assert np.mean(numbers == 2) / np.mean(numbers == 1) == pytest.approx(
            (1.0 - law.gamma) * (1.0 + law.eta) / 2.0, rel=1e-3
        )
    assert law.find_number(1.0 - 2.0**-53) < 2000


def test_a_selection_stands_beside_other_events():
    """With Gaussian releases its Renyi bounds add up; a black box takes its delta."""
    event = select(LAWS["poisson 3"], one_run(0.1))
    alone = account((event,), delta=1e-6, relation=REMOVE).epsilon
    both = account((event, Gaussian(10.0, 1.0)), delta=1e-6, relation=REMOVE).epsilon
    gaussian = account((Gaussian(10.0, 1.0),), delta=1e-6, relation=REMOVE).epsilon
    assert max(alone, gaussian) < both < alone + gaussian
    held = account((event, Approx(0.0, 5e-7)), delta=1.5e-6, relation=REPLACE).epsilon
    assert held == pytest.approx(account((event,), delta=1e-6, relation=REPLACE).epsilon, rel=1e-4)
    assert account((event,), delta=0.0, relation=REPLACE).epsilon == math.inf
    assert account((event.repeat(2),), delta=1e-6, relation=REMOVE).epsilon > alone


@pytest.mark.parametrize(
    "base",
    [
        (SampledGaussian(8.0, 1.0, 2, 80, "poisson"),),
        (Approx(0.1, 1e-8),),
    ],
)
def test_runs_without_a_bound_are_unsupported(base):
    with pytest.raises(Unsupported, match="Gaussian and pure steps"):
        account((PoissonSelection([base], 3.0),), delta=1e-6, relation=REPLACE)


def test_pure_steps_beside_gaussian_ones_count_as_the_gaussian_that_dominates_them():
    """e = .25: mu = 2 Phi^-1(1 / (1 + e^-.25)) = .312585; the Gaussian's profile is above."""
    mu = gaussian_profile.mu_of_pure(0.25)
    assert mu == pytest.approx(2.0 * ndtri(1.0 / (1.0 + math.exp(-0.25))), rel=1e-11)
    for epsilon in (0.0, 0.1, 0.2, 0.24):
        pure = (math.exp(0.25) - math.exp(epsilon)) / (1.0 + math.exp(0.25))
        assert gaussian_profile.delta(epsilon, mu) >= pure * (1.0 - 1e-12)
    both = PoissonSelection([[Gaussian(10.0, 1.0), Laplace(8.0, 1.0)]], 3.0).loss(REPLACE)
    assert both.selection.mu == pytest.approx(math.hypot(0.2, mu))
    assert gaussian_profile.mu_of_pure(800.0) < math.inf
    for level in (1e-3, 0.25, 5.0):
        found = gaussian_profile.pure_of_mu(gaussian_profile.mu_of_pure(level))
        assert found == pytest.approx(level, rel=1e-9)


def test_a_poisson_number_of_pure_runs_is_unsupported():
    with pytest.raises(Unsupported, match="no pure guarantee"):
        account((PoissonSelection([[Laplace(8.0, 1.0)]], 3.0),), delta=0.0, relation=REPLACE)
    pure = NegativeBinomialSelection([[SparseAnswers(80.0, 3.0, 900.0, 3, 40)]], 1.0, 0.5)
    assert account((pure,), delta=0.0, relation=REMOVE).epsilon == pytest.approx(3 * 40 * 3 / 80)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PoissonSelection((), 3.0),
        lambda: PoissonSelection([[Laplace(1.0, 1.0)]], 0.0),
        lambda: PoissonSelection([[Laplace(1.0, 1.0)]], math.nan),
        lambda: PoissonSelection([[PoissonSelection([[Laplace(1.0, 1.0)]], 3.0)]], 3.0),
        lambda: PoissonSelection([[{"event": "Gauss"}]], 3.0),
        lambda: PoissonSelection([Laplace(1.0, 1.0)], 3.0),
        lambda: PoissonSelection([[]], 3.0),
        lambda: NegativeBinomialSelection([[Laplace(1.0, 1.0)]], -1.0, 0.5),
        lambda: NegativeBinomialSelection([[Laplace(1.0, 1.0)]], 1.0, 1.0),
        lambda: NegativeBinomialSelection([[Laplace(1.0, 1.0)]], 1.0, 1e-9),
    ],
)
def test_events_that_are_none_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_record_holds_the_events_of_a_run():
    event = select(LAWS["poisson 3"], (Gaussian(8.0, 0.5, 3), Gaussian(9.0, 1.0)))
    text = json.dumps(ledger_totals.to_dict(event))
    assert ledger_totals.rebuild_event(json.loads(text)) == event
    assert "Poisson of mean 3" in event.words(REPLACE)
    assert "3 x a sum over all records" in event.words(REPLACE)


class TestGate:
    def open(self, event, trials=3):
        seeds = [seed_sequence(0, "selection", trial) for trial in range(trials)]
        return Gate(seeds, plan=((event,), REPLACE)).stream(event, 2)

    def test_a_run_spends_its_own_events_and_no_more_runs_than_were_drawn(self):
        event = select(LAWS["geometric 1/3"], one_run(1.0))
        stream = self.open(event, 20)
        most = int(stream.numbers.max())
        for run in range(most):
            ((candidate, trials, gate),) = stream.open_runs(run)
            assert candidate == 0
            np.testing.assert_array_equal(trials, np.flatnonzero(stream.numbers > run))
            gate.stream(event.candidates[0][0], 2).add(np.zeros((len(trials), 2)), 0)
            with pytest.raises(PrivacyError, match="no event of the plan"):
                gate.stream(event.candidates[0][0], 2)
        for run in (most, 0):
            with pytest.raises(PrivacyError, match=r"stream of|second time"):
                stream.open_runs(run)

    def test_runs_and_trials_share_no_noise_and_are_the_same_again(self):
        event = select(LAWS["poisson 10"], one_run(1.0))

        def draw(trials):
            stream, found = self.open(event, trials), {}
            for run in range(int(stream.numbers.max())):
                for _, who, gate in stream.open_runs(run):
                    drawn = gate.stream(event.candidates[0][0], 2).add(np.zeros((len(who), 2)), 0)
                    found |= {(int(who[i]), run): drawn[i] for i in range(len(who))}
            return found

        few, many = draw(2), draw(5)
        values = np.concatenate(list(many.values()))
        assert len(np.unique(values)) == values.size
        assert all(np.array_equal(few[key], many[key]) for key in few)
        assert {trial for trial, _ in few} == {0, 1}

    def test_every_candidate_is_as_likely_and_spends_its_own_events(self):
        """10 runs are expected of each of 400 trials; 5 standard deviations are allowed."""
        mus = (1.0, 0.5, 0.25, 0.125)
        event = PoissonSelection([one_run(mu) for mu in mus], 10.0)
        stream, counts = self.open(event, 400), np.zeros(4)
        for run in range(int(stream.numbers.max())):
            for candidate, trials, opened in stream.open_runs(run):
                counts[candidate] += len(trials)
                gate = opened
        assert np.all(np.abs(counts - 1000.0) < 5.0 * math.sqrt(1000.0))
        with pytest.raises(PrivacyError, match="no event of the plan"):
            gate.stream(Gaussian(1.0 / mus[candidate - 1], 1.0), 2)

    def test_the_dearest_candidate_counts(self):
        both = PoissonSelection([one_run(0.05), one_run(0.1)], 3.0)
        assert both.loss(REMOVE) == PoissonSelection([one_run(0.1)], 3.0).loss(REMOVE)
        pure = [[Laplace(8.0, 0.5)], [Laplace(8.0, 0.5), Laplace(8.0, 0.5)]]
        found = account((NegativeBinomialSelection(pure, 1.0, 0.5),), delta=0.0, relation=REMOVE)
        assert found.epsilon == pytest.approx(0.375)
