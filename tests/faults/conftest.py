"""Studies that are run, killed and resumed in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults._program import SWEEP, run_dperm

CELLS = 40
EPSILONS = ",".join(str(i / 4) for i in range(1, CELLS + 1))
STUDY = [
    "run", "-m", "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2", "trials=2",
    "mechanism=noisy_gd", "mechanism.steps=3", f"epsilon={EPSILONS}",
]  # fmt: skip

# They take seconds, and the default suite has smaller cases: two writers of one study
# and kills in tests/cli/test_writers.py, workers that die in tests/runner/test_supervisor.py,
# damaged records and full disks in tests/results/test_store.py, closed streams in
# tests/cli/test_surroundings.py, folders without rights in test_environment.py. A mark in their own
# source would make them other tests than those whose verdicts are kept.
SLOW = (
    "test_two_writers_compute_each_cell_once",
    "test_eight_runs_at_once_all_end_well",
    "test_one_worker_dies_while_workers_start",
    "test_a_run_is_killed_at_each_step",
    "test_killed_at_any_time_of_its_life",
    "test_a_damaged_record_is_computed_again_alone",
    "test_a_disk_that_fills_up_leaves_whole_records",
    "test_verbs_read_a_study_that_cannot_be_written",
    "test_a_closed_stderr_changes_nothing_but_what_is_printed",
    "test_a_closed_stdout_is_said_after_complete_results",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent and item.originalname in SLOW:
            item.add_marker(pytest.mark.slow)


class Zygote:
    """See ``zygote.py``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._calls = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def __call__(self, *words: str, out: str, **asked) -> dict:
        where = self.folder / out
        self._calls += 1
        request = {
            "argv": [*STUDY, *words, f"out={where}"],
            "records": str(where / "records"),
            "log": str(self._log()),
            **asked,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()

    @property
    def log(self) -> str:
        """What the last run said."""
        return self._log().read_text()

    def _log(self) -> Path:
        return self.folder / f"log{self._calls}"


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    made = Zygote(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(zygote) -> Path:
    """The study uninterrupted."""
    done = zygote(out="whole")
    assert done["code"] == 0, zygote.log
    assert done["left"] == CELLS
    return zygote.folder / "whole"


@pytest.fixture(scope="module")
def expected_table(tmp_path_factory) -> bytes:
    """The table of SWEEP in one process that nothing happens to."""
    folder = tmp_path_factory.mktemp("whole")
    ended = run_dperm(SWEEP, folder)
    assert ended.code == 0, ended.err
    return (folder / "study" / "table.csv").read_bytes()
