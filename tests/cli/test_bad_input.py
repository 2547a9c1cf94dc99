"""Bad input: one line that names key, value and range; exit code 2; nothing written."""

from __future__ import annotations

import os

import pytest

CASES = {
    "mechansim=noisy_sgd": "mechanism",
    "epsilon=nan": "finite number > 0",
    "epsilon=inf": "finite number > 0",
    "epsilon=0": "finite number > 0",
    "epsilon=-1": "finite number > 0",
    "epsilon=true": "finite number > 0",
    "epsilon='1'": "finite number > 0",
    "epsilon=1e-400": "finite number > 0",
    "epsilon=[1,nan]": "epsilon=nan",
    "epsilon=[]": "at least one",
    "mechanism=nosy_sgd": "noisy_sgd",
    "mechanism=[noisy_sgd,nosy_gd]": "noisy_gd",
    "+foo=1": "foo: unknown key",
    "foo=1": "foo: unknown key",
    "trials=0": ">= 1",
    "trials=1.5": "integer",
    "seed=-1": ">= 0",
    "delta=2": "[0, 1)",
    "delta=1": "[0, 1)",
    "delta=nan": "[0, 1)",
    "delta=-0.1": "[0, 1)",
    "constraint.radius=nan": "constraint.radius",
    "constraint.radius=0": "constraint.radius",
    "constraint.radios=1": "constraint.radius",
    "constraint=l2_bal": "l2_ball",
    "dataset=breast_cancr": "breast_cancer",
    "dataset.rows=units": "unit",
    "dataset.scaling=minmax": "unsafe_scaling",
    "loss=squared": "binary losses: hinge",
    "loss=logstic": "logistic",
    "ridge=-1": ">= 0",
    "calibration=loose": "tight",
    "privacy=pur": "pure",
    "privacy.relation=replace": "replace_one",
    "format=yaml": "json",
    "force=1": "true or false",
    "mechanism.steps=0": "mechanism.steps",
    "hydra.run.dir=x": "hydra.run.dir: unknown key",
    "_target_=os.system": "_target_: unknown key",
    "mechanism.name=noisy_sgd": "mechanism.name: unknown key",
    "~epsilon": "cannot be deleted",
    "nonsense": "KEY=VALUE",
    "epsilon=0.1,1": "-m",
}


@pytest.mark.parametrize("word", list(CASES))
def test_one_line_exit_2_nothing_written(dperm, tmp_path, word):
    done = dperm("run", word)
    assert done.code == 2
    assert done.out == ""
    lines = done.err.strip().splitlines()
    assert 1 <= len(lines) <= 2, done.err
    assert CASES[word] in done.err
    assert "Traceback" not in done.err
    assert os.listdir(tmp_path) == []


def test_one_bad_cell_of_a_sweep_stops_it_before_it_starts(dperm, tmp_path):
    done = dperm("run", "-m", "mechanism=noisy_gd", "epsilon=1,2,-3", "trials=1")
    assert done.code == 2
    assert "epsilon=-3" in done.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["csv", "svmlight", "npz", "parquet"])
def test_missing_file(dperm, tmp_path, name):
    done = dperm("run", f"dataset={name}", "dataset.path=no_such_file")
    assert done.code == 2
    assert "dataset.path=no_such_file" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_path_is_required(dperm):
    done = dperm("run", "dataset=csv")
    assert done.code == 2
    assert "dataset.path" in done.err


def test_label_outside_the_map(dperm, tmp_path):
    (tmp_path / "mine.csv").write_text("a,b,label\n0.1,0.2,yes\n0.3,0.1,maybe\n")
    done = dperm(
        "run", "dataset=csv", "dataset.path=mine.csv", "dataset.target=label",
        "dataset.labels={yes: 1, no: -1}",
    )  # fmt: skip
    assert done.code == 2
    assert "maybe" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == ["mine.csv"]


def test_strong_rate_without_ridge_is_a_row_not_an_error(dperm):
    done = dperm(
        "run", "mechanism=noisy_sgd", "mechanism.learning_rate=strongly_convex",
        "mechanism.steps=10", "format=json", "trials=1",
    )  # fmt: skip
    assert done.code == 0
    assert done.rows[0]["status"] == "unsupported"
    assert "ridge" in done.rows[0]["reason"]


@pytest.mark.parametrize("verb", ["rum", "lists", "Run"])
def test_unknown_verb(dperm, verb):
    done = dperm(verb)
    assert done.code == 2
    assert "verb" in done.err


def test_report_of_nothing(dperm, tmp_path):
    done = dperm("report", "nowhere")
    assert done.code == 2
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name: noisy_gd\n_target_: os.system\n", "_target_"),
        ("name: ${oc.env:HOME}\n", "interpolations"),
        ("name: os.system\n", "mechanism"),
        ("name: noisy_gd\nsteps: [\n", "configuration"),
        ("name: noisy_gd\nstepz: 3\n", "mechanism.stepz"),
    ],
)
def test_a_users_yaml_is_data(dperm, tmp_path, text, part):
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    (folder / "evil.yaml").write_text(text)
    done = dperm("run", "--config-dir", "mine", "mechanism=evil")
    assert done.code == 2
    assert part in done.err
    assert len(done.err.strip().splitlines()) <= 2
    assert os.listdir(tmp_path) == ["mine"]
