"""Sweeps on a SLURM controller, where there is one: the same table as on one worker.

On Debian: apt-get install slurm-wlm munge, a slurm.conf with this machine as the one node, then
munged, slurmctld and slurmd; `make slurm` runs what is here.
"""

from __future__ import annotations

import shutil
import subprocess
import time
import warnings

import pytest

from dperm_cli.results.records.store import Store
from dperm_cli.results.report import write_report
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.sweep import sweep
from dperm_cli.runner.sweep.backends import Options, Submitit
from dperm_cli.runner.verbs import run

pytestmark = pytest.mark.slurm
WORDS = [
    "-m", "dataset=synthetic_logistic", "dataset.n=30", "dataset.p=2", "trials=2",
    "mechanism=noisy_gd", "mechanism.steps=5", "epsilon=1,2,3,4",
]  # fmt: skip


@pytest.fixture
def controller():
    if shutil.which("sbatch") is None or shutil.which("sinfo") is None:
        pytest.skip("no sbatch here")
    end = time.monotonic() + 60.0
    while not (said := free()):
        # jobs of the test before may be on their way out
        if time.monotonic() > end:
            pytest.skip(f"no SLURM node is free: {states()}")
        time.sleep(1.0)
    return said


def states() -> str:
    asked = ["sinfo", "-h", "-o", "%T"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        return "its controller does not answer"
    return found.stdout or found.stderr


def free() -> str:
    return " ".join(word for word in states().split() if word in ("idle", "mixed"))


def table(out, items, options) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = sweep.run_cells(items, Store(out), options=options)
    assert (tally.done, tally.remaining_count) == (len(items), 0)
    Store(out).write_manifest({"cells": [item.key for item in items]})
    write_report(out, Accounting(), figures=False, page=False)
    return (out / "table.csv").read_bytes()


@pytest.mark.parametrize(
    ("backend", "address", "module"),
    [("submitit", "auto", "submitit"), ("dask", "slurm", "dask_jobqueue")],
)
def test_slurm_jobs_write_the_same_table(controller, tmp_path, backend, address, module):
    pytest.importorskip(module)
    items = run.prepare(study_plan.plan_study(parse(WORDS)).cells)
    serial = table(tmp_path / "serial", items, Options())
    slurm = {"minutes": 5, "memory": "1GB"}
    options = Options(backend=backend, workers=2, address=address, slurm=slurm)
    assert table(tmp_path / "slurm", items, options) == serial


def test_a_job_that_is_killed_is_made_up_for(controller, tmp_path, monkeypatch):
    """Whether or not the cluster keeps accounts: the other jobs go on, and nothing is lost."""
    pytest.importorskip("submitit")
    items = run.prepare(study_plan.plan_study(parse(WORDS)).cells)
    serial = table(tmp_path / "serial", items, Options())
    submitted = Submitit._submit_chunks

    def kill_one(self, *asked):
        jobs = submitted(self, *asked)
        if len(jobs) > 1:
            subprocess.run(["scancel", jobs[0].job_id], check=True, timeout=30)
            killed.append(jobs[0].job_id)
        return jobs

    killed: list[str] = []
    monkeypatch.setattr(Submitit, "_submit_chunks", kill_one)
    options = Options(backend="submitit", workers=2, slurm={"minutes": 5, "memory": "1GB"})
    assert table(tmp_path / "slurm", items, options) == serial
    assert killed
