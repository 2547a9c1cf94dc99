"""What is particular to output_perturbation [BST14, Alg. 3, App. B]."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dperm_cli.audit import statistical_attack
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.perturbation.output_perturbation import OutputPerturbation
from dperm_cli.mechanisms.shared import noisy_minimiser
from dperm_cli.privacy.accounting import gaussian_profile
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import GammaNorm, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.sets.l2_ball import L2Ball
from dperm_cli.solvers.optimum import negligible, solve
from dperm_cli.views import central
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

PURE, APPROX = Budget(0.5, 0.0), Budget(1.0, 1e-6)


def vector_spec(relation="replace_one", p=10):
    return bare_spec(1000, 1.0, L2Ball(1.0, p), regulariser=Regulariser(0.1))


@pytest.mark.parametrize(("budget", "scale"), [(PURE, 0.04), (APPROX, 0.0844936)])
def test_noise_scales_at_known_values(budget, scale):
    """2 L / (n Delta eps) and S / mu, but for what an inexact minimiser costs."""
    law = "gaussian" if budget.delta else "gamma"
    plan = OutputPerturbation(law).plan(vector_spec(), budget)
    inflated = 1.0 + plan.settings["inflation"]
    assert plan.noise_scale / inflated == pytest.approx(scale, rel=2e-6)
    assert 1.0 < inflated < 1.003
    kind = GammaNorm if budget.delta == 0 else Gaussian
    assert [type(event) for event in plan.events] == [kind]
    assert plan.guarantee.kind == ("pure" if budget.delta == 0 else "approx")


def test_add_remove_halves_the_noise():
    plans = [
        OutputPerturbation().plan(vector_spec(), Budget(1.0, 1e-6, relation))
        for relation in ("replace_one", "add_remove")
    ]
    assert plans[0].noise_scale / plans[1].noise_scale == pytest.approx(2.0, rel=2e-3)


def test_the_smaller_gradient_gap_is_used():
    spec = small_problem(ridge=0.1).spec()
    (event,) = OutputPerturbation().plan(spec, APPROX).events
    assert spec.gradient_gap < 2.0 * spec.lipschitz
    stable = noisy_minimiser.stability(spec)
    assert event.sensitivity("replace_one") == stable.gap
    assert stable.gap - 2.0 * stable.error == pytest.approx(spec.gradient_gap / (40 * 0.1))


def test_the_printed_gaussian_noise_is_not_private():
    """[BST14, App. B]: sigma0 = S sqrt(ln(1/delta)) / eps has delta 1.06e-5 at (1, 1e-6)."""
    mu = 1.0 / math.sqrt(math.log(1e6))
    assert gaussian_profile.delta(1.0, mu) == pytest.approx(1.063e-5, rel=1e-3)
    plan = OutputPerturbation("gaussian").plan(vector_spec(), APPROX)
    moves = plan.events[0].sensitivity("replace_one")
    assert plan.noise_scale / moves == pytest.approx(4.22468, rel=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "l2_median"])
def test_minimisers_of_neighbours_are_as_near_as_is_claimed(loss):
    """100 pairs, the minimisers to the planned gap; and the gap is what was asked for."""
    problem = small_problem(loss=loss, n=5, ridge=1.0)
    stable, rng = noisy_minimiser.stability(problem.spec()), np.random.default_rng(0)
    found, worst = CentralView(problem).minimiser(stable.certificate), 0.0
    for _ in range(25):
        row = rng.standard_normal(3)
        row, target = row / np.linalg.norm(row), float(rng.choice([-1.0, 1.0]))
        target = 0.0 if loss == "l2_median" else target
        other = replace_record(problem, int(rng.integers(5)), row, target)
        moved = CentralView(other).minimiser(stable.certificate)
        worst = max(worst, float(np.linalg.norm(moved - found)))
    assert 0.2 * stable.gap < worst <= stable.gap


def test_the_gap_asked_for_can_be_proved():
    for loss in ("logistic", "hinge", "squared", "l1_median"):
        problem = small_problem(loss=loss, ridge=0.01)
        best = solve(problem)
        asked = noisy_minimiser.provable_gap(problem.spec())
        assert negligible(problem, best.theta, best.dual) <= 0.5 * asked


def test_a_minimiser_that_is_not_found_is_not_released(monkeypatch):
    monkeypatch.setattr(central, "_SECONDS", (0.01, 0.01))
    with pytest.raises(PrivacyError, match="not a private outcome"):
        CentralView(small_problem(ridge=0.1)).minimiser(1e-20)


def test_refusals():
    with pytest.raises(Unsupported, match="set ridge"):
        OutputPerturbation().plan(small_problem().spec(), APPROX)
    with pytest.raises(Unsupported, match="delta > 0"):
        OutputPerturbation(noise="gaussian").plan(vector_spec(), PURE)
    assert OutputPerturbation(noise="gamma").plan(vector_spec(), APPROX).noise_scale < 0.021


def test_noise_has_its_law():
    """Norms are Gamma(p, scale); 0.95 of it is noticed (false alarms: 1e-4)."""
    problem = small_problem(n=5, p=4, radius=1e4, ridge=1.0)
    mechanism = OutputPerturbation(inflation=0.01)
    plan = mechanism.plan(problem.spec(), PURE)
    seeds = [seed_sequence(1, "law", trial) for trial in range(20_000)]
    theta = mechanism.release(CentralView(problem), plan, Gate(seeds)).theta
    found = CentralView(problem).minimiser(plan.settings["minimiser_gap"])
    norms = np.linalg.norm(theta - found, axis=1) / plan.noise_scale
    assert stats.kstest(norms, stats.gamma(4).cdf).pvalue > 1e-4
    assert stats.kstest(0.95 * norms, stats.gamma(4).cdf).pvalue < 1e-4


@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(1.0, 0.0, "add_remove")])
def test_pure_replay(budget):
    adversary = OutputPerturbation().adversary(budget)
    plan = adversary.mechanism.plan(adversary.first.spec(), budget)
    found = replay(adversary.mechanism, plan, adversary.first, adversary.second)
    assert found.private
    assert found.worst > 0.99


@pytest.mark.stat
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, pytest.param(1e-5, marks=pytest.mark.slow)])
def test_audit_reaches_the_floor(relation, delta):
    """Tightness 0.85 (Gamma) and 0.80 (Gaussian); half the noise is noticed (error 1e-4)."""
    budget = Budget(1.0, delta, relation)
    adversary = OutputPerturbation().adversary(budget)
    found = statistical_attack.attack(adversary, budget)
    assert found.faults == ()
    assert found.floor == (0.85 if delta == 0.0 else 0.8)
