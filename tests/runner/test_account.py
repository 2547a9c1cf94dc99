"""Asks and answers of `dperm account` as a library."""

from __future__ import annotations

import math

import pytest

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.problem.problem import bare_spec
from dperm_cli.problem.regulariser import Regulariser
from dperm_cli.runner.verbs.account import curves, make_row
from dperm_cli.runner.verbs.account_request import AccountLine, parse_request
from dperm_cli.sets.l2_ball import L2Ball


def ask(name="noisy_gd", n=100, smoothness=None, **values):
    regulariser = Regulariser(ridge=0.5)
    spec = bare_spec(n, 2.0, L2Ball(3.0, p=4), regulariser=regulariser, smoothness=smoothness)
    return AccountLine(name, registry.load("mechanism", name)(), "tight", spec, **values)


def test_bare_facts_are_consistent():
    spec = ask().spec
    assert (spec.n, spec.p, spec.lipschitz) == (100, 4, 2.0)
    assert spec.lipschitz_total == 2.0 + 0.5 * 3.0
    assert (spec.strong_convexity, spec.ridge, spec.smoothness) == (0.5, 0.5, None)
    assert spec.bounds.radius == spec.constraint.radius == 3.0


# these spend a budget on two stages or choose steps for it: a noise scale does not say enough
BUDGETED = {"frank_wolfe", "high_probability", "localization", "private_selection"}
# these choose between two laws of noise, or among mechanisms
CHOOSING = {"one_pass_sgd", "output_perturbation", "phased_erm", "auto"}


def on_parameters(name):
    """Not those that plan on a kernel's facts, or on those of a loss of the margin."""
    mechanism = registry.load("mechanism", name)
    margin = "margin" in mechanism.requires
    return mechanism.space != "kernel" and not margin


ON_PARAMETERS = [name for name in registry.list_protective() if on_parameters(name)]


@pytest.mark.parametrize("name", ON_PARAMETERS)
def test_noise_and_budget_are_inverse(name):
    there = make_row(ask(name, epsilon=1.0, delta=1e-4, smoothness=0.25))
    assert there["epsilon_accounted"] <= 1.0
    back = make_row(ask(name, noise_scale=there["noise_scale"], delta=1e-4, smoothness=0.25))
    if name in BUDGETED | CHOOSING:
        assert back["status"] == "unsupported"
        assert "give epsilon" in back["reason"]
        return
    drawn = [one for one in there["events"] if one["event"] != "SamplerError"]
    error = 0.0 if drawn == there["events"] else 0.05
    assert back["epsilon_accounted"] <= there["epsilon_accounted"] * (1.0 + 1e-9)
    assert back["epsilon_accounted"] >= there["epsilon_accounted"] * (1.0 - 1e-9 - error)
    assert back["guarantee"] == there["guarantee"]


@pytest.mark.parametrize("name", sorted(set(ON_PARAMETERS) - BUDGETED - CHOOSING))
def test_a_plan_is_made_of_the_mechanisms_own_events(name):
    from dperm_cli.privacy.budget import Budget
    from dperm_cli.privacy.events import SamplerError

    asked = ask(name, smoothness=0.25)
    plan = asked.mechanism.plan(asked.spec, Budget(1.0, 1e-4))
    drawn = [e for e in plan.events if not isinstance(e, SamplerError)]
    found = asked.mechanism.events(asked.spec, plan.noise_scale, Budget(math.inf, 0.5))
    assert len(drawn) == len(found)
    for planned, own in zip(drawn, found, strict=True):
        assert type(planned) is type(own)
        numbers = [k for k, v in vars(planned).items() if isinstance(v, float)]
        assert {k: v for k, v in vars(planned).items() if k not in numbers} == {
            k: v for k, v in vars(own).items() if k not in numbers
        }
        assert [getattr(own, k) for k in numbers] == pytest.approx(
            [getattr(planned, k) for k in numbers], rel=1e-12
        )


def test_more_noise_is_more_privacy():
    epsilons = [make_row(ask(noise_scale=s))["epsilon_accounted"] for s in (50.0, 100.0, 200.0)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert len(set(epsilons)) == 3


def test_lemmas_only_for_one_record_steps():
    assert make_row(ask("noisy_sgd", epsilon=1.0))["epsilon_chain"] > 1.0
    assert make_row(ask("noisy_gd", epsilon=1.0))["epsilon_chain"] is None


def test_no_guarantee_is_an_answer():
    row = make_row(ask(epsilon=1.0, privacy="pure"))
    assert row["status"] == "unsupported"
    assert "approx" in row["reason"]
    row = make_row(ask("noisy_sgd", epsilon=1.0, relation="add_remove"))
    assert "sampling=poisson" in row["reason"]


def test_curves_pass_through_the_rows():
    asked = ask(epsilon=1.0)
    row = make_row(asked)
    points = [p for p in curves([asked], [row]) if p["panel"] == "noise"]
    scales = [point["noise_scale"] for point in points]
    assert min(scales) < row["noise_scale"] < max(scales)


def test_a_question_keeps_the_order_of_its_values():
    found = parse_request(["mechanism=noisy_sgd,noisy_gd", "epsilon=2,1", "n=10"])
    assert [(a.name, a.epsilon) for a in found.asks] == [
        ("noisy_sgd", 2.0), ("noisy_sgd", 1.0), ("noisy_gd", 2.0), ("noisy_gd", 1.0),
    ]  # fmt: skip
    with pytest.raises(InputError, match="noise_scale"):
        parse_request(["epsilon=1", "noise_scale=1"])
