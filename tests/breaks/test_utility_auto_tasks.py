"""Issue 20, item 3: `mechanism=auto` has an answer for whatever the package can run."""

from __future__ import annotations

import numpy as np
import pytest

import dperm_cli
from dperm_cli.core import registry
from tests.breaks._utility import (
    NEVER_CHOSEN,
    choice_of,
    npz_words,
    run_row,
    run_rows,
    table_words,
    write_npz,
)

AUTO = ["mechanism=auto", "trials=2"]
PUBLIC = "privacy.relation=add_remove"


@pytest.mark.in_turn
@pytest.mark.parametrize("words", [
    ["delta=0"], ["delta=0", PUBLIC], [PUBLIC], [PUBLIC, "privacy.population=200"],
    ["privacy=pure"], ["privacy=approx"],
    pytest.param(["epsilon=1e-6"], marks=pytest.mark.slow), ["epsilon=100"], ["delta=1e-100"],
    ["ridge=0.1"], ["lasso=0.01"], ["ridge=0.1", "lasso=0.01"], ["calibration=tight"],
    ["trials=7"], ["constraint.radius=1e-6"], ["constraint.radius=1e6"], ["dataset.intercept=true"],
    ["constraint=l1_ball"], ["constraint=simplex"], ["constraint=box"],
    ["constraint=l1_ball", "delta=0"], ["constraint=simplex", "delta=0"],
], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_budgets_sets_and_penalties(task, words, dperm, tmp_path):
    row = run_row(dperm, *table_words(tmp_path, task, 120, 3), *AUTO, *words)
    choice_of(row)
    if "delta=0" in words or "privacy=pure" in words:
        assert row["guarantee"] == "pure"
        assert row["delta_accounted"] == 0.0


@pytest.mark.in_turn
@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize(("task", "loss"), [
    ("binary", "hinge"), ("binary", "huberized_hinge"), ("binary", "linear"), ("binary", "squared"),
    ("regression", "absolute"), ("regression", "linear"), ("regression", "positive_part"),
])  # fmt: skip
def test_losses_with_kinks_and_without(task, loss, delta, dperm, tmp_path):
    row = run_row(dperm, *table_words(tmp_path, task, 120, 3), *AUTO, f"loss={loss}",
                  f"delta={delta}")  # fmt: skip
    choice_of(row)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("loss", ["l2_median", "l1_median"])
def test_locations(loss, delta, dperm):
    row = run_row(dperm, "dataset=median_cloud", f"loss={loss}", *AUTO, f"delta={delta}",
                  "epsilon=1")  # fmt: skip
    choice_of(row)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_several_classes(delta, dperm, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((150, 3))
    path = write_npz(tmp_path / "a.npz", x, np.argmax(x, axis=1).astype(float))
    row = run_row(dperm, *npz_words(path, "multiclass"), "dataset.labels=[0,1,2]",
                  "loss=multinomial", *AUTO, f"delta={delta}")  # fmt: skip
    choice_of(row)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_far_more_columns_than_records(task, delta, dperm, tmp_path):
    words = table_words(tmp_path, task, 25, 400)
    for constraint in ("l2_ball", "l1_ball"):
        row = run_row(dperm, *words, *AUTO, f"constraint={constraint}", f"delta={delta}")
        choice_of(row)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_secure_noise(task, dperm, tmp_path):
    """What is chosen has a secure form."""
    row = run_row(dperm, *table_words(tmp_path, task, 80, 3), "mechanism=auto", "trials=1",
                  "noise=secure")  # fmt: skip
    found = choice_of(row)
    assert row["noise"] == "secure"
    assert row["arithmetic"] != "float64"
    assert registry.load("mechanism", found["chosen"]).secure


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_local_trust(task, dperm, tmp_path):
    row = run_row(dperm, *table_words(tmp_path, task, 80, 3), *AUTO, "privacy=local")
    assert row["guarantee"] == "local"
    assert choice_of(row)["chosen"].startswith("local_")


@pytest.mark.parametrize("words", [
    ["kernel=rbf", "kernel.features=fourier", "kernel.size=5", "ridge=0.05"],
    ["kernel=polynomial", "ridge=0.05"],
    ["kernel=rbf", "ridge=0.05"],
    ["kernel=linear", "ridge=0.05"],
], ids=["fourier", "polynomial", "rbf", "linear"])  # fmt: skip
def test_kernel_problems(words, dperm, tmp_path):
    row = run_row(dperm, *table_words(tmp_path, "binary", 80, 2), *AUTO, *words)
    choice_of(row)


def test_a_sweep_chooses_for_each_cell(dperm, tmp_path):
    rows = run_rows(dperm, "-m", *table_words(tmp_path, "regression", 100, 3), *AUTO,
                    "constraint.radius=0.1,10", "epsilon=0.1,10",
                    "loss=squared,absolute")  # fmt: skip
    assert [row["status"] for row in rows] == ["ok"] * 8
    assert all(choice_of(row)["chosen"] for row in rows)


def test_it_stands_beside_others_in_a_sweep(dperm, tmp_path):
    rows = run_rows(dperm, "-m", *table_words(tmp_path, "binary", 80, 3),
                    "mechanism=auto,noisy_gd,objective_perturbation", "trials=2")  # fmt: skip
    assert [row["mechanism"] for row in rows] == ["auto", "noisy_gd", "objective_perturbation"]
    assert [row["status"] for row in rows] == ["ok"] * 3


def test_what_no_mechanism_can_is_a_row_with_a_reason(dperm, tmp_path):
    few = "mechanism.among=[noisy_gd,sufficient_statistics]"
    rows = run_rows(dperm, *table_words(tmp_path, "binary", 60, 3), *AUTO, few, "delta=0",
                    "noise=secure", code=1)  # fmt: skip
    assert [row["status"] for row in rows] == ["unsupported"]
    assert rows[0]["reason"]


@pytest.mark.parametrize("dataset", ["breast_cancer", "diabetes", "digits", "median_cloud",
                                     "synthetic_logistic", "sparse_regression"])  # fmt: skip
def test_plans_of_shipped_data_sets(dataset):
    (plan,) = dperm_cli.plans(f"dataset={dataset}", mechanism="auto", epsilon=1, progress=False)
    assert plan.settings["chosen"] not in NEVER_CHOSEN
    assert plan.guarantee.epsilon <= 1.0 + 1e-9
