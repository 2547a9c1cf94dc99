"""What every mechanism promises, whoever wrote it; the folder is the list."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.audit.random_neighbours import search, shorten_steps
from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core import catalogue, progress, registry
from dperm_cli.core.errors import InputError, PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.losses.shared.margin_loss import Glm
from dperm_cli.mechanisms.shared.noisy_minimiser import INFLATION
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import RELATIONS, Budget
from dperm_cli.privacy.events import Channel
from dperm_cli.privacy.gate import Gate
from dperm_cli.views.choose import open_view
from tests.conftest import small_problem

# those without any guarantee promise none of this; tests/mechanisms has their own tests
# kernel mechanisms plan on other facts: test_kernel_mechanisms
MECHANISMS = [
    name
    for name in registry.list_protective()
    if getattr(registry.load("mechanism", name), "space", "") != "kernel"
]
ROOT = Path(__file__).resolve().parents[2]
LOSSES = registry.names("loss")
SETS = registry.names("constraint")
DELTA = 1e-5
LEVELS = (0.01, 1.0, 30.0)
ROUNDS, MORE = 4, 20  # neighbours for every loss, by default and in the slow test
# Neighbours of the audit's search, and the share of what is declared that it then reaches; after
# 24 it has had every loss with every level and kind of rows.
SEARCH, LONG_SEARCH = (24, 0.4), (100, 0.5)

pytestmark = pytest.mark.parametrize("name", MECHANISMS)


def default(name):
    return registry.load("mechanism", name)()


def is_local(name):
    """Whether its users' devices do the hiding: it never gets hold of a value to hide."""
    return getattr(default(name), "trust", "central") == "local"


def problem_for(name, **given):
    """``small_problem``, of the kind that the mechanism is about."""
    needs = getattr(default(name), "requires", ())
    strong = "strong_convexity" in needs
    given = ({"loss": "squared"} if "quadratic" in needs else {}) | given
    return small_problem(**given, ridge=1.0 if strong else 0.0)


def quick(name):
    """``default`` with few steps, its own or the inner mechanism's, and quick samplers."""
    mechanism = shorten_steps(default(name), 8)
    if hasattr(mechanism, "batches"):
        return dataclasses.replace(mechanism, batches=4)
    if mechanism.sampler is not None:
        soon = registry.load("sampler", "auto")(most_seconds=2.0)
        return dataclasses.replace(mechanism, sampler=soon)
    return mechanism


def turn(name, loss, among):
    """One of ``among``: each loss gets another one, and each mechanism begins elsewhere."""
    return among[(MECHANISMS.index(name) + LOSSES.index(loss)) % len(among)]


def supported(mechanism, spec, epsilon=1.0, delta=DELTA):
    """(plan, budget) for every relation the mechanism can plan for."""
    for relation in mechanism.relations:
        budget = Budget(epsilon, delta, relation)
        with contextlib.suppress(Unsupported):
            yield mechanism.plan(spec, budget), budget


def released(mechanism, problem, plan, trials=2, seed=0):
    seeds = [seed_sequence(seed, "test", trial) for trial in range(trials)]
    return mechanism.release(open_view(mechanism, problem), plan, Gate(seeds)).theta


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
    assert missing <= {"calibration", "sampler", "on_grid", "by_users"}


def test_progress_says_nothing_of_the_records(name):
    """Labels and totals are the same for any records: what is shown on the way passes no gate."""
    curved = {} if "quadratic" in default(name).requires else {"loss": "logistic"}
    mechanism, problem = quick(name), problem_for(name, **curved)
    data = problem.data
    rows = np.zeros_like(data.x)
    rows[:, 0] = data.row_bound
    same = data.with_records(rows, np.ones_like(data.y), fingerprint="all the same")
    other = dataclasses.replace(problem, data=same)
    assert other.spec() == problem.spec()
    plans = [plan for plan, _ in supported(mechanism, problem.spec())]
    assert plans
    for plan in plans:
        heard: list[set] = []
        for one in (problem, other):
            said: set = set()
            # how many are done is told as time goes, so that some counts may be left out
            with progress.listen(lambda label, _, total, said=said: said.add((label, total))):
                released(mechanism, one, plan)
            heard.append(said)
        assert heard[0] == heard[1]


def test_every_bad_field_is_an_input_error(name):
    for field in dataclasses.fields(default(name)):
        for bad in (float("nan"), -1, "no such thing", [], 1e400):
            with pytest.raises(InputError) as caught:
                dataclasses.replace(default(name), **{field.name: bad})
            assert caught.value.key in (f"mechanism.{field.name}", field.name)


@pytest.mark.parametrize("loss", LOSSES)
def test_guarantee_is_within_budget_and_follows_from_the_events(name, loss):
    """At an epsilon that goes round with the loss; at every one of them in the slow test."""
    guaranteed(name, loss, turn(name, loss, LEVELS))


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_guarantee_at_every_level(name, loss):
    for epsilon in LEVELS:
        guaranteed(name, loss, epsilon)


def refused(name, spec):
    """A loss may be refused: one with kinks by a mechanism that needs curvature, one that is not of
    the margin, or not quadratic, by a mechanism that says it needs that."""
    needs, form = getattr(default(name), "requires", ()), spec.form
    if "quadratic" in needs and not (form.quadratic and form.smoothness):
        return True
    return spec.smoothness is None or ("margin" in needs and not isinstance(form, Glm))


def guaranteed(name, loss, epsilon):
    spec = problem_for(name, loss=loss).spec()
    plans = list(supported(default(name), spec, epsilon))
    assert plans or refused(name, spec)
    for plan, budget in plans:
        assert plan.guarantee.within(budget)
        assert plan.guarantee.source
        again = account(plan.events, delta=plan.guarantee.delta, relation=budget.relation)
        assert again.epsilon <= budget.epsilon
        assert again.epsilon >= 0.99 * plan.guarantee.epsilon


def test_noise_falls_as_epsilon_rises(name):
    spec = problem_for(name).spec()
    scales = []
    for epsilon in (0.1, 1.0, 10.0):
        plan, _ = next(iter(supported(default(name), spec, epsilon)))
        if is_local(name):
            scales.append(plan.noise_scale)
            continue
        done = [event for whole in plan.events for event in _one_run(whole)]
        events = [event for event in done if event.sensitivity("replace_one")]
        events_noise = min(_noise(event) / event.sensitivity("replace_one") for event in events)
        scales.append(events_noise * np.sqrt(1.0 / sum(event.count for event in events)))
    assert scales[0] > scales[1] > scales[2]


def _one_run(event):
    """The event itself, or those of one run of a private selection."""
    return event.candidates[0] if event.alternatives else (event,)


def _change_runs(event, change):
    """A private selection with each event of its runs changed."""
    runs = tuple(tuple(change(one) for one in events) for events in event.candidates)
    return dataclasses.replace(event, candidates=runs)


def _noise(event):
    """A scale, or one over the exponent of a law."""
    return event.scale if hasattr(event, "scale") else 1.0 / event.exponent


@pytest.mark.in_turn
@pytest.mark.parametrize("loss", LOSSES)
def test_output_is_feasible_and_of_the_right_shape(name, loss):
    """Each loss on a set, each set with a loss or two, others for every mechanism."""
    feasible(quick(name), loss, turn(name, loss, SETS))


@pytest.mark.slow
@pytest.mark.parametrize("constraint", SETS)
def test_output_on_every_set(name, constraint):
    for loss in LOSSES:
        feasible(quick(name), loss, constraint)


def feasible(mechanism, loss, constraint):
    problem = small_problem(loss=loss, constraint=constraint, n=8, ridge=0.01)
    for plan, _ in supported(mechanism, problem.spec()):
        theta = released(mechanism, problem, plan, trials=8)
        assert theta.shape == (8, problem.p)
        assert np.all(problem.constraint.contains(theta))
        # so few records leave some at a vertex, where two trials may well meet
        assert len(np.unique(theta, axis=0)) > 1


@pytest.mark.in_turn
@pytest.mark.parametrize("loss", LOSSES)
def test_replay_for_every_loss(name, loss):
    """Every call at the gate repeats, and no value moves by more than its sensitivity."""
    replayed(name, loss, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_replay_for_every_loss_on_more_neighbours(name, loss):
    replayed(name, loss, MORE)


def replayed(name, loss, rounds):
    problem = small_problem(loss=loss, n=6, ridge=0.1)
    rng = np.random.default_rng(5)
    mechanism = quick(name)
    worst = 0.0
    plans = list(supported(mechanism, problem.spec()))
    if not plans and refused(name, problem.spec()):
        return
    for plan, budget in plans:
        if problem.data.task == "location" and budget.relation == "add_remove":
            continue  # a record of zeros stands for a removed one, and there it is not nothing
        for round_ in range(rounds):
            index = int(rng.integers(problem.data.n))
            other = _other_record(problem, rng, budget.relation)
            verdict = replay(
                mechanism, plan, problem, replace_record(problem, index, *other), round_
            )
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


@pytest.mark.in_turn
@pytest.mark.parametrize("relation", RELATIONS)
def test_replay_on_random_neighbours(name, relation):
    """Dense and sparse rows, with noise and with hardly any."""
    searched(name, relation, *SEARCH)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_replay_on_two_hundred_neighbours(name, relation):
    """The same under both relations: 200 in all."""
    searched(name, relation, *LONG_SEARCH)


def searched(name, relation, rounds, reach):
    mechanism = quick(name)
    if relation not in mechanism.relations:
        return
    budget = Budget(1.0, DELTA, relation)
    found = search((mechanism, mechanism.adversary(budget).mechanism), budget, rounds)
    assert found.private, found.faults
    # few of the losses that the search goes through are quadratic, and half of them smooth
    share = {"quadratic": 4, "smooth": 2}
    share = max((share.get(word, 1) for word in default(name).requires), default=1)
    assert found.calls >= rounds // share
    # the search reaches what is declared; opposite rows are not opposite corners of a channel
    assert found.worst > (0.4 if is_local(name) else reach)


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
    # with sampling, the record is in some batches only
    if adversary.kind != "threshold":
        # a minimiser known up to a certified gap leaves a little of its sensitivity unused
        slack = INFLATION if "inflation" in plan.settings else 1e-9
        assert 1.0 - slack <= found.worst <= 1.0 + 1e-9
    scores = adversary.statistic(released(adversary.mechanism, first, plan, trials=3))
    assert np.shape(scores) == (3,)
    assert np.all(np.isfinite(scores))


def _record(problem, index):
    return problem.data.x[index].tobytes(), problem.data.y[index]


def test_half_the_sensitivity_is_caught_by_replay(name):
    """The audit has power: a mechanism that declares too little is found out."""
    mechanism = default(name)
    if hasattr(mechanism, "m"):  # fewer dimensions would shorten these rows
        mechanism = dataclasses.replace(mechanism, m=3)
    if is_local(name):
        return  # devices follow what is declared: tests/mechanisms/test_local_sgd.py asks twice
    for loss in ("hinge", "logistic", "squared"):  # some need curvature
        problem = problem_for(name, n=2, radius=1.5, loss=loss)
        plans = list(supported(mechanism, problem.spec()))
        if plans:
            break
    plan, _ = plans[0]
    halved = dataclasses.replace(plan, events=tuple(_halved(event) for event in plan.events))
    row = np.array([1.0, 0.0, 0.0])
    first = replace_record(problem, 0, row, 1.0)
    second = replace_record(problem, 0, -row, 1.0)
    assert any(_caught(mechanism, halved, first, second, seed) for seed in range(5))


def _caught(mechanism, plan, first, second, seed):
    """Whether the replay finds a fault, or the gate refuses."""
    try:
        return bool(replay(mechanism, plan, first, second, seed).faults)
    except PrivacyError:
        return True


def _has_gap(event):
    return any(field.name == "gap" for field in dataclasses.fields(event))


def _halved(event):
    if event.alternatives:
        return _change_runs(event, _halved)
    name = next((n for n in ("record_norm", "record_oscillation") if hasattr(event, n)), None)
    if name is None:
        return event
    gap = {"gap": None} if _has_gap(event) else {}
    return dataclasses.replace(event, **{name: getattr(event, name) / 4}, **gap)


class Silent:
    """A tape that changes nothing, and so only closes the compiled path."""

    def take_draw(self, stream, value, drawn, public):
        return drawn


def test_compiled_and_plain_paths_give_the_same_bytes(name):
    """Replay runs the plain path only, so nothing may happen on the other one alone."""
    problem = problem_for(name, n=12)
    plan, _ = next(iter(supported(quick(name), problem.spec())))
    seeds = [seed_sequence(1, "test", trial) for trial in range(3)]
    mechanism = quick(name)
    fast, plain = (
        mechanism.release(open_view(mechanism, problem), plan, Gate(seeds, tape))
        for tape in (None, Silent())
    )
    assert fast.theta.tobytes() == plain.theta.tobytes()


def test_the_gate_holds_a_mechanism_to_its_plan(name):
    """With the plan's events at the gate a release passes; with any of them changed it does not."""
    problem = problem_for(name, n=12)
    plan, budget = next(iter(supported(default(name), problem.spec())))
    seeds = [seed_sequence(1, "test")]
    mechanism = default(name)

    def release(events):
        gate = Gate(seeds, plan=(events, budget.relation))
        mechanism.release(open_view(mechanism, problem), plan, gate)

    release(plan.events)
    noise = ("scale", "exponent", "epsilon")
    size = ("record_norm", "record_oscillation", "dim")
    for change in (noise, ("count", "messages"), size):
        other = [_doubled(event, change) for event in plan.events]
        with pytest.raises(PrivacyError):
            release(other)


def _doubled(event, names):
    """The event with the first of the fields that it has doubled; a sampler's error as it is."""
    if event.alternatives:
        return _change_runs(event, lambda one: _doubled(one, names))
    if event.sensitivity("replace_one") is None and not isinstance(event, Channel):
        return event
    fields = {field.name for field in dataclasses.fields(event)}
    name = next(name for name in names if name in fields)
    gap = {"gap": None} if name.startswith("record") and _has_gap(event) else {}
    return dataclasses.replace(event, **{name: getattr(event, name) * 2}, **gap)
