"""Limits of the system on open files, processes and the size of files: enough, or said."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults._program import REPOSITORY, SWEEP, leftovers, run_dperm
from tests.other_user import LIBRARIES, NOBODY, run_as_nobody

FULL = [pytest.mark.faults]
QUICK = [pytest.mark.faults, pytest.mark.faults_quick]


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


# Limit the processes of the user, become another one where this is root, who has no such limit.
LIMIT = """
import os, resource, sys
limit, user = map(int, sys.argv[1:3])
resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
os.execvp(sys.argv[3], sys.argv[3:])
"""


@pytest.mark.faults
@pytest.mark.parametrize("words", [[], ["workers=2"]], ids=["here", "workers"])
@pytest.mark.parametrize("more", [0, 2, 8])
def test_few_processes_are_enough_or_said(more, words, request, tmp_path, expected_table):
    """The limit counts the threads of the user, of which there are some already."""
    other, folder, python = 0, tmp_path, sys.executable
    if os.geteuid() == 0:
        other, folder, python = become_other_user(request)
    limit = count_threads(other or os.geteuid()) + more + 1
    limiter = [sys.executable, "-c", LIMIT, str(limit), str(other)]
    before = f'shift; set -- {shlex.join([*limiter, python])} "$@"'
    if python != sys.executable:
        before += f"; export PYTHONPATH={shlex.quote(f'{REPOSITORY}:{LIBRARIES}')}"
    assert_enough_or_said(folder, words, before, expected_table)


def become_other_user(request) -> tuple[int, Path, str]:
    """Number of ``nobody``, a folder of its own, and an interpreter that it can run dperm with."""
    python, place = request.getfixturevalue("interpreter"), request.getfixturevalue("open_folder")
    paths = {"PYTHONPATH": f"{REPOSITORY}:{LIBRARIES}"}
    if run_as_nobody([python, "-c", "import dperm_cli.cli"], place, paths).returncode:
        pytest.skip("root has no limit on processes, and no other user can read the package")
    folder = Path(tempfile.mkdtemp(dir=place))
    os.chown(folder, NOBODY, NOBODY)
    return NOBODY, folder, python


def count_threads(user: int) -> int:
    words = ["ps", "-L", "-U", str(user), "-o", "lwp="]
    return len(subprocess.run(words, capture_output=True, text=True).stdout.split())
