"""Issue 20, item 7: what a metric is worth is told beside it, and any header names a target."""

from __future__ import annotations

import csv
import math

import numpy as np
import pandas as pd
import pytest

import dperm_cli
from tests.breaks._utility import (
    BASELINE,
    BASELINE_METRIC,
    FLOOR,
    FLOOR_METRIC,
    NO_BETTER_THAN,
    OPTIMUM_METRIC,
    make_binary,
    make_regression,
    npz_words,
    run_row,
    table_words,
    write_npz,
)

GOOD = ["mechanism=objective_perturbation", "epsilon=20", "trials=3"]
# Words of a model without use: far too much noise for so few records.
USELESS = ["mechanism=objective_perturbation", "epsilon=0.01", "trials=5"]


def skewed(n=400, p=3, share=0.9, seed=0):
    """Labels that follow no column, 9 of 10 equal."""
    rng = np.random.default_rng(seed)
    x, _ = make_binary(n, p, seed)
    return x, np.where(rng.random(n) < share, 1.0, -1.0)


# --- columns -----------------------------------------------------------------------------------


def test_the_majority_stands_beside_accuracy(dperm, tmp_path):
    """Of the training records, judged on the held-out ones."""
    x, y = skewed()
    train = write_npz(tmp_path / "train.npz", x[:300], y[:300])
    test = write_npz(tmp_path / "test.npz", x[300:], y[300:])
    row = run_row(dperm, *npz_words(train), f"dataset.test_path={test}", *GOOD)
    assert row[BASELINE] == "majority"
    assert row[BASELINE_METRIC] == pytest.approx(np.mean(y[300:] == 1.0))
    assert 0.0 <= row[FLOOR_METRIC] <= 1.0
    assert row[OPTIMUM_METRIC] == pytest.approx(row[BASELINE_METRIC], abs=0.1)


def test_the_mean_stands_beside_r2(dperm, tmp_path):
    x, y = make_regression(400, 3)
    y = np.clip(0.5 + 0.3 * y, -1.0, 1.0)
    train = write_npz(tmp_path / "train.npz", x[:300], y[:300])
    test = write_npz(tmp_path / "test.npz", x[300:], y[300:])
    row = run_row(dperm, *npz_words(train, "regression"), f"dataset.test_path={test}", *GOOD)
    assert row[BASELINE] == "mean"
    spread = np.sum((y[300:] - np.mean(y[300:])) ** 2)
    mean = 1.0 - np.sum((y[300:] - np.mean(y[:300])) ** 2) / spread
    assert row[BASELINE_METRIC] == pytest.approx(mean, abs=1e-6)
    assert row[OPTIMUM_METRIC] > row[BASELINE_METRIC]


def test_the_majority_of_several_classes(dperm, tmp_path):
    x = np.random.default_rng(0).standard_normal((200, 3))
    y = np.where(np.arange(200) % 10 < 6, 2.0, np.arange(200) % 2)
    path = write_npz(tmp_path / "a.npz", x, y)
    row = run_row(dperm, *npz_words(path, "multiclass"), "dataset.labels=[0,1,2]",
                  "dataset.test_fraction=0", *GOOD)  # fmt: skip
    assert row[BASELINE] == "majority"
    assert row[BASELINE_METRIC] == pytest.approx(0.6)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_without_held_out_records_it_is_of_the_training_records(task, dperm, tmp_path):
    words = table_words(tmp_path, task, 200, 3)
    row = run_row(dperm, *words, "dataset.test_fraction=0", *GOOD)
    if task == "regression":
        assert row[BASELINE_METRIC] == pytest.approx(0.0, abs=1e-9)
    else:
        _, y = make_binary(200, 3)
        assert row[BASELINE_METRIC] == pytest.approx(max(np.mean(y > 0), np.mean(y < 0)))
    assert all(math.isfinite(row[key]) for key in (OPTIMUM_METRIC, FLOOR_METRIC, FLOOR))


@pytest.mark.parametrize("words", [["dataset=breast_cancer"], ["dataset=diabetes"],
                                   ["dataset=synthetic_logistic", "dataset.n=300"]],
                         ids=["breast_cancer", "diabetes", "synthetic"])  # fmt: skip
def test_they_stand_in_every_table_of_a_study(words, dperm, tmp_path):
    out = tmp_path / "study"
    row = run_row(dperm, *words, *GOOD, f"out={out}")
    with open(out / "table.csv", newline="") as file:
        (line,) = csv.DictReader(file)
    for key in (BASELINE_METRIC, OPTIMUM_METRIC, FLOOR):
        assert float(line[key]) == pytest.approx(row[key])
    page = (out / "table.md").read_text().lower()
    assert row[BASELINE] in page
    assert "optimum" in page or "non-private" in page
    assert "floor" in page
    printed = dperm("report", str(out)).out.lower()
    assert row[BASELINE] in printed


def test_the_frame_in_python_has_them(tmp_path):
    x, y = make_binary(200, 3)
    study = dperm_cli.run(X=x, y=y, mechanism="noisy_gd", trials=1, out=tmp_path / "s",
                          progress=False)  # fmt: skip
    assert {BASELINE_METRIC, OPTIMUM_METRIC, FLOOR} <= set(study.frame().columns)


# --- the warning -------------------------------------------------------------------------------


def test_a_model_no_better_than_the_majority_is_told(dperm, tmp_path):
    x, y = skewed()
    path = write_npz(tmp_path / "a.npz", x, y)
    done = dperm("run", *npz_words(path), *USELESS, "format=json")
    assert done.code == 0, done.err
    assert "no better than the majority" in done.err
    assert done.rows[0][NO_BETTER_THAN] == "majority"


def test_a_model_no_better_than_the_mean_is_told(dperm, tmp_path):
    """Skewed targets: the excess risk looks good, R2 is far below 0."""
    x, y = make_regression(400, 3)
    y = np.clip(0.8 + 0.05 * y, -1.0, 1.0)
    path = write_npz(tmp_path / "a.npz", x, y)
    done = dperm("run", *npz_words(path, "regression"), *USELESS, "dataset.intercept=false",
                 "format=json")  # fmt: skip
    assert done.code == 0, done.err
    assert "no better than the mean" in done.err
    assert done.rows[0][NO_BETTER_THAN] == "mean"


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_a_good_model_is_left_in_peace(task, dperm, tmp_path):
    words = table_words(tmp_path, task, 2000, 2)
    done = dperm("run", *words, *GOOD, "format=json")
    assert "no better" not in done.err
    assert done.rows[0][NO_BETTER_THAN] is None


def test_each_cell_of_a_sweep_is_judged(dperm, tmp_path):
    path = write_npz(tmp_path / "a.npz", *make_binary(1000, 3))
    done = dperm("run", "-m", *npz_words(path), "mechanism=objective_perturbation", "trials=5",
                 "epsilon=1e-4,20", "format=json")  # fmt: skip
    assert [row[NO_BETTER_THAN] for row in done.rows] == ["majority", None]


def test_secure_runs_publish_no_baseline_beside_the_release(dperm, tmp_path):
    """Warnings on stderr that follow the held-out labels are the holder's, not the release's."""
    x, y = skewed()
    path = write_npz(tmp_path / "a.npz", x, y)
    words = [*npz_words(path), "mechanism=noisy_gd", "mechanism.steps=3", "epsilon=0.01"]
    done = dperm("run", *words, "trials=1", "noise=secure", "format=json")
    assert done.code == 0, done.err
    assert "no better" not in done.err
    assert done.rows[0][NO_BETTER_THAN] is None


# --- one's own table ---------------------------------------------------------------------------


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def wide_rows(n=200, seed=0):
    """Columns on scales of their own: years, money, a share."""
    rng = np.random.default_rng(seed)
    x = rng.uniform([18, 0, 0], [90, 1e5, 1], (n, 3))
    y = np.where(x[:, 0] + 10 * rng.standard_normal(n) > 50, 1, -1)
    return [[*map(float, row), int(label)] for row, label in zip(x, y, strict=True)]


BOUNDS = "dataset.bounds=[[18,90],[0,100000],[0,1]]"


def test_declared_bounds_scale_the_columns(dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", ["age", "money", "share", "sick"], wide_rows())
    words = ["dataset=csv", f"dataset.path={path}", *GOOD]
    row = run_row(dperm, *words, BOUNDS)
    assert "bounds" in row["preprocessing"]
    assert row["p"] == 4  # an intercept stands beside three columns
    asked = run_row(dperm, *words, BOUNDS, "dataset.scaling=bounds", "dataset.intercept=true")
    for key in ("noise_scale", "optimum", "p", "preprocessing"):
        assert row[key] == asked[key], key


def test_unit_rows_on_raw_columns_are_warned_of(dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", ["age", "money", "share", "sick"], wide_rows())
    done = dperm("run", "dataset=csv", f"dataset.path={path}", *GOOD)
    assert done.code == 0, done.err
    assert "dataset.bounds" in done.err
    told = dperm("run", "dataset=csv", f"dataset.path={path}", *GOOD, BOUNDS, "out=other")
    assert told.code == 0, told.err
    assert "dataset.bounds" not in told.err


def test_what_is_asked_for_wins(dperm, tmp_path):
    path = write_csv(tmp_path / "a.csv", ["age", "money", "share", "sick"], wide_rows())
    row = run_row(dperm, "dataset=csv", f"dataset.path={path}", *GOOD, BOUNDS,
                  "dataset.scaling=bounds", "dataset.intercept=false")  # fmt: skip
    assert row["p"] == 3


# --- headers -----------------------------------------------------------------------------------

PLAIN = ["sick", "is sick", "Größe", "célula", "x_1", "x-1", "x.1", "病", "sick?", "50%"]
HOSTILE = ["a,b", "a, b", "[a]", "{a}", "a=b", "=", "a:b", "a: b", "#a", "a #b", "'a'", '"a"',
           "it's", "null", "true", "no", "1", "-1", "1e5", "0x10", "~", "*", "&a", "!a", "|", ">",
           "%", "@a", "`a`", "a\\b", "${a}", "$a", "a/b", "2024-01-01", ".nan", ".", "a" * 300,
           "a\tb", " a", "a "]  # fmt: skip


HEADERS = [pytest.param(text, id=ascii(text)[:20]) for text in [*PLAIN, *HOSTILE]]


def quote(text: str) -> str:
    """The text in double quotes, as the command line's grammar has it."""
    return '"' + text.replace('"', '\\"') + '"'


@pytest.mark.in_turn
@pytest.mark.parametrize("text", HEADERS)
def test_python_takes_any_header_as_target(text, tmp_path):
    rows = np.array(wide_rows(60))
    frame = pd.DataFrame(rows, columns=["c0", "c1", "c2", text])
    frame.insert(0, text, frame.pop(text))
    study = dperm_cli.run(X=frame, dataset={"target": text}, mechanism="noisy_gd", trials=1,
                          out=tmp_path / "s", progress=False)  # fmt: skip
    assert study.frame()["status"].tolist() == ["ok"]


@pytest.mark.in_turn
@pytest.mark.parametrize("text", HEADERS)
def test_the_command_line_takes_any_header_as_target(text, dperm, tmp_path):
    rows = [[row[-1], *row[:-1]] for row in wide_rows(60)]
    path = write_csv(tmp_path / "a.csv", [text, "c0", "c1", "c2"], rows)
    row = run_row(dperm, "dataset=csv", f"dataset.path={path}", f"dataset.target={quote(text)}",
                  "dataset.header=true", "dataset.intercept=false", "mechanism=noisy_gd",
                  "mechanism.steps=3", "trials=1")  # fmt: skip
    assert row["p"] == 3
