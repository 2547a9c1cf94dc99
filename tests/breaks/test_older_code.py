"""Studies that earlier code made are read, and verified with a word that is true of them.

``earlier_studies/COMMIT`` was written by that commit: ``dperm run -m dataset=synthetic_logistic
dataset.n=40 dataset.p=2 mechanism=noisy_gd mechanism.steps=3 trials=2 epsilon=1,2 out=study``.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EARLIER = Path(__file__).parent / "earlier_studies"
SAME_TABLES = ["bec5832"]  # what it wrote, today's code would write again
OTHER_TABLES = ["dc42d3a", "4619502"]
COMMITS = [*SAME_TABLES, *OTHER_TABLES]
NEW_SWEEP = ["run", "-m", "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2",
             "mechanism=noisy_gd", "mechanism.steps=3", "trials=2", "epsilon=1,2"]  # fmt: skip


@pytest.fixture(params=COMMITS)
def commit(request):
    return request.param


@pytest.fixture
def study(commit, tmp_path):
    """A copy of the study of a commit."""
    return Path(shutil.copytree(EARLIER / commit, tmp_path / commit))


def test_untouched_records_of_older_code_are_called_that(study, dperm):
    done = dperm("verify", str(study))
    assert "wrong" not in done.out
    assert "damaged" not in done.out
    assert "older code, whole" in done.out
    assert done.code == 0


def test_a_study_of_older_code_without_its_tables_is_whole(study, dperm):
    """Tables and ledger are made of the records; what is not there contradicts nothing."""
    for name in ("table.csv", "table.md"):
        (study / name).unlink()
    done = dperm("verify", str(study))
    assert "older code, whole" in done.out
    assert done.code == 0


def test_new_records_are_whole_and_recomputed(dperm, tmp_path):
    assert dperm(*NEW_SWEEP, f"out={tmp_path}/new").code == 0
    done = dperm("verify", f"{tmp_path}/new")
    assert done.code == 0
    assert "whole, recomputed" in done.out


def record_of(study) -> Path:
    return sorted((study / "records").glob("*.parquet"))[0]


def test_a_flipped_byte_of_an_older_record_is_damage(study, dperm):
    path = record_of(study)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    done = dperm("verify", str(study))
    assert done.code == 3
    assert f"damaged: {path}" in done.out
    assert "older code, whole" not in done.out


def test_an_older_record_that_is_cut_short_is_damage(study, dperm):
    path = record_of(study)
    path.write_bytes(path.read_bytes()[:-9])
    done = dperm("verify", str(study))
    assert done.code == 3
    assert f"damaged: {path}" in done.out


@pytest.mark.parametrize("column", ["excess_risk", "epsilon_accounted", "epsilon"])
def test_a_rewritten_number_of_an_older_record_is_found(column, study, dperm):
    """A well-formed file in which somebody made a number better than it was."""
    path = record_of(study)
    table = pq.read_table(path)
    values = [value / 2 for value in table[column].to_pylist()]
    field = table.schema.field(column)
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), path)
    done = dperm("verify", str(study))
    assert done.code in (1, 3)
    assert "older code, whole" not in done.out
    assert path.name in done.out


def test_a_rewritten_ledger_of_an_older_study_contradicts(study, dperm):
    ledger = json.loads((study / "ledger.json").read_text())
    text = json.dumps(ledger).replace('"epsilon": 2.0', '"epsilon": 1.0')
    if text == json.dumps(ledger):
        text = json.dumps({**ledger, "releases": 0})
    (study / "ledger.json").write_text(text)
    done = dperm("verify", str(study))
    assert done.code in (1, 3)
    assert "ledger.json" in done.out


def test_a_rewritten_table_of_an_older_study_contradicts(study, dperm):
    rows = list(csv.DictReader(io.StringIO((study / "table.csv").read_text())))
    old = rows[0]["excess_risk_median"]
    text = (study / "table.csv").read_text().replace(old, f"{float(old) / 2:.17g}")
    (study / "table.csv").write_text(text)
    done = dperm("verify", str(study))
    assert done.code == 1
    assert "table.csv" in done.out
    assert "older code, whole" not in done.out


def test_the_state_of_a_study_of_older_code_is_told(study, dperm):
    done = dperm("status", str(study))
    assert done.code == 0, done.err
    assert "2 done" in done.out


def test_a_study_of_older_code_is_reported(study, dperm):
    done = dperm("report", str(study))
    assert done.code == 0, done.err
    assert done.out


def test_a_study_of_older_code_keeps_its_numbers_when_reported(study, dperm):
    before = list(csv.DictReader(io.StringIO((study / "table.csv").read_text())))
    assert dperm("report", str(study)).code == 0
    after = list(csv.DictReader(io.StringIO((study / "table.csv").read_text())))
    shared = set(before[0]) & set(after[0])
    assert {"epsilon", "excess_risk_median", "data_fingerprint"} <= shared
    for old, new in zip(before, after, strict=True):
        assert {key: old[key] for key in shared} == {key: new[key] for key in shared}


def test_a_study_of_older_code_is_compared_with_a_new_one(study, dperm, tmp_path):
    assert dperm(*NEW_SWEEP, f"out={tmp_path}/new").code == 0
    done = dperm("compare", str(study), f"{tmp_path}/new")
    assert done.code == 0, done.err
    assert done.out


def test_studies_of_older_and_of_new_code_are_merged(study, dperm, tmp_path):
    assert dperm(*NEW_SWEEP, f"out={tmp_path}/new").code == 0
    done = dperm("merge", str(study), f"{tmp_path}/new", f"out={tmp_path}/both")
    assert done.code == 0, done.err
    assert "damaged" not in dperm("verify", f"{tmp_path}/both").out


def test_a_rerun_adds_to_a_study_of_older_code_and_loses_no_record(study, dperm):
    before = {path.name: path.read_bytes() for path in (study / "records").iterdir()}
    done = dperm(*NEW_SWEEP, f"out={study}")
    assert done.code == 0, done.err
    after = {path.name: path.read_bytes() for path in (study / "records").iterdir()}
    assert {name: after.get(name) for name in before} == before
    rows = list(csv.DictReader(io.StringIO((study / "table.csv").read_text())))
    assert len(rows) == 2
