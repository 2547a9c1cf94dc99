"""``tune=``: what it makes of a cell, what rows say of the choice, what is refused."""

from __future__ import annotations

import json
import math

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run

GRADIENT = ["dataset=synthetic_logistic", "dataset.n=500", "dataset.p=3", "mechanism=noisy_gd",
            "mechanism.steps=5"]  # fmt: skip
MOMENTS = ["dataset=diabetes", "mechanism=sufficient_statistics"]
RADII = "tune={constraint.radius: [1, 10]}"
BOTH = "tune={constraint.radius: [1, 10], ridge: [0, 0.1]}"


def plan(*words):
    return study_plan.plan_study(parse(list(words))).cells


def rows(*words):
    (prepared,) = run.prepare(plan(*words))
    return run_cell.run(prepared, make_solver(), debug=True)


def test_the_mechanism_asked_for_is_run_at_the_candidates():
    (cell,) = plan(*GRADIENT, BOTH)
    assert (cell.mechanism_name, cell.mechanism.inner.steps) == ("private_selection", 5)
    assert cell.mechanism.candidates == {"constraint.radius": [1.0, 10.0], "ridge": [0.0, 0.1]}
    assert cell.constraint_config["radius"] == 10.0
    assert "tune" not in cell.config
    # the same cell, whichever way it was asked for
    (long,) = plan(*GRADIENT[:3], "mechanism=private_selection", "mechanism.inner=noisy_gd",
                   "mechanism.inner.steps=5", BOTH)  # fmt: skip
    assert long.config == cell.config


@pytest.mark.parametrize("words", [GRADIENT, MOMENTS])
def test_a_row_says_what_was_chosen_and_what_it_cost(words):
    found = rows(*words, BOTH, "trials=6", "epsilon=1")
    assert {row["status"] for row in found} == {"ok"}
    for row in found:
        tuning = row["settings"]["tuning"]
        assert tuning["candidates"] == 4
        assert row["epsilon_accounted"] <= 1.0
        assert row["constraint_radius"] == 10.0
        chosen = tuning["chosen"]
        assert chosen == {} or (chosen["constraint.radius"] in (1.0, 10.0)
                                and chosen["ridge"] in (0.0, 0.1))  # fmt: skip
        json.dumps(row["settings"])
    free = found[0]["settings"]["tuning"]["how"] == "free validation"
    assert free == (words is MOMENTS)
    assert (found[0]["settings"]["tuning"]["epsilon"] == 0.0) == free
    assert any(row["settings"]["tuning"]["chosen"] for row in found)


def test_the_recorded_events_say_what_was_spent():
    from dperm_cli.privacy.accounting import ledger_totals
    from dperm_cli.privacy.accounting.accountant import account

    row = rows(*GRADIENT, RADII, "trials=1")[0]
    events = [ledger_totals.rebuild_event(entry) for entry in json.loads(json.dumps(row["events"]))]
    again = account(events, delta=row["delta"], relation=row["relation"])
    assert again.epsilon == pytest.approx(row["epsilon_accounted"], rel=1e-9)
    assert math.isfinite(again.epsilon)


def test_pure_budgets_choose_too():
    found = rows(*GRADIENT[:3], "mechanism=objective_perturbation", RADII, "delta=0", "trials=2")
    assert found[0]["guarantee"] == "pure"
    assert found[0]["epsilon_accounted"] == pytest.approx(1.0)
    assert found[0]["settings"]["tuning"]["stopping"] == "negative_binomial"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("tune={}", "names nothing to choose"),
        ("tune=yes", "must be a map of lists"),
        ("tune={constraint.radius: []}", "constraint.radius=[]: must be a list of different"),
        ("tune={constraint.radius: 1}", "must be a list of different numbers from 1e-50 to"),
        ("tune={constraint.radius: [1, a]}", "constraint.radius=a: must be a list"),
        ("tune={constraint.radius: [1, 0]}", "numbers from 1e-50 to 1e+50, as"),
        ("tune={constraint.radius: [1, true]}", "numbers from 1e-50 to 1e+50, as"),
        ("tune={constraint.radius: [1, [2]]}", "numbers from 1e-50 to 1e+50, as"),
        ("tune={ridge: [-1, 0]}", "ridge=-1: must be a list of different numbers from 0 to"),
        (
            "tune={ridge: [1e60]}",
            "tune.ridge=1e+60: must be a list of different numbers from 0 to 1e+50",
        ),
        (
            "tune={ridge: [1, nan]}",
            "tune.ridge=nan: must be a list of different numbers from 0 to 1e+50",
        ),
        ("tune={constraint.radius: [1e-300, 1]}", "constraint.radius=1e-300: must be a list"),
        ("tune={ridge: [1, 1]}", "different"),
        ("tune={constraint.raduis: [1, 2]}", "tune.constraint.raduis: unknown key"),
        ("tune={dataset.scaling: [bounds, none]}", "no scalings of columns to choose among"),
        ("tune={dataset.scaling: [bounds, minmax]}", "minmax is fitted to the data"),
    ],
)
def test_candidates_that_are_none_are_refused_in_one_line(word, told):
    with pytest.raises(InputError, match="tune") as caught:
        plan(*GRADIENT, word)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "name"),
    [(["dataset=diabetes"], "sufficient_statistics"),
     (["dataset=breast_cancer"], "noisy_gd"),
     (["dataset=breast_cancer", "delta=0"], "objective_perturbation"),
     (["dataset=synthetic_logistic", "dataset.n=500", "dataset.p=2", "delta=0"],
      "objective_perturbation")],
)  # fmt: skip
def test_in_the_place_of_auto_stands_what_can_choose(words, name):
    """Of the mechanisms whose runs can be chosen among, the one of the least predicted risk."""
    found = rows(*words, "mechanism=auto", RADII, "trials=2", "epsilon=1")
    assert {row["status"] for row in found} == {"ok"}
    assert found[0]["settings"]["inner"]["name"] == name
    assert found[0]["epsilon_accounted"] <= 1.0


def test_auto_inside_plans_what_the_mechanism_it_takes_plans():
    words = [*GRADIENT[:3], RADII, "trials=3", "delta=0", "mechanism=private_selection"]
    auto, named = (
        rows(*words, f"mechanism.inner={name}") for name in ("auto", "objective_perturbation")
    )
    assert auto[0]["events"] == named[0]["events"]
    assert auto[0]["settings"]["inner"] == named[0]["settings"]["inner"]


@pytest.mark.parametrize("word", ["constraint.radius=3", "ridge=0.5"])
def test_a_key_that_is_chosen_cannot_be_set(word):
    with pytest.raises(InputError, match="is chosen by tune="):
        plan(*GRADIENT, BOTH, word)


def test_what_cannot_choose_is_an_unsupported_row():
    found = rows(*GRADIENT[:3], "mechanism=noisy_sgd", RADII)
    assert [row["status"] for row in found] == ["unsupported"]
    assert "mechanism.inner=noisy_gd" in found[0]["reason"]
    simplex = rows(*GRADIENT, "constraint=simplex", RADII)
    assert "ball about the origin" in simplex[0]["reason"]
