"""``constraint.radius=auto``: which radius, why, where it is said, and where there is no rule."""

from __future__ import annotations

import re

import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.mechanisms.shared.predicted_risk import predict_share
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.compose.public_radius import LARGEST_RISK
from dperm_cli.runner.sweep import preflight
from dperm_cli.runner.verbs import run
from dperm_cli.sets.box import Box
from dperm_cli.sets.l1_ball import L1Ball
from dperm_cli.sets.l2_ball import L2Ball

LOGISTIC = ["dataset=synthetic_logistic", "dataset.n=2000", "dataset.p=3", "trials=1",
            "mechanism=noisy_gd"]  # fmt: skip
SQUARED = ["dataset=diabetes", "trials=2", "mechanism=sufficient_statistics"]
AUTO = "constraint.radius=auto"


def prepare(*words):
    study = study_plan.plan_study(parse(list(words)))
    (found,) = run.prepare(study.cells)
    return found


def first_row(*words):
    return run_cell.run(prepare(*words), make_solver(), debug=True)[0]


def test_a_logistic_problem_has_margins_up_to_ten():
    row = first_row(*LOGISTIC, AUTO, "dataset.p=20", "epsilon=3")
    assert (row["status"], row["constraint_radius"]) == ("ok", 10.0 / row["row_bound"])
    tuning = row["settings"]["tuning"]
    assert tuning["chosen"] == {"constraint.radius": row["constraint_radius"]}
    assert (tuning["epsilon"], tuning["candidates"]) == (0.0, 1)
    assert "at most 0.01" in tuning["reason"]
    noisy = prepare(*LOGISTIC, AUTO, "epsilon=0.1")
    assert "above 0.01" in run_cell.describe_radius(noisy)["tuning"]["reason"]
    assert noisy.problem.constraint.radius == row["constraint_radius"]


def test_a_ball_is_wider_where_noise_is_predicted_to_cost_little():
    """The prediction at the margin that is taken is below the limit, and at twice that above it."""
    found = []
    for epsilon in ("1", "2", "10"):
        cell = prepare(*LOGISTIC, AUTO, f"epsilon={epsilon}")
        radius, reason = cell.problem.constraint.radius, run_cell.describe_radius(cell)["tuning"]
        x = float(re.search(r"noise over signal (?:is|of) ([\d.e-]+)", reason["reason"])[1])
        assert (predict_share(x, 3, radius) <= LARGEST_RISK) or radius == 10.0
        assert (predict_share(x, 3, 2 * radius) > 0.97 * LARGEST_RISK) or radius == 40.0
        found.append(radius)
    assert found == [10.0, 20.0, 40.0]


def test_a_release_takes_the_rule_where_nothing_else_is_asked_for():
    def radius(*words, plan=study_plan.plan_release):
        (cell,) = plan([parse([*LOGISTIC, *words])]).cells
        return cell.constraint_config["radius"]

    assert radius() == "auto"
    assert radius("constraint.radius=3") == 3
    assert radius("loss=hinge") == radius("constraint=l1_ball") == 10.0
    assert radius(plan=study_plan.plan_requests) == 10.0


def test_the_noise_that_decides_is_that_of_the_relation_and_the_guarantee():
    def words(*more):
        return run_cell.describe_radius(prepare(*LOGISTIC, AUTO, *more))["tuning"]["reason"]

    found = {words(), words("privacy.relation=add_remove"),
             words("mechanism=objective_perturbation", "delta=0")}  # fmt: skip
    assert len(found) == 3
    declared = words("privacy.relation=add_remove", "privacy.population=20000")
    assert declared not in found


@pytest.mark.parametrize("ball", ["l2_ball", "l1_ball"])
def test_least_squares_need_no_radius(ball):
    """The released points are those of the widest ball, far inside it."""
    words = [*SQUARED, f"constraint={ball}", "epsilon=10"]
    row = first_row(*words, AUTO)
    assert row["status"] == "ok"
    wide = prepare(*words, f"constraint.radius={row['constraint_radius'] * 3}")
    assert row["radius"] >= 1000.0 * row["target_bound"] / row["row_bound"]
    theta = row["theta"]
    assert 0.0 < abs(theta).max() < 0.1 * row["radius"]
    assert prepare(*words, AUTO).problem.constraint.contains(theta)
    assert "needs no radius" in row["settings"]["tuning"]["reason"]
    assert row["optimum"] == pytest.approx(make_solver()(wide.problem).value, rel=1e-6)


def test_the_record_is_named_by_the_radius_that_was_found():
    asked = prepare(*LOGISTIC, AUTO)
    given = prepare(*LOGISTIC, "constraint.radius=10")
    assert asked.cell.config["constraint"]["radius"] == "auto"
    assert asked.key != given.key
    assert run_cell.describe_radius(given) == {}
    assert "tuning" not in first_row(*LOGISTIC)["settings"]


def test_what_a_study_needs_is_known_before_it_runs(tmp_path):
    study = study_plan.plan_study(parse([*LOGISTIC, AUTO]))
    needs = preflight.list_needs(study.cells, study.keys, tmp_path)
    assert needs[0].seconds is not None
    facts = prepare(*LOGISTIC, AUTO).data.facts()
    assert study.cells[0].constraint(facts).radius == 10.0 / facts.row_bound


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["constraint=box"], "no rule for box: give a number, or take l1_ball and l2_ball"),
        (["loss=hinge"], "no rule for loss=hinge: give a number; logistic has one"),
        (["mechanism=local_sgd", "privacy=local"], "no rule for local mechanisms"),
        (["kernel=rbf"], "constraint"),
        (["dataset=diabetes"], "take mechanism=sufficient_statistics, which needs none"),
    ],
)
def test_where_there_is_no_rule_one_line_says_so(words, told):
    with pytest.raises(InputError, match=r"constraint\.radius") as caught:
        prepare(*LOGISTIC[3:], "dataset=breast_cancer", *words, AUTO)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("word", ["Auto", "automatic", "none", "0"])
def test_no_other_word_is_a_radius(word):
    with pytest.raises(InputError, match=r"constraint\.radius.*> 0, or auto"):
        prepare(*LOGISTIC, f"constraint.radius={word}")


def test_a_set_itself_has_a_number():
    """What a run has not replaced is refused by the set, which has no data to follow."""
    for ball in (L1Ball, L2Ball):
        with pytest.raises(InputError, match="give a number"):
            ball("auto", 3)
    with pytest.raises(InputError, match=r"number > 0$"):
        Box("auto", 3)
