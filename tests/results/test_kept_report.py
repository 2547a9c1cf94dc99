"""A finished study is shown again as it was, and is reported anew when anything has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dperm_cli
from dperm_cli import cli
from dperm_cli.core.package_paths import CACHE_DIR
from dperm_cli.results import kept_report, report, study_files
from dperm_cli.results.record_format import read_footer
from dperm_cli.results.records.store import Store
from dperm_cli.runner.studies import study_report

WORDS = ["run", "mechanism=noisy_gd", "mechanism.steps=2", "trials=2", "out=study"]
OUTPUTS = (*study_files.TABLES, "figure.png", study_files.CAPTION, study_files.PAGE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place of the test's own, with a cache that nothing was kept in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def made(folder, monkeypatch):
    """The reports that are made, of a study that has run once."""
    found = []
    write = report.write_report
    monkeypatch.setattr(
        report, "write_report", lambda *args, **keys: found.append(args) or write(*args, **keys)
    )
    assert cli.main(WORDS) == 0
    assert len(found) == 1
    return found


def list_kept(folder):
    return sorted((folder / "cache" / kept_report.FOLDER).glob("*.json"))


def read_files(folder):
    return {path.name: path.read_bytes() for path in (folder / "study").glob("*") if path.is_file()}


def test_a_finished_study_is_shown_as_it_was(made, folder, capsys):
    files = read_files(folder)
    for path in list_kept(folder):
        path.unlink()
    assert cli.main(WORDS) == 0  # is made anew of the same records
    assert len(made) == 2
    first = capsys.readouterr()
    assert "noisy_gd" in first.out
    assert "1 looked up" in first.err
    assert cli.main(WORDS) == 0
    assert capsys.readouterr() == first
    assert read_files(folder) == files
    assert cli.main([*WORDS, "format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["mechanism"] == "noisy_gd"
    assert len(made) == 2


def test_a_terminal_shows_the_short_table_of_the_kept_report(made, folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    cache = folder / "cache" / kept_report.FOLDER
    assert cli.main(WORDS) == 0
    shown = capsys.readouterr().out
    for path in list_kept(folder):
        path.unlink()
    assert cli.main(WORDS) == 0
    assert capsys.readouterr().out == shown
    assert len(made) == 2
    assert len(list(cache.iterdir())) == 1


def test_from_python_it_is_the_same_report(made, folder):
    keys = {"mechanism": "noisy_gd", "mechanism.steps": 2, "trials": 2}
    study = dperm_cli.run(**keys, out="study")
    assert study.frame()["mechanism"].tolist() == ["noisy_gd"]
    assert len(made) == 1


@pytest.mark.parametrize("name", [*OUTPUTS, study_files.LEDGER])
@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_file_that_is_not_as_it_was_written_is_written_again(made, folder, name, harm):
    path = folder / "study" / name
    before = path.read_bytes()
    if harm == "changed":
        path.write_bytes(before[:-1] + b"?")
    else:
        path.unlink()
    assert cli.main(WORDS) == 0
    assert len(made) == 2
    assert path.read_bytes() == before


@pytest.mark.parametrize("harm", ["another", "claims", "pdf", "damaged"])
def test_what_a_report_reads_is_in_its_digest(made, folder, harm):
    records = folder / "study" / study_files.RECORDS
    (record,) = records.iterdir()
    if harm == "another":  # of another study in the same folder: the ledger counts it
        (records / f"{'a' * 24}.parquet").write_bytes(record.read_bytes())
    elif harm == "claims":
        (folder / "study" / study_files.CLAIMS).write_text("[]")
    elif harm == "pdf":  # a format that stands in the folder is drawn again
        (folder / "study" / "figure.pdf").write_bytes(b"old")
    else:
        record.write_bytes(record.read_bytes()[:-9] + b"damaged!!")
    cli.main(WORDS)
    assert len(made) == 2


def test_another_version_of_code_or_libraries_makes_its_own(made, folder, monkeypatch):
    monkeypatch.setattr(kept_report, "_identify_code", lambda: "another")
    assert cli.main(WORDS) == 0
    assert len(made) == 2


def test_code_is_known_by_all_of_its_files_and_libraries(monkeypatch, tmp_path):
    def identify():
        kept_report._identify_code.cache_clear()
        return kept_report._identify_code()

    monkeypatch.setattr(kept_report, "_PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    source = tmp_path / "room" / "table.py"
    source.write_text("ONE = 1\n")
    found = {identify()}
    source.write_text("ONE = 10\n")
    found.add(identify())
    os.utime(source, ns=(1, 1))
    found.add(identify())
    (tmp_path / "room" / "style.css").write_text("a {}")
    found.add(identify())
    monkeypatch.setattr(kept_report, "find_version", lambda name: "0.0")
    found.add(identify())
    assert len(found) == 5
    kept_report._identify_code.cache_clear()


@pytest.mark.skipif(os.name == "nt", reason="rights are not bits there")
@pytest.mark.parametrize("harm", ["others write", "changed", "another's name", "no JSON"])
def test_only_an_own_whole_file_is_believed(made, folder, harm, capsys):
    (kept,) = list_kept(folder)
    text = kept.read_text()
    if harm == "others write":
        kept.chmod(0o620)
    elif harm == "changed":
        kept.write_text(text.replace("noisy_gd", "noisy_xx"))
    elif harm == "another's name":  # the report of one folder given to another
        assert cli.main([*WORDS[:-1], "epsilon=3", "out=other"]) == 0
        (other,) = set(list_kept(folder)) - {kept}
        kept.write_bytes(other.read_bytes())
    else:
        kept.write_text("[" * 100_000)
    before, _ = len(made), capsys.readouterr()
    assert cli.main(WORDS) == 0
    assert len(made) == before + 1
    assert "noisy_gd" in capsys.readouterr().out
    if harm == "others write":
        assert kept.stat().st_mode & 0o777 == 0o600


def test_releases_that_nobody_can_draw_again_are_added_up_each_time(folder, capsys):
    assert cli.main([*WORDS, "noise=secure"]) == 0
    assert (folder / "study" / study_files.LOG).exists()
    assert list_kept(folder) == []


def test_a_report_with_something_to_complain_of_is_not_kept(made, folder):
    for path in list_kept(folder):
        path.unlink()
    (folder / "study" / study_files.RECORDS / f"{'b' * 24}.parquet").write_bytes(b"no record")
    manifest = folder / "study" / study_files.MANIFEST
    cells = json.loads(manifest.read_text())
    cells["cells"].append("b" * 24)
    manifest.write_text(json.dumps(cells))
    shown = report.write_report(folder / "study", accountant=_Nobody(), allow_unwritten=True)
    read = kept_report.hash_inputs(folder / "study")
    kept_report.keep_report(folder / "study", True, shown, read)
    assert shown.broken == ("b" * 24,)
    assert list_kept(folder) == []


@pytest.mark.parametrize("name", ["record", study_files.MANIFEST])
def test_a_report_of_a_folder_that_changes_meanwhile_is_not_kept(made, folder, monkeypatch, name):
    """Another run stores a record while the report is made: its digest would say that it is in."""
    for path in list_kept(folder):
        path.unlink()
    out, make = folder / "study", study_report.make_report
    (record,) = (out / study_files.RECORDS).iterdir()

    def make_meanwhile(*args, **keys):
        found = make(*args, **keys)
        if name == "record":
            record.with_name(f"{'c' * 24}.parquet").write_bytes(record.read_bytes())
        else:
            (out / name).write_text((out / name).read_text() + " ")
        return found

    monkeypatch.setattr(study_report, "make_report", make_meanwhile)
    assert cli.main(WORDS) == 0
    assert list_kept(folder) == []


def test_what_is_told_once_is_not_told_again(made, folder, capsys):
    """A record that goes leaves the ledger, which is said when it happens."""
    out = folder / "study"
    assert cli.main([*WORDS, "epsilon=2"]) == 0
    capsys.readouterr()
    first = set(json.loads((out / study_files.MANIFEST).read_text())["cells"])
    (other,) = {path.stem for path in (out / study_files.RECORDS).iterdir()} - first
    (out / study_files.RECORDS / f"{other}{study_files.RECORD}").unlink()
    assert cli.main([*WORDS, "epsilon=2"]) == 0
    assert "left ledger.json with the record" in capsys.readouterr().err
    assert cli.main([*WORDS, "epsilon=2"]) == 0
    assert "left ledger.json" not in capsys.readouterr().err


class _Nobody:
    """An accountant who cannot recompute anything."""

    def find_missing(self, row):
        return "an accountant"

    def __getattr__(self, name):
        raise AssertionError(name)


def test_a_report_that_is_too_large_or_no_json_is_not_kept(made, folder, monkeypatch):
    out = folder / "study"
    shown = kept_report.find_report(out.relative_to(folder), True)
    assert shown is not None
    for path in list_kept(folder):
        path.unlink()
    read = kept_report.hash_inputs(out)
    monkeypatch.setattr(kept_report, "MOST_BYTES", 100)
    kept_report.keep_report(out, True, shown, read)
    assert list_kept(folder) == []
    monkeypatch.setattr(kept_report, "MOST_BYTES", 1 << 25)
    shown.summary[0]["odd"] = (1, 2)  # JSON has no tuples: it would come back as a list
    kept_report.keep_report(out, True, shown, read)
    assert list_kept(folder) == []


LINKED = ("table.csv", "figure.svg", "report.html", study_files.CLAIMS, study_files.LEDGER)


@pytest.mark.parametrize(
    "names", [LINKED[:3], *(pytest.param((one,), marks=pytest.mark.slow) for one in LINKED)]
)
def test_a_name_that_leads_to_a_pipe_is_not_waited_for(made, folder, names):
    """In a process of its own, which is ended if it waits."""
    os.mkfifo("pipe")
    for name in names:
        path = folder / "study" / name
        path.unlink(missing_ok=True)
        path.symlink_to(folder / "pipe")
    for words in (WORDS, ["report", "study"]):
        told = subprocess.run(
            [sys.executable, "-m", "dperm_cli", *words], capture_output=True, text=True, timeout=60
        )
        assert told.returncode in (0, 2, 3), told.stderr
        assert told.returncode == 0 or told.stderr.splitlines()[-1].startswith("dperm: ")


@pytest.mark.parametrize(
    ("verb", "name"),
    [("report", "claims.json"), ("verify", "ledger.json"), ("status", "manifest.json"),
     *(pytest.param(verb, name, marks=pytest.mark.slow) for verb in ("report", "verify", "status")
       for name in ("manifest.json", "claims.json", "ledger.json"))],
)  # fmt: skip
def test_a_pipe_in_a_study_is_not_waited_for(made, folder, name, verb):
    path = folder / "study" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    told = subprocess.run(
        [sys.executable, "-m", "dperm_cli", verb, "study"], capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert told.returncode in (0, 1, 3), told.stderr
    assert "Traceback" not in told.stderr
    assert told.returncode < 3 or "is no regular file" in told.stderr


def test_a_record_under_the_name_of_another_is_made_again(folder, capsys):
    words = ["run", "-m", *WORDS[1:], "epsilon=1,2"]
    assert cli.main(words) == 0
    files = read_files(folder)
    store = Store(folder / "study")
    one, other = store.cells()
    before = store.path(one).read_bytes()
    shutil.copy(store.path(other), store.path(one))
    capsys.readouterr()
    assert cli.main(["report", "study"]) == 3
    assert f"broken record, to be recomputed: study/records/{one}" in capsys.readouterr().out
    cli.main(["status", "study", "format=json"])
    assert json.loads(capsys.readouterr().out)["damaged"] == 1
    assert cli.main(["verify", "study"]) == 1
    assert "holds another cell's rows" in capsys.readouterr().out
    assert cli.main(words) == 0
    assert "1 done, 1 looked up" in capsys.readouterr().err
    assert content_of(store.path(one).read_bytes()) == content_of(before)
    assert read_files(folder)["table.csv"] == files["table.csv"]
    assert cli.main(["verify", "study"]) == 0


def content_of(data):
    return read_footer(Path("a record"), data).content
