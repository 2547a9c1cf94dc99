"""A gate against relapse: the regret of `mechanism=auto` on a grid of problems (benchmarks)."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from benchmarks import bench_utility


def measure(size, trials, monkeypatch):
    """The grid on embedded and generated problems: no downloaded set plays a part."""
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    known = ("generated", "breast_cancer", "diabetes", "digits")
    sources = [one for one in bench_utility.list_sources(size) if one.name in known]
    monkeypatch.setattr(bench_utility, "list_sources", lambda size: sources)
    with threadpool_limits(1):
        return list(bench_utility.run_cells(size, trials, None, float("inf")))


def test_the_small_grid(monkeypatch):
    """Trials are few, so that a regret may be a third too large by chance."""
    found = measure("small", 9, monkeypatch)
    assert len(found) == 12
    assert {one.chosen for one in found} >= {"objective_perturbation", "sufficient_statistics"}
    row = bench_utility.summarise(found)["all"]
    assert row["mean"] <= 1.2, row
    assert row["max"] <= 2.2, row
    assert bench_utility.list_faults(found) == []


@pytest.mark.slow
def test_the_medium_grid_by_parts(monkeypatch):
    found = measure("medium", 9, monkeypatch)
    row = bench_utility.summarise(found)["all"]
    assert row["mean"] <= 1.2, row
    assert row["share"] >= 0.9, row


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    first = next(bench_utility.run_cells("small", 3, path, float("inf")))
    assert len(path.read_text().splitlines()) == 1
    monkeypatch.setattr(bench_utility, "measure", None)
    assert list(bench_utility.run_cells("small", 3, path, 0.0)) == [first]


def test_regret_and_faults_are_told():
    source = {"name": "generated", "loss": "logistic"}

    def result(epsilon, floor, chosen, **risks):
        return bench_utility.CellResult(source, "add_remove", epsilon, floor, chosen, risks, {})

    good = result(0.1, 1.0, "a", a=0.4, b=0.2)
    bad = result(1.0, 0.5, "a", a=0.6, b=0.6)
    tiny = result(10.0, 1.0, "a", a=2e-9, b=1e-9)
    assert (good.regret, bad.regret) == (2.0, 1.0)
    row = bench_utility.summarise([good, bad, tiny])["all"]
    assert (row["cells"], row["share"], row["max"]) == (2, 0.5, 2.0)
    faults = bench_utility.list_faults([bad, good, tiny])
    assert len(faults) == 2
    assert "1.2 of the floor" in faults[0]
    assert "1.5 of that at less epsilon" in faults[1]
