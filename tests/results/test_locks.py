"""Claims: one holder at a time, none outlives its process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from dperm_cli.core.errors import StorageError
from dperm_cli.results.records import cell_claims
from dperm_cli.results.records.cell_claims import WORK, Claims, hold_lock
from tests.results.conftest import trial_rows

HOLD = """
import sys, time
from dperm_cli.results.records.cell_claims import Claims
with Claims(sys.argv[1]).claim("abc") as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def test_a_claim_is_had_once_and_its_file_goes(tmp_path):
    claims = Claims(tmp_path)
    with (
        claims.claim("abc") as first,
        claims.claim("abc") as second,
        claims.claim("other") as other,
    ):
        assert (first, second, other) == (True, False, True)
        assert claims.held() == ["abc", "other"]
    assert claims.held() == []
    assert os.listdir(claims.folder) == []
    claims.tidy()
    assert not (tmp_path / WORK).exists()


def test_the_claim_of_a_killed_process_is_taken(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "True\n"
    claims = Claims(tmp_path)
    assert claims.held() == ["abc"]
    assert claims.left() == []
    with claims.claim("abc") as mine:
        assert not mine
    child.kill()
    child.communicate()
    assert claims.held() == []
    assert claims.left() == ["abc"]
    with claims.claim("abc") as mine:
        assert mine


def test_waiting_ends_with_the_holder(tmp_path):
    order = []

    def wait():
        with hold_lock(tmp_path / "a", wait=True) as mine:
            order.append(("second", mine))

    with hold_lock(tmp_path / "a") as mine:
        other = threading.Thread(target=wait)
        other.start()
        other.join(0.05)
        order.append(("first", mine))
    other.join(10.0)
    assert order == [("first", True), ("second", True)]


def test_a_lock_whose_file_has_gone_is_no_lock(tmp_path, monkeypatch):
    opened = cell_claims._open_lock

    def raced(path):
        descriptor = opened(path)
        monkeypatch.setattr(cell_claims, "_open_lock", opened)
        os.unlink(path)  # as its last holder does between our opening and locking it
        return descriptor

    monkeypatch.setattr(cell_claims, "_open_lock", raced)
    with hold_lock(tmp_path / "a") as mine:
        assert mine
        assert (tmp_path / "a").exists()


def test_without_locks_every_claim_is_granted(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(cell_claims.errno.ENOLCK, "no locks available")

    monkeypatch.setattr(cell_claims.fcntl, "flock", refused)
    with hold_lock(tmp_path / "a") as first, hold_lock(tmp_path / "a") as second:
        assert (first, second) == (True, True)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / WORK).write_text("a file")
    with (
        pytest.raises(StorageError, match=r"\.work/claims/abc"),
        Claims(tmp_path).claim("abc"),
    ):
        pass


def test_half_written_files_go_unless_they_are_being_written(tmp_path):
    from dperm_cli.results.records.store import Store

    Store(tmp_path).write("abc", trial_rows())
    for name in (".abc.parquet.1-ff.tmp", ".held.parquet.2-ff.tmp"):
        (tmp_path / "records" / name).write_text("half")
    claims = Claims(tmp_path)
    with claims.claim("held"):
        claims.tidy()
    assert sorted(os.listdir(tmp_path / "records")) == [".held.parquet.2-ff.tmp", "abc.parquet"]
