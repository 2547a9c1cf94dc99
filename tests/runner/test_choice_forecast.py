"""``dperm plan tune=``: whether a private choice of the radius pays."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dperm_cli
from dperm_cli.core.errors import InputError
from dperm_cli.runner.forecasts import choice_forecast
from dperm_cli.runner.verbs import plan as verb
from dperm_cli.runner.verbs.plan_request import parse_request

PROBLEM = ["task=binary", "p=3", "n=2000", "epsilon=1"]
RADII = "tune={constraint.radius: [1, 10]}"
MEDIAN = "excess_risk_per_record"


def foresee(*words):
    question = parse_request([*PROBLEM[:-1], "epsilon=1", *words]).question
    return choice_forecast.answer(question, attacks=False)


def test_a_row_for_each_candidate_and_one_for_the_choice():
    found = foresee(RADII)
    assert sorted((row["choice"], row["constraint.radius"] or 0.0) for row in found.rows) == [
        ("none", 1.0), ("none", 10.0), ("private selection", 0.0)
    ]  # fmt: skip
    medians = [row[MEDIAN] for row in found.rows]
    assert medians == sorted(medians)
    assert {row["epsilon"] for row in found.rows} == {1.0}
    chosen = next(row for row in found.rows if row["choice"] != "none")
    pays = chosen is found.rows[0]
    assert ("does not pay" in found.verdict) is not pays


def test_one_candidate_alone_makes_a_choice_that_cannot_pay():
    """All that differs is what the runs and their scores cost."""
    found = foresee("tune={constraint.radius: [10]}")
    assert [row["choice"] for row in found.rows] == ["none", "private selection"]
    assert "does not pay" in found.verdict
    assert "0 of 9 simulated problems" in found.verdict


def test_a_choice_pays_where_no_candidate_is_good_for_all():
    """Draws of a selection among two candidates, each useless on half of the problems."""
    from dperm_cli.privacy.accounting.random_stopping import Poisson

    risks = np.array([[1.0, 0.01] * 20, [0.01, 1.0] * 20])
    problems, floors = np.tile([0, 1], 20), np.ones(40)
    law = Poisson(10.0)
    found = choice_forecast._draw_choices(law, (1e-3, False), risks, floors, problems)
    assert np.median(found) == 0.01
    blind = choice_forecast._draw_choices(law, (1e3, False), risks, floors, problems)
    assert 0.3 <= np.mean(blind == 1.0) <= 0.7
    none = choice_forecast._draw_choices(Poisson(1e-9), (1e-3, True), risks, floors, problems)
    assert set(none) == {1.0}


def test_a_small_radius_pays_for_what_it_cannot_reach():
    """At much epsilon the risk of a small set is the distance of the two optima."""
    found = foresee("epsilon=100", "tune={constraint.radius: [0.01, 10]}")
    small = next(row for row in found.rows if row["constraint.radius"] == 0.01)
    large = next(row for row in found.rows if row["constraint.radius"] == 10.0)
    assert small[MEDIAN] > 100.0 * large[MEDIAN]


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_verdict_is_that_of_runs(task, relation, delta, tmp_path):
    """Where forecasts differ by over 1.5 times, runs on a generated problem agree."""
    from tests.breaks._utility import RISK, table_words

    words = [f"delta={delta}", f"privacy.relation={relation}"]
    foreseen = dperm_cli.plan(f"task={task}", "p=4", "n=2000", "epsilon=1", RADII, *words)
    table = table_words(tmp_path, task, 2500, 4)
    studies = [
        dperm_cli.run(*table, *words, "trials=40", own, f"out={tmp_path}/{place}", progress=False)
        for place, own in enumerate((RADII, "constraint.radius=10"))
    ]
    with_it, without = (study.frame()[RISK].iloc[0] for study in studies)
    chosen = next(row for row in foreseen.rows if row["choice"] != "none")
    wide = next(row for row in foreseen.rows if row["constraint.radius"] == 10.0)
    ratio = chosen[MEDIAN] / wide[MEDIAN]
    assert ratio < 1.5 or with_it > without / 1.5
    assert ratio > 1.0 / 1.5 or with_it < 1.5 * without


def test_python_and_the_command_line_have_the_verdict(capsys):
    words = [*PROBLEM, RADII]
    found = dperm_cli.plan(*words)
    assert found.verdict in " ".join(repr(found).split())
    assert verb.plan([*words, "format=json"]) == 0
    told = capsys.readouterr()
    assert found.verdict in told.err
    assert [json.loads(line) for line in told.out.splitlines()] == found.rows
    with pytest.raises(InputError, match="tune"):
        found.plot()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tune={ridge: [0, 1]}"], "only a choice of constraint.radius is foreseen"),
        ([RADII, "constraint.radius=3"], "is chosen by tune="),
        (["tune={constraint.radius: []}"], "must be a list"),
        ([RADII, "figure=true"], "is not for tune="),
    ],
)
def test_what_is_not_foreseen_is_one_line(words, told):
    with pytest.raises(InputError, match=r"tune|radius|figure") as caught:
        parse_request([*PROBLEM, *words])
    assert told in str(caught.value)
    with pytest.raises(InputError, match="target"):
        parse_request(["task=binary", "p=3", "n=2000", "target=0.01", RADII])


def test_sets_without_a_radius_are_refused_with_the_reason():
    with pytest.raises(Exception, match="ball about the origin"):
        foresee(RADII, "constraint=simplex")
