"""The lease on a study: what killed processes left goes, and nothing that a living one needs."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from dperm_cli.core.errors import StorageError
from dperm_cli.core.files import open_atomically
from dperm_cli.results.records import study_lease
from dperm_cli.results.records.cell_claims import WORK, Claims
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease, hold_worker_lease
from dperm_cli.results.report import write_report
from dperm_cli.runner.cells.ledger_accountant import Accounting
from tests.results.conftest import trial_rows

HOLD = """
import sys, time
from dperm_cli.results.records.study_lease import hold_lease
with hold_lease(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def study(tmp_path):
    """A study with all that a killed run can leave, and a file that is not dperm's."""
    Store(tmp_path).write("abc", trial_rows())
    (tmp_path / WORK / "claims").mkdir(parents=True)
    (tmp_path / WORK / "spool-12" / "data").mkdir(parents=True)
    for name in (
        f"{WORK}/lease",
        f"{WORK}/claims/abc",
        f"{WORK}/spool-12.lock",
        f"{WORK}/spool-12/data/x.npy",
        "records/.abc.parquet.1-ff.tmp",
        ".table.csv.77-0123abcd.tmp",
        ".mine.tmp",
    ):
        (tmp_path / name).write_text("left")
    return tmp_path


def names(study):
    return sorted(
        os.path.relpath(os.path.join(folder, name), study)
        for folder, _, files in os.walk(study)
        for name in files
    )


def test_what_killed_runs_left_goes_at_the_start(study):
    with hold_lease(study):
        assert names(study) == [".mine.tmp", f"{WORK}/lease", "records/abc.parquet"]
    assert names(study) == [".mine.tmp", "records/abc.parquet"]
    assert not (study / WORK).exists()


def test_beside_a_living_process_nothing_goes(study):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(study)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    (study / WORK / "spool-34").mkdir()
    with hold_lease(study), open_atomically(study / "table.csv") as file:
        file.write(b"half")
        before = names(study)
        with hold_lease(study):
            pass
        assert names(study) == before
    assert (study / WORK / "spool-34").exists()
    child.kill()
    child.communicate()
    with hold_lease(study):
        pass
    assert not (study / WORK).exists()


def test_a_worker_tidies_only_where_its_run_has_ended(study):
    with hold_worker_lease(study, lambda: False):
        pass
    assert (study / WORK / "spool-12").exists()
    with hold_worker_lease(study, lambda: True):
        pass
    assert not (study / WORK).exists()


def test_without_locks_it_is_said_once_and_nothing_of_others_goes(study, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    study_lease._tell_no_locks.cache_clear()
    for _ in range(2):
        with hold_lease(study), Claims(study).claim("def") as mine:
            assert mine
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{study}: no locks on this file system")
    assert (study / WORK / "spool-12" / "data" / "x.npy").exists()
    assert (study / ".table.csv.77-0123abcd.tmp").exists()


def test_without_locks_a_run_takes_away_what_it_made(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold_lease(tmp_path), Claims(tmp_path).claim("def"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_where_nothing_can_be_written_there_is_no_lease(tmp_path, monkeypatch, code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    with hold_lease(tmp_path) as nothing:
        assert nothing is None
    assert not (tmp_path / WORK / "lease").exists()


def test_a_lease_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / WORK).write_text("a file")
    with pytest.raises(StorageError, match=r"\.work/lease: file exists"), hold_lease(tmp_path):
        pass


def test_a_report_is_written_under_the_lease(study, monkeypatch):
    """Otherwise a run that ends meanwhile would take its half-written files away."""
    held, replace = [], os.replace

    def look(*paths):
        held.append((study / WORK / "lease").exists())
        replace(*paths)

    monkeypatch.setattr(os, "replace", look)
    write_report(study, Accounting(), figures=False)
    assert len(held) >= 4
    assert all(held)
    assert not (study / WORK).exists()
