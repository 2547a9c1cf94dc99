"""A released predictor is kept in a file, without a record, and says the same again."""

from __future__ import annotations

import csv
import io
import json
import os

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.datasets.published.breast_cancer import BOUNDS
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.models import model_file
from dperm_cli.runner.verbs import run

BASE = ["dataset=breast_cancer", "loss=logistic", "ridge=0.05", "trials=2", "epsilon=5"]
WAYS = {
    "exact": ["kernel=rbf", "mechanism=kernel_release", "kernel.queries=20"],
    "landmarks": ["kernel=polynomial", "kernel.features=landmarks", "kernel.size=20",
                  "mechanism=kernel_release"],
    "fourier": ["kernel=laplacian", "kernel.size=15", "mechanism=output_perturbation"],
    "explicit": ["kernel=polynomial", "kernel.degree=2", "mechanism=output_perturbation"],
    "none": ["mechanism=noisy_gd", "dataset.intercept=true"],
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """way -> the folder of its run, run once."""
    known = {}

    def of(way):
        if way not in known:
            folder = tmp_path_factory.mktemp(way)
            kept = os.environ.get("DPERM_CACHE_DIR")
            os.environ["DPERM_CACHE_DIR"] = str(folder / "cache")
            words = [*BASE, *WAYS[way], f"out={folder}/study", f"save={folder}/m.npz"]
            assert cli.main(["run", *words]) == 0
            os.environ["DPERM_CACHE_DIR"] = kept or ""
            known[way] = folder
        return known[way]

    return of


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))


def raw(count=6):
    rng = np.random.default_rng(0)
    return BOUNDS[:, 0] + (BOUNDS[:, 1] - BOUNDS[:, 0]) * rng.uniform(-0.1, 1.1, (count, 30))


def write(rows, name="rows.csv", head=None):
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([*([head] if head else []), *rows.tolist()])


@pytest.mark.parametrize("way", WAYS)
def test_the_file_predicts_as_the_release_does(way, capsys, made):
    words, model = [*BASE, *WAYS[way]], str(made(way) / "m.npz")
    capsys.readouterr()
    write(raw(), head=[f"c{k}" for k in range(30)])
    assert cli.main(["predict", model, "rows.csv"]) == 0
    shown = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    (item,) = run.prepare(study_plan.plan_study(parse(words)).cells)
    from dperm_cli.results.records.store import Store
    from dperm_cli.runner.models.save_model import schema_of

    theta = np.array(Store(made(way) / "study").read(item.key)[0]["theta"])
    rows = schema_of(item).apply_row_rule(raw())
    x = run_cell.kernel_cells.basis_of(item.problem)
    expected = (rows if x is None else x.apply(rows)) @ theta
    assert np.allclose([float(line["score"]) for line in shown], expected, atol=1e-9)
    assert [int(line["label"]) for line in shown] == [1 if z >= 0 else -1 for z in expected]


def test_raw_rows_go_the_way_of_the_training_rows():
    (item,) = run.prepare(study_plan.plan_study(parse(BASE)).cells)
    from dperm_cli.runner.models.save_model import schema_of

    source = item.cell.dataset.raw(None)
    order = np.random.default_rng(0).permutation(569)
    again = schema_of(item).apply_row_rule(source.x[order])
    assert np.array_equal(again[:456], item.data.x)


@pytest.mark.parametrize("way", ["exact", "fourier", "none"])
def test_no_training_row_is_in_the_file(way, made):
    (item,) = run.prepare(study_plan.plan_study(parse([*BASE, *WAYS[way]])).cells)
    with np.load(made(way) / "m.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    facts = json.loads(arrays.pop("facts").tobytes())
    assert "claim" not in facts
    assert facts["noise"] == "research"
    known = {"exact": {"theta", "points", "basis"}, "fourier": {"theta", "frequencies"},
             "none": {"theta"}}  # fmt: skip
    assert set(arrays) == known[way]
    for array in arrays.values():
        if array.ndim == 2 and array.shape[1] == item.data.p:
            apart = np.abs(array[:, None, :] - item.data.x[None, :, :]).max(axis=2)
            assert apart.min() > 1e-6
    assert "optimum" not in json.dumps(facts)
    assert "metric" not in json.dumps(facts)


def test_json_and_a_file_of_rows(made, tmp_path):
    np.save("rows.npy", raw(2))
    assert (
        cli.main(
            ["predict", str(made("none") / "m.npz"), "rows.npy", "format=json", "out=said.json"]
        )
        == 0
    )
    lines = [json.loads(line) for line in (tmp_path / "said.json").read_text().splitlines()]
    assert len(lines) == 2
    assert list(lines[0]) == ["score", "label", "probability=1"]
    assert all(0.0 < line["probability=1"] < 1.0 for line in lines)


def test_a_regression_answers_in_its_own_unit(capsys):
    words = ["dataset=diabetes", "mechanism=noisy_gd", "epsilon=5", "trials=1"]
    assert cli.main(["run", *words, "out=study", "save=m.npz"]) == 0
    found = model_file.read("m.npz")
    np.save("x.npy", 3.0 + raw(4)[:, :10])
    capsys.readouterr()
    assert cli.main(["predict", "m.npz", "x.npy"]) == 0
    said = [float(line["value"]) for line in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    inside = found.values(np.load("x.npy"))
    # [-1, 1] is what targets of [0, 350] were mapped to
    assert said == pytest.approx(175.0 * (inside + 1.0))


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["save=m.txt"], "save"),
        (["save=m.npz", "epsilon=[1,2]"], "save"),
        (["save=m.npz", "mechanism=non_private"], "save"),
        (["save=m.npz", "privacy.relation=add_remove"], "save"),
        (["save=m.npz", "dataset.scaling=standardise", "dataset.unsafe_scaling=true"], "save"),
    ],
)
def test_what_may_not_be_kept_is_refused_before_anything_runs(words, key, capsys, tmp_path):
    assert cli.main(["run", *BASE, *words, "out=study"]) == 2
    assert capsys.readouterr().err.startswith(f"dperm: {key}=")
    assert not (tmp_path / "study").exists()
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("head", ["a,a,y", "a,b\x1b[2J,y", "a,,y"])
def test_columns_that_cannot_be_named_are_refused_before_anything_runs(head, capsys, tmp_path):
    (tmp_path / "t.csv").write_text(f"{head}\n0.1,0.2,1\n0.3,-0.2,-1\n0.1,0,1\n")
    words = ["dataset=csv", "dataset.path=t.csv", "loss=logistic", "mechanism=noisy_gd"]
    assert cli.main(["run", *words, "dataset.target=y", "save=m.npz", "out=study"]) == 2
    assert "rows are read by name" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_rows_that_came_projected_are_not_saved(capsys, tmp_path):
    np.savez("phi.npz", phi=np.eye(2, 3))
    np.savez("t.npz", x=np.ones((4, 2)), y=np.array([1, -1, 1, -1]))
    words = ["dataset=npz", "dataset.path=t.npz", "dataset.phi=phi.npz", "mechanism=noisy_gd"]
    assert cli.main(["run", *words, "save=m.npz", "out=study"]) == 2
    assert capsys.readouterr().err.startswith("dperm: save=dataset.phi: cannot be saved")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1,2\n", "2 columns"),
        ("x," * 29 + "x\n" + "1," * 29 + "a\n", "record 1, column 'x' holds text, not a number"),
        ("1," * 29 + "nan\n", "record 1, column '29' holds text, not a number"),
        ("", "ROWS=rows.csv: is empty"),
        ("x," * 29 + "x\n", "ROWS=rows.csv: holds no records"),
    ],
)
def test_wrong_rows_are_named(content, words, capsys, made):
    model = str(made("none") / "m.npz")
    capsys.readouterr()
    with open("rows.csv", "w") as file:
        file.write(content)
    assert cli.main(["predict", model, "rows.csv"]) == 2
    assert words in capsys.readouterr().err


def test_an_empty_array_is_refused(capsys, made):
    np.save("rows.npy", np.zeros((0, 30)))
    assert cli.main(["predict", str(made("none") / "m.npz"), "rows.npy"]) == 2
    assert "ROWS=rows.npy: holds no rows of numbers" in capsys.readouterr().err


def test_what_is_no_model_is_refused(capsys):
    np.savez("m.npz", theta=np.zeros(3))
    write(raw(1))
    assert cli.main(["predict", "m.npz", "rows.csv"]) == 2
    assert "is not a predictor" in capsys.readouterr().err
    assert cli.main(["predict", "none.npz", "rows.csv"]) == 2
    assert capsys.readouterr().err == "dperm: MODEL=none.npz: is not a file\n"
    assert cli.main(["predict", "--help"]) == 0
    assert "columns=name|position" in capsys.readouterr().out
