"""Ctrl-C and SIGTERM in the middle of a study: finished cells are kept, nothing half-written."""

from __future__ import annotations

import os
import signal

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
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")],
)
def test_a_signal_keeps_what_is_finished(number, code, word, dperm, tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
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
    assert signal.getsignal(signal.SIGTERM) == before
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
