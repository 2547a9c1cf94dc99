"""Runs on one's own table: what is the default, what is warned of, and what is no success."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

import dperm_cli
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse

RNG = np.random.default_rng(3)
N = 400
AGE, PAY = RNG.uniform(20, 80, N).round(2), RNG.uniform(1e3, 9e4, N).round(2)
LOUD = (AGE / 80 + PAY / 9e4 + 0.1 * RNG.normal(size=N)).round(4)
BOUNDS = "dataset.bounds=[[20,80],[0,100000]]"
RUN = ("mechanism=noisy_gd", "mechanism.steps=5", "trials=2", "epsilon=10", "format=json")
REGRESSION = ("dataset.task=regression", "dataset.target_bounds=[0,2.5]", "loss=squared")
ON_RAW = "on raw columns"


def write_table(folder, kind="csv", target=LOUD, name="score"):
    frame = pd.DataFrame({"age": AGE, "pay": PAY, name: target})
    path = folder / f"own.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, x=frame.to_numpy()[:, :2], y=target)
    return path


def run_table(dperm, path, *words):
    return dperm("run", f"dataset={path.suffix[1:]}", f"dataset.path={path}", *RUN, *words)


def only_row(found):
    assert found.code == 0, found.err
    (row,) = found.rows
    return row


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_declared_bounds_scale_columns_and_a_constant_is_appended(dperm, tmp_path, kind):
    found = run_table(dperm, write_table(tmp_path, kind), *REGRESSION, BOUNDS)
    row = only_row(found)
    assert "columns to [-1, 1] by public bounds" in row["preprocessing"]
    assert "constant coordinate appended" in row["preprocessing"]
    assert row["p"] == 3
    assert ON_RAW not in found.err + row["preprocessing"]


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_without_bounds_one_line_says_what_to_type(dperm, tmp_path, kind):
    found = run_table(dperm, write_table(tmp_path, kind), *REGRESSION)
    row = only_row(found)
    (line,) = [line for line in found.err.splitlines() if ON_RAW in line]
    assert line.startswith("warning: ")
    assert "dataset.bounds='[[low, high], ...]'" in line
    assert ("age, pay" in line) == (kind == "csv")
    assert ON_RAW in row["preprocessing"]
    tables = list(tmp_path.rglob("table.md"))
    assert "dataset.bounds scales columns" in tables[0].read_text()


@pytest.mark.parametrize(
    ("words", "is_warned"),
    [
        (("dataset.scaling=none", BOUNDS), True),
        (("dataset.scaling=none", "dataset.bounds=[-1,1]"), False),
        (("dataset.rows=clip",), True),
        (("dataset.rows=clip", "dataset.row_bound=2"), False),
        (("dataset.rows=none", "dataset.row_bound=2"), False),
        (("dataset.scaling=minmax", "dataset.unsafe_scaling=true"), False),
    ],
)
def test_the_warning_follows_what_is_declared(dperm, tmp_path, words, is_warned):
    found = run_table(dperm, write_table(tmp_path), *REGRESSION, *words)
    assert (ON_RAW in found.err) == is_warned, found.err
    assert (ON_RAW in only_row(found)["preprocessing"]) == is_warned


def test_the_warning_follows_no_record(dperm, tmp_path):
    """Records that lie in [-1, 1] by chance, and one that does not, are told the same."""
    said = []
    for age in (0.5, 1e6):
        pd.DataFrame({"age": [age, 0.1, 0.2], "sick": [1, -1, 1]}).to_csv("few.csv", index=False)
        found = run_table(dperm, tmp_path / "few.csv", "dataset.test_fraction=0")
        said.append([line for line in found.err.splitlines() if ON_RAW in line])
    assert said[0] == said[1]
    assert len(said[0]) == 1


def test_what_was_asked_for_is_taken(dperm, tmp_path):
    words = ("dataset.scaling=none", "dataset.intercept=false", *REGRESSION)
    row = only_row(run_table(dperm, write_table(tmp_path), *words))
    assert row["p"] == 2
    refused = run_table(dperm, write_table(tmp_path), "dataset.scaling=bounds", *REGRESSION)
    assert refused.code == 2
    assert "as in dataset.bounds=" in refused.err
    assert len(refused.err.splitlines()) == 1


def test_points_have_no_constant(dperm, tmp_path):
    words = ("dataset.task=location", "loss=l2_median", "dataset.drop=[score]")
    assert only_row(run_table(dperm, write_table(tmp_path), *words))["p"] == 2


def test_functions_of_a_kernel_have_no_constant(tmp_path):
    words = ["dataset=csv", f"dataset.path={write_table(tmp_path)}", *REGRESSION]
    for more, constant in ((["kernel=rbf", "ridge=0.1"], False), ([], True)):
        (cell,) = study_plan.plan_study(parse([*words, *more])).cells
        assert cell.dataset.intercept is constant


def test_records_of_python_are_prepared_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"age": AGE, "pay": PAY})
    keys = {"task": "regression", "target_bounds": [0, 2.5], "bounds": [[20, 80], [0, 1e5]]}
    data = dperm_cli.load_data(X=frame, y=LOUD, **keys)
    of_file = dperm_cli.load_data("csv", path=write_table(tmp_path), **keys)
    assert data.p == 3
    assert np.array_equal(data.x, of_file.x)


def test_a_skewed_target_that_looks_like_a_success_is_called_none(dperm, tmp_path):
    """The centre of the declared range is far from a skewed target, so that any point that moves
    towards it has a small risk, and is worse than its mean."""
    skewed = np.where(RNG.random(N) < 0.03, 90.0, 1.0 + 0.5 * RNG.random(N))
    path = write_table(tmp_path, target=skewed)
    words = ("dataset.task=regression", "dataset.target_bounds=[0,100]", "loss=squared")
    found = run_table(dperm, path, *words, "epsilon=1")
    row = only_row(found)
    assert row["excess_risk_median"] < row["floor_excess_risk"]
    assert row["no_better_than"] == "mean"
    (line,) = [line for line in found.err.splitlines() if "no better than the mean" in line]
    assert line.startswith("warning: noisy_gd on csv at epsilon 1: test r2 ")
    (written,) = [p for p in tmp_path.rglob("table.csv")]
    (kept,) = csv.DictReader(io.StringIO(written.read_text()))
    assert kept["no_better_than"] == "mean"
    assert float(kept["baseline_metric"]) == row["baseline_metric"]
    told = written.with_suffix(".md").read_text()
    assert "non-private optimum" in told
    assert "no better than the mean" in told


def test_describe_says_the_baseline(dperm, tmp_path):
    path = write_table(tmp_path)
    words = ("dataset=csv", f"dataset.path={path}", *REGRESSION, BOUNDS, "mechanism=noisy_gd")
    found = dperm("describe", *words)
    assert found.code == 0, found.err
    assert "of the mean" in found.out
