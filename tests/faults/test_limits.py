"""Limits of the system on open files, processes and the size of files: enough, or said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.faults._program import REPOSITORY, SMALL, epsilons, leftovers, run_dperm

SWEEP = ["run", "-m", *SMALL, epsilons(4), "out=study"]
FULL = [pytest.mark.faults]
QUICK = [pytest.mark.faults, pytest.mark.faults_quick]


@pytest.fixture(scope="module")
def expected_table(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    ended = run_dperm(SWEEP, folder)
    assert ended.code == 0, ended.err
    return (folder / "study" / "table.csv").read_bytes()


def assert_enough_or_said(folder, words, before, expected_table) -> None:
    """The sweep ends well or in a line, and goes on to the same table where there is no limit."""
    ended = run_dperm([*SWEEP, *words], folder, before=before, seconds=120)
    assert "Traceback" not in ended.err, ended.err[-2000:]
    assert ended.code in (0, 1, 2, 3), (ended.code, ended.err[-1000:])
    if ended.code:
        assert ended.err.splitlines()[-1].startswith("dperm: "), ended.err[-1000:]
    again = run_dperm(SWEEP, folder)
    assert again.code == 0, again.err[-1000:]
    assert (folder / "study" / "table.csv").read_bytes() == expected_table
    assert leftovers(folder / "study") == []


@pytest.mark.parametrize(("files", "words"), [
    *(pytest.param(files, [], marks=FULL) for files in (6, 8, 12, 16, 32)),
    pytest.param(24, [], marks=QUICK),
    *(pytest.param(files, ["workers=2"], marks=FULL) for files in (12, 24, 48, 96)),
])  # fmt: skip
def test_few_open_files_are_enough_or_said(files, words, tmp_path, expected_table):
    assert_enough_or_said(tmp_path, words, f"ulimit -n {files}", expected_table)


@pytest.mark.parametrize(("blocks", "words"), [
    *(pytest.param(blocks, [], marks=FULL) for blocks in (0, 1, 16, 64, 1024)),
    pytest.param(16, ["workers=2"], marks=QUICK),
])  # fmt: skip
def test_small_files_are_enough_or_said(blocks, words, tmp_path, expected_table):
    """A file may have so many blocks of 512 or 1024 bytes: records fit into some, tables do not."""
    assert_enough_or_said(tmp_path, words, f"ulimit -f {blocks}", expected_table)


@pytest.mark.faults
@pytest.mark.parametrize("words", [[], ["workers=2"]], ids=["here", "workers"])
@pytest.mark.parametrize("more", [0, 2, 8])
def test_few_processes_are_enough_or_said(more, words, tmp_path, expected_table):
    """The limit counts threads of the user; root has none, and takes another user for it."""
    before = f"ulimit -u {count_threads() + more}"
    if os.geteuid() == 0:
        before = f"{before}; {become_nobody(tmp_path)}"
    assert_enough_or_said(tmp_path, words, before, expected_table)


def count_threads() -> int:
    user = "nobody" if os.geteuid() == 0 else str(os.geteuid())
    listed = subprocess.run(["ps", "-L", "-u", user, "-o", "lwp="], capture_output=True, text=True)
    return max(1, len(listed.stdout.split()))


def become_nobody(folder) -> str:
    """Shell words after which the next program is another user's, who may write to the folder."""
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv here, and root has no limit on processes")
    words = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
    asked = [*words.split(), sys.executable, "-c", "import numpy, dperm_cli"]
    if subprocess.run(asked, cwd=REPOSITORY, capture_output=True).returncode:
        pytest.skip("another user cannot read this Python, and root has no limit on processes")
    folder.chmod(0o777)
    return f'set -- {words} "$@"'
