"""`dperm audit` takes what `dperm run` takes, and attacks the plan that this run would use."""

from __future__ import annotations

import json

import pytest

from dperm_cli.cli import main
from dperm_cli.mechanisms.gradient import noisy_gd
from dperm_cli.privacy.events import Gaussian

CELL = ("mechanism=noisy_gd", "mechanism.steps=4", "dataset=synthetic_logistic",
        "dataset.n=12", "dataset.p=3", "epsilon=2", "delta=1e-4", "workers=1")  # fmt: skip


def test_a_cell_is_attacked_with_its_own_plan(capsys):
    assert main(["audit", "--quick", *CELL, "format=json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["kind"] for row in rows} >= {"case"}
    (case,) = [row for row in rows if row["kind"] == "case"]
    assert case["verdict"] == "ok"


def test_a_plan_with_half_the_sensitivity_is_found(capsys, monkeypatch):
    def half(self, spec, scale, budget=None):
        return (Gaussian(scale, spec.lipschitz / 2.0, self._steps()),)

    monkeypatch.setattr(noisy_gd.NoisyGd, "events", half)
    assert main(["audit", "--quick", *CELL]) == 1
    assert "noisy_gd" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["epsilon=1e300", "epsilon=nan", "delta=1.5", "dataset=nothing"])
def test_what_a_run_refuses_an_audit_refuses(word, capsys):
    assert main(["audit", *CELL, word]) == 2
    told = capsys.readouterr()
    assert len(told.err.strip().splitlines()) == 1
    assert not told.out


def test_an_audit_of_nothing_is_a_failure_and_names_a_mechanism_that_fits(capsys):
    words = ["audit", "--quick", *CELL, "privacy=pure", "delta=0"]
    assert main(words) == 1
    told = capsys.readouterr()
    assert "mechanism=" in told.out + told.err


def test_a_pair_of_the_user_s_own(tmp_path, capsys):
    pair = tmp_path / "pair.csv"
    pair.write_text("0.6,0.8,0,1\n-0.6,-0.8,0,-1\n")
    assert main(["audit", "--quick", *CELL, f"pair={pair}"]) == 0
    capsys.readouterr()
    pair.write_text("0.6,0.8,0,1\n")
    assert main(["audit", "--quick", *CELL, f"pair={pair}"]) == 2
    assert "pair" in capsys.readouterr().err
