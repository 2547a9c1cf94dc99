"""A run that is killed at a named step of its life is resumed as if nothing had happened."""

from __future__ import annotations

import signal

import pytest

from tests.faults.conftest import CELLS
from tests.faults.test_crash import assert_same

# What Python is about to do when the run is killed, part of the path, and how often it did before.
PHASES = {
    "before the lease": ("os.mkdir", "/.work", 1),
    "before the manifest": ("os.rename", "manifest.json", 1),
    "before the first record": ("os.mkdir", "/records", 1),
    "while the first record is written": ("os.rename", "/records/", 1),
    "after a record": ("os.remove", "/claims/", 3),
    "while the last record is written": ("os.rename", "/records/", CELLS),
    "while the table is written": ("os.rename", "/table.csv", 1),
    "while the ledger is written": ("os.rename", "/ledger.json", 1),
    "before tidying": ("shutil.rmtree", "/.work/claims", 1),
    "while tidying": ("os.remove", "/.work/lease", 1),
    "after tidying": ("os.rmdir", "/.work", 2),
}
OF_WORKERS = {
    "while copies for workers are written": ("os.rename", "/spool-", 3),
    "before copies for workers go": ("shutil.rmtree", "/.work/spool-", 1),
    "while copies for workers go": ("os.remove", "x.npy", 1),
    "while tidying": ("os.remove", "/.work/lease", 1),
}
FEW = ("while the first record is written", "while tidying")


def kill_and_resume(zygote, whole, out: str, at, *words: str) -> None:
    found = zygote(*words, out=out, at=list(at))
    assert found["code"] == -signal.SIGKILL, zygote.log
    assert found["orphans"] == []
    assert zygote(*words, out=out)["code"] == 0, zygote.log
    assert_same(zygote.folder / out, whole)


@pytest.mark.parametrize("phase", [
    pytest.param(phase, marks=[] if phase in FEW else [pytest.mark.slow]) for phase in PHASES
])  # fmt: skip
def test_a_run_is_killed_at_each_step(zygote, whole, phase):
    kill_and_resume(zygote, whole, f"at-{phase}", PHASES[phase])


@pytest.mark.slow
@pytest.mark.parametrize("phase", OF_WORKERS)
def test_a_run_with_workers_is_killed_at_each_step(zygote, whole, phase):
    kill_and_resume(zygote, whole, f"workers-{phase}", OF_WORKERS[phase], "workers=2")


@pytest.mark.faults
@pytest.mark.faults_quick
def test_a_run_is_killed_at_one_step_after_another(zygote, whole):
    """Each run gets one step further than the one before."""
    for at in PHASES.values():
        assert zygote(out="each", at=list(at))["code"] in (0, -signal.SIGKILL), zygote.log
    assert zygote(out="each")["code"] == 0, zygote.log
    assert_same(zygote.folder / "each", whole)
