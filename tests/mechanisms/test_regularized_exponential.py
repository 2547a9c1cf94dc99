"""The regularised exponential mechanism: its exponent, its profile by quadrature, its choices."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.audit import exact_loss
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.sampling.regularized_exponential import (
    RegularizedExponential,
    noise_scale,
)
from dperm_cli.mechanisms.shared.sampled_release import interval_pair
from dperm_cli.privacy.accounting import gaussian_profile, ledger_totals
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Gaussian, SamplerError
from dperm_cli.privacy.gate import Gate, range_delta
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.cells import run_cell
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem
from tests.mechanisms.test_exponential import Exact

BUDGET = Budget(1.0, 1e-6)
MU = 1.0 / 4.22468


def ball(radius, p):
    from dperm_cli.core import registry

    return registry.load("constraint", "l2_ball")(radius, p)


def test_the_exponent_of_the_printed_vector():
    """Vector 15: c = .118352 at (1, 1e-6), kappa = 1, L = 1."""
    spec = bare_spec(1000, 1.0, ball(1.0, 10))
    plan = RegularizedExponential(kappa=1.0, sampler=Exact()).plan(spec, BUDGET)
    assert plan.sampler.target.exponent == pytest.approx(0.118352, rel=5e-6)
    assert plan.sampler.target.kappa == 1.0
    halved = RegularizedExponential(kappa=1.0, sampler=Exact()).plan(
        spec, Budget(1.0, 1e-6, "add_remove")
    )
    assert halved.sampler.target.exponent == pytest.approx(2.0 * 0.118352, rel=5e-6)


def test_strongly_convex_losses_need_no_kappa():
    """c = mu^2 n Delta / (4 L^2)."""
    n, ridge = 1000, 0.01
    spec = bare_spec(n, 1.0, ball(1.0, 10), regulariser=Regulariser(ridge))
    plan = RegularizedExponential(kappa=0.0, sampler=Exact()).plan(spec, BUDGET)
    assert plan.sampler.target.exponent == pytest.approx(MU**2 * n * ridge / 4.0, rel=1e-5)
    with pytest.raises(Unsupported, match="needs curvature"):
        RegularizedExponential(kappa=0.0).plan(bare_spec(n, 1.0, ball(1.0, 10)), BUDGET)


@pytest.mark.parametrize("ridge", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("kappa", ["auto", 3.0])
@pytest.mark.parametrize("distance", [0.0, 0.01])
def test_scale_and_events_belong_to_the_law(ridge, kappa, distance):
    spec = small_problem(ridge=ridge).spec()
    plan = RegularizedExponential(kappa=kappa, sampler=Exact(distance)).plan(spec, BUDGET)
    target = plan.sampler.target
    curvature = target.kappa + target.exponent * spec.n * ridge
    assert plan.noise_scale == pytest.approx(math.sqrt(curvature) / target.exponent, rel=1e-12)
    assert plan.noise_scale == noise_scale(target)
    mu = target.exponent * spec.gradient_gap / math.sqrt(curvature)
    if distance == 0.0:
        assert mu == pytest.approx(MU, rel=1e-5)
    assert plan.guarantee.delta == BUDGET.delta


def test_the_sampler_s_distance_is_paid_from_both():
    """(eps + 2 t, e^t delta_GM(eps; mu)), with t = epsilon / 100."""
    plan = RegularizedExponential(sampler="proximal").plan(small_problem().spec(), BUDGET)
    law, error = plan.events
    assert error == SamplerError("inf", 0.01)
    mu = law.sensitivity("replace_one") / law.scale
    assert math.exp(0.01) * gaussian_profile.delta(0.98, mu) == pytest.approx(1e-6, rel=1e-5)
    assert plan.guarantee.within(BUDGET)
    assert plan.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


def test_auto_kappa_is_the_best_of_the_bound():
    """p / c + (kappa / 2 c) R^2 is least there among all kappa."""
    spec = bare_spec(1000, 1.0, ball(2.0, 10))

    def bound(kappa):
        target = (
            RegularizedExponential(kappa=kappa, sampler=Exact()).plan(spec, BUDGET).sampler.target
        )
        return 10.0 / target.exponent + target.kappa / target.exponent * 2.0**2 / 2.0

    best = bound("auto")
    kappa = RegularizedExponential(sampler=Exact()).plan(spec, BUDGET).sampler.target.kappa
    assert all(bound(factor * kappa) > best for factor in (0.5, 0.9, 1.1, 2.0))
    assert best == pytest.approx(math.sqrt(20.0) * 2.0 * 2.0 / MU, rel=1e-5)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("records", [1, 4])
@pytest.mark.parametrize("half_width", [0.5, 12.0])
def test_the_profile_is_within_delta_by_quadrature(relation, records, half_width):
    """The hockey-stick divergence at epsilon is at most delta, and nearly so with room; 5 % more
    exponent breaks it there."""
    budget = Budget(1.0, 1e-3, relation)
    pair = interval_pair(relation, records, half_width)
    mechanism = RegularizedExponential(kappa=1.0, sampler=Exact())
    plan = mechanism.plan(pair[0].spec(), budget)
    assert profile(pair, plan, half_width) <= budget.delta * (1.0 + 1e-5)
    if half_width > 1.0:
        assert profile(pair, plan, half_width) > 0.999 * budget.delta
        assert profile(pair, plan, half_width, louder=1.05) > 1.05 * budget.delta


def profile(pair, plan, half_width, louder=1.0):
    theta, weight = exact_loss.points([-half_width], [half_width])
    densities = []
    target = dataclasses.replace(
        plan.sampler.target, exponent=louder * plan.sampler.target.exponent
    )
    for problem in pair:
        energy = CentralView(problem).potential(target).value(theta)
        density = np.exp(np.min(energy) - energy)
        densities.append(density / float(density @ weight))
    return exact_loss.delta_at(1.0, *densities, weight)


def test_a_release_at_another_scale_has_that_scale(monkeypatch):
    """What half the noise of the audit's control means: sqrt(m) / c halved, kappa kept."""
    seen = []
    monkeypatch.setattr(
        Exact, "draw", lambda self, f, target, *rest: seen.append(target) or np.zeros(3)
    )
    problem = small_problem(ridge=0.01)
    mechanism = RegularizedExponential(sampler=Exact())
    plan = mechanism.plan(problem.spec(), BUDGET)
    event = dataclasses.replace(plan.events[0], scale=plan.noise_scale / 2.0)
    for one in (plan, dataclasses.replace(plan, events=(event,), noise_scale=event.scale)):
        mechanism.release(CentralView(problem), one, Gate([seed_sequence(0, "test")]))
    assert seen[0] == plan.sampler.target
    assert noise_scale(seen[1]) == pytest.approx(plan.noise_scale / 2.0, rel=1e-12)
    assert seen[1].kappa == plan.sampler.target.kappa


def test_what_it_cannot_do():
    spec = small_problem().spec()
    with pytest.raises(Unsupported, match="delta > 0"):
        RegularizedExponential().plan(spec, Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="finite net"):
        RegularizedExponential(sampler="net").plan(spec, Budget(0.1, 1e-6))
    with pytest.raises(Unsupported, match="BST14"):
        RegularizedExponential("paper").plan(spec, BUDGET)
    for bad in (-1.0, float("nan"), "much", True):
        with pytest.raises(InputError) as caught:
            RegularizedExponential(kappa=bad)
        assert caught.value.key == "mechanism.kappa"


def test_the_gate_knows_the_law_by_its_scale_and_sensitivity():
    """A draw is spent once, at the planned scale and for the planned sensitivity alone."""
    plan = RegularizedExponential(sampler=Exact()).plan(small_problem().spec(), BUDGET)
    law = plan.events[0]

    def gate():
        return Gate([seed_sequence(0, "test")], plan=(plan.events, "replace_one"))

    once = gate()
    stream = once.stream(law, 3)
    theta = np.zeros((1, 3))
    assert stream.release(theta, 0) is theta
    louder = dataclasses.replace(law, scale=law.scale / 2.0)
    nearer = dataclasses.replace(law, record_norm=law.record_norm / 2.0, gap=law.gap / 2.0)
    moves = [event.sensitivity("replace_one") for event in (nearer, law)]
    assert moves[0] == pytest.approx(moves[1] / 2.0)
    for event in (louder, nearer):
        with pytest.raises(PrivacyError, match="no event of the plan"):
            gate().stream(event, 3)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        once.stream(law, 3)
    with pytest.raises(PrivacyError):
        stream.release(theta, 0)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_event_costs_what_a_gaussian_release_does_and_is_none(relation):
    """Same curve; but no noise was drawn, and the gate gives none for it."""
    budget = Budget(1.0, 1e-6, relation)
    plan = RegularizedExponential(sampler=Exact()).plan(small_problem().spec(), budget)
    (event,) = plan.events
    same = Gaussian(event.scale, event.record_norm, gap=event.gap)
    costs = [account((e,), delta=1e-6, relation=relation).epsilon for e in (event, same)]
    assert costs[0] == costs[1] == pytest.approx(1.0, rel=1e-5)
    assert 0.0 < range_delta((same,), relation, 3) < range_delta((event,), relation, 3) < 1e-12
    words = ledger_totals.describe(event, relation)["words"]
    assert words.startswith("a draw from a density")
    assert f"{event.scale:.6g}" in words
    gate = Gate([seed_sequence(0, "test")], plan=((event,), relation))
    with pytest.raises(PrivacyError, match="no event of the plan"):
        gate.stream(same, 3)
    assert not hasattr(gate.stream(event, 3), "add")


class Ends:
    """The random numbers that bring a draw on a line as far to one side as any can."""

    def __init__(self, side):
        self._side = side

    def uniform(self, *shape):
        return np.array([0.75 if self._side > 0 else 0.25, 2.0**-53])


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("epsilon", "delta"), [(30.0, 1e-6), (30.0, 1e-10), (8.0, 1e-6)])
def test_what_a_neighbour_cannot_draw_is_counted(relation, epsilon, delta):
    """One loss and a quadratic term are a Gaussian that ends 8.29 deviations from its mode: at
    epsilon 30 the other data set is beyond that end with 52 times delta 1e-6."""
    from scipy.special import ndtr

    mechanism, budget = RegularizedExponential(kappa=1.0), Budget(epsilon, delta, relation)
    problems = interval_pair(relation, 1, 40.0)
    plan = mechanism.plan(problems[0].spec(), budget)
    modes, ends = [], []
    for problem in problems:
        target = dataclasses.replace(plan.sampler.target, spec=problem.spec())
        potential = CentralView(problem).potential(target)
        modes.append(-float(potential.gradient(np.zeros(1))[0]))
        drawn = plan.sampler.sampler.draw(potential, target, plan.sampler.certificate, Ends(1))
        ends.append(float(drawn[0]))
    unseen = float(ndtr(modes[0] - ends[1]))
    assert ends[1] - modes[1] == pytest.approx(8.29, abs=0.01)
    assert unseen <= range_delta(plan.events, relation, 1)
    assert (unseen > delta) is (epsilon == 30.0)
    if epsilon == 30.0:
        with pytest.raises(Unsupported, match="bounded range"):
            run_cell.plan_with_reserve(mechanism, problems[0].spec(), budget)
    else:
        assert (
            run_cell.plan_with_reserve(mechanism, problems[0].spec(), budget).guarantee.epsilon
            <= epsilon
        )
