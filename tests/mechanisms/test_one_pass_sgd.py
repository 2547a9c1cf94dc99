"""One-pass SGD: what it costs, that every record is used once, its recursion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.gradient.one_pass_sgd import OnePassSgd
from dperm_cli.privacy.accounting import calibrate, ledger_totals
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import DisjointBatches, GammaNorm, Gaussian, kind
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.record_names import batch_of
from dperm_cli.views.central import CentralView
from tests.conftest import small_problem

BUDGET = Budget(1.0, 1e-6)


def seeds(trials=1):
    return [seed_sequence(3, "test", trial) for trial in range(trials)]


def released(mechanism, problem, budget=BUDGET, trials=1):
    plan = mechanism.plan(problem.spec(), budget)
    gate = Gate(seeds(trials), plan=(plan.events, budget.relation))
    return mechanism.release(CentralView(problem), plan, gate).theta


@pytest.mark.parametrize("batches", [1, 7, 40])
def test_a_pass_costs_one_release_however_many_batches(batches):
    """sigma = S / mu and Gamma scale S / epsilon, S = 2 L under replace_one, L under add_remove."""
    spec = small_problem("hinge").spec()
    mechanism = OnePassSgd("gaussian", batches=batches)
    for relation, size in (("replace_one", spec.gradient_gap), ("add_remove", spec.lipschitz)):
        budget = dataclasses.replace(BUDGET, relation=relation)
        plan = mechanism.plan(spec, budget)
        expected = calibrate.gaussian_scale(1.0, 1e-6, size)
        assert plan.noise_scale == pytest.approx(expected, rel=1e-5)
        pure = OnePassSgd(batches=batches).plan(spec, dataclasses.replace(budget, delta=0.0))
        assert pure.noise_scale == pytest.approx(size, rel=1e-5)
        assert pure.guarantee.kind == "pure"
        assert plan.steps == batches


@pytest.mark.parametrize(("noise", "single"), [("gaussian", Gaussian), ("gamma_norm", GammaNorm)])
def test_the_event_accounts_as_one_release(noise, single):
    event = DisjointBatches(3.0, 1.0, 17, noise, 2)
    by_content = dataclasses.replace(event, partition="content")
    one = single(3.0, 1.0, 2)
    for found, relation in ((event, "replace_one"), (by_content, "add_remove")):
        same = (found, found.as_one_sum(relation), one)
        levels = [account((e,), delta=1e-6, relation=relation) for e in same]
        assert levels[0] == levels[1] == levels[2]
        assert type(found.as_one_sum(relation)) is single
    assert kind([event]) == ("approx" if noise == "gaussian" else "pure")
    assert ledger_totals.rebuild_event(ledger_totals.to_dict(event)) == event
    words = ledger_totals.describe(event, "replace_one")
    assert words["count"] == 34
    assert "17 disjoint batches" in words["words"]


def test_every_record_is_in_one_batch():
    problem = small_problem(n=41)
    view = CentralView(problem)
    for by_content in (False, True):
        parts = view.parts(6, by_content=by_content)
        assert len(parts) == 6
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(41))
    sizes = [len(part) for part in view.parts(6, by_content=False)]
    assert max(sizes) - min(sizes) <= 1


def test_a_removed_record_moves_no_other_one():
    """Under add_remove a record's batch hangs on its content alone: lines may be deleted."""
    data = small_problem(n=200).data
    whole = batch_of(data.names, 9)
    kept = np.delete(np.arange(200), 5)
    np.testing.assert_array_equal(batch_of(data.take(kept).names, 9), whole[kept])
    rows = data.with_records(sparse.csr_array(data.x), data.y)
    np.testing.assert_array_equal(batch_of(rows.names, 9), whole)
    assert np.bincount(whole, minlength=9).min() > 5


def test_the_place_would_not_do_under_add_remove():
    """Deleting a line shifts those after it to other batches: why the hash is there."""
    data = small_problem(n=30).data
    shorter = dataclasses.replace(data.take(np.arange(1, 30)))
    place = [np.arange(start, 30, 3) for start in range(3)]
    moved = [data.x[part].sum(axis=0) - shorter.x[part[part < 29]].sum(axis=0) for part in place]
    assert sum(np.linalg.norm(m) > 1e-6 for m in moved) == 3


def test_the_gate_refuses_shared_records_and_second_draws():
    event = DisjointBatches(1.0, 1.0, 2, partition="content")
    plan = ((event,), "add_remove")
    with pytest.raises(PrivacyError, match="more than one"):
        Gate(seeds(), plan=plan).stream(event, 1, parts=[np.array([0, 1]), np.array([1])])
    with pytest.raises(PrivacyError, match="no event of the plan"):
        Gate(seeds(), plan=plan).stream(event, 1, parts=[np.array([i]) for i in range(3)])
    stream = Gate(seeds(), plan=plan).stream(event, 1, parts=[np.array([0]), np.array([1])])
    stream.release(lambda batch: np.zeros((1, 1)), 0)
    with pytest.raises(PrivacyError, match="second time"):
        stream.release(lambda batch: np.zeros((1, 1)), 0)
    with pytest.raises(PrivacyError, match="step 2"):
        stream.release(lambda batch: np.zeros((1, 1)), 2)


@pytest.mark.parametrize("noise", ["gaussian", "gamma_norm"])
def test_a_replaced_record_costs_both_batches_that_its_content_names(noise):
    """By content it leaves one batch and enters another: no small gap of two records helps."""
    event = DisjointBatches(3.0, 1.0, 17, noise, gap=1.2, partition="content")
    apart = {"gaussian": np.sqrt(2.0), "gamma_norm": 2.0}[noise]
    assert event.sensitivity("replace_one") == pytest.approx(apart)
    assert event.sensitivity("add_remove") == 1.0
    far = dataclasses.replace(event, gap=1.9)
    assert far.sensitivity("replace_one") == {"gaussian": 1.9, "gamma_norm": 2.0}[noise]
    by_place = dataclasses.replace(event, partition="place")
    assert by_place.sensitivity("replace_one") == 1.2
    for ask in (by_place.sensitivity, by_place.loss):
        with pytest.raises(Unsupported, match="by place are not private under add_remove"):
            ask("add_remove")


@dataclasses.dataclass(frozen=True)
class Greedy(OnePassSgd):
    """Looks at all records in every batch, which the event does not cover."""

    def release(self, view, plan, gate):
        class All(CentralView):
            def batch_gradient(self, theta, batch):
                return self.gradient_sum(theta)

        return super().release(All(view._problem), plan, gate)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_replay_counts_a_pass_as_a_whole(delta):
    """Opposite rows as long as allowed move a linear loss's sum by 2 L, in one batch or in all;
    three such moves are a vector sqrt(3) times as long, and three times as long a walk."""
    problem = small_problem("linear", n=6)
    first = replace_record(problem, 1, np.array([1.0, 0.0, 0.0]), 1.0)
    other = replace_record(problem, 1, np.array([-1.0, 0.0, 0.0]), 1.0)
    for mechanism, worst in ((OnePassSgd, 1.0), (Greedy, 3.0 if delta == 0.0 else np.sqrt(3.0))):
        chosen = mechanism("gaussian" if delta else "gamma", batches=3)
        plan = chosen.plan(problem.spec(), Budget(0.01, delta))
        verdict = replay(chosen, plan, first, other)
        assert verdict.private is (mechanism is OnePassSgd)
        assert verdict.calls == 3
        assert verdict.worst == pytest.approx(worst)


def test_a_record_that_changes_batches_moves_both_by_half():
    """Under replace_one the hash would hold as well: the two moves add up to at most 2 L."""
    problem = small_problem("hinge", n=8, radius=0.5)
    budget = Budget(1.0, 1e-6, "add_remove")
    mechanism = OnePassSgd(batches=4)
    plan = mechanism.plan(problem.spec(), budget)
    for index in range(8):
        gone = replace_record(problem, index, np.zeros(3), 1.0)
        verdict = replay(mechanism, plan, problem, gone, index)
        assert verdict.private, verdict.faults
        assert verdict.worst > 0.05


@pytest.mark.parametrize(("rate", "ridge"), [("convex", 0.0), ("strongly_convex", 0.3)])
def test_the_recursion(rate, ridge):
    problem = small_problem(ridge=ridge, n=11)
    mechanism = OnePassSgd(batches=3, learning_rate=rate, output="last")
    plan = mechanism.plan(problem.spec(), BUDGET)
    parts = [np.arange(start, 11, 3) for start in range(3)]
    noise = Gate(seeds()).stream(plan.events[0], 3, parts=parts)
    theta, seen = np.zeros((1, 3)), []
    for step in range(3):
        seen.append(theta)
        batch = problem.data.take(parts[step])
        g = noise.release(lambda _, b=batch, at=theta: problem.loss.gradient(at, b), step)
        eta = plan.settings["eta0"] / (step + 1 if rate == "strongly_convex" else 1)
        theta = problem.constraint.project(theta - eta * (g / len(parts[step]) + ridge * theta))
    np.testing.assert_allclose(released(mechanism, problem), theta, rtol=1e-12)
    average = dataclasses.replace(mechanism, output="average")
    np.testing.assert_allclose(released(average, problem), np.mean(seen, axis=0), rtol=1e-12)


def test_unsupported_says_why():
    spec = small_problem().spec()
    with pytest.raises(Unsupported, match="delta > 0"):
        OnePassSgd(noise="gaussian").plan(spec, Budget(1.0, 0.0))
    with pytest.raises(Unsupported, match="ridge > 0"):
        OnePassSgd(learning_rate="strongly_convex").plan(spec, BUDGET)
    with pytest.raises(Unsupported, match="would be empty"):
        OnePassSgd(batches=41).plan(spec, BUDGET)


def test_more_records_help():
    """The excess of records at hand falls with n; it has a floor that noise alone has not."""
    found = []
    for n in (100, 10_000):
        problem = small_problem(n=n)
        from dperm_cli.solvers.optimum import solve

        best = solve(problem).value
        excess = problem.objective(released(OnePassSgd(), problem, trials=10)) - best
        found.append(np.mean(excess) / n)
    assert found[1] < 0.3 * found[0]
