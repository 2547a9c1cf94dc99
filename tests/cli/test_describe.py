"""`dperm describe`: facts of a problem, before any budget is spent."""

from __future__ import annotations

import os

import pytest

from dperm_cli.core import registry

TINY = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3")


def test_facts_and_picture(figures, dperm, tmp_path):
    done = dperm("describe", *TINY, "format=json", "out=here")
    assert done.code == 0, done.err
    (facts,) = done.rows
    assert (facts["n"], facts["p"], facts["radius"], facts["diameter"]) == (60, 3, 10, 20)
    assert facts["optimum_gap"] <= 1e-6 * facts["floor_excess_risk"]
    # E|g| in three dimensions is 2 sqrt(2 / pi)
    assert facts["width"] == pytest.approx(10 * 1.5957691216, rel=1e-9)
    assert set(facts["mechanisms"]) == set(registry.list_protective())
    assert all(row["supported"] for row in facts["mechanisms"]["noisy_sgd"])
    assert set(os.listdir(tmp_path / "here")) == {"problem.pdf", "problem.svg", "problem.png"}


@pytest.mark.parametrize("classes", ["[no, yes]", "[nein, ja]"])
@pytest.mark.parametrize("verb", ["describe", "run"])
def test_records_that_cannot_be_used_are_told(verb, classes, dperm, tmp_path):
    """All labels are spelt otherwise than declared: every record is zero, the accuracy 1."""
    table = "".join(f"{k % 7},{'yes' if k % 7 > 3 else 'no'}\n" for k in range(50))
    (tmp_path / "t.csv").write_text(f"a,y\n{table}")
    columns = "columns:\n  a: {kind: number, bounds: [0, 6]}\n"
    (tmp_path / "s.yaml").write_text(f"target: {{column: y, classes: {classes}}}\n{columns}")
    words = ("dataset=table", "dataset.path=t.csv", "dataset.schema=s.yaml", "trials=1")
    done = dperm(verb, *words, "mechanism=noisy_gd", "epsilon=1", "out=o")
    assert done.code == 0
    told = "warning: table: 40 of 40 training records are rows of zeros: a label or a cell"
    assert (told in done.err) is (classes == "[nein, ja]")
    # rows of a kernel's map are not made yet, or are none of zeros
    done = dperm(
        verb, *words, "mechanism=noisy_gd", "epsilon=1", "kernel=rbf", "ridge=0.1", "out=k"
    )
    assert done.code == 0, done.err
    assert (told in done.err) is (classes == "[nein, ja]")


def test_says_why_a_mechanism_is_not_supported(dperm):
    done = dperm("describe", *TINY, "privacy.relation=add_remove", "out=here")
    assert "fixed-size batches need relation replace_one" in " ".join(done.out.split())
    assert "logistic loss, per record" in done.out


def test_names_the_kernel(figures, dperm, tmp_path):
    words = ("ridge=0.1", "mechanism=noisy_gd", "out=here", "kernel=rbf", "kernel.size=5")
    done = dperm("describe", *TINY, *words)
    assert "logistic loss, kernel rbf, per record: Lipschitz" in done.out
    picture = (tmp_path / "here" / "problem.svg").read_text()
    assert "synthetic_logistic, logistic, kernel rbf, l2_ball: n = 60, p = 10" in picture


def test_a_kernel_without_a_ridge_is_told_to_take_one(dperm, tmp_path):
    done = dperm("describe", *TINY, "kernel=rbf", "ridge=0")
    assert done.code == 2
    assert done.err.startswith("dperm: ridge=0.0: must be above 0 with kernel.radius=auto")
    assert os.listdir(tmp_path) == []


def test_takes_one_problem(dperm, tmp_path):
    done = dperm("describe", *TINY, "loss=[logistic,hinge]")
    assert done.code == 2
    assert os.listdir(tmp_path) == []


def test_what_fits_is_sorted_by_predicted_risk(dperm):
    """What has a prediction stands above what a bound alone would put first."""
    names = ("mirror_descent", "exponential", "objective_perturbation")
    found = dperm("describe", *TINY, "epsilon=1", f"mechanism=[{','.join(names)}]", "out=here")
    lines = [line.split() for line in found.out.splitlines() if line.startswith("  ")]
    told = {words[0]: words[2:4] for words in lines if words[0] in names}
    assert list(told)[-1] == "mirror_descent"
    assert told["mirror_descent"][0] != "predicted"
    (one, first), (other, second) = list(told.values())[:2]
    assert one == other == "predicted"
    assert float(first.rstrip(";")) < float(second.rstrip(";"))
