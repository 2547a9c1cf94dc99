"""The workers of an audit: one that dies costs no result, and the job that kills two is named."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from dperm_cli.core.errors import DpermError
from dperm_cli.runner.job_pool import Job, run_jobs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no pool elsewhere")


def double(number: int, folder: Path, deaths: int) -> int:
    """Twice the number, by the first worker after so many that died at it."""
    died = len(list(folder.glob(f"{number}-*")))
    if died < deaths:
        (folder / f"{number}-{died}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def make_jobs(folder: Path, deaths: dict[int, int]) -> list[Job]:
    return [
        Job(("job", str(number)), double, (number, folder, deaths.get(number, 0)))
        for number in range(6)
    ]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_all_results_come(tmp_path, workers):
    found = run_jobs(make_jobs(tmp_path, {}), lambda *_: [], workers)
    assert sorted(found) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("deaths", [{0: 1}, {3: 1, 5: 1}])
def test_a_worker_that_dies_costs_no_result(tmp_path, capsys, deaths):
    found = run_jobs(make_jobs(tmp_path, deaths), lambda *_: [], 4)
    assert sorted(found) == [0, 2, 4, 6, 8, 10]
    assert "a worker died: 2 go on" in capsys.readouterr().err


def test_the_job_that_kills_every_worker_is_named(tmp_path):
    found = run_jobs(make_jobs(tmp_path, {4: 99}), lambda *_: [], 2)
    with pytest.raises(DpermError, match="two workers died at job 4: out of memory, perhaps"):
        list(found)
