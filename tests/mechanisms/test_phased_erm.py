"""Minimisation in phases: what it costs, its recursion, its bound on the population risk."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.bounds.all_bounds import choose_best_bounds
from dperm_cli.bounds.base import Setting
from dperm_cli.bounds.fkt20 import PhaseFacts
from dperm_cli.core.errors import Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.datasets.lower_bounds.djw12_corners import Djw12Corners
from dperm_cli.losses.linear import Linear
from dperm_cli.mechanisms.perturbation.phased_erm import PhasedErm, list_phases, split_records
from dperm_cli.privacy.accounting import calibrate
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import Problem, bare_spec
from dperm_cli.sets import make_ball
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)
MU = 0.23670438066343172  # of (1, 1e-6)
HALVES = [500, 250, 125, 62, 31, 15, 7, 3, 1]


def released(mechanism, problem, budget=BUDGET, trials=1, seed=3):
    plan = mechanism.plan(problem.spec(), budget)
    seeds = [seed_sequence(seed, "test", trial) for trial in range(trials)]
    gate = Gate(seeds, plan=(plan.events, budget.relation))
    return plan, mechanism.release(CentralView(problem), plan, gate).theta


def test_the_worked_example_of_the_proof_page():
    facts = PhaseFacts(1.0, 1.0, 2.0, 2.0 * math.sqrt(8.0) / MU, 0.0)
    assert calibrate.gaussian_scale(1.0, 1e-6, 2.0) == pytest.approx(8.44936, abs=5e-5)
    eta = facts.find_best_step(HALVES)
    assert eta == pytest.approx(0.036718, abs=5e-7)
    assert facts.add_up(eta, HALVES) == pytest.approx(0.217875, abs=5e-7)
    three = HALVES[:3]
    assert facts.add_up(facts.find_best_step(three), three) == pytest.approx(0.209497, abs=5e-7)
    for other in (0.9 * eta, 1.1 * eta):
        assert facts.add_up(other, HALVES) > facts.add_up(eta, HALVES)


def test_the_bound_is_at_most_its_closed_form():
    """4 R^2 / (eta n) + L^2 eta (2/3 + 16 p / (mu^2 n) + 8 sqrt(p) / (mu n^2)), n a power of 2."""
    for n, p, mu in ((1024, 8, 0.2), (4096, 100, 1.0)):
        k = int(math.log2(n))
        sizes = [n // 2**i for i in range(1, k + 1)]
        facts = PhaseFacts(1.5, 2.0, 4.0, 4.0 * math.sqrt(p) / mu, 0.0)
        for eta in (0.01, 0.1):
            whole = 2.0 / 3.0 + 16.0 * p / (mu**2 * n) + 8.0 * math.sqrt(p) / (mu * n**2)
            closed = 4.0 * 1.5**2 / (eta * n) + 4.0 * eta * whole
            assert facts.add_up(eta, sizes) <= closed
            assert facts.add_up(eta, sizes) >= 0.9 * closed


@pytest.mark.parametrize("phases", ["auto", 1, 4])
def test_all_phases_cost_one_release(phases):
    spec = small_problem("logistic", n=64).spec()
    mechanism = PhasedErm("gaussian", phases=phases)
    plan = mechanism.plan(spec, BUDGET)
    expected = calibrate.gaussian_scale(1.0, 1e-6, 1.001 * spec.gradient_gap)
    assert plan.noise_scale == pytest.approx(expected, rel=1e-5)
    pure = PhasedErm(phases=phases).plan(spec, Budget(1.0, 0.0))
    assert pure.noise_scale == pytest.approx(1.001 * spec.gradient_gap, rel=1e-5)
    assert pure.guarantee.kind == "pure"
    assert plan.steps == plan.settings["phases"] == len(plan.settings["sizes"])


@pytest.mark.parametrize("n", [1, 2, 3, 10, 999, 1000])
def test_every_record_is_in_one_part(n):
    for phases in range(1, max(1, int(math.log2(n))) + 1):
        parts = split_records(n, phases)
        assert len(parts) == phases
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))
        assert all(len(part) >= max(1, n // 2**i) for i, part in enumerate(parts, start=1))


def test_replay_finds_the_sensitivity_and_no_more():
    """Opposite gradients of one record in one phase: nearly the claim, and never beyond."""
    for phases in (1, 3):
        problem = small_problem("linear", n=9, p=1)
        mechanism = PhasedErm("gaussian", phases=phases, eta=0.01)
        plan = mechanism.plan(problem.spec(), BUDGET)
        for record in range(9):
            first = replace_record(problem, record, np.array([1.0]), 1.0)
            second = replace_record(problem, record, np.array([-1.0]), 1.0)
            found = replay(mechanism, plan, first, second)
            assert found.private, found.faults
            assert 0.99 < found.worst <= 1.0
            assert found.calls == phases


def test_the_recursion_without_noise_is_that_of_the_paper():
    """Against exact minimisers of a linear loss: one step against the part's mean gradient."""
    problem = small_problem("linear", n=40, p=3)
    loose = Budget(1e9, 1e-6)
    mechanism = PhasedErm("gaussian", phases=3, eta=0.2)
    _, theta = released(mechanism, problem, loose)
    at = problem.constraint.centre()
    parts = split_records(40, 3)
    phases = list_phases(problem.spec(), [len(part) for part in parts], 0.2)
    for part, phase in zip(parts, phases, strict=True):
        slope = problem.loss.gradient(at[None, :], problem.data.take(part))[0]
        at = problem.constraint.project(at - phase.step * slope)
    np.testing.assert_allclose(theta[0], at, atol=2e-3)


@pytest.mark.parametrize("signal", [4.0, 16.0])
def test_the_population_risk_is_within_the_bound(signal):
    """A linear loss, whose risk is known; mean over 40 releases, each on records of its own."""
    body, risks = make_ball(1.0, 8), []
    for seed in range(40):
        made = Djw12Corners(n=1000, p=8, corners="cross", signal=signal, seed=seed)
        problem = Problem(made.load(), Linear(), body)
        plan, theta = released(PhasedErm("gaussian"), problem, seed=seed)
        risks.append(made.excess(Linear(), theta[0], body))
    bound = PhasedErm("gaussian").predict_risk(problem.spec(), plan)
    assert bound < 0.22
    at = Setting(
        problem.spec(), BUDGET, "approx", "phased_erm", plan.noise_scale, plan.steps, plan.settings
    )
    assert choose_best_bounds(at)["population_bound_upper"] == pytest.approx(bound)
    assert np.mean(risks) <= bound


def test_refusals():
    spec = small_problem("logistic").spec()
    with pytest.raises(Unsupported, match="add_remove"):
        PhasedErm().plan(spec, dataclasses.replace(BUDGET, relation="add_remove"))
    with pytest.raises(Unsupported, match="kinks"):
        PhasedErm().plan(small_problem("hinge").spec(), BUDGET)
    with pytest.raises(Unsupported, match="at most"):
        PhasedErm(phases=30).plan(spec, BUDGET)
    far = bare_spec(1000, 1.0, make_ball(1e12, 5), smoothness=0.25)
    with pytest.raises(Unsupported, match="smaller set"):
        PhasedErm(eta=1e30).plan(far, BUDGET)
