"""``dperm plan tune=``: whether a private choice of radius, ridge or scaling pays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dperm_cli
from dperm_cli.core.errors import InputError
from dperm_cli.problem.problem import Problem
from dperm_cli.runner.forecasts import choice_forecast
from dperm_cli.runner.verbs import plan as verb
from dperm_cli.runner.verbs.plan_request import parse_request
from dperm_cli.solvers.optimum import solve

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


@pytest.mark.parametrize(
    ("with_it", "told"),
    [
        (0.015131, "makes no difference: risk 0.01513 with it, 0.01513 without"),
        (0.01513, "makes no difference"),
        (0.015129, "makes no difference"),
        (0.0151, "pays: risk 0.0151 with it"),
        (0.0152, "does not pay: risk 0.0152 with it"),
    ],
)
def test_a_tie_is_called_so(with_it, told, monkeypatch):
    monkeypatch.setattr(choice_forecast, "_compare_problems", lambda *rows: "")
    rows = [(None, SimpleNamespace(median=risk), {"choice": "c"}) for risk in (0.01513, with_it)]
    assert choice_forecast._judge(*rows).startswith(f"the choice (c) {told}")


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


def test_a_ridge_is_judged_without_it():
    """What a candidate's ridge costs without noise is that of its minimiser, solved here anew."""
    ridge = 0.1
    words = ["like=breast_cancer", "epsilon=1", f"tune={{ridge: [0, {ridge}]}}"]
    question = parse_request(words).question
    asked = [choice_forecast._at(question, {"ridge": one}) for one in (0.0, ridge)]
    least = choice_forecast._find_least(question, asked)
    spec = question.spec(question.like.n, 1.0)
    plain, shrunk = (
        Problem(question.like, spec.form, spec.constraint, one, 0.0) for one in (0.0, ridge)
    )
    expected = (plain.objective(solve(shrunk).theta) - solve(plain).value) / question.like.n
    costs = [np.unique(one.curves.optima - least) for one in asked]
    assert costs[0] == pytest.approx([0.0], abs=1e-9)
    assert costs[1] == pytest.approx(expected, rel=1e-3)
    assert np.all(np.diff(asked[1].curves.risks, axis=1) >= 0.0)


def test_a_large_ridge_pays_for_what_it_shrinks():
    """At much epsilon the risk is what the ridge costs. The run's own is no candidate here."""
    found = foresee("epsilon=100", "tune={ridge: [0.001, 1]}")
    small, large = (
        next(row for row in found.rows if row["ridge"] == one) for one in (0.001, 1.0)
    )  # fmt: skip
    assert large[MEDIAN] > 10.0 * small[MEDIAN]
    assert "at ridge=0.001" in found.verdict
    assert "radius" not in found.rows[0]


def test_every_combination_has_a_row():
    found = foresee("tune={constraint.radius: [1, 10], ridge: [0, 0.1]}")
    asked = [(row["constraint.radius"], row["ridge"]) for row in found.rows]
    assert sorted(one for one in asked if one[0]) == [(1.0, 0.0), (1.0, 0.1), (10.0, 0.0),
                                                      (10.0, 0.1)]  # fmt: skip
    assert (None, None) in asked


@pytest.mark.parametrize(
    ("dataset", "epsilon", "tune"),
    [
        ("diabetes", 5, "tune={dataset.scaling: [none, bounds]}"),
        ("diabetes", 1, "tune={ridge: [0, 0.01, 0.1]}"),
        ("breast_cancer", 3, "tune={ridge: [0, 0.1]}"),
    ],
)
def test_public_records_show_what_a_choice_does(dataset, epsilon, tune, tmp_path):
    """A forecast runs on them: a run with other noise is within twice of it."""
    words = [f"epsilon={epsilon}", tune]
    foreseen = dperm_cli.plan(f"like={dataset}", *words)
    chosen = next(row for row in foreseen.rows if row["choice"] != "none")
    assert chosen["source"] == "run on like"
    assert "both are runs on the public records" in foreseen.verdict
    study = dperm_cli.run(f"dataset={dataset}", *words, "trials=40", f"out={tmp_path}",
                          progress=False)  # fmt: skip
    ratio = chosen[MEDIAN] / study.frame()["excess_risk_per_record_median"].iloc[0]
    assert 0.5 <= ratio <= 2.0


@pytest.mark.parametrize(
    ("word", "told"),
    [("privacy=local", "is for central trust"), ("noise=secure", "has no secure form")],
)
def test_where_a_run_has_no_choice_none_is_foreseen(word, told):
    found = foresee("p=1", word, "tune={constraint.radius: [1, 3]}")
    assert {row["choice"] for row in found.rows} == {"none"}
    assert "nothing can be chosen privately" in found.verdict
    assert told in found.refusals["private_selection"]


def test_a_refusal_at_one_candidate_names_it():
    refused = [{"a": "no", "b": "never"}, {"b": "never"}]
    found = choice_forecast._join_refusals([{"ridge": 0.0}, {"ridge": 1.0}], refused)
    assert found == {"a": "at ridge=0: no", "b": "never"}


def test_the_page_has_the_figures_of_its_command():
    page = (Path(__file__).parents[2] / "docs" / "plan.md").read_text()
    words = re.search(r"dperm plan (like=\S+) (epsilon=\S+) '(tune=\S+ \[none, bounds\]})'", page)
    told = re.search(r"not pay: ([\d.]+) a record with it, ([\d.]+) without it", page)
    assert words
    assert told
    found = dperm_cli.plan(*words.groups())
    medians = {row["choice"]: row[MEDIAN] for row in reversed(found.rows)}
    expected = medians["private selection"], medians["none"]
    assert [float(one) for one in told.groups()] == pytest.approx(expected, rel=0.02)
    assert "does not pay" in found.verdict


def test_problems_that_are_not_simulated_are_refused_in_one_line(capsys):
    words = ["task=binary", "p=200", "n=1000", "epsilon=1", "constraint=box"]
    for more in ([], [RADII.replace("constraint.radius", "ridge")]):
        assert verb.plan([*words, *more]) == 1
        told = capsys.readouterr().out
        assert "does not fit: every mechanism: constraint=box is simulated up to 120" in told


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
        (["tune={dataset.scaling: [none, bounds]}"], "is foreseen with like=DATASET alone"),
        ([RADII, "constraint.radius=3"], "is chosen by tune="),
        (["tune={constraint.radius: []}"], "must be a list"),
        ([RADII, "figure=true"], "is not for tune="),
    ],
)
def test_what_is_not_foreseen_is_one_line(words, told):
    with pytest.raises(InputError, match=r"tune|radius|figure|scaling") as caught:
        parse_request([*PROBLEM, *words])
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["n=2000", "target=0.01"], "target=0.01: is not for tune=: give n and epsilon"),
        (["n=2000", "epsilon=1", "target=0.01"], "target=0.01: is not for tune="),
        (["epsilon=1"], "n=none: tune= needs n and epsilon"),
        (["n=2000"], "epsilon=none: tune= needs n and epsilon"),
        ([], "n, epsilon=none: tune= needs n and epsilon"),
        (["like=breast_cancer"], "epsilon=none: tune= needs n and epsilon"),
        (["like=breast_cancer", "target=0.01"], "target=0.01: is not for tune="),
    ],
)
def test_a_choice_is_foreseen_from_n_and_epsilon(words, told):
    problem = [] if words[:1] == ["like=breast_cancer"] else ["task=binary", "p=3"]
    with pytest.raises(InputError) as caught:
        parse_request([*problem, *words, RADII])
    assert str(caught.value).startswith(told)


def test_sets_without_a_radius_are_refused_with_the_reason():
    found = foresee(RADII, "constraint=simplex")
    assert not found.rows
    assert "ball about the origin" in found.refusals["every mechanism"]
