"""`dperm account`: noise for a budget, budget for a noise scale, and no data anywhere."""

from __future__ import annotations

import csv
import os

import pytest

from dperm_cli.core import completion, registry

PAPER = ("account", "mechanism=noisy_sgd", "calibration=paper", "n=1000", "epsilon=1", "delta=1e-6")


@pytest.fixture
def account(dperm):
    """Rows of ``dperm account ... format=json`` without the figure."""

    def call(*words):
        done = dperm("account", *words, "format=json", "figure=false")
        assert done.code == 0, done.err
        return done.rows

    return call


def test_the_paper_scale_and_what_it_certifies(dperm, tmp_path, monkeypatch):
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    done = dperm(*PAPER, "figure=false")
    assert done.code == 0, done.err
    line = next(line for line in done.out.splitlines() if line.startswith("noisy_sgd"))
    assert line.split()[:6] == ["noisy_sgd", "paper", "1", "0.075043", "approx", "95716.7"]
    assert "lemmas" in done.out
    assert os.listdir(tmp_path) == []


def test_a_large_data_set_is_cheap(account):
    (row,) = account("mechanism=noisy_sgd", "calibration=paper", "n=100000")
    assert row["epsilon_accounted"] == pytest.approx(0.0674254, rel=1e-5)
    assert row["noise_over_nl"] == pytest.approx(159.528, rel=1e-5)
    assert (row["steps"], row["gradients"], row["delta"]) == (10**10, 10**10, 1e-10)
    assert row["note"] is None
    (wide,) = account("mechanism=noisy_sgd", "calibration=paper", "n=100000", "p=1000")
    assert "dperm run" in wide["note"]


def test_noise_and_budget_are_inverse(account):
    facts = ("n=300", "delta=1e-5", "smoothness=0.25", "ridge=0.1")
    for row in account(*facts, "mechanism=all", "epsilon=0.7"):
        if row["status"] == "unsupported":
            # facts of another kind
            assert any(word in row["reason"] for word in ("margin", "kernel", "quadratic"))
            continue
        mechanism, scale = f"mechanism={row['mechanism']}", f"noise_scale={row['noise_scale']}"
        (back,) = account(*facts, mechanism, scale)
        if back["status"] == "unsupported":
            assert "give epsilon" in back["reason"]
            continue
        # what a sampler adds is not in the noise
        low = 0.95 if "exact draw" in (back["note"] or "") else 1.0 - 1e-3
        assert low * 0.7 <= back["epsilon_accounted"] <= 0.7 * (1.0 + 1e-9)
        assert (back["calibration"], back["epsilon"]) == (None, None)
        assert back["steps"] == row["steps"]


def test_full_gradients_need_what_the_formula_says(account):
    keys = ("mechanism=noisy_gd", "mechanism.steps=100", "delta=1e-6", "L=3")
    (row,) = account(*keys)
    assert row["noise_scale"] == pytest.approx(3 * 84.494, rel=1e-5)
    assert row["events"][0]["sensitivity"] == 6.0
    (row,) = account(*keys, "privacy.relation=add_remove")
    assert row["noise_scale"] == pytest.approx(3 * 42.247, rel=1e-5)


def test_every_mechanism_answers_or_says_why(account):
    rows = account()
    assert {row["mechanism"] for row in rows} == set(registry.list_protective())
    rows = account("calibration=paper")
    assert {row["status"] for row in rows} == {"ok", "unsupported"}
    assert all(row["reason"] for row in rows if row["status"] == "unsupported")


def test_noise_that_no_channel_has_is_unsupported(account, dperm):
    (row,) = account("mechanism=local_sgd", "noise_scale=0.1", "p=5")
    assert row["status"] == "unsupported"
    assert "noise scale of 0.1: answers of the" in row["reason"]
    # the curve of the figure goes below the least scale
    done = dperm("account", "mechanism=local_sgd", "epsilon=0.1,10", "p=5")
    assert done.code == 0, done.err


def test_unsupported_is_printed_and_is_no_error(dperm):
    done = dperm("account", "privacy=pure", "figure=false")
    assert done.code == 0
    assert "unsupported: noisy_gd (tight), epsilon 1: noisy_gd gives approx" in done.out


def test_lists_are_rows(account):
    rows = account("mechanism=noisy_gd", "epsilon=0.1,1,10", "n=[100,1000]")
    assert [(row["n"], row["epsilon"]) for row in rows] == [
        (n, epsilon) for n in (100, 1000) for epsilon in (0.1, 1.0, 10.0)
    ]
    assert [row["delta"] for row in rows] == [1e-4] * 3 + [1e-6] * 3


def test_a_set_changes_nothing_but_is_checked(account):
    (row,) = account("mechanism=noisy_gd", "constraint=box", "constraint.radius=2", "p=4")
    assert row["p"] == 4
    assert row["noise_scale"] == account("mechanism=noisy_gd", "radius=7")[0]["noise_scale"]


def test_table_figure_and_points(dperm, tmp_path):
    done = dperm("account", "mechanism=noisy_sgd", "n=50", "calibration=tight,paper", "format=json")
    assert done.code == 0, done.err
    assert [row["mechanism"] for row in done.rows] == ["noisy_sgd"] * 2
    (folder,) = (tmp_path / "outputs").iterdir()
    assert folder.name.startswith("account-noisy_sgd-")
    names = ["account.csv", "account.pdf", "account.png", "account.svg"]
    assert sorted(os.listdir(folder)) == names
    with open(folder / "account.csv") as file:
        points = list(csv.DictReader(file))
    paper = [p for p in points if (p["panel"], p["calibration"]) == ("certified", "paper")]
    assert len(paper) == 5
    assert all(float(p["epsilon_accounted"]) < float(p["epsilon"]) for p in paper)
    noise = [float(p["epsilon_accounted"]) for p in points if p["panel"] == "noise"]
    assert len(noise) > 8
    assert noise == sorted(noise, reverse=True)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("epsilon=1", "noise_scale=2"), "noise_scale"),
        (("calibration=paper", "noise_scale=2"), "noise_scale"),
        (("radius=2", "constraint=box"), "radius"),
        (("radius=2", "constraint.radius=3"), "radius"),
        (("epsilon=nan",), "epsilon"),
        (("epsilon=0",), "epsilon"),
        (("epsilon=true",), "epsilon"),
        (("epsilon=[]",), "epsilon"),
        (("noise_scale=-1",), "noise_scale"),
        (("noise_scale=inf",), "noise_scale"),
        (("delta=1",), "delta"),
        (("delta=1e-6", "privacy=pure"), "delta"),
        (("n=0",), "n"),
        (("n=1.5",), "n"),
        (("n=1e12",), "n"),
        (("L=0",), "L"),
        (("p=0",), "p"),
        (("p=1,2",), "p"),
        (("radius=-1",), "radius"),
        (("ridge=-1",), "ridge"),
        (("smoothness=no",), "smoothness"),
        (("mechanism=magic",), "mechanism"),
        (("mechanism=noisy_gd", "mechanism.batch=3"), "mechanism.batch"),
        (("mechanism.magic=3",), "mechanism.magic"),
        (("mechanism=noisy_gd", "mechanism.steps=0"), "mechanism.steps"),
        (("constraint=magic",), "constraint"),
        (("constraint.magic=1",), "constraint.magic"),
        (("privacy.relation=other",), "privacy.relation"),
        (("privacy.population=7",), "privacy.population"),
        (("dataset=digits",), "dataset"),
        (("trials=3",), "trials"),
        (("format=xml",), "format"),
        (("figure=3",), "figure"),
        (("calibration=loose",), "calibration"),
        (("--cfg", "job"), "--cfg"),
        (("epsilon=range(1,2000)",), "account"),
    ],
)
def test_bad_input_is_one_line(dperm, tmp_path, words, key):
    done = dperm("account", *words)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith((f"dperm: {key}=", f"dperm: {key}: "))
    assert os.listdir(tmp_path) == []


def test_a_file_in_the_way_is_named(dperm, tmp_path):
    (tmp_path / "taken").write_text("mine")
    done = dperm("account", "out=taken")
    assert done.code == 2
    assert "out=taken" in done.err


def test_help_and_completion(dperm):
    done = dperm("account", "--help")
    assert (done.code, done.err) == (0, "")
    for word in ("noise_scale", "calibration", "delta", "radius", "noisy_sgd", "format=json"):
        assert word in done.out
    assert "account " in dperm("--help").out
    assert "noise_scale=" in completion.complete_words(["account", "--", "no"], ())
    assert "mechanism=noisy_gd" in completion.complete_words(["account", "--", "mechanism=n"], ())
