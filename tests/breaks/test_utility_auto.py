"""Issue 20, item 3: `mechanism=auto` is the default, says what it chose, and looks at no record."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import dperm_cli
from dperm_cli.audit.hard_pairs import Records
from dperm_cli.runner.audits import neighbour_runs
from tests.breaks._utility import (
    CHOICE_KEYS,
    NEVER_CHOSEN,
    assert_one_line,
    choice_of,
    make_binary,
    make_regression,
    npz_words,
    run_row,
    run_rows,
    table_words,
    write_npz,
)

AUTO = ["mechanism=auto", "trials=2"]


def test_it_is_the_default(dperm, tmp_path):
    row = run_row(dperm, *table_words(tmp_path, "binary", 100, 3), "trials=1")
    assert row["mechanism"] == "auto"
    choice_of(row)


def test_it_is_the_default_in_python(tmp_path):
    x, y = make_binary(100, 3)
    study = dperm_cli.run(X=x, y=y, trials=1, out=tmp_path / "study", progress=False)
    assert study.frame()["mechanism"].tolist() == ["auto"]


@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_the_row_has_choice_runner_up_and_predicted_risks(task, delta, dperm, tmp_path):
    row = run_row(dperm, *table_words(tmp_path, task, 200, 4), *AUTO, f"delta={delta}")
    found = choice_of(row)
    risks = found["predicted"]
    assert all(np.isfinite(list(risks.values())))
    assert all(risk >= 0.0 for risk in risks.values())
    order = sorted(risks, key=risks.get)
    assert risks[found["chosen"]] == risks[order[0]]
    if len(order) > 1:
        assert risks[found["runner_up"]] == risks[order[1]]
    assert not set(risks) & set(found["refused"])
    assert not NEVER_CHOSEN & set(risks)
    assert found["chosen"] in found["reason"] or found["reason"]


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_describe_names_them(task, dperm, tmp_path):
    words = [*table_words(tmp_path, task, 200, 4), "mechanism=auto", "epsilon=1"]
    done = dperm("describe", *words, "format=json", f"out={tmp_path}/described")
    assert done.code == 0, done.err
    (facts,) = done.rows
    found = facts["mechanisms"]["auto"][0]
    text = json.dumps(found)
    for key in CHOICE_KEYS[:3]:
        assert key in text
    printed = dperm("describe", *words, f"out={tmp_path}/described").out
    settings = choice_of(run_row(dperm, *words, "trials=1"))
    assert settings["chosen"] in printed
    assert settings["runner_up"] in printed


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_it_is_the_mechanism_that_it_chose(task, dperm, tmp_path):
    """Asked for by name it has the same noise, events and guarantee."""
    words = [*table_words(tmp_path, task, 300, 3), "trials=1", "epsilon=0.7"]
    row = run_row(dperm, *words, "mechanism=auto")
    named = run_row(dperm, *words, f"mechanism={choice_of(row)['chosen']}")
    for column in ("noise_scale", "epsilon_accounted", "delta_accounted", "steps", "guarantee"):
        assert row[column] == named[column], column


# --- public facts alone ------------------------------------------------------------------------

WORDS = ["trials=2", "delta=1e-6", "mechanism=auto"]


@pytest.mark.in_turn
@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("words", [
    [], ["privacy.relation=add_remove", "privacy.population=500"],
    ["epsilon=0.01", "privacy.relation=add_remove", "privacy.population=500"], ["save=m.npz"],
    ["delta=0"], ["constraint=l1_ball", "lasso=0.001"],
], ids=["plain", "population", "much noise", "model", "pure", "lasso"])  # fmt: skip
def test_neighbouring_files_make_the_same_choice(words, task, tmp_path):
    make = make_regression if task == "regression" else make_binary
    x, y = make(40, 3)
    other_x, other_y = x.copy(), y.copy()
    if any("population" in word for word in words):
        other_x, other_y = np.delete(x, 7, axis=0), np.delete(y, 7)
    else:
        other_x[7], other_y[7] = -x[7], -y[7]
    folders = []
    for name, records in (("first", (x, y)), ("second", (other_x, other_y))):
        (tmp_path / name).mkdir()
        Records(*records).write(tmp_path / name / "records.npz")
        folders.append(tmp_path / name)
    words = [*npz_words("records.npz", task), *WORDS, *words]
    fault, one, other = neighbour_runs.run_on_both(words, *folders, cache=tmp_path / "cache")
    assert fault is None
    assert one.status == other.status == "ok"
    assert one.records[0]["settings"] == other.records[0]["settings"]


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_data_of_the_same_facts_make_the_same_choice(task, dperm, tmp_path):
    """Whether there is a signal, none, or rows of zeros: n, p and bounds decide."""
    x, y = make_regression(200, 4) if task == "regression" else make_binary(200, 4)
    kinds = {"signal": (x, y), "noise": (x[::-1], y), "flat": (np.tile(x[:1], (200, 1)), y)}
    found = []
    for name, records in kinds.items():
        path = write_npz(tmp_path / f"{name}.npz", *records)
        found.append(choice_of(run_row(dperm, *npz_words(path, task), *AUTO)))
    assert found[0] == found[1] == found[2]


def test_a_declared_population_stands_for_n(dperm, tmp_path):
    """Tables of 60 and of 90 records with one population: one choice, one prediction."""
    found = [
        choice_of(run_row(dperm, *table_words(tmp_path, "binary", n, 3), *AUTO,
                          "privacy.relation=add_remove", "privacy.population=1000"))
        for n in (60, 90)
    ]  # fmt: skip
    assert found[0] == found[1]


def test_the_predictions_fall_with_epsilon(dperm, tmp_path):
    rows = run_rows(dperm, "-m", *table_words(tmp_path, "binary", 400, 4), *AUTO,
                    "epsilon=0.1,0.3,1,3,10", "delta=1e-6")  # fmt: skip
    best = [min(choice_of(row)["predicted"].values()) for row in rows]
    assert best == sorted(best, reverse=True)
    assert best[0] > best[-1]


# --- the rule ----------------------------------------------------------------------------------


def chosen(*words: str) -> str:
    (plan,) = dperm_cli.plans(*words, mechanism="auto", progress=False)
    return plan.settings["chosen"]


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_the_squared_loss_has_its_moments_taken(relation, tmp_path):
    """Section 3, rule 1: at radius 10 nothing else comes near."""
    words = table_words(tmp_path, "regression", 2000, 5)
    assert chosen(*words, "epsilon=1", "delta=1e-6", f"privacy.relation={relation}") == (
        "sufficient_statistics"
    )
    assert chosen(*words, "epsilon=1", "delta=0", f"privacy.relation={relation}") == (
        "sufficient_statistics"
    )


def test_many_records_of_few_columns_have_their_objective_perturbed(tmp_path):
    """Section 3, rule 2: x = .0004, kappa far below .9."""
    words = table_words(tmp_path, "binary", 20_000, 3)
    assert chosen(*words, "epsilon=10", "delta=1e-6") == "objective_perturbation"


def test_many_columns_of_few_records_do_not(tmp_path):
    """Rule 2: x = 1.9, and Gaussian noise of objective perturbation is larger than a descent's."""
    words = table_words(tmp_path, "binary", 300, 200)
    assert chosen(*words, "epsilon=0.3", "delta=1e-6") == "noisy_gd"


# --- what cannot be asked ----------------------------------------------------------------------


@pytest.mark.parametrize("key", ["foo", "steps", "name2"])
def test_it_takes_no_key_that_it_does_not_know(key, dperm, tmp_path):
    words = table_words(tmp_path, "binary", 60, 3)
    done = dperm("run", *words, "mechanism=auto", f"mechanism.{key}=1")
    assert_one_line(done, f"mechanism.{key}")


def test_bytes_are_equal_from_one_worker_and_from_two(dperm, tmp_path):
    words = [*table_words(tmp_path, "binary", 60, 3), *AUTO, "-m", "epsilon=0.1,1,10"]
    rows = []
    for workers in (1, 2):
        out = tmp_path / f"w{workers}"
        run_rows(dperm, *words, f"workers={workers}", f"out={out}")
        with open(out / "table.csv", newline="") as file:
            rows.append(list(csv.DictReader(file)))
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3


def test_a_study_of_it_is_verified_and_its_model_predicts(dperm, tmp_path):
    words = table_words(tmp_path, "binary", 100, 3)
    run_row(dperm, *words, "mechanism=auto", "trials=1", f"out={tmp_path}/s",
            f"save={tmp_path}/m.npz")  # fmt: skip
    assert dperm("verify", f"{tmp_path}/s").code == 0
    new = tmp_path / "new.npz"
    np.savez(new, x=make_binary(5, 3, seed=8)[0])
    done = dperm("predict", f"{tmp_path}/m.npz", str(new))
    assert done.code == 0, done.err


def test_a_second_run_looks_it_up(dperm, tmp_path):
    words = [*table_words(tmp_path, "binary", 60, 3), *AUTO, f"out={tmp_path}/s"]
    first = run_row(dperm, *words)
    again = dperm("run", *words, "format=json")
    assert again.rows == [first]
    assert "looked up" in again.err or again.rows[0]["seconds"] == first["seconds"]
