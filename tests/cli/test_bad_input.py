"""Bad input: one line that names key, value and range; exit code 2; nothing written."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dperm_cli.runner.compose import plugin_objects
from dperm_cli.runner.compose.composer import Composer

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
    "loss=absolute": "binary losses: hinge",
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
    width = ["dataset.n_features=2"] if name == "svmlight" else []
    done = dperm("run", f"dataset={name}", "dataset.path=no_such_file", *width)
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
        "mechanism.steps=10", "format=json", "trials=1", "ridge=[0,0.01]",
    )  # fmt: skip
    assert done.code == 0
    assert [row["status"] for row in done.rows] == ["unsupported", "ok"]
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
        (
            "name: noisy_gd\nsteps: [\n",
            "evil.yaml: is not a YAML configuration (while parsing a flow node",
        ),
        (
            "name: noisy_gd\nsteps: 1\nsteps: 2\n",
            "the key steps is there twice at line 3",
        ),
        (
            "name: noisy_gd\nsteps: !!python/object/apply:os.system [touch x]\n",
            "evil.yaml: line 2",
        ),
        (
            "name: noisy_gd\nsteps: &a [*a]\n",
            "evil.yaml: line 2: anchors and aliases are not allowed",
        ),
        ("- noisy_gd\n", "evil.yaml: must hold `name:` and parameters"),
        ("", "evil.yaml: must hold `name:` and parameters"),
        ("name: noisy_gd\n\xff: 1\n", "evil.yaml: is not UTF-8 text"),
        ("name: " + "[" * 5000 + "\n", "evil.yaml: line 1: is nested deeper than 32"),
        ("name: noisy_gd\nstepz: 3\n", "mechanism.stepz"),
    ],
)
def test_a_users_yaml_is_data(dperm, tmp_path, text, part):
    folder = tmp_path / "mine" / "mechanism"
    folder.mkdir(parents=True)
    (folder / "evil.yaml").write_text(text, encoding="latin-1")
    done = dperm("run", "--config-dir", "mine", "mechanism=evil")
    assert done.code == 2
    assert part in done.err
    assert "hydra" not in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == ["mine"]


class Fuse:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def _npz(folder, name, **arrays):
    np.savez_compressed(folder / name, **arrays)
    return "dataset=npz", f"dataset.path={name}"


def _csv(folder, text, *words):
    (folder / "f").write_text(text)
    return "dataset=csv", "dataset.path=f", *words


BAD_FILES = {
    "a row cut short": (
        lambda f: _csv(f, "a,b,y\n1,2,1\n3,4,-1\n5,6\n"),
        "dataset.path=f: line 4 has 2 fields, the first line 3",
    ),
    "an added entry": (
        lambda f: _csv(f, "a,b,y\n1,2,1\n3,4,9,-1\n"),
        "dataset.path=f: line 3 has 4 fields, the first line 3",
    ),
    "a wrong label": (lambda f: _csv(f, "a,y\n1,1\n2,3\n"), "label of record 2 is outside"),
    "a wrong class": (
        lambda f: _csv(f, "a,y\n1,u\n2,w\n", "dataset.task=multiclass", "dataset.labels=[u,v,z]"),
        "label of record 2 is outside the declared map {u: 0, v: 1, z: 2}",
    ),
    "a nan": (lambda f: _csv(f, "a,y\n1,1\nnan,-1\n"), "record 2, column 'a' holds text"),
    "a header of numbers": (lambda f: _csv(f, "1,1\n2,-1\n"), "dataset.header=false"),
    "a nan in an array": (
        lambda f: _npz(f, "g.npz", x=np.array([[1.0], [np.nan]]), y=np.ones(2)),
        "dataset.path=g.npz: record 2, column 1 is missing, nan or infinite",
    ),
    "a zip bomb": (
        lambda f: (*_npz(f, "g.npz", x=np.zeros((100_000, 20)), y=np.ones(100_000)),
                   "dataset.max_size=0.001"),
        "unpacks to more than the declared limit of 0.001 GiB",
    ),
    "a pickle in an npz": (
        lambda f: _npz(f, "g.npz", x=np.array([[Fuse(f / "fired")]], dtype=object), y=np.ones(1)),
        "it holds pickled objects, which are never loaded",
    ),
    "a lost row of a published set": (
        lambda f: ((f / "a9a").write_text("1 1:1\n"), "dataset=a9a")[1:],
        "dataset=a9a: a9a is not the published a9a: 1 records; published: 32561",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
@pytest.mark.parametrize("verb", ["run", "describe"])
def test_a_bad_file_is_one_line_and_leaves_nothing(case, verb, dperm, tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_DATA_DIR", str(tmp_path))
    make, part = BAD_FILES[case]
    words = make(tmp_path)
    before = sorted(os.listdir(tmp_path))
    done = dperm(verb, *words)
    assert (done.code, done.out) == (2, "")
    assert part in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_svmlight_needs_its_width(dperm, tmp_path):
    (tmp_path / "f").write_text("1 1:1\n-1 2:1\n")
    done = dperm("run", "dataset=svmlight", "dataset.path=f")
    assert done.code == 2
    assert "dataset.n_features=None: must be declared" in done.err


def test_a_yaml_with_unquoted_words_reads_the_labels_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "dataset").mkdir(parents=True)
    (tmp_path / "mine" / "dataset" / "d.yaml").write_text(
        "name: csv\npath: f\nlabels: {yes: 1, no: -1}\ntest_fraction: 0\n"
    )
    (tmp_path / "f").write_text("a,y\n1,yes\n2,no\n1,yes\n")
    config = Composer("mine").compose({"dataset": "d"})["dataset"]
    assert sorted(plugin_objects.build("dataset", config).load().y) == [-1, 1, 1]
