"""What a ledger adds up, and what tampering it notices."""

from __future__ import annotations

import json

import pytest

RUN = ("run", "-m", "mechanism=noisy_gd", "mechanism.steps=5", "epsilon=1", "trials=2", "out=study")


def written(tmp_path):
    return json.loads((tmp_path / "study" / "ledger.json").read_text())


def test_releases_under_both_relations_stand_in_one_total(dperm, tmp_path):
    assert dperm(*RUN, "privacy.relation=replace_one,add_remove").code == 0
    totals = {total["relation"]: total for total in written(tmp_path)["totals"]}
    both, one = totals["replace_one"], totals["add_remove"]
    assert (both["releases"], one["releases"]) == (4, 2)
    assert both["all_trials"]["epsilon"] > 2 * one["all_trials"]["epsilon"]
    assert "These 2 releases" in one["statement"]
    assert "replace_one only" in one["statement"]


def test_a_declared_population_keeps_n_out_of_the_statement(dperm, tmp_path):
    words = ("privacy.relation=add_remove", "privacy.population=600")
    assert dperm(*RUN, *words).code == 0
    (entry,) = written(tmp_path)["releases"]
    assert entry["data"]["n"] is None
    assert "456" not in entry["statement"]
    assert "600" in entry["statement"]
    refused = dperm("run", words[0], "privacy.population=400")
    assert refused.code == 2
    assert "456" not in refused.err


@pytest.mark.parametrize("change", ["form", "total", "huge"])
def test_a_changed_ledger_is_left_alone_and_named(dperm, tmp_path, change):
    assert dperm(*RUN).code == 0
    found = written(tmp_path)
    if change == "form":
        found["form"] = 2
    elif change == "total":
        found["totals"][0]["all_trials"]["epsilon"] = 0.01
        found["warnings"] = []
    else:
        found["releases"][0]["asked"]["epsilon"] = 10**400
    path = tmp_path / "study" / "ledger.json"
    path.write_text(json.dumps(found))
    before = path.read_bytes()
    done = dperm("report", "study")
    assert done.code == 1
    assert "ledger.json" in done.err
    assert "Traceback" not in done.err
    assert path.read_bytes() == before


def test_a_changed_file_of_the_set_is_another_cell_with_other_noise(dperm, tmp_path):
    """One noise under two scales would give the gradient away."""
    records = []
    for size in (1.0, 5.0):
        (tmp_path / "axes.csv").write_text(f"{size},0\n0,{size}\n")
        words = ("constraint=ellipsoid", "constraint.path=axes.csv", "constraint.radius=1")
        data = ("dataset=synthetic_logistic", "dataset.n=50", "dataset.p=2")
        done = dperm("run", *words, *data, "dataset.intercept=false", "out=two", "format=json")
        if done.code:
            done = dperm("run", *words, *data, "out=two", "format=json")
        assert done.code == 0, done.err
        records = sorted(p.name for p in (tmp_path / "two" / "records").iterdir())
    assert len(records) == 2
