"""Asks and answers of `dperm account` as a library."""

from __future__ import annotations

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.problem.constraints.l2_ball import L2Ball
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.account import answer, curves
from dperm_cli.runner.account_request import Ask, question


def ask(name="noisy_gd", n=100, **values):
    spec = bare_spec(n, 2.0, L2Ball(3.0, p=4), regulariser=Regulariser(ridge=0.5))
    return Ask(name, registry.load("mechanism", name)(), "tight", spec, **values)


def test_bare_facts_are_consistent():
    spec = ask().spec
    assert (spec.n, spec.p, spec.lipschitz) == (100, 4, 2.0)
    assert spec.lipschitz_total == 2.0 + 0.5 * 3.0
    assert (spec.strong_convexity, spec.ridge, spec.smoothness) == (0.5, 0.5, None)
    assert spec.bounds.radius == spec.constraint.radius == 3.0


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_noise_and_budget_are_inverse(name):
    there = answer(ask(name, epsilon=1.0, delta=1e-5))
    back = answer(ask(name, noise_scale=there["noise_scale"], delta=1e-5))
    assert there["epsilon_accounted"] <= 1.0
    assert back["epsilon_accounted"] == pytest.approx(there["epsilon_accounted"], rel=1e-9)
    assert back["events"] == there["events"]


@pytest.mark.parametrize("name", registry.names("mechanism"))
def test_a_plan_is_made_of_the_mechanisms_own_events(name):
    from dperm_cli.privacy.budget import Budget

    asked = ask(name)
    plan = asked.mechanism.plan(asked.spec, Budget(1.0, 1e-5))
    assert plan.events == asked.mechanism.events(asked.spec, plan.noise_scale)


def test_more_noise_is_more_privacy():
    epsilons = [answer(ask(noise_scale=s))["epsilon_accounted"] for s in (50.0, 100.0, 200.0)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert len(set(epsilons)) == 3


def test_lemmas_only_for_one_record_steps():
    assert answer(ask("noisy_sgd", epsilon=1.0))["epsilon_chain"] > 1.0
    assert answer(ask("noisy_gd", epsilon=1.0))["epsilon_chain"] is None


def test_no_guarantee_is_an_answer():
    row = answer(ask(epsilon=1.0, privacy="pure"))
    assert row["status"] == "unsupported"
    assert "approx" in row["reason"]
    row = answer(ask("noisy_sgd", epsilon=1.0, relation="add_remove"))
    assert "sampling=poisson" in row["reason"]


def test_curves_pass_through_the_rows():
    asked = ask(epsilon=1.0)
    row = answer(asked)
    points = [p for p in curves([asked], [row]) if p["panel"] == "noise"]
    scales = [point["noise_scale"] for point in points]
    assert min(scales) < row["noise_scale"] < max(scales)


def test_a_question_keeps_the_order_of_its_values():
    found = question(["mechanism=noisy_sgd,noisy_gd", "epsilon=2,1", "n=10"])
    assert [(a.name, a.epsilon) for a in found.asks] == [
        ("noisy_sgd", 2.0), ("noisy_sgd", 1.0), ("noisy_gd", 2.0), ("noisy_gd", 1.0),
    ]  # fmt: skip
    with pytest.raises(InputError, match="noise_scale"):
        question(["epsilon=1", "noise_scale=1"])
