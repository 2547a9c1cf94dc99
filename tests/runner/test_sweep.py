"""Sweeps: each cell once, counted, with the same bytes wherever and in whatever order it runs."""

from __future__ import annotations

import os
import signal
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core.errors import InputError, StorageError
from dperm_cli.problem import data_folder
from dperm_cli.problem.data import Data
from dperm_cli.results.records.cell_claims import Claims
from dperm_cli.results.records.store import Store
from dperm_cli.results.records.study_lease import hold_lease
from dperm_cli.results.report import write_report
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.cells.ledger_accountant import Accounting
from dperm_cli.runner.cells.optimum_cache import make_solver
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.sweep import sweep, worker
from dperm_cli.runner.sweep.backends import Dask, Local, Options, Submitit
from dperm_cli.runner.sweep.outcomes import Outcome
from dperm_cli.runner.sweep.progress import Tally, duration
from dperm_cli.runner.sweep.worker import Chunk, Report, Setup, Task, run_chunk
from dperm_cli.runner.verbs import run as app

WORDS = [
    "-m", "dataset=synthetic_logistic", "dataset.n=30", "dataset.p=2", "trials=2",
    "constraint=l2_ball,simplex", "mechanism=noisy_gd,output_perturbation", "epsilon=1,2,3",
]  # fmt: skip


SETTLE = worker.follow_parent


@pytest.fixture(autouse=True)
def unsettled(monkeypatch):
    """The test process is nobody's worker, also where it runs a chunk itself."""
    monkeypatch.setattr(worker, "follow_parent", lambda parent: None)


def prepared(*words):
    return app.prepare(study_plan.plan_study(parse([*WORDS, *words])).cells)


def table(out, items) -> bytes:
    Store(out).write_manifest({"cells": [item.key for item in items]})
    write_report(out, Accounting(), figures=False, page=False)
    return (out / "table.csv").read_bytes()


@pytest.fixture(scope="module")
def items():
    return prepared()


@pytest.fixture(scope="module")
def serial(items, tmp_path_factory):
    out = tmp_path_factory.mktemp("serial")
    tally = sweep.run_cells(items, Store(out))
    assert (tally.done, tally.unsupported, tally.failed_count) == (6, 6, 0)
    return table(out, items)


def test_the_order_of_cells_leaves_the_table_alone(items, serial, tmp_path, monkeypatch):
    # also with optima solved anew, not read from where the first run left them
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    sweep.run_cells(items[::-1], Store(tmp_path / "out"))
    assert table(tmp_path / "out", items) == serial


def test_two_local_workers_write_the_same_table(items, serial, tmp_path):
    tally = sweep.run_cells(items, Store(tmp_path), options=Options(workers=2))
    assert (tally.done, tally.unsupported, tally.remaining_count) == (6, 6, 0)
    assert os.listdir(tmp_path) == ["records"]
    assert table(tmp_path, items) == serial


@pytest.fixture
def scheduler():
    """A real scheduler with two worker processes, as on another machine."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        yield cluster.scheduler_address
        cluster.close()


@pytest.mark.slow  # the pool above writes it the same way
def test_two_dask_workers_write_the_same_table(items, serial, tmp_path, scheduler):
    options = Options(backend="dask", workers=2, address=scheduler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = sweep.run_cells(items, Store(tmp_path), options=options)
    assert (tally.done, tally.unsupported, tally.remaining_count) == (6, 6, 0)
    assert os.listdir(tmp_path) == ["records"]
    assert table(tmp_path, items) == serial


@pytest.mark.slow
def test_submitit_jobs_write_the_same_table(items, serial, tmp_path):
    pytest.importorskip("submitit")
    options = Options(backend="submitit", workers=2, slurm={"cluster": "local"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = sweep.run_cells(items, Store(tmp_path), options=options)
    assert (tally.done, tally.unsupported, tally.remaining_count) == (6, 6, 0)
    assert table(tmp_path, items) == serial


def test_finished_cells_are_looked_up_and_failed_ones_tried_again(items, tmp_path, monkeypatch):
    real = run_cell.run
    broken = {items[0].key, items[3].key}

    def run(item, *rest):
        return (
            run_cell.make_failed_rows(item, "on purpose")
            if item.key in broken
            else real(item, *rest)
        )

    monkeypatch.setattr(run_cell, "run", run)
    store = Store(tmp_path)
    first = sweep.run_cells(items[:6], store)
    assert [outcome.key for outcome in first.failures] == [items[0].key, items[3].key]
    broken.clear()
    again = sweep.run_cells(items[:6], store)
    assert (again.looked_up, again.failed_count, again.run_count) == (4, 0, 2)
    forced = sweep.run_cells(items[:6], store, force=True)
    assert (forced.looked_up, forced.run_count) == (0, 6)


def test_failures_are_told_at_once_and_listed_at_the_end(items, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        run_cell, "run", lambda item, *_: run_cell.make_failed_rows(item, "on purpose")
    )
    tally = sweep.run_cells(items[:3], Store(tmp_path))
    lines = capsys.readouterr().err.splitlines()
    label = "noisy_gd epsilon=1 tight on synthetic_logistic"
    assert lines[0] == f"failed: {label}: on purpose"
    assert lines[1].startswith("3 cells: 0 done, 0 looked up, 3 failed, 0 unsupported")
    assert [line.startswith("  failed: noisy_gd") for line in lines[2:]] == [True] * 3
    assert tally.remaining_count == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_on_error_stop_leaves_the_rest(items, tmp_path, monkeypatch, workers):
    if workers == 1:
        monkeypatch.setattr(
            run_cell, "run", lambda item, *_: run_cell.make_failed_rows(item, "on purpose")
        )
    else:
        monkeypatch.setattr(Local, "run", here)
        monkeypatch.setattr(
            run_cell, "run", lambda item, *_: run_cell.make_failed_rows(item, "on purpose")
        )
    options = Options(workers=workers, on_error="stop")
    tally = sweep.run_cells(items, Store(tmp_path), options=options)
    assert (tally.failed_count, tally.remaining_count) == (1, len(items) - 1)
    assert len(Store(tmp_path).cells()) == 1


def here(self, call, chunks, folder):
    """A back end that runs chunks in this process."""
    for chunk in chunks:
        yield call(chunk)


def test_a_cell_that_another_process_has_comes_last_and_is_looked_up(items, tmp_path, monkeypatch):
    real, ran = run_cell.run, []
    store, claims = Store(tmp_path), Claims(tmp_path)
    lease, held = hold_lease(tmp_path), claims.claim(items[0].key)
    lease.__enter__()
    assert held.__enter__()

    def run(item, *rest):
        ran.append(item.key)
        if len(ran) == 2:
            # the other process finishes its cell
            store.write(items[0].key, real(items[0], make_solver()))
            held.__exit__(None, None, None)
        return real(item, *rest)

    monkeypatch.setattr(run_cell, "run", run)
    tally = sweep.run_cells(items[:3], store)
    lease.__exit__(None, None, None)
    assert ran == [items[1].key, items[2].key]
    assert (tally.done, tally.looked_up) == (2, 1)


def test_a_worker_of_another_version_refuses(items, tmp_path):
    item = items[0]
    data_folder.write_folder(tmp_path / "spool" / "data", item.data)
    setup = Setup(tmp_path / "out", tmp_path / "spool", str(tmp_path), None, False, False, None)
    good = run_chunk(setup, Chunk.of([Task(item.cell, item.key, "data")]))
    assert good == Report((Outcome(item.key, "ok"),))
    bad = run_chunk(setup, Chunk.of([Task(item.cell, "0" * 20, "data")]))
    assert bad.outcomes == ()
    assert "another version" in str(bad.fault)


def test_a_storage_error_of_a_worker_reaches_the_user(items, tmp_path, monkeypatch):
    monkeypatch.setattr(Local, "run", here)

    def full(self, *_, **__):
        raise StorageError("/here/x.parquet: no space left on device")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(StorageError, match=r"x\.parquet: no space left"):
        sweep.run_cells(items, Store(tmp_path), options=Options(workers=2))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_shared_data_come_back_as_they_were(tmp_path, kind):
    x = np.random.default_rng(0).normal(size=(7, 3))
    x[:, 1] = 0.0
    data = Data.of_records(
        name="a",
        task="binary",
        x=sparse.csr_array(x) if kind == "sparse" else x,
        y=np.ones(7),
        row_bound=2.0,
        target_bound=1.0,
        fingerprint="f",
        x_test=np.zeros((0, 3)),
        y_test=np.zeros(0),
        preprocessing=("clipped", "scaled"),
    )
    data_folder.write_folder(tmp_path / "d", data)
    assert os.stat(tmp_path / "d").st_mode & 0o077 == 0
    back = data_folder.read_folder(tmp_path / "d")
    assert type(back.x) is type(data.x)
    dense = back.x.toarray() if kind == "sparse" else back.x
    assert dense.tobytes() == x.tobytes()
    assert type(back.y) is np.ndarray
    # the same compiled loops, and nobody else sees a write
    assert back.y.flags.writeable
    back.y[0] = -1.0
    assert data_folder.read_folder(tmp_path / "d").y[0] == 1.0
    for name in ("name", "task", "row_bound", "preprocessing", "minimiser", "data_dependent"):
        assert getattr(back, name) == getattr(data, name)
    assert back.x_test is not None
    assert back.x_test.shape == (0, 3)


DEFAULTS = {"backend": "local", "workers": 1, "address": "auto", "slurm": {}, "on_error": "stop"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": 0}, "workers=0"),
        ({"workers": True}, "workers=True"),
        ({"backend": "ray"}, "must be one of local, dask, submitit"),
        ({"on_error": "ignore"}, "must be one of continue, stop"),
        ({"address": "tcp://a:1"}, "is for backend=dask"),
        ({"backend": "dask", "address": "a:1"}, "tcp://HOST:PORT"),
        ({"slurm": "cpu"}, "must be a map"),
        ({"slurm": {"partitoin": "cpu"}}, "did you mean 'partition'"),
        ({"slurm": {"minutes": 0}}, "whole number >= 1"),
    ],
)
def test_bad_options_are_one_line(given, words):
    with pytest.raises(InputError, match=words) as caught:
        Options.parse({**DEFAULTS, **given})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "module", "extra"),
    [
        ({"backend": "dask"}, "distributed", "dask"),
        ({"backend": "dask", "address": "slurm"}, "dask_jobqueue", "slurm"),
        ({"backend": "submitit"}, "submitit", "slurm"),
    ],
)
def test_a_missing_extra_says_how_to_get_it(given, module, extra, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == module else found(n))
    with pytest.raises(InputError, match=rf"needs {module}.*pip install 'dperm\[{extra}\]'"):
        Options.parse({**DEFAULTS, **given})


def test_auto_takes_no_more_workers_than_are_worth_their_start(monkeypatch):
    monkeypatch.setattr("dperm_cli.runner.sweep.backends.cores", lambda: 8)
    auto = Options.parse({**DEFAULTS, "workers": "auto"})
    assert auto.choose_backend(20) is None
    assert auto.choose_backend(64) == Local(4)
    assert auto.choose_backend(2000) == Local(8)
    assert Options().choose_backend(2000) is None
    assert Options(workers=2).choose_backend(1) is None
    assert Options(backend="submitit", workers=3).choose_backend(2) == Submitit(3, {})
    assert Options(backend="dask", workers=2).choose_backend(2) == Dask(2, "auto", {})


def test_counts_and_times_in_words():
    tally = Tally(10)
    tally.add(Outcome("a", "ok"))
    tally.add(Outcome("b", "ok", looked_up=True))
    tally.add(Outcome("c", "unsupported"))
    tally.add(Outcome("d", "failed", "why"))
    words = "1 done, 1 looked up, 1 failed, 1 unsupported, 6 remaining"
    assert tally.counts() == words
    assert [duration(s) for s in (3.2, 600, 36000)] == ["3 s", "10 min", "10 h 0 min"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_a_worker_ends_with_its_parent():
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            SETTLE(os.getppid())
            os.write(write, b"settled")
            signal.pause()
        os.read(read, 7)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(middle, 0)
    os.close(write)
    # the pipe ends when the last process that holds it has ended
    os.set_blocking(read, True)
    signal.alarm(20)
    try:
        assert os.read(read, 1) == b""
    finally:
        signal.alarm(0)
        os.close(read)


def test_a_run_takes_away_what_killed_ones_left_in_the_cache(items, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    left = [cache / ".a9a.arrays.7-ab12.tmp", cache / "optima" / ".optimum-1.npz.7-cd34.tmp",
            cache / "optima" / ".problem.lock"]  # fmt: skip
    kept = [cache / "a9a.arrays", cache / "optima" / "optimum-1.npz"]
    (cache / "optima").mkdir(parents=True)
    for path in left + kept:
        path.write_bytes(b"")
    monkeypatch.setenv("DPERM_CACHE_DIR", str(cache))
    sweep.run_cells(items[:1], Store(tmp_path / "study"))
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in kept)
