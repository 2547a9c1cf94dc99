"""``privacy=local``: what may be asked, what a row says, and which number is the guarantee."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from dperm_cli.core import progress
from dperm_cli.core.errors import InputError, PrivacyError
from dperm_cli.mechanisms.local.local_sgd import LocalSgd
from dperm_cli.privacy import channels
from dperm_cli.results.ledger.ledger import build_ledger
from dperm_cli.results.records.schema import normalise
from dperm_cli.runner.cells import prepared_cell, run_cell
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.verbs import run

CLOUD = ("dataset=median_cloud", "dataset.n=60", "dataset.p=3", "trials=2")


def prepared(*words):
    (found,) = run.prepare(study_plan.plan_study(parse([*CLOUD, *words])).cells)
    return found


def rows(*words):
    return run_cell.run(prepared(*words), make_solver(), debug=True)


def test_epsilon_gives_a_local_row():
    first, _ = rows("mechanism=local_sgd", "privacy=local", "epsilon=1.5")
    assert first["status"] == "ok"
    assert (first["guarantee"], first["privacy"], first["delta"]) == ("local", "local", 0.0)
    assert first["epsilon"] == 1.5
    assert first["epsilon_accounted"] == pytest.approx(1.5, rel=1e-12)
    assert first["epsilon_accounted"] <= 1.5
    assert first["information"] is None
    channel = channels.by_epsilon("l_1", 3, 1.5)
    assert first["information_accounted"] == pytest.approx(channel.information)
    assert (first["channel"], first["channel_multiplier"]) == ("l_1", channel.multiplier)
    assert first["population_excess_risk"] >= 0.0
    assert Accounting().fault(normalise(first)) is None


def test_information_gives_a_local_row_with_the_epsilon_that_it_implies():
    first, _ = rows("mechanism=local_mirror_descent", "privacy=local", "information=0.5")
    channel = channels.by_information("l_inf", 3, 0.5)
    assert first["information"] == 0.5
    assert first["information_accounted"] <= 0.5
    assert first["information_accounted"] == pytest.approx(0.5)
    assert first["epsilon"] == first["epsilon_accounted"] == pytest.approx(channel.epsilon)
    assert first["guarantee"] == "local"
    assert "epsilon" not in first["overrides"]
    assert Accounting().fault(normalise(first)) is None


@pytest.mark.parametrize("mechanism", ["local_sgd", "local_mirror_descent"])
def test_what_compiles_at_first_use_says_so_before_it_does(mechanism):
    told = []
    with progress.listen(lambda *words: told.append(words)):
        rows(f"mechanism={mechanism}", "privacy=local")
    first = next(words for words in told if mechanism in words[0])
    assert first == (f"{mechanism}, compiled at first use", 0, 60)
    assert told[-1] == (mechanism, 60, 60)


@pytest.mark.parametrize("outer", ["localization", "high_probability"])
@pytest.mark.parametrize("privacy", ["auto", "local"])
def test_no_combinator_takes_a_local_mechanism(outer, privacy):
    """What it has in common with the one inside is nothing: unsupported, with the reason."""
    words = (f"mechanism={outer}", "mechanism.inner=local_sgd", f"privacy={privacy}")
    (row,) = rows(*words)
    assert row["status"] == "unsupported"
    assert "local" in row["reason"]


def test_auto_is_local_where_nothing_else_can_be():
    first, _ = rows("mechanism=local_sgd")
    assert (first["guarantee"], first["delta"]) == ("local", 0.0)


def test_who_cannot_says_so():
    (row,) = rows("mechanism=noisy_gd", "privacy=local")
    assert row["status"] == "unsupported"
    assert "take mechanism=local_sgd" in row["reason"]
    for words in (["privacy=pure"], ["privacy=approx"], ["privacy.relation=add_remove"]):
        (row,) = rows("mechanism=local_sgd", *words)
        assert row["status"] == "unsupported", words
    (row,) = rows("mechanism=local_sgd", "privacy=local", "information=99")
    assert "never tells" in row["reason"]
    assert row["epsilon"] is None


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["privacy=local", "information=0"], "information"),
        (["privacy=local", "information=nan"], "information"),
        (["privacy=local", "information=true"], "information"),
        (["privacy=local", "information=much"], "information"),
        (["information=0.5"], "information"),
        (["privacy=approx", "information=0.5"], "information"),
        (["privacy=local", "information=0.5", "epsilon=2"], "epsilon"),
        (["privacy=local", "delta=1e-6"], "delta"),
        (["privacy=local", "mechanism.answers=0"], "mechanism.answers"),
        (["privacy=local", "mechanism.channel=l_3"], "mechanism.channel"),
    ],
)
def test_bad_levels_are_refused(words, key):
    with pytest.raises(InputError) as caught:
        prepared("mechanism=local_sgd", *words)
    assert caught.value.key == key


def test_a_level_that_is_not_asked_for_names_no_cell():
    """A cell of before keeps its name; information replaces epsilon in the name."""
    (bare,) = study_plan.plan_study(parse([])).cells
    assert "information" not in bare.config
    one = prepared("mechanism=local_sgd", "privacy=local", "information=0.5").cell
    same = prepared("mechanism=local_sgd", "privacy=local", "information=0.5", "epsilon=1").cell
    assert one.config == same.config
    assert one.config["information"] == 0.5
    swept = study_plan.plan_study(
        parse([*CLOUD, "mechanism=local_sgd", "privacy=local", "information=[0.1,1]"])
    )
    assert [c.information for c in swept.cells] == [0.1, 1.0]
    assert all(math.isinf(c.epsilon) for c in swept.cells)


class Greedy(LocalSgd):
    """Spends twice what it plans for."""

    def plan(self, spec, budget):
        found = super().plan(spec, budget)
        (event,) = found.events
        return dataclasses.replace(found, events=(dataclasses.replace(event, messages=2),))


@pytest.mark.parametrize("level", ["epsilon=1", "information=0.2"])
def test_a_plan_beyond_the_budget_is_not_released(level):
    item = prepared("mechanism=local_sgd", "privacy=local", level)
    greedy = dataclasses.replace(item, cell=dataclasses.replace(item.cell, mechanism=Greedy()))
    (row,) = run_cell.run(greedy, make_solver())
    assert row["status"] == "failed"
    assert "refused to release" in row["reason"]
    budget = prepared_cell.budget_of(greedy, "local")
    planned = Greedy().plan(greedy.padded_problem.spec(), budget)
    with pytest.raises(PrivacyError, match="refused"):
        run_cell.check(planned, budget, "local")


def test_the_statement_says_which_is_the_guarantee():
    local = [
        normalise(row) for row in rows("mechanism=local_sgd", "privacy=local", "information=0.5")
    ]
    found = build_ledger(local, Accounting())
    (release,) = found["releases"]
    words = release["statement"]
    assert "The guarantee is the local epsilon" in words
    assert "not differential privacy" in words
    assert f"epsilon {local[0]['epsilon_accounted']:.6g}"[:12] in words
    assert "own device" in release["relation_means"]
    assert release["asked"] == {"information": 0.5, "delta": 0.0, "kind": "local"}
    assert release["accounted"]["kind"] == "local"
    assert release["accounted"]["information"] == pytest.approx(0.5)
    (total,) = found["totals"]
    assert total["all_trials"]["kind"] == "local"
    assert total["all_trials"]["epsilon"] == pytest.approx(2 * local[0]["epsilon_accounted"])
    asked = [normalise(row) for row in rows("mechanism=local_sgd", "privacy=local", "epsilon=2")]
    words = build_ledger(asked, Accounting())["releases"][0]["statement"]
    assert "locally private with epsilon 2" in words
    assert "(asked: epsilon 2)" in words


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("information_accounted", 0.4, "nats of information"),
        ("epsilon_accounted", 0.01, "says epsilon"),
        ("information", 0.3, "not within its budget"),
    ],
)
def test_a_row_that_says_something_else_is_found(name, value, said):
    first, _ = rows("mechanism=local_sgd", "privacy=local", "information=0.5")
    fault = Accounting().fault(normalise(first) | {name: value})
    assert fault is not None
    assert said in fault


def test_secure_rows_need_no_grid():
    first, second = rows("mechanism=local_sgd", "privacy=local", "epsilon=3", "noise=secure")
    assert first["status"] == "ok"
    assert (first["arithmetic"], first["seed"], first["noise"]) == ("signs", None, "secure")
    assert not np.array_equal(first["theta"], second["theta"])
    again, _ = rows("mechanism=local_sgd", "privacy=local", "epsilon=3", "noise=secure")
    assert not np.array_equal(first["theta"], again["theta"])
    row, *_ = rows("mechanism=local_sgd", "mechanism.channel=l_2", "noise=secure")
    assert (row["status"], row["arithmetic"]) == ("ok", "directions on grid 2^-40")


def test_settings_say_what_one_answer_is():
    first, _ = rows("mechanism=local_sgd", "mechanism.answers=4", "epsilon=2")
    settings = first["settings"]
    assert (settings["answers"], settings["answers_total"], first["steps"]) == (4, 240, 240)
    assert settings["local_epsilon"] == pytest.approx(0.5)
    assert json.loads(normalise(first)["events"])[0]["messages"] == 4


@pytest.mark.parametrize("epsilon", ["1", "2", "[1,2]"])
def test_an_epsilon_beside_information_is_refused_though_it_be_the_default(epsilon):
    words = ["mechanism=local_sgd", "privacy=local", "information=0.5", f"epsilon={epsilon}"]
    with pytest.raises(InputError, match="cannot stand beside information="):
        study_plan.parse_request(words)
    assert study_plan.parse_request(words[:-1])[1].cells[0].information == 0.5


def test_describe_shows_the_epsilon_that_information_implies(tmp_path, capsys, monkeypatch):
    from dperm_cli.runner.verbs.describe import describe

    monkeypatch.chdir(tmp_path)
    words = ["mechanism=local_sgd", "privacy=local", "information=0.5", "loss=l1_median"]
    assert describe([*words, "dataset=median_cloud", "dataset.n=50", "format=json"]) == 0
    (rows,) = json.loads(capsys.readouterr().out)["mechanisms"].values()
    assert [row["guarantee"] for row in rows] == ["local"]
    assert 4.0 < rows[0]["epsilon"] < 6.0
