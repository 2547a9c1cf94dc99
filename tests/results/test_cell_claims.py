"""Claims: one holder at a time, none outlives its process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dperm_cli.core.errors import StorageError
from dperm_cli.results.records.cell_claims import WORK, Claims

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
        assert claims.list_running() == ["abc", "other"]
    assert claims.list_running() == []
    assert os.listdir(claims.folder) == []


def test_the_claim_of_a_killed_process_is_taken(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "True\n"
    claims = Claims(tmp_path)
    assert claims.list_running() == ["abc"]
    with claims.claim("abc") as mine:
        assert not mine
    child.kill()
    child.communicate()
    assert claims.list_running() == []
    with claims.claim("abc") as mine:
        assert mine


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / WORK).write_text("a file")
    with (
        pytest.raises(StorageError, match=r"\.work/claims/abc"),
        Claims(tmp_path).claim("abc"),
    ):
        pass
