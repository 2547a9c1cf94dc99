"""The audit looks where proof and program meet: each check finds a fault that no other one sees.

Every planted fault leaves claim, plan and the law of the points as good as they were.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dperm_cli.audit import channel_answers, composed_delta, constant_checks, noise_laws
from dperm_cli.audit.opened_cell import ListeningTape
from dperm_cli.core import registry
from dperm_cli.loops import local_channels
from dperm_cli.mechanisms.gradient import noisy_gd
from dperm_cli.mechanisms.kernel.kernel_release import ReleaseSession
from dperm_cli.privacy import gate as noise
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.budget import Budget
from dperm_cli.privacy.events import Channel, Gaussian, Laplace, PerturbedObjective
from dperm_cli.privacy.secure_grid import Grid
from dperm_cli.privacy.streams import PerturbedStream
from dperm_cli.runner.cells import run_cell
from tests.runner.test_audit_cells import report_on, said


def test_a_release_without_its_second_noise_is_found(monkeypatch):
    def bare(self, point, value, step, paid):
        return plain(self, point, value, step, Passing())

    class Passing:
        def add(self, found, step):
            return found

    plain = PerturbedStream.find
    monkeypatch.setattr(PerturbedStream, "find", bare)
    for law in ("gamma", "gaussian"):
        report = report_on("objective_perturbation", **{"mechanism.noise": law})
        assert said(report, "nothing was released with", "of the plan")


def test_streams_of_one_trial_with_the_same_numbers_are_found(monkeypatch):
    made = noise._OneTrial.__init__

    def again(self, *arguments):
        made(self, *arguments)
        self._streams = 0

    monkeypatch.setattr(noise._OneTrial, "__init__", again)
    report = report_on("localization", **{"mechanism.inner": "noisy_gd"})
    assert said(report, "share their random numbers")


def test_noise_of_two_streams_is_compared_in_units_of_their_scales():
    class Stream:
        tells_noise, few_outcomes = True, False

        def __init__(self, scale):
            self.scale = scale

    unit = np.random.default_rng(0).standard_normal((4, 3))
    for second, shared in ((unit, True), (-unit, False)):
        tape = ListeningTape(keep=True)
        for scale, numbers in ((2.0, unit), (30.0, second)):
            value = np.full((4, 3), 7.0)
            tape.take_draw(Stream(scale), value, value + scale * numbers)
        assert tape.shared is shared


def test_a_session_that_tells_a_value_is_found(monkeypatch):
    whole = ReleaseSession._answer_new_query

    def tells(self, row):
        near = bool(self._points)
        answer = whole(self, row)
        return float(self._found.values(row[None, :])[0]) if near else answer

    assert not report_on("kernel_release").faults
    monkeypatch.setattr(ReleaseSession, "_answer_new_query", tells)
    assert said(report_on("kernel_release"), "a session", "outputs differ")


def test_gradients_at_points_outside_of_the_set_are_found(monkeypatch):
    def far(self, view, plan, gate):
        step = gate.stream(plan.events[0], view.spec.p)
        theta = np.full((gate.trials, view.spec.p), 2.0 * view.spec.constraint.radius)
        for number in range(plan.steps):
            noisy = step.add(view.gradient_sum(theta), number)
        return noisy_gd.Release(view.spec.constraint.project(-noisy))

    monkeypatch.setattr(noisy_gd.NoisyGd, "release", far)
    assert said(report_on("noisy_gd"), "points outside of the set")


def test_a_runner_that_releases_another_problem_is_found(monkeypatch):
    opened = run_cell.open_release

    def other(prepared, plan, budget, grid):
        size = 0.02 if np.any(prepared.data.x) else 1.0
        problem = dataclasses.replace(prepared.problem, ridge=size * prepared.problem.ridge)
        return opened(dataclasses.replace(prepared, problem=problem), plan, budget, grid)

    monkeypatch.setattr(run_cell, "open_release", other)
    assert said(report_on("output_perturbation", ("alone",)), "a run, alone")


@pytest.mark.parametrize("shape", ["l_1", "l_inf", "l_2"])
@pytest.mark.parametrize("dim", [1, 3, 12])
def test_answers_of_channels_are_as_frequent_as_they_should_be(shape, dim):
    event = Channel(1.0, 2, shape, dim)
    assert channel_answers.find_faults(event, "replace_one") == []


def test_a_corner_that_never_comes_is_found(monkeypatch):
    send = local_channels.send

    def never(coding, g, drawn):
        answers = send(coding, g, drawn)
        beside = (answers[:, 1] != 0.0) & (np.abs(g[:, 0]) > 0.0)
        answers[beside] = coding.size * np.eye(answers.shape[1])[0]
        return answers

    monkeypatch.setattr(local_channels, "send", never)
    (fault,) = channel_answers.find_faults(Channel(1.0, 1, "l_1", 3), "replace_one")
    assert "times as frequent" in fault


@pytest.mark.parametrize("event", [Gaussian(300.0, 1.0, 3), Laplace(300.0, 1.0, 3)])
def test_secure_noise_has_the_law_of_its_event(event, monkeypatch):
    grid = Grid(-4)
    assert noise_laws.find_faults(event, 3, "replace_one", grid=grid) == []
    rounded = secure_noise.draw_rounded_noise

    def steps(kind, ratio, count, source=secure_noise.system_words):
        found = rounded(kind, ratio, count, source)
        return np.where(np.abs(found) < ratio, found // 2, found)

    monkeypatch.setattr(secure_noise, "draw_rounded_noise", steps)
    assert noise_laws.find_faults(event, 3, "replace_one", grid=grid)


def test_a_hessian_of_more_rank_and_curvature_than_an_event_says_is_found():
    mechanism = registry.load("mechanism", "objective_perturbation")(noise="gamma")
    problem = _many_classes()
    plan = mechanism.plan(problem.spec(), Budget(1.0, 0.0))
    assert constant_checks.find_faults(problem, plan.events) == []
    (event,) = (e for e in plan.events if isinstance(e, PerturbedObjective))
    assert event.rank == 2
    lower = dataclasses.replace(event, rank=1)
    assert any(
        "rank of a Hessian" in words for words in constant_checks.find_faults(problem, (lower,))
    )
    flat = dataclasses.replace(event, curvature=0.3 * event.curvature)
    assert any("curvature" in words for words in constant_checks.find_faults(problem, (flat,)))


def _many_classes():
    from dperm_cli.problem.data import Data
    from dperm_cli.problem.problem import Problem

    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    data = Data.of_records(
        "classes", "multiclass", x, np.arange(9) % 3, row_bound=1.0, target_bound=1.0, classes=3,
        fingerprint="classes",
    )  # fmt: skip
    loss = registry.load("loss", "multinomial")()
    return Problem(data, loss, registry.load("constraint", "l2_ball")(5.0, 9), 0.1)


def test_laplace_steps_together_spend_what_they_claim():
    from dperm_cli.privacy.accounting.accountant import account

    events = (Laplace(20.0, 1.0, 8),)
    level = account(events, delta=1e-5, relation="add_remove")
    assert composed_delta.find_faults(events, level.epsilon, 1e-5, "add_remove") == []
    assert composed_delta.find_faults(events, 0.8 * level.epsilon, 1e-5, "add_remove")
