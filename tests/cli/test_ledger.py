"""The ledger of a study: written by `dperm run`, checked by `dperm report`."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from dperm_cli.cli import main
from dperm_cli.results.records.store import Store

STUDY = (
    "run", "-m", "dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3", "trials=2",
    "mechanism=noisy_gd", "mechanism.steps=5", "epsilon=0.5,1", "out=study",
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study, run once."""
    folder = tmp_path_factory.mktemp("ledger") / "study"
    assert main([*STUDY, f"out={folder}"]) == 0
    return folder


@pytest.fixture
def study(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "study")


def forge(folder, **values):
    """Change one cell's record, checksums and all."""
    store = Store(folder)
    cell = store.read_manifest()["cells"][1]
    rows = store.read(cell)
    store.write(cell, [{**row, **values} for row in rows])
    return cell


def test_a_run_files_a_statement_that_a_reader_can_recompute(study):
    found = json.loads((study / "ledger.json").read_text())
    assert [entry["asked"]["epsilon"] for entry in found["releases"]] == [0.5, 1.0]
    for entry in found["releases"]:
        (event,) = entry["events"]
        scale, count = event["scale"], event["count"]
        assert (count, entry["trials"], entry["noise"]) == (5, 2, "research")
        # by hand: mu of T Gaussian releases, and delta of mu-GDP at the accounted epsilon
        m = event["sensitivity"] * math.sqrt(count) / scale
        epsilon = entry["accounted"]["epsilon"]
        delta = normal(m / 2 - epsilon / m) - math.exp(epsilon) * normal(-m / 2 - epsilon / m)
        assert delta == pytest.approx(1 / 3600, rel=1e-6)
        assert epsilon <= entry["asked"]["epsilon"]
    (total,) = found["totals"]
    assert total["releases"] == 4
    assert 1.5 < total["all_trials"]["epsilon"] < 3.0
    assert total["one_trial_of_each_cell"]["epsilon"] < total["all_trials"]["epsilon"]
    assert "NOT FOR RELEASE" in found["warnings"][0]
    assert len(found["choices"]) == 1


def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def test_a_report_agrees_and_changes_no_byte(dperm, study):
    before = (study / "ledger.json").read_bytes()
    done = dperm("report", "study")
    assert done.code == 0
    assert "4 releases, every epsilon recomputed from its events" in done.err
    assert "no epsilon covers choosing among them" in done.out
    assert "no epsilon covers choosing" in (study / "table.md").read_text()
    assert (study / "ledger.json").read_bytes() == before


def test_a_missing_ledger_is_written_again_with_the_same_bytes(dperm, study):
    path = study / "ledger.json"
    before = path.read_bytes()
    path.unlink()
    assert dperm("report", "study").code == 0
    assert path.read_bytes() == before


def test_a_tampered_ledger_is_found_and_kept(dperm, study):
    path = study / "ledger.json"
    forged = path.read_bytes().replace(b'"trials": 2', b'"trials": 1', 1)
    path.write_bytes(forged)
    done = dperm("report", "study", "format=json")
    assert done.code == 1
    assert len(done.rows) == 2
    (line,) = [line for line in done.err.splitlines() if line.startswith("dperm:")]
    assert "trials is 1, the records say 2" in line
    assert path.read_bytes() == forged
    # the run that owns the records writes its own statement again
    assert dperm(*STUDY).code == 0
    assert dperm("report", "study").code == 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epsilon_accounted": 0.3}, "says epsilon 0.3; its events give"),
        ({"epsilon": 0.9}, "is not within its budget"),
        ({"delta_accounted": 1e-9}, "its events give"),
        ({"guarantee": "pure"}, "its events give no more than approx"),
        ({"relation": "add_remove"}, "its events give 0."),
        ({"events": '[{"event":"Gaussian","scale":1e9,"record_norm":1.0}]'}, "its events give"),
        ({"events": '[{"event":"Magic"}]'}, "'Magic' is no privacy event"),
        ({"events": "{"}, "its events cannot be accounted for"),
        ({"events": "3"}, "its events cannot be accounted for"),
        ({"events": "[]"}, "its events"),
        ({"events": None}, "is incomplete: no events"),
        ({"epsilon_accounted": None}, "is incomplete"),
    ],
)
def test_a_tampered_record_is_found(dperm, study, values, words):
    before = (study / "ledger.json").read_bytes()
    cell = forge(study, **values)
    done = dperm("report", "study")
    assert done.code == 1
    (line,) = [line for line in done.err.splitlines() if line.startswith("dperm:")]
    assert line.startswith(f"dperm: the privacy ledger does not hold: record {cell}: ")
    assert words in line
    assert (study / "ledger.json").read_bytes() == before


def test_a_release_whose_record_is_gone_is_missed(dperm, study):
    store = Store(study)
    store.path(store.read_manifest()["cells"][0]).unlink()
    done = dperm("report", "study")
    assert done.code == 1
    assert "has no record of a release" in done.err


def test_a_damaged_record_is_a_storage_error_as_before(dperm, study):
    store = Store(study)
    store.path(store.read_manifest()["cells"][0]).write_bytes(b"PAR1")
    done = dperm("report", "study")
    assert done.code == 3
    assert "does not hold" not in done.err
