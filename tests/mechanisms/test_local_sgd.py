"""Local SGD: who sees what, how often users are asked, budgets, bounds, secure answers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dperm_cli.audit.replay import replace_record, replay
from dperm_cli.core import registry
from dperm_cli.core.errors import PrivacyError, Unsupported
from dperm_cli.core.seeds import seed_sequence
from dperm_cli.mechanisms.local.local_mirror_descent import LocalMirrorDescent
from dperm_cli.mechanisms.local.local_sgd import LocalSgd
from dperm_cli.mechanisms.shared import user_answers
from dperm_cli.mechanisms.shared.secure_plan import secure_channel_plan
from dperm_cli.privacy import channels
from dperm_cli.privacy.accounting import ledger_totals
from dperm_cli.privacy.accounting.accountant import account
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Channel, Gaussian
from dperm_cli.privacy.gate import Gate
from dperm_cli.problem.problem import bare_spec
from dperm_cli.views.choose import open_view
from dperm_cli.views.local import Devices, LocalView
from tests.conftest import small_problem

BUDGET = Budget(2.0, 0.0, trust="local")
BOTH = (LocalSgd(), LocalMirrorDescent())


def seeds(trials=2):
    return [seed_sequence(5, "test", trial) for trial in range(trials)]


def released(mechanism, problem, budget=BUDGET, tape=None):
    plan = mechanism.plan(problem.spec(), budget)
    gate = Gate(seeds(), tape, (plan.events, budget.relation))
    return mechanism.release(open_view(mechanism, problem), plan, gate).theta


# --- who sees what


def test_the_view_has_no_way_to_a_record():
    """Of everything a mechanism can reach on it by name, nothing holds a row, a label or a sum."""
    view = LocalView(small_problem())
    assert {name for name in dir(view) if not name.startswith("_")} == {"spec", "devices"}
    for mechanism in BOTH:
        assert isinstance(open_view(mechanism, small_problem()), LocalView)
    assert not isinstance(
        open_view(registry.load("mechanism", "noisy_gd")(), small_problem()), LocalView
    )


def test_a_local_promise_leaves_no_other_view():
    """A mechanism that forgets to say so is held to its guarantee."""

    class Forgot(LocalSgd):
        trust = "central"

    assert isinstance(open_view(Forgot(), small_problem()), LocalView)


def stream_for(problem, messages=1, tape=None, secure=False):
    channel = channels.by_epsilon("l_inf", problem.p, 1.0)
    plan = ((Channel(channel.epsilon, messages, "l_inf", problem.p),), "replace_one")
    gate = Gate.secure(2, None, plan) if secure else Gate(seeds(), tape, plan)
    return gate.stream(plan[0][0], problem.p, bound=1.0, users=problem.data.n)


@pytest.mark.parametrize("messages", [1, 3])
@pytest.mark.parametrize("secure", [False, True])
def test_nobody_is_asked_more_often_than_was_accounted_for(messages, secure):
    problem = small_problem(n=4)
    devices = LocalView(problem).devices(stream_for(problem, messages, secure=secure))
    theta = np.zeros((2, problem.p))
    for _ in range(messages):
        for user in (2, 0):
            assert np.shape(devices.ask(user, theta)) == (2, problem.p)
    for user in (2, 0, 4, -1):
        with pytest.raises(PrivacyError, match="times"):
            devices.ask(user, theta)


def test_neither_a_second_view_of_the_stream_nor_a_second_stream():
    problem = small_problem(n=4)
    view, stream = LocalView(problem), stream_for(problem)
    view.devices(stream)
    with pytest.raises(PrivacyError, match="once"):
        view.devices(stream_for(problem))
    with pytest.raises(PrivacyError, match="once"):
        LocalView(small_problem(n=5)).devices(stream)
    # after a compiled pass nobody is left to ask, and after a question there is no such pass
    sealed = stream.sealed_draws
    assert sealed.keys.shape == (2, 2)
    assert (sealed.users, sealed.messages) == (4, 1)
    with pytest.raises(PrivacyError, match="answered"):
        _ = stream.sealed_draws
    with pytest.raises(PrivacyError, match="times"):
        stream.send(0, np.zeros((2, problem.p)))


def test_the_gate_wants_the_channel_of_the_plan():
    problem = small_problem(n=4)
    event = Channel(1.0, 2, "l_inf", problem.p)
    for change in ({"shape": "l_1"}, {"dim": 7}, {"epsilon": 1.1}, {"messages": 3}):
        other = dataclasses.replace(event, **change)
        gate = Gate(seeds(), plan=((event,), "replace_one"))
        with pytest.raises(PrivacyError, match="no event of the plan"):
            gate.stream(other, other.dim, bound=1.0, users=4)
    gate = Gate(seeds(), plan=((event,), "replace_one"))
    with pytest.raises(PrivacyError, match="no event of the plan"):
        gate.stream(event, 7, bound=1.0, users=4)
    gate = Gate(seeds(), plan=((event,), "replace_one"))
    gate.stream(event, problem.p, bound=1.0, users=4)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        gate.stream(event, problem.p, bound=1.0, users=4)


class Asks(LocalSgd):
    """Breaks the rules: the first user answers twice, the second one never."""

    def release(self, view, plan, gate):
        event = plan.events[0]
        stream = gate.stream(event, event.dim, bound=1.0, users=view.spec.n)
        devices = view.devices(stream)
        for user in (0, 0):
            devices.ask(user, np.zeros((gate.trials, view.spec.p)))


def test_who_asks_twice_is_stopped():
    problem = small_problem(n=3)
    mechanism = Asks()
    plan = mechanism.plan(problem.spec(), BUDGET)
    with pytest.raises(PrivacyError, match="times"):
        replay(mechanism, plan, problem, problem)


@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize("shape", channels.SHAPES)
def test_replay_adds_all_answers_of_a_user_up(answers, shape):
    """Opposite gradients of one user: together exactly the claim; rows too long tell no more."""
    problem = dataclasses.replace(small_problem("linear", n=3, p=1))
    mechanism = LocalSgd(channel=shape, answers=answers)
    plan = mechanism.plan(problem.spec(), BUDGET)
    for size in (1.0, 50.0):
        first = replace_record(problem, 1, np.array([size]), 1.0)
        second = replace_record(problem, 1, np.array([-size]), 1.0)
        found = replay(mechanism, plan, first, second)
        assert found.private, found.faults
        assert found.worst == pytest.approx(1.0, rel=1e-9)
        assert found.calls == 3 * answers


def test_replay_sees_a_device_that_shortens_nothing(monkeypatch):
    """A channel whose bound is not the plan's is another call than on the first run."""
    problem = small_problem("linear", n=3, p=1)
    mechanism = LocalSgd()
    plan = mechanism.plan(problem.spec(), BUDGET)
    other = replace_record(problem, 1, np.array([-1.0]), 1.0)
    kept = user_answers.bound_gradient
    bounds = iter([1.0, 2.0])
    settings = {**plan.settings}

    class Follows(dict):
        def __getitem__(self, key):
            return next(bounds) if key == "channel_bound" else settings[key]

    found = replay(mechanism, dataclasses.replace(plan, settings=Follows()), problem, other)
    assert not found.private
    assert kept is user_answers.bound_gradient


@pytest.mark.parametrize("shape", channels.SHAPES)
def test_replay_sees_other_devices_that_know_the_record(shape, monkeypatch):
    """Each of them keeps to its epsilon; the record pays for all three."""
    problem = small_problem("linear", n=3, p=1)
    mechanism = LocalSgd(channel=shape)
    plan = mechanism.plan(problem.spec(), BUDGET)
    first = replace_record(problem, 1, np.array([1.0]), 1.0)
    second = replace_record(problem, 1, np.array([-1.0]), 1.0)
    assert replay(mechanism, plan, first, second).private

    def ask(self, user, theta):
        return self._stream.send(user, self._gradient(1, theta))

    monkeypatch.setattr(Devices, "ask", ask)
    found = replay(mechanism, plan, first, second)
    assert not found.private
    assert found.worst == pytest.approx(3.0, rel=1e-9)


def test_a_bound_whose_inverse_is_infinite_is_refused():
    """0 over it would be no number, and a chance made of that is the machine's choice."""
    event = Channel(1.0, 1, "l_inf", 2)
    Gate(seeds()).stream(event, 2, bound=2.0**-1022, users=4)
    for bound in (2.0**-1023, 5e-324, 0.0, math.inf, math.nan):
        with pytest.raises(PrivacyError, match="bound"):
            Gate(seeds()).stream(event, 2, bound=bound, users=4)


# --- budgets


@pytest.mark.parametrize("shape", channels.SHAPES)
@pytest.mark.parametrize("answers", [1, 7])
def test_epsilon_is_shared_among_answers(shape, answers):
    spec = small_problem().spec()
    for mechanism in BOTH:
        plan = dataclasses.replace(mechanism, channel=shape, answers=answers).plan(spec, BUDGET)
        (event,) = plan.events
        assert (event.messages, event.shape, event.dim) == (answers, shape, spec.p)
        assert answers * event.epsilon == pytest.approx(2.0, rel=1e-12)
        assert plan.guarantee.epsilon <= 2.0
        assert plan.guarantee.within(BUDGET)
        assert (plan.guarantee.kind, plan.guarantee.trust) == ("local", "local")
        assert plan.steps == spec.n * answers
        again = ledger_totals.recompute(
            plan.events, kind="local", delta=0.0, relation="replace_one", certificate=None
        )
        assert again == plan.guarantee
        assert again.information == pytest.approx(answers * plan.settings["information"])
        assert plan.settings["local_epsilon"] == pytest.approx(2.0 / answers)


@pytest.mark.parametrize("shape", channels.SHAPES)
def test_information_alone_gives_a_channel_and_an_epsilon(shape):
    spec = small_problem().spec()
    for asked in (1e-6, 0.01, 0.5):
        budget = Budget(math.inf, 0.0, trust="local", information=asked)
        plan = LocalSgd(channel=shape, answers=2).plan(spec, budget)
        assert plan.guarantee.information <= asked
        assert plan.guarantee.information == pytest.approx(asked, rel=1e-9)
        expected = 2 * channels.by_information(shape, spec.p, asked / 2).epsilon
        assert plan.guarantee.epsilon == pytest.approx(expected, rel=1e-9)
        assert plan.guarantee.within(budget)
        less = dataclasses.replace(budget, information=0.99 * asked)
        assert not plan.guarantee.within(less)
    if math.isfinite(channels.most_information(shape, spec.p)):
        far = Budget(math.inf, 0.0, trust="local", information=9.0)
        with pytest.raises(Unsupported, match="no limit"):
            LocalSgd(channel=shape).plan(spec, far)
    both = Budget(0.1, 0.0, trust="local", information=0.5)
    assert LocalSgd(channel=shape).plan(spec, both).guarantee.epsilon == pytest.approx(0.1)


def test_a_local_guarantee_is_a_central_one_and_not_the_other_way():
    plan = LocalSgd().plan(small_problem().spec(), BUDGET)
    assert plan.guarantee.within(Budget(2.0, 1e-6))
    central = dataclasses.replace(plan.guarantee, trust="central")
    assert not central.within(BUDGET)
    assert not plan.guarantee.within(Budget(2.0, 0.0, "add_remove"))
    with pytest.raises(Unsupported, match="replace_one"):
        LocalSgd().plan(small_problem().spec(), Budget(2.0, 0.0, "add_remove", "local"))


def test_what_an_unknown_channel_may_tell():
    """epsilon tanh(epsilon / 2): no channel of that epsilon tells more."""
    for epsilon in (0.1, 1.0, 6.0):
        bound = Channel(epsilon).information
        assert bound == pytest.approx(epsilon * math.tanh(epsilon / 2.0))
        for shape in channels.SHAPES:
            for dim in (1, 4):
                assert Channel(epsilon, 1, shape, dim).information <= bound
    assert Channel(0.5, 4).information == pytest.approx(4 * Channel(0.5).information)
    level = account([Channel(0.5, 4, "l_1", 3)], delta=0.0, relation="replace_one")
    assert level.epsilon == pytest.approx(2.0)


# --- bounds on what goes in


@pytest.mark.parametrize(("shape", "norm"), [("l_inf", np.inf), ("l_1", 1), ("l_2", 2)])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "l1_median", "l2_median", "squared"])
def test_no_subgradient_is_longer_than_the_bound(shape, norm, loss):
    """L of the (L, p) class, [DJW12, Def. 2]; medians: 1, p and sqrt(p)."""
    problem = small_problem(loss, n=60, p=4)
    bound = user_answers.bound_gradient(shape, problem.spec(), "auto")
    rng = np.random.default_rng(0)
    theta = problem.constraint.project(3.0 * rng.standard_normal((20, 4)))
    for i in range(60):
        g = problem.loss.gradient(theta, problem.data.take(np.array([i])))
        assert np.max(np.linalg.norm(g, ord=norm, axis=1)) <= bound * (1 + 1e-12)
    if loss == "l1_median":
        assert bound == pytest.approx({"l_inf": 1.0, "l_1": 4.0, "l_2": 2.0}[shape])
        with pytest.raises(Unsupported, match="margin"):
            user_answers.bound_gradient(shape, problem.spec(), 0.5)
    elif loss == "hinge":
        assert user_answers.bound_gradient(shape, problem.spec(), 0.25) == pytest.approx(0.25)
        assert user_answers.bound_gradient(shape, problem.spec(), 99.0) == pytest.approx(bound)


def test_constants_alone_are_enough_for_a_plan():
    ball = registry.load("constraint", "l2_ball")(1.0, 9)
    spec = bare_spec(100, 2.0, ball)
    assert user_answers.bound_gradient("l_1", spec, "auto") == pytest.approx(6.0)
    assert LocalSgd(channel="l_2").plan(spec, BUDGET).settings["channel_bound"] == 2.0


@pytest.mark.parametrize("mechanism", BOTH)
def test_the_scale_of_a_plan_gives_its_events_back(mechanism):
    spec = small_problem().spec()
    plan = mechanism.plan(spec, BUDGET)
    assert plan.noise_scale == pytest.approx(
        plan.settings["channel_bound"] * plan.settings["multiplier"]
    )
    (event,) = mechanism.events(spec, plan.noise_scale, Budget(math.inf, 0.5))
    assert event.epsilon == pytest.approx(2.0, rel=1e-12)


# --- what comes out


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("loss", ["logistic", "l1_median", "multinomial"])
def test_several_answers_compiled_and_plain(mechanism, loss):
    class Silent:
        def take_draw(self, stream, value, drawn, public):
            return drawn

    problem = small_problem(loss, n=12, ridge=0.1)
    chosen = dataclasses.replace(mechanism, answers=2)
    fast, plain = released(chosen, problem), released(chosen, problem, tape=Silent())
    assert fast.tobytes() == plain.tobytes()


def away(problem):
    """The same cloud around another point than the centre of the set."""
    x = 0.5 * problem.data.x + np.array([0.4, -0.2, 0.1])
    return dataclasses.replace(problem, data=dataclasses.replace(problem.data, x=x))


@pytest.mark.parametrize("shape", channels.SHAPES)
def test_the_risk_is_within_the_bound_of_the_step(shape):
    """R G / sqrt(n) for the mean of the iterates on fresh records; one seed, no false alarm in
    sight: what is expected is a fraction of it."""
    problem = away(small_problem("l1_median", n=20_000, p=3, radius=1.0))
    mechanism = LocalSgd(channel=shape)
    plan = mechanism.plan(problem.spec(), BUDGET)
    bound = plan.settings["gradient_norm"] / math.sqrt(20_000)
    theta = released(mechanism, problem)
    best = problem.objective(np.median(problem.data.x, axis=0)) / 20_000
    excess = problem.objective(theta) / 20_000 - best
    assert np.all(excess <= bound)
    start = float(problem.objective(np.zeros(3))) / 20_000 - best
    assert np.all(excess < 0.5 * start)


@pytest.mark.parametrize("shape", ["privunit", "privunit_g"])
def test_answers_from_a_cap_have_no_secure_form(shape):
    problem = small_problem("hinge", n=9)
    mechanism = LocalSgd(channel=shape)
    plan = mechanism.plan(problem.spec(), BUDGET)
    with pytest.raises(Unsupported, match="use mechanism"):
        secure_channel_plan(plan)
    gate = Gate.secure(1, None, (plan.events, "replace_one"))
    stream = gate.stream(plan.events[0], problem.spec().p, bound=1.0, users=9)
    with pytest.raises(PrivacyError, match="no secure form"):
        stream.send(0, np.zeros((1, problem.spec().p)))
    keyed = Gate(seeds()).stream(plan.events[0], problem.spec().p, bound=1.0, users=9)
    with pytest.raises(PrivacyError, match="no compiled loop"):
        _ = keyed.sealed_draws


def test_secure_answers_come_from_the_system_and_are_signs():
    problem = small_problem("hinge", n=9)
    for shape in ("l_inf", "l_1"):
        mechanism = LocalSgd(channel=shape)
        plan = secure_channel_plan(mechanism.plan(problem.spec(), BUDGET))
        outs = []
        for _ in range(2):
            gate = Gate.secure(3, None, (plan.events, "replace_one"))
            outs.append(mechanism.release(open_view(mechanism, problem), plan, gate).theta)
        assert not np.array_equal(*outs)
        # whatever goes in, the values that may come out are the same
        stream = gate_stream(plan, problem)
        size = stream.coding.size
        values = np.unique(np.abs(stream.send(0, np.full((500, 3), 0.01))))
        assert values.tolist() == ([size] if shape == "l_inf" else [0.0, size])
    plan = secure_channel_plan(LocalSgd(channel="l_2").plan(problem.spec(), BUDGET))
    stream = gate_stream(plan, problem)
    units = stream.send(0, np.full((500, 3), 0.01)) / stream.coding.size * 2.0**40
    assert np.allclose(units, np.rint(units), rtol=0.0, atol=1e-3)
    with pytest.raises(PrivacyError, match="asked once more"):
        stream.send(0, np.zeros((500, 3)))


def gate_stream(plan, problem):
    (event,) = plan.events
    gate = Gate.secure(500, None, (plan.events, "replace_one"))
    return gate.stream(event, event.dim, bound=1.0, users=problem.data.n)


def test_secure_words_make_the_same_law():
    """The same kernel on other words: 20,000 answers, 5 standard errors, one fixed generator."""
    rng = np.random.default_rng(8)

    def source(count):
        return rng.integers(0, 2**64, count, dtype=np.uint64)

    channel = channels.by_epsilon("l_inf", 2, 1.0)
    plan = ((Channel(channel.epsilon, 1, "l_inf", 2),), "replace_one")
    gate = Gate.secure(20_000, None, plan, source=source)
    stream = gate.stream(plan[0][0], 2, bound=1.0, users=1)
    z = stream.send(0, np.tile([0.8, -0.1], (20_000, 1)))
    error = 5.0 * channel.multiplier / math.sqrt(20_000)
    assert np.mean(z, axis=0) == pytest.approx([0.8, -0.1], abs=error)
    assert not gate.can_run_compiled
    with pytest.raises(PrivacyError, match="secure"):
        _ = stream.sealed_draws
    noise = Gaussian(1.0, 0.5)
    with pytest.raises(PrivacyError, match="no event of the plan"):
        gate.stream(noise, 1)
    with pytest.raises(PrivacyError, match="only noise on the grid is secure"):
        Gate.secure(1, None, ((noise,), "replace_one")).stream(noise, 1)
