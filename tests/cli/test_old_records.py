"""Studies of earlier commits are read, reported, compared, merged and verified with the right word.

``old_study`` has a folder for each form that records had; its README says how they were made.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dperm_cli.core.errors import StorageError
from dperm_cli.results import record_format
from dperm_cli.results.record_format import read_footer
from dperm_cli.results.records import schema
from dperm_cli.results.records.store import Store, list_old
from dperm_cli.runner.cells import record_digest
from dperm_cli.runner.cells.record_digest import is_of_today

HOME = Path(__file__).parent / "old_study"
COMMITS = (
    "66c2ff5", "c6af06a", "8d5eaa3", "42d5b68", "c3193df", "bc09f49", "4332e60", "8f15d85",
    "7b5909d",
)  # fmt: skip
SEEDED = "42d5b68"
WORDS = json.loads((HOME / SEEDED / "manifest.json").read_text())["argv"][:-1]
TOLD = "2 records have names of the old form"
WORDS_OF_A_VERSION = ("remarks",)


@pytest.fixture(params=COMMITS)
def study(request, tmp_path) -> Path:
    """A copy, for what is reported is written beside the records."""
    return shutil.copytree(HOME / request.param, tmp_path / "old")


@pytest.fixture
def seeded(tmp_path) -> Path:
    return shutil.copytree(HOME / SEEDED, tmp_path / "old")


def read_records(study: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (study / "records").iterdir()}


def read_version(study: Path) -> str:
    return json.loads((study / "manifest.json").read_text())["versions"]["dperm"]


def read_table(study: Path) -> list[dict[str, str]]:
    with open(study / "table.csv", newline="") as lines:
        return list(csv.DictReader(lines))


def rewrite(store: Store, cell: str, **changes) -> None:
    """A record with other values and checksums that fit, in the form of then."""
    path = store.path(cell)
    table = pq.read_table(path)
    footer = pq.read_metadata(path).metadata
    rows = [row | changes for row in table.to_pylist()]
    path.unlink()
    made = table.from_pylist(rows, schema=table.schema.remove_metadata())
    kept = {key: value for key, value in footer.items() if key.startswith(b"dperm.")}
    mark = b"dperm-sha256:" + b"0" * 64
    kept[b"dperm.sha256"] = mark
    with pq.ParquetWriter(path, made.schema, write_statistics=False, compression="none") as writer:
        writer.write_table(made)
        # the mark of the checksum is the last one in the file
        last = kept.pop(b"dperm.sha256")
        writer.add_key_value_metadata({k.decode(): v.decode() for k, v in kept.items()})
        writer.add_key_value_metadata({"dperm.sha256": last.decode()})
    data = path.read_bytes()
    digest = record_format.hash_sha256(data).encode()
    path.write_bytes(data.replace(mark, b"dperm-sha256:" + digest))
    assert record_format.intact(path.read_bytes())


def test_all_folders_are_tried():
    assert sorted(COMMITS) == sorted(path.name for path in HOME.iterdir() if path.is_dir())


def test_they_are_older_code_and_whole(dperm, study):
    before = read_records(study)
    done = dperm("verify", "old")
    assert (done.code, done.err) == (0, ""), done.out
    told = f"older code, whole: 2 records, by dperm {read_version(study)}\n"
    assert done.out.startswith(told)
    assert "contradicts" not in done.out
    assert read_records(study) == before


def test_the_table_of_then_is_made_again(dperm, study):
    before = read_table(study)
    (study / "table.csv").unlink()
    done = dperm("report", "old", "html=false")
    assert done.code == 0, done.err
    now = read_table(study)
    assert len(now) == len(before) == 2
    for then, row in zip(before, now, strict=True):
        shared = [name for name in then if name in row and name not in WORDS_OF_A_VERSION]
        assert len(shared) > 35
        assert {name: row[name] for name in shared} == {name: then[name] for name in shared}
    # what was made anew stands beside the records as one of today does
    assert dperm("verify", "old").code == 0


def test_a_report_rewrites_a_ledger_of_older_words(dperm, study):
    done = dperm("report", "old", "html=false")
    assert done.code == 0, done.err
    assert "does not hold" not in done.err
    written = json.loads((study / "ledger.json").read_text())
    (study / "ledger.json").unlink()
    assert dperm("report", "old", "html=false").code == 0
    assert json.loads((study / "ledger.json").read_text()) == written


def test_status_counts_them(dperm, study):
    (counts,) = dperm("status", "old", "format=json").rows
    assert (counts["cells"], counts["done"] + counts["unsupported"]) == (2, 2)
    assert (counts["damaged"], counts["failed"], counts["remaining"]) == (0, 0, 0)


def test_compared_with_itself_nothing_changed(dperm, study):
    done = dperm("compare", "old", "old", "format=json")
    assert done.code == 0, done.err
    assert len(done.rows) == 2
    assert [row["in"] for row in done.rows] == ["both", "both"]


def test_each_is_damaged_where_a_byte_is_another(dperm, study):
    path = next((study / "records").iterdir())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    done = dperm("verify", "old")
    assert done.code == 3
    assert done.out == f"damaged: {Path('old') / 'records' / path.name}\n"


def test_other_values_contradict_the_digest_of_then(dperm, study):
    store = Store(study)
    cell = store.cells()[0]
    rewrite(store, cell)
    assert dperm("verify", "old").code == 0  # the same values, in a file of today's writer
    rewrite(store, cell, n=21)
    done = dperm("verify", "old")
    assert done.code == 1
    assert done.out.startswith(f"contradicts: {Path('old') / 'records' / cell}.parquet: its rows")


@pytest.mark.parametrize(("epsilon", "code"), [(0.5, 1), (1.0, 0)])
def test_a_claim_of_then_may_be_too_large_and_never_too_small(dperm, tmp_path, epsilon, code):
    study = shutil.copytree(HOME / "c6af06a", tmp_path / "old")
    store = Store(study)
    (row,) = [row for row in store.read_all() if row["mechanism"].startswith("approx")]
    assert row["epsilon_accounted"] > 0.999
    store.write(row["cell"], [row | {"epsilon_accounted": epsilon}])
    for made in ("table.csv", "ledger.json"):
        (study / made).unlink()
    done = dperm("verify", "old")
    assert done.code == code
    assert ("contradicts: record" in done.out) == bool(code)


@pytest.mark.parametrize("commit", ["c6af06a", "42d5b68"])
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("table.csv", "noisy_gd", "noisy_sgd"), ("ledger.json", '"trials": ', '"trials": 1'),
     ("ledger.json", '"mechanism": "noisy_gd"', '"mechanism": "newton"')],
)  # fmt: skip
def test_forged_tables_and_ledgers_of_then_contradict(dperm, tmp_path, commit, file, old, new):
    study = shutil.copytree(HOME / commit, tmp_path / "old")
    text = (study / file).read_text()
    assert old in text
    (study / file).write_text(text.replace(old, new, 1))
    done = dperm("verify", "old")
    assert done.code == 1
    assert done.out.startswith("contradicts: ")
    assert file in done.out


def test_a_ledger_of_then_that_totals_too_little_contradicts(dperm, tmp_path):
    study = shutil.copytree(HOME / "c6af06a", tmp_path / "old")
    ledger = json.loads((study / "ledger.json").read_text())
    ledger["totals"][0]["all_trials"]["epsilon"] /= 2
    (study / "ledger.json").write_text(json.dumps(ledger))
    done = dperm("verify", "old")
    assert (done.code, "total all_trials says epsilon" in done.out) == (1, True)


def test_all_forms_merge_into_one_table_of_one_form(dperm, tmp_path):
    for commit in COMMITS:
        shutil.copytree(HOME / commit, tmp_path / commit)
    done = dperm("merge", *COMMITS, "out=all")
    assert done.code == 0, done.err
    assert len(read_table(tmp_path / "all")) == 2 * len(COMMITS)
    assert None not in [row[name] for row in read_table(tmp_path / "all") for name in row]
    assert {row["lasso"] for row in read_table(tmp_path / "all")} == {"0.0"}
    checked = dperm("verify", "all")
    assert checked.code == 0, checked.out
    assert checked.out.startswith(f"older code, whole: {2 * len(COMMITS)} records")


def test_studies_of_two_forms_are_compared_and_share_a_table(dperm, tmp_path):
    shutil.copytree(HOME / "66c2ff5", tmp_path / "a")
    old = json.loads((tmp_path / "a" / "manifest.json").read_text())["argv"]
    words = ["mechanism=noisy_gd" if "mechanism" in word else word for word in old[:-1]]
    assert dperm("run", *words, "out=b").code == 0
    done = dperm("compare", "a", "b")
    assert done.code == 0, done.err
    assert "privacy changed" not in done.out
    assert "1 cells in both" in done.out
    # in one table, keys and columns that came later set no row apart
    done = dperm("merge", "a", "b", "out=c")
    assert len(read_table(tmp_path / "c")) == 3
    for later in ("lasso", "population", "row_bound", "signal", "default", "research  "):
        assert later not in done.out


def test_the_guarantee_of_then_is_recomputed_from_its_events(dperm, seeded):
    before = json.loads((seeded / "ledger.json").read_text())["releases"]
    (seeded / "ledger.json").unlink()
    assert dperm("report", "old").code == 0
    (now,) = json.loads((seeded / "ledger.json").read_text())["releases"]
    assert now["accounted"]["epsilon"] == pytest.approx(before[0]["accounted"]["epsilon"])
    assert now["events"][0]["event"] == before[0]["events"][0]["event"]


def test_they_are_said_to_have_old_names(dperm, seeded):
    told = dperm("report", "old")
    assert told.code == 0
    assert TOLD in told.err
    assert json.loads(dperm("status", "old", "format=json").out)["old_names"] == 2
    assert "2 of all records here have names of the old form" in dperm("status", "old").out
    assert dperm("verify", "old").out.endswith("2 with names of the old form\n")


def test_running_the_study_again_makes_new_records_beside_them(dperm, seeded):
    before, old = read_records(seeded), Store(seeded).read_all()
    done = dperm(*["run", *WORDS, "out=old", "format=json"])
    assert done.code == 0, done.err
    assert TOLD in done.err
    new = [row["cell"] for row in done.rows]
    assert list_old(new) == []
    after = read_records(seeded)
    assert before.items() <= after.items()
    assert len(after) == 4
    # the noise is named by the configuration and the data alone; what noisy_gd makes of it is not
    # what it was in 0.1.0
    drawn = [row for row in old if row["theta"] is not None]
    again = [row for cell in new for row in Store(seeded).read(cell) or []]
    again = [row for row in again if row["theta"] is not None]
    assert [row["noise_scale"] for row in again] == [
        pytest.approx(row["noise_scale"], rel=1e-6) for row in drawn
    ]
    assert all(row["theta"] != was["theta"] for row, was in zip(again, drawn, strict=True))
    ledger = json.loads((seeded / "ledger.json").read_text())
    assert {entry["cell"] for entry in ledger["releases"]} == {old[0]["cell"], new[0]}
    checked = dperm("verify", "old")
    assert checked.code == 0
    assert "older code, whole: 2 records, by dperm 0.1.0\n" in checked.out
    assert "whole, recomputed: 1 record\n" in checked.out
    assert json.loads(dperm("status", "old", "format=json").out)["old_names"] == 2
    assert dperm(*["run", *WORDS, "out=old", "format=json"]).rows == done.rows
    assert len(os.listdir(seeded / "records")) == 4


def test_new_studies_are_recomputed_and_say_nothing_of_old_names(dperm, tmp_path):
    done = dperm(*["run", *WORDS, "out=study"])
    assert "old form" not in done.out + done.err
    assert json.loads(dperm("status", "study", "format=json").out)["old_names"] == 0
    checked = dperm("verify", "study")
    assert "old form" not in dperm("status", "study").out + checked.out
    assert checked.out.startswith("whole, recomputed: 1 record\nwhole, nothing to recompute: 1 ")
    store = Store(tmp_path / "study")
    footers = [store.footer(cell) for cell in store.cells()]
    assert all(footer and is_of_today(footer.code) for footer in footers)


def test_records_of_other_sources_are_older_code(dperm, monkeypatch, fresh_digests):
    assert dperm("run", "dataset.n=20", "dataset=synthetic_logistic", "trials=1", "out=s").code == 0
    whole = record_digest.find_code

    def find_changed(modules):
        return replace(whole(modules), sources={**whole(modules).sources, "dperm_cli.x": "new"})

    record_digest._find_own_code.cache_clear()
    record_digest._identify_modules.cache_clear()
    monkeypatch.setattr(record_digest, "find_code", find_changed)
    assert dperm("verify", "s").out.startswith("older code, whole: 1 record, by dperm ")


@pytest.fixture
def fresh_digests():
    """Digests of code are taken anew after the test."""
    yield
    record_digest._find_own_code.cache_clear()
    record_digest._identify_modules.cache_clear()


def test_code_that_names_strange_modules_is_not_of_today():
    from dperm_cli import __version__

    for modules in ((), ("math",), ("numpy._core._multiarray_umath",), ("dperm_cli.nothing",)):
        assert not is_of_today(record_format.CodeIdentity(__version__, "0" * 20, modules))
    assert not is_of_today(None)


def test_a_record_of_a_later_form_is_one_line(dperm, seeded, monkeypatch):
    store = Store(seeded)
    cell = store.cells()[0]
    rows = store.read(cell) or []
    later = schema.SCHEMA_VERSION + 1
    with monkeypatch.context() as patched:
        patched.setattr(record_format, "SCHEMA_VERSION", later)
        patched.setitem(record_format._SPELLINGS, later, ascii)
        store.write(cell, rows)
    with pytest.raises(StorageError, match="install a newer dperm"):
        read_footer(store.path(cell), store.path(cell).read_bytes())
    for verb in ("report", "verify"):
        done = dperm(verb, "old")
        assert (done.code, len(done.err.splitlines())) == (3, 1)
        assert "is a record of form 3" in done.err


def test_sessions_have_no_old_names():
    assert list_old(["session-0123456789abcdef0123", "a" * 24]) == []
    assert list_old(["0123456789abcdef0123"]) == ["0123456789abcdef0123"]
