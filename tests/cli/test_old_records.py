"""Records of an earlier form: they are read and reported, and said to be old.

``old_study`` is what this command left at commit 42d5b68, when a record's name hung on all sources:

    dperm run -m mechanism=noisy_gd,noisy_sgd privacy.relation=add_remove privacy.population=20
        dataset=synthetic_logistic dataset.n=20 dataset.p=2 trials=2 epsilon=1 out=old_study

Its second record is an unsupported one. Nobody makes these files anew: what was written then has to
be readable for ever.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from dperm_cli.results.records.store import Store, list_old

WORDS = json.loads((Path(__file__).parent / "old_study" / "manifest.json").read_text())["argv"][:-1]
TOLD = "2 records have names of the old form"


@pytest.fixture
def study(tmp_path) -> Path:
    """A copy, for what is reported is written beside the records."""
    return shutil.copytree(Path(__file__).parent / "old_study", tmp_path / "old_study")


def read_records(study: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (study / "records").iterdir()}


def test_the_table_of_then_is_made_again(dperm, study):
    before = (study / "table.csv").read_bytes()
    (study / "table.csv").unlink()
    done = dperm("report", "old_study", "format=json")
    assert done.code == 0, done.err
    assert [(row["mechanism"], row["status"]) for row in done.rows] == [
        ("noisy_gd", "ok"),
        ("noisy_sgd", "unsupported"),
    ]
    assert (study / "table.csv").read_bytes() == before


def test_the_guarantee_of_then_is_recomputed_from_its_events(dperm, study):
    before = json.loads((study / "ledger.json").read_text())["releases"]
    assert dperm("verify", "old_study").code == 0
    (study / "ledger.json").unlink()
    assert dperm("report", "old_study").code == 0
    (now,) = json.loads((study / "ledger.json").read_text())["releases"]
    assert now["accounted"]["epsilon"] == pytest.approx(before[0]["accounted"]["epsilon"])
    assert now["events"][0]["event"] == before[0]["events"][0]["event"]


def test_its_cells_are_counted(dperm, study):
    done = dperm("status", "old_study", "format=json")
    (counts,) = done.rows
    assert (counts["cells"], counts["done"], counts["unsupported"]) == (2, 1, 1)
    assert (counts["damaged"], counts["remaining"]) == (0, 0)


def test_they_are_said_to_be_old(dperm, study):
    told = dperm("report", "old_study")
    assert told.code == 0
    assert TOLD in told.err
    assert json.loads(dperm("status", "old_study", "format=json").out)["old_names"] == 2
    assert "2 of all records here have names of the old form" in dperm("status", "old_study").out
    checked = dperm("verify", "old_study")
    assert (checked.code, checked.err) == (0, "")
    assert checked.out.endswith("2 with names of the old form\n")


def test_running_the_study_again_makes_new_records_beside_them(dperm, study):
    before, old = read_records(study), Store(study).read_all()
    done = dperm(*["run", *WORDS, "out=old_study", "format=json"])
    assert done.code == 0, done.err
    assert TOLD in done.err
    new = [row["cell"] for row in done.rows]
    assert list_old(new) == []
    after = read_records(study)
    assert before.items() <= after.items()
    assert len(after) == 4
    # the noise is named by the configuration and the data alone
    drawn = [row["theta"] for row in old if row["theta"] is not None]
    again = [row["theta"] for cell in new for row in Store(study).read(cell) or []]
    assert [row for row in again if row is not None] == [
        pytest.approx(theta, rel=1e-6) for theta in drawn
    ]
    ledger = json.loads((study / "ledger.json").read_text())
    assert {entry["cell"] for entry in ledger["releases"]} == {old[0]["cell"], new[0]}
    assert dperm("verify", "old_study").code == 0
    assert json.loads(dperm("status", "old_study", "format=json").out)["old_names"] == 2
    assert dperm(*["run", *WORDS, "out=old_study", "format=json"]).rows == done.rows
    assert len(os.listdir(study / "records")) == 4


def test_new_studies_say_nothing_of_old_names(dperm):
    done = dperm(*["run", *WORDS, "out=study"])
    assert "old form" not in done.out + done.err
    assert json.loads(dperm("status", "study", "format=json").out)["old_names"] == 0
    assert "old form" not in dperm("status", "study").out + dperm("verify", "study").out


def test_sessions_have_no_old_names():
    assert list_old(["session-0123456789abcdef0123", "a" * 24]) == []
    assert list_old(["0123456789abcdef0123"]) == ["0123456789abcdef0123"]
