"""The attack: true mechanisms pass, wrong noise is found, and the verdict notices everything."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.error_rates import make_argument
from dperm_cli.audit.statistical_attack import Finding, ManyTrialsGate
from dperm_cli.core import registry
from dperm_cli.core.errors import PrivacyError
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.adversary import Adversary, linear_pair
from dperm_cli.mechanisms.gradient.noisy_gd import NoisyGd
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.privacy.events import Gaussian
from dperm_cli.views.choose import open_view

DELTA = 1e-5


def bound(adversary, budget, plan=None, runs=20_000, seed=0, checked=True):
    planned = adversary.mechanism.plan(adversary.first.spec(), budget)
    how = make_argument(
        adversary.kind, planned.events, budget.epsilon, budget.delta, budget.relation
    )
    leaf = seed_sequence(seed, "test", budget.relation)
    return statistical_attack.lower_bound(adversary, plan or planned, how, runs, leaf, checked)


# a draw takes them long, and the relations differ in one factor; the quick audit attacks both
LONG = {(name, "add_remove") for name in ("exponential", "regularized_exponential", "noisy_sgd")}
# enough for a bound of 8 where half the noise leaves 10
FEWER = {("exponential", "replace_one"): 5_000, ("regularized_exponential", "replace_one"): 5_000}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("name", "relation"),
    [
        pytest.param(*pair, marks=pytest.mark.slow if pair in LONG else ())
        for pair in product(registry.list_protective(), RELATIONS)
    ],
)
def test_claims_hold_and_half_the_noise_is_noticed(name, relation):
    """False alarm: 1e-4 a bound, with a fixed seed."""
    mechanism = registry.load("mechanism", name)()
    if relation not in mechanism.relations:
        return
    budget = Budget(5.0, DELTA, relation)
    adversary = mechanism.adversary(budget)
    plan = adversary.mechanism.plan(adversary.first.spec(), budget)
    runs = FEWER.get((name, relation), 20_000)
    assert bound(adversary, budget, runs=runs) <= 5.0
    halved = statistical_attack.halve_noise(plan)
    assert halved.noise_scale == plan.noise_scale / 2
    assert bound(adversary, budget, halved, runs, checked=False) > 5.0
    # noise that is not the events' does not pass the gate
    gate = ManyTrialsGate(seed_sequence(0, "test"), 100, (plan.events, relation))
    with pytest.raises(PrivacyError):
        adversary.mechanism.release(open_view(adversary.mechanism, adversary.first), halved, gate)


def test_gaussian_tightness_is_as_predicted():
    """20,000 runs at epsilon 5: within four standard errors of what the runs allow."""
    budget = Budget(5.0, DELTA)
    ideal = statistical_attack.ideal_tightness(5.0, DELTA, 20_000)
    found = bound(NoisyGd().adversary(budget), budget) / 5.0
    assert ideal > 0.85
    assert found == pytest.approx(ideal, abs=0.08)


def test_floor_is_within_reach_at_epsilon_one():
    runs = statistical_attack.RUNS["gaussian"]
    assert statistical_attack.ideal_tightness(1.0, DELTA, runs) > 0.87
    assert statistical_attack.ideal_tightness(30.0, DELTA, runs) > 0.87


def test_threshold_kind_on_randomised_response():
    """Pure epsilon = ln 3 by construction: the bound is just below it."""

    class Response(NoisyGd):
        def release(self, view, plan, gate):
            noise = gate.stream(plan.events[0], 1)
            flip = np.abs(noise.add(np.zeros((gate.trials, 1)), 0)) < 0.31863936 * plan.noise_scale
            sign = np.where(flip, -1.0, 1.0) * float(view.y[0])
            return type("Out", (), {"theta": sign})

    budget = Budget(math.log(3.0), DELTA)
    adversary = Adversary(*linear_pair("replace_one"), Response())
    found = bound(adversary, budget, runs=40_000)
    assert 0.9 * math.log(3.0) < found <= math.log(3.0)


def test_half_the_noise_is_asked_for_where_the_runs_can_show_it():
    """No rates of 50,000 releases show an epsilon of 10; of laws that are known they do."""
    reach = statistical_attack.find_reach(make_argument("threshold", (), 10.0, DELTA, ""), 50_000)
    assert 7.0 < reach < 7.2
    assert reach < statistical_attack.find_reach(make_argument("sign", (), 1.0, 0.0, ""), 500_000)
    known = make_argument("gaussian", (Gaussian(1.0, 1.0),), 10.0, DELTA, "add_remove")
    assert statistical_attack.find_reach(known, 50_000) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [3.0, 10.0])
@pytest.mark.parametrize("name", ["frank_wolfe", "objective_perturbation"])
def test_a_sound_mechanism_is_accused_at_no_epsilon(name, epsilon):
    mechanism = registry.load("mechanism", name)()
    budget = Budget(epsilon, 0.0, "replace_one")
    found = statistical_attack.attack(mechanism.adversary(budget), budget, seed=0)
    assert found.faults == found.weaknesses == ()
    assert found.is_control_required == (epsilon < 7.0)


def test_an_output_that_is_not_finite_is_a_violation():
    budget = Budget(1.0, DELTA)
    adversary = dataclasses.replace(
        NoisyGd().adversary(budget), statistic=lambda theta: np.full(len(theta), np.nan)
    )
    assert bound(adversary, budget, runs=1000) == math.inf


def test_choose_looks_at_both_orders_and_tails():
    rng = np.random.default_rng(0)
    low, high = rng.standard_normal(2000), rng.standard_normal(2000) + 2.0
    how = make_argument("threshold", (), 1.0, 0.0, "replace_one")
    for first, second in ((low, high), (high, low)):
        chosen = statistical_attack.choose(first, second, how)
        assert how.epsilon(statistical_attack.rates_of(first, second, *chosen)) > 1.0


def test_verdict_names_what_is_wrong():
    good = Finding(1.0, DELTA, 0.9, 2.0, 0.8)
    assert good.faults == ()
    assert good.is_control_caught
    assert "above the claim" in dataclasses.replace(good, bound=1.01).faults[0]
    assert "above the claim" in dataclasses.replace(good, bound=math.nan).faults[0]
    assert "half the noise" in dataclasses.replace(good, control=0.9).weaknesses[0]
    assert "half the noise" in dataclasses.replace(good, control=math.nan).weaknesses[0]
    assert "floor" in dataclasses.replace(good, bound=0.7).weaknesses[0]
    half = dataclasses.replace(good, claim=0.49999999, bound=0.4, control=0.3, floor=None)
    assert "half the noise" in half.weaknesses[0]
    assert dataclasses.replace(half, control_from=1.0).weaknesses == ()
    assert dataclasses.replace(good, claim=0.1, bound=0.0, control=0.0, floor=None).weaknesses == ()
    assert good.weaknesses == dataclasses.replace(good, bound=1.01).weaknesses == ()


def test_draws_of_trials_streams_and_seeds_differ():
    gates = [ManyTrialsGate(seed_sequence(seed, "test"), 1000) for seed in (0, 0, 1)]

    def drawn(gate):
        return gate.stream(Gaussian(1.0, 0.5), 1).add(np.zeros((1000, 1)), 0)

    draws = [drawn(gate) for gate in gates]
    assert np.array_equal(draws[0], draws[1])
    every = np.concatenate([draws[0], draws[2], drawn(gates[0])])
    assert len(np.unique(every)) == 3000


def test_adversary_kind_is_checked():
    with pytest.raises(ValueError, match="threshold"):
        Adversary(*linear_pair("replace_one"), NoisyGd(), kind="normal")
