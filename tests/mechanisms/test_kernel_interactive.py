"""What is particular to kernel_interactive: PINP [JT13, Alg. 1], printed and calibrated."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.kernel.kernel_interactive import KernelInteractive
from dperm_cli.mechanisms.kernel.kernel_semi_interactive import KernelSemiInteractive
from dperm_cli.mechanisms.shared import kernel_queries, sparse_answers
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.kernel import KernelView
from tests.contract.test_kernel_mechanisms import problem

BUDGET = Budget(1.0, 1e-6)


def gate(plan, trials=3, seed=0):
    seeds = [seed_sequence(seed, "test", trial) for trial in range(trials)]
    return Gate(seeds, plan=(plan.events, "replace_one"))


def large(n=10**6):
    """Public facts of as many records."""
    return dataclasses.replace(problem(queries=40).spec(), n=n)


def test_printed_numbers():
    """B in the right units, eps_0, sigma and eta; s eps_0 = eps / (100 sqrt(B) ln(4 / delta))."""
    spec = large()
    plan = KernelInteractive(calibration="paper", queries=1000).plan(spec, BUDGET)
    logs = math.log(4e6)
    spread = 200.0 * math.sqrt(3.0) * spec.lipschitz * math.log(2000 / 0.05) * logs
    updates = max(1, math.floor(spec.radius * spec.n * spec.ridge / spread))
    assert plan.settings["updates"] == updates > 1
    reach = spec.prediction_sensitivity / plan.noise_scale
    assert reach == pytest.approx(1.0 / (100.0 * math.sqrt(updates) * logs))
    assert plan.settings["threshold"] == pytest.approx(
        4.0 * plan.noise_scale * math.log(2000 / 0.05)
    )
    assert plan.settings["step"] == pytest.approx(plan.settings["threshold"] / 4.0)
    assert plan.guarantee.epsilon < 1.0 / 50.0


@pytest.mark.parametrize(("updates", "ratio"), [(10, 151.0), (100, 202.0)])
def test_the_printed_noise_is_many_times_too_large(updates, ratio):
    spec = large()
    scales = [
        KernelInteractive(calibration=word, updates=updates, queries=10_000)
        .plan(spec, BUDGET)
        .noise_scale
        for word in ("paper", "auto")
    ]
    assert scales[0] / scales[1] == pytest.approx(ratio, rel=1e-2)


@pytest.mark.parametrize("n", [10**4, 10**5, 10**6])
def test_the_updates_suffice_and_hardly_more(n):
    spec, mechanism = large(n), KernelInteractive(queries=10_000)
    plan = mechanism.plan(spec, BUDGET)
    updates = plan.settings["updates"]
    assert updates >= plan.settings["updates_enough"]
    assert plan.guarantee.within(BUDGET)
    if updates > 2:
        fewer = dataclasses.replace(mechanism, updates=math.floor(0.94 * updates))
        short = fewer.plan(spec, BUDGET)
        assert short.settings["updates"] < short.settings["updates_enough"]


def test_answers_are_near_or_are_updates():
    """With little noise: 5 sigma / 4 everywhere, one draw of noise a query, and w as it says."""
    found = problem(n=300, queries=60)
    spec = found.spec()
    mechanism = KernelInteractive()
    plan = mechanism.plan(spec, Budget(3000.0, 1e-6))
    out = mechanism.release(KernelView(found), plan, gate(plan))
    answers, updates = out.info["answers"], out.info["updates"]
    truth = found.solve(kernel_queries.bound_moves(spec).distance).values(spec.queries)
    assert np.max(np.abs(answers - truth)) <= 1.25 * plan.settings["threshold"]
    assert 0 < updates.sum(axis=1).max() <= plan.settings["updates"]
    # what is no update is the public function's own answer, and the last one is theta
    last = out.theta @ spec.rows.T
    still = ~np.cumsum(updates[:, ::-1], axis=1)[:, ::-1].astype(bool)
    np.testing.assert_allclose(answers[still], last[still], atol=1e-7)


def test_a_run_stops_at_its_updates():
    found = problem(n=300, queries=60)
    mechanism = KernelInteractive(updates=2, threshold=1e-3)
    plan = mechanism.plan(found.spec(), Budget(50.0, 1e-6))
    out = mechanism.release(KernelView(found), plan, gate(plan))
    assert np.all(out.info["updates"].sum(axis=1) == 2)


def test_a_session_answers_as_a_batch_does():
    found = problem(n=300, queries=30)
    mechanism = KernelInteractive()
    plan = mechanism.plan(found.spec(), Budget(3000.0, 1e-6))
    batch = mechanism.release(KernelView(found), plan, gate(plan, 1))
    open_ = mechanism.session(KernelView(found), plan, gate(plan, 1))
    answers, far = zip(*(open_.ask(row[None, :]) for row in found.queries), strict=True)
    np.testing.assert_allclose(np.concatenate(answers), batch.info["answers"][0], atol=1e-9)
    assert np.concatenate(far).tolist() == batch.info["updates"][0].tolist()
    with pytest.raises(PrivacyError):
        open_.ask(found.queries[:1])


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_queries_beyond_the_bound_are_refused(kernel):
    """|<w* - w*', phi(z)>| <= s holds for |phi(z)| <= R alone."""
    found = problem(kernel, n=60, queries=5)
    plan = KernelInteractive(queries=5).plan(found.spec(), BUDGET)
    open_ = KernelInteractive(queries=5).session(KernelView(found), plan, gate(plan, 1))
    edge = found.queries[:1] / np.linalg.norm(found.queries[0])
    open_.ask(edge)
    with pytest.raises(PrivacyError, match="row bound"):
        open_.ask(1.01 * edge)
    longer = dataclasses.replace(found, queries=np.vstack([found.queries, 1.01 * edge]))
    for mechanism in (KernelInteractive(), KernelInteractive(queries=5), KernelSemiInteractive()):
        mechanism.plan(found.spec(), BUDGET)
        with pytest.raises(Unsupported, match="public point"):
            mechanism.plan(longer.spec(), BUDGET)


def test_pure_runs_pay_for_every_query():
    spec = large()
    plan = KernelInteractive(queries=50).plan(spec, Budget(1.0, 0.0))
    reach = kernel_queries.bound_moves(spec).value / plan.noise_scale
    assert reach == pytest.approx(1.0 / 50.0, rel=1e-6)
    assert plan.guarantee.kind == "pure"
    with pytest.raises(Unsupported, match="delta"):
        KernelInteractive(calibration="paper").plan(spec, Budget(1.0, 0.0))


def test_events_at_another_scale_are_those_of_the_plan():
    spec, mechanism = large(), KernelInteractive(updates=7)
    plan = mechanism.plan(spec, BUDGET)
    (event,) = mechanism.events(spec, plan.noise_scale, Budget(math.inf, 0.5))
    assert event == plan.events[0]


def test_the_least_reach_is_remembered_and_private():
    reach = sparse_answers.largest_reach(5, 200, BUDGET, 30.0)
    assert reach == sparse_answers.largest_reach(5, 200, BUDGET, 30.0)
    assert 0.03 < reach < 0.06
