"""Secure noise is fresh at every run: `force=true`, lost records and merges forget no release."""

from __future__ import annotations

import json

import pytest

WORDS = ("run", "dataset=synthetic_logistic", "dataset.n=60", "dataset.p=2", "mechanism.steps=3",
         "noise=secure", "trials=2")  # fmt: skip


def totals(folder):
    found = json.loads((folder / "ledger.json").read_text())
    (total,) = found["totals"]
    return total["releases"], total["all_trials"]["epsilon"]


@pytest.fixture
def again(dperm, tmp_path):
    def call(*words, out="o"):
        done = dperm(*WORDS, *words, f"out={out}")
        assert done.code == 0, done.err
        return totals(tmp_path / out)

    return call


def test_force_adds_to_the_total(dperm, again, tmp_path):
    count, epsilon = again()
    assert (count, again()) == (2, (count, epsilon))  # looked up
    assert '"record": false' not in (tmp_path / "o" / "ledger.json").read_text()
    count, more = again("force=true")
    assert count == 4
    assert more > 1.2 * epsilon
    told = dperm("report", "o")
    assert told.code == 0
    assert "4 releases" in told.err
    assert totals(tmp_path / "o") == (count, more)
    assert dperm("verify", "o").code == 0


def test_a_deleted_record_and_other_code(dperm, again, tmp_path, monkeypatch):
    again()
    (record,) = (tmp_path / "o" / "records").iterdir()
    record.unlink()
    assert again()[0] == 4
    monkeypatch.setattr("dperm_cli.runner.cell.code_digest", lambda: "other")
    assert again()[0] == 6


def test_merge_takes_the_logs_along(dperm, again, tmp_path):
    again("epsilon=1", out="a")
    again("epsilon=1", "force=true", out="a")
    again("epsilon=2", out="b")
    done = dperm("merge", "a", "b", "out=c")
    assert done.code == 0, done.err
    assert totals(tmp_path / "c")[0] == 6
    assert dperm("merge", "a", "b", "out=c").code == 0
    assert totals(tmp_path / "c")[0] == 6


def test_a_damaged_line_is_damage(dperm, again, tmp_path):
    again()
    again("force=true")
    path = tmp_path / "o" / "releases.log"
    path.write_bytes(path.read_bytes().replace(b'"trials":2', b'"trials":1', 1))
    done = dperm("verify", "o")
    assert done.code == 3
    assert "releases.log: line 1" in done.out
    assert "releases.log: line 1" in dperm("report", "o").out


def test_seeded_runs_have_no_log(dperm, tmp_path):
    words = [word for word in WORDS if word != "noise=secure"]
    for force in ("false", "true"):
        assert dperm(*words, f"force={force}", "out=o").code == 0
    assert not (tmp_path / "o" / "releases.log").exists()
    assert totals(tmp_path / "o")[0] == 2
