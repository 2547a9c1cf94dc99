"""Signals in the middle of a study: finished cells are kept, nothing half-written."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from dperm_cli.runner.cells import run_cell

STUDY = ("run", "dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3", "trials=2",
         "epsilon=[0.5,1,2]", "out=here", "format=json")  # fmt: skip


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C as at a terminal: a shell starts what runs in the background deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
        (signal.SIGQUIT, 131, "ended by SIGQUIT"),
    ],
)
def test_a_signal_keeps_what_is_finished(number, code, word, dperm, tmp_path, monkeypatch):
    before = signal.getsignal(number)
    started = []

    def run(*arguments):
        started.append(arguments)
        if len(started) == 2:
            os.kill(os.getpid(), number)
        return whole(*arguments)

    whole = run_cell.run
    with monkeypatch.context() as patch:
        patch.setattr(run_cell, "run", run)
        done = dperm(*STUDY)
    assert (done.code, done.out) == (code, "")
    assert done.err == f"{word}; finished cells are kept\n"
    assert len(started) == 2
    records = os.listdir(tmp_path / "here" / "records")
    assert len(records) == 1
    assert all(name.endswith(".parquet") for name in records)
    assert signal.getsignal(number) == before
    if number == signal.SIGTERM:
        # The next run looks the finished cell up and makes the others.
        kept = (tmp_path / "here" / "records" / records[0]).stat().st_mtime_ns
        assert len(dperm(*STUDY).rows) == 3
        assert (tmp_path / "here" / "records" / records[0]).stat().st_mtime_ns == kept


def test_a_verb_that_stores_nothing_does_not_say_that_it_does(dperm, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("dperm_cli.cli.dispatch", interrupted)
    assert dperm("audit").err == "interrupted\n"
    assert dperm("run").err == "interrupted; finished cells are kept\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_workers_end_and_no_training_row_stays(number, tmp_path):
    many = ",".join(str(0.001 * k) for k in range(1, 3000))
    words = [*STUDY[:5], f"epsilon=[{many}]", "workers=2", "out=here"]
    command = [sys.executable, "-m", "dperm_cli", *words]
    study = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                             start_new_session=True)  # fmt: skip
    try:
        while not list(tmp_path.glob("here/records/*.parquet")):
            assert study.poll() is None
            time.sleep(0.05)
        assert list(tmp_path.glob("here/.work/spool-*"))
        os.killpg(study.pid, number)  # as a terminal does that closes
        said = study.communicate(timeout=60)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(study.pid, signal.SIGKILL)
    assert study.returncode == 128 + number
    assert said.splitlines()[-1].endswith("; finished cells are kept")
    assert "Traceback" not in said
    assert not list(tmp_path.glob("here/.work/spool-*"))
