"""What every mechanism promises, whoever wrote it; the folder is the list."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit.neighbours import search
from dperm_cli.audit.replay import neighbour, replay
from dperm_cli.core import catalogue, registry
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.rng import seed_sequence
from dperm_cli.mechanisms._views import CentralView
from dperm_cli.privacy.accountant import account
from dperm_cli.privacy.budget import KINDS, RELATIONS, Budget
from dperm_cli.privacy.noise import Gate
from dperm_cli.problem.optimum import solve
from dperm_cli.problem.problem import ProblemSpec
from tests.conftest import small_problem

MECHANISMS = registry.names("mechanism")
ROOT = Path(__file__).resolve().parents[2]
LOSSES = registry.names("loss")
SETS = registry.names("constraint")
DELTA = 1e-5

pytestmark = pytest.mark.parametrize("name", MECHANISMS)


def default(name):
    return registry.load("mechanism", name)()


def supported(mechanism, spec, epsilon=1.0, delta=DELTA):
    """(plan, budget) for every relation the mechanism can plan for."""
    for relation in mechanism.relations:
        budget = Budget(epsilon, delta, relation)
        with contextlib.suppress(Unsupported):
            yield mechanism.plan(spec, budget), budget


def released(mechanism, problem, plan, trials=2, seed=0):
    seeds = [seed_sequence(seed, "test", trial) for trial in range(trials)]
    return mechanism.release(CentralView(problem), plan, Gate(seeds)).theta


def test_is_frozen_and_declares_itself(name):
    mechanism = default(name)
    assert dataclasses.is_dataclass(mechanism)
    field = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, field, None)
    assert set(mechanism.guarantees) <= set(KINDS)
    assert mechanism.guarantees
    assert set(mechanism.relations) <= set(RELATIONS)


def test_has_yaml_test_and_proof_page(name):
    assert len(catalogue.choices("mechanism")[name].summary) > 10
    assert os.path.exists(ROOT / "tests" / "mechanisms" / f"test_{name}.py")
    page = (ROOT / "docs" / "proofs" / f"{name}.md").read_text()
    assert "## Privacy" in page
    assert "## Deviations" in page


def test_yaml_gives_the_class_defaults(name):
    from omegaconf import OmegaConf

    loaded = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "mechanism" / f"{name}.yaml"))
    given = {key: value for key, value in loaded.items() if key != "name"}
    assert registry.load("mechanism", name)(**given) == default(name)
    missing = {f.name for f in dataclasses.fields(default(name))} - set(given)
    assert missing <= {"calibration"}


def test_plan_sees_public_facts_only(name):
    assert list(inspect.signature(default(name).plan).parameters) == ["spec", "budget"]
    assert not {f.name for f in dataclasses.fields(ProblemSpec)} & {"x", "y", "data"}


def test_every_bad_field_is_an_input_error(name):
    for field in dataclasses.fields(default(name)):
        for bad in (float("nan"), -1, "no such thing", [], 1e400):
            with pytest.raises(InputError) as caught:
                dataclasses.replace(default(name), **{field.name: bad})
            assert caught.value.key in (f"mechanism.{field.name}", field.name)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_guarantee_is_within_budget_and_follows_from_the_events(name, loss, epsilon):
    spec = small_problem(loss=loss).spec()
    plans = list(supported(default(name), spec, epsilon))
    assert plans
    for plan, budget in plans:
        assert plan.guarantee.within(budget)
        assert plan.guarantee.source
        again = account(plan.events, delta=budget.delta, relation=budget.relation)
        assert again.epsilon <= budget.epsilon
        assert again.epsilon >= 0.99 * plan.guarantee.epsilon


def test_noise_falls_as_epsilon_rises(name):
    spec = small_problem().spec()
    scales = []
    for epsilon in (0.1, 1.0, 10.0):
        plan, _ = next(iter(supported(default(name), spec, epsilon)))
        events_noise = min(event.scale / event.sensitivity("replace_one") for event in plan.events)
        scales.append(events_noise * np.sqrt(1.0 / sum(event.count for event in plan.events)))
    assert scales[0] > scales[1] > scales[2]


@pytest.mark.parametrize("constraint", SETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_output_is_feasible_and_of_the_right_shape(name, loss, constraint):
    problem = small_problem(loss=loss, constraint=constraint, n=8, ridge=0.01)
    for plan, _ in supported(default(name), problem.spec()):
        theta = released(default(name), problem, plan, trials=3)
        assert theta.shape == (3, problem.p)
        assert np.all(problem.constraint.contains(theta))
        # so few records leave some at a vertex, where two trials may well meet
        assert len(np.unique(theta, axis=0)) > 1


def test_same_seed_same_bytes_and_trials_stand_alone(name):
    problem = small_problem()
    plan, _ = next(iter(supported(default(name), problem.spec())))
    three = released(default(name), problem, plan, trials=3)
    assert three.tobytes() == released(default(name), problem, plan, trials=3).tobytes()
    assert not np.array_equal(three, released(default(name), problem, plan, trials=3, seed=1))
    # one trial alone may differ in the last bits of a matrix product, no more
    np.testing.assert_allclose(three[:1], released(default(name), problem, plan, 1), rtol=1e-9)


def test_data_are_not_written_to(name):
    problem = small_problem()
    before = problem.data.x.tobytes(), problem.data.y.tobytes()
    problem.data.x.setflags(write=False)
    problem.data.y.setflags(write=False)
    plan, _ = next(iter(supported(default(name), problem.spec())))
    released(default(name), problem, plan)
    assert before == (problem.data.x.tobytes(), problem.data.y.tobytes())


def test_large_epsilon_recovers_the_optimum(name):
    problem = small_problem(n=60)
    optimum = solve(problem)
    floor = float(problem.objective(problem.constraint.centre())) - optimum.value
    plan, _ = next(iter(supported(default(name), problem.spec(), epsilon=1e4)))
    excess = problem.objective(released(default(name), problem, plan)) - optimum.value
    assert np.all(excess < 0.05 * floor)


@pytest.mark.parametrize("loss", LOSSES)
def test_replay_for_every_loss(name, loss):
    """Every call at the gate repeats, and no value moves by more than its sensitivity."""
    problem = small_problem(loss=loss, n=6, ridge=0.1)
    rng = np.random.default_rng(5)
    mechanism = default(name)
    worst = 0.0
    for plan, budget in supported(mechanism, problem.spec()):
        if problem.data.task == "location" and budget.relation == "add_remove":
            continue  # a record of zeros stands for a removed one, and there it is not nothing
        for round_ in range(25):
            index = int(rng.integers(problem.data.n))
            other = _other_record(problem, rng, budget.relation)
            verdict = replay(mechanism, plan, problem, neighbour(problem, index, *other), round_)
            assert verdict.private, verdict.faults
            assert verdict.calls >= 1
            worst = max(worst, verdict.worst)
    # the search is known to reach the records: something moved
    assert worst > 0.05


def _other_record(problem, rng, relation):
    if relation == "add_remove":
        return np.zeros(problem.data.p), 1.0
    row = rng.standard_normal(problem.data.p)
    labels = {"multiclass": [0.0, 1.0, 2.0], "location": [0.0]}.get(problem.data.task, [-1.0, 1.0])
    return row / np.linalg.norm(row), rng.choice(labels)


@pytest.mark.parametrize("relation", RELATIONS)
def test_replay_on_two_hundred_neighbours(name, relation):
    """Dense and sparse rows, with noise and with hardly any, under both relations: 200 in all."""
    mechanism = default(name)
    if relation not in mechanism.relations:
        return
    budget = Budget(1.0, DELTA, relation)
    found = search((mechanism, mechanism.adversary(budget).mechanism), budget, 100)
    assert found.private, found.faults
    assert found.calls >= 100
    assert found.worst > 0.5  # the search reaches what is declared


@pytest.mark.parametrize("relation", RELATIONS)
def test_brings_its_own_adversary(name, relation):
    """Neighbours under the relation that the gate sees move by all that was declared."""
    mechanism = default(name)
    if relation not in mechanism.relations:
        return
    budget = Budget(1.0, DELTA, relation)
    adversary = mechanism.adversary(budget)
    assert type(adversary.mechanism) is type(mechanism)
    first, second = adversary.first, adversary.second
    assert first.spec() == second.spec()
    moved = [i for i in range(first.data.n) if _record(first, i) != _record(second, i)]
    assert len(moved) == 1
    if relation == "add_remove":
        # one of the two has no record there: a row of zeros
        assert 0.0 in (np.linalg.norm(p.data.x[moved[0]]) for p in (first, second))
    plan = adversary.mechanism.plan(first.spec(), budget)
    found = replay(adversary.mechanism, plan, first, second)
    assert found.private, found.faults
    if adversary.kind != "threshold":  # with sampling, the record is in some batches only
        assert found.worst == pytest.approx(1.0)
    scores = adversary.statistic(released(adversary.mechanism, first, plan, trials=3))
    assert np.shape(scores) == (3,)
    assert np.all(np.isfinite(scores))


def _record(problem, index):
    return problem.data.x[index].tobytes(), problem.data.y[index]


def test_half_the_sensitivity_is_caught_by_replay(name):
    """The audit has power: a mechanism that declares too little is found out."""
    problem = small_problem(n=2, radius=1.5, loss="hinge")
    mechanism = default(name)
    plan, _ = next(iter(supported(mechanism, problem.spec())))
    halved = dataclasses.replace(plan, events=tuple(_halved(event) for event in plan.events))
    row = np.array([1.0, 0.0, 0.0])
    first = neighbour(problem, 0, row, 1.0)
    second = neighbour(problem, 0, -row, 1.0)
    faults = [replay(mechanism, halved, first, second, seed).faults for seed in range(5)]
    assert any(faults)


def _halved(event):
    gap = {"gap": None} if hasattr(event, "gap") else {}
    return dataclasses.replace(event, record_norm=event.record_norm / 4, **gap)


class Silent:
    """A tape that changes nothing, and so only closes the compiled path."""

    def noise(self, value, scale, sensitivity, drawn):
        return drawn

    laplace = gamma_norm = noise

    def law(self, exponent, oscillation, drawn):
        return drawn

    def choice(self, population, batch, sampling, drawn):
        return drawn


def test_compiled_and_plain_paths_give_the_same_bytes(name):
    """Replay runs the plain path only, so nothing may happen on the other one alone."""
    problem = small_problem(n=12)
    plan, _ = next(iter(supported(default(name), problem.spec())))
    seeds = [seed_sequence(1, "test", trial) for trial in range(3)]
    release = default(name).release
    fast = release(CentralView(problem), plan, Gate(seeds))
    plain = release(CentralView(problem), plan, Gate(seeds, Silent()))
    assert fast.theta.tobytes() == plain.theta.tobytes()


def test_the_gate_holds_a_mechanism_to_its_plan(name):
    """With the plan's events at the gate a release passes; with any of them changed it does not."""
    problem = small_problem(n=12)
    plan, budget = next(iter(supported(default(name), problem.spec())))
    seeds = [seed_sequence(1, "test")]
    release = default(name).release
    release(CentralView(problem), plan, Gate(seeds, plan=(plan.events, budget.relation)))
    for change in ("scale", "count", "record_norm"):
        other = [
            dataclasses.replace(event, **{change: getattr(event, change) * 2})
            for event in plan.events
        ]
        with pytest.raises(PrivacyError):
            release(CentralView(problem), plan, Gate(seeds, plan=(other, budget.relation)))
