"""Issue 20, item 6: `dperm plan` tells the third of epsilon, n and target, and reads no data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import dperm_cli
from tests.breaks._utility import PLAN_KEYS, RISK, assert_one_line, run_row


def ask(**keys: Any) -> Any:
    """The call of the package; a name that type checkers cannot know before it exists."""
    call: Any = dperm_cli
    return call.plan(**keys)


MEDIAN = "excess_risk_per_record"
TASKS = {
    "logistic": ["task=binary", "loss=logistic", "p=5", "constraint.radius=10"],
    "squared": ["task=regression", "loss=squared", "p=5", "constraint.radius=10"],
}


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    """No folder of data, no cache, nothing to read."""
    monkeypatch.setenv("DPERM_DATA_DIR", str(tmp_path / "no-such-folder"))
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def plan(dperm):
    """The rows of ``dperm plan ... format=json``, least risk first."""

    def call(*words):
        done = dperm("plan", *words, "format=json")
        assert done.code == 0, done.err
        assert done.rows
        for row in done.rows:
            assert set(PLAN_KEYS) <= set(row), sorted(row)
        return done.rows

    return call


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_n_and_epsilon_give_risks(task, relation, plan):
    rows = plan(*TASKS[task], "n=5000", "epsilon=1", f"privacy.relation={relation}")
    for row in rows:
        assert 0.0 <= row["q05"] <= row[MEDIAN] <= row["q95"]
        assert math.isfinite(row["q95"])
        assert (row["n"], row["epsilon"]) == (5000, 1.0)
        assert row["seconds"] > 0.0
        assert row["memory"] > 0
    assert [row[MEDIAN] for row in rows] == sorted(row[MEDIAN] for row in rows)
    assert len({row["mechanism"] for row in rows}) == len(rows) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_third_is_found_from_any_two(task, plan):
    words = TASKS[task]
    first = plan(*words, "n=5000", "epsilon=1")[0]
    target = f"target={first[MEDIAN]!r}"
    by_epsilon = plan(*words, "epsilon=1", target)[0]
    by_n = plan(*words, "n=5000", target)[0]
    assert by_epsilon["n"] == pytest.approx(5000, rel=0.1)
    assert by_n["epsilon"] == pytest.approx(1.0, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_more_records_and_more_epsilon_are_less_risk(task, plan):
    by_n = [plan(*TASKS[task], f"n={n}", "epsilon=1")[0][MEDIAN] for n in (300, 3000, 30_000)]
    by_epsilon = [plan(*TASKS[task], "n=3000", f"epsilon={e}")[0][MEDIAN] for e in (0.1, 1, 10)]
    for found in (by_n, by_epsilon):
        assert found[0] > found[1] > found[2] > 0.0


@pytest.mark.slow
def test_a_smaller_target_needs_more(plan):
    words = TASKS["logistic"]
    counts = [plan(*words, "epsilon=1", f"target={t}")[0]["n"] for t in (1e-2, 1e-3, 1e-4)]
    assert counts[0] < counts[1] < counts[2]
    assert all(isinstance(count, int) for count in counts)


@pytest.mark.parametrize("words", [
    ["delta=0"], ["constraint=l1_ball"], ["constraint=simplex"], ["ridge=0.01"], ["lasso=0.01"],
    ["privacy.relation=add_remove"], ["privacy=local"], ["loss=hinge"],
], ids=" ".join)  # fmt: skip
def test_it_has_an_answer_for_each_form(words, plan):
    base = [word for word in TASKS["logistic"] if word.split("=")[0] != words[0].split("=")[0]]
    rows = plan(*base, *words, "n=2000", "epsilon=1")
    assert all(row[MEDIAN] > 0.0 for row in rows)


def test_without_format_it_says_that_it_reads_no_data(dperm):
    done = dperm("plan", *TASKS["logistic"], "n=5000", "epsilon=1")
    assert done.code == 0, done.err
    text = " ".join((done.out + done.err).split())
    assert "no data" in text or "reads no record" in text
    assert "noisy_gd" in text or "objective_perturbation" in text
    assert not Path("outputs").exists() or not list(Path("outputs").rglob("*.parquet"))


def test_it_opens_no_data_set(plan, monkeypatch):
    """Where every data set refuses to load, the answer is the same."""
    from dperm_cli.core import registry

    words = [*TASKS["squared"], "n=4000", "epsilon=0.5"]
    before = plan(*words)
    original = registry.load

    def load(group, name):
        assert group != "dataset", name
        return original(group, name)

    monkeypatch.setattr(registry, "load", load)
    after = plan(*words)
    assert [row[MEDIAN] for row in after] == [row[MEDIAN] for row in before]


def test_a_data_set_may_lend_its_facts(plan):
    """n, p, task and loss of `like` need not be typed; typed ones win."""
    (row, *_) = plan("like=diabetes", "epsilon=1")
    assert row["n"] == 354
    (more, *_) = plan("like=diabetes", "epsilon=1", "n=100000")
    assert more["n"] == 100_000
    assert more[MEDIAN] < row[MEDIAN]


def test_python_has_it():
    found = ask(task="binary", loss="logistic", n=5000, p=5, epsilon=1)
    rows = found.rows
    assert rows[0][MEDIAN] > 0.0
    assert len(found.frame()) == len(rows)
    assert "plan" in dir(dperm_cli)
    assert rows[0]["mechanism"] in repr(found)


def test_command_line_and_python_agree(plan):
    rows = plan("task=binary", "loss=logistic", "n=5000", "p=5", "epsilon=1")
    found = ask(task="binary", loss="logistic", n=5000, p=5, epsilon=1).rows
    assert json.dumps(rows[0][MEDIAN]) == json.dumps(found[0][MEDIAN])


GOOD = ["task=binary", "loss=logistic", "p=5"]
BAD = {
    "one of three": (["epsilon=1"], ("target",)),
    "all three": (["epsilon=1", "n=100", "target=0.1"], ("target",)),
    "epsilon 0": (["epsilon=0", "n=100"], ("epsilon",)),
    "epsilon nan": (["epsilon=nan", "n=100"], ("epsilon",)),
    "n 0": (["epsilon=1", "n=0"], ("n",)),
    "half a record": (["epsilon=1", "n=10.5"], ("n",)),
    "a target of 0": (["epsilon=1", "target=0"], ("target",)),
    "a target below 0": (["epsilon=1", "target=-1"], ("target",)),
    "p 0": (["epsilon=1", "n=100", "p=0"], ("p",)),
    "unknown key": (["epsilon=1", "n=100", "epsilom=1"], ("epsilom",)),
    "unknown loss": (["epsilon=1", "n=100", "loss=logistics"], ("loss", "logistic")),
    "unknown set": (["epsilon=1", "n=100", "like=diabetis"], ("like", "diabetes")),
    "another task's loss": (["epsilon=1", "n=100", "task=regression"], ("loss",)),
    "records": (["epsilon=1", "dataset=csv", "dataset.path=private.csv", "n=100"], ("dataset",)),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_questions_are_one_line(kind, dperm):
    words, named = BAD[kind]
    keys = {word.split("=")[0] for word in words}
    good = dperm("plan", *GOOD, "n=100", "epsilon=1", "format=json")
    assert good.code == 0, good.err
    base = [word for word in GOOD if word.split("=")[0] not in keys]
    assert_one_line(dperm("plan", *base, *words), *named)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["n=10", "target=1e-12"], ["epsilon=1e-9", "target=1e-12"]])
def test_a_target_out_of_reach_is_said(words, dperm):
    done = dperm("plan", *TASKS["logistic"], *words)
    assert done.code in (0, 1, 2)
    text = done.out + done.err
    assert "target" in text
    assert "Traceback" not in text
    assert "nan" not in text
    assert dperm("plan", *TASKS["logistic"], "n=100", "epsilon=1").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.3", "3"])
@pytest.mark.parametrize(("n", "p"), [(2000, 5), (10_000, 10), (1000, 30)])
def test_a_generated_problem_is_within_its_range(n, p, epsilon, plan, dperm):
    """From public facts alone: the band holds the median in nine of ten cells; these are easy."""
    words = ["constraint.radius=10", "delta=1e-6"]
    first = plan("task=binary", "loss=logistic", f"p={p}", f"n={n}", f"epsilon={epsilon}", *words)[
        0
    ]
    row = run_row(dperm, "dataset=synthetic_logistic", f"dataset.n={n}", f"dataset.p={p}", *words,
                  f"epsilon={epsilon}", f"mechanism={first['mechanism']}", "trials=20")  # fmt: skip
    assert first["q05"] / 3.0 <= row[RISK] <= 3.0 * first["q95"]
