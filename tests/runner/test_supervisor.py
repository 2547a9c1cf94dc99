"""A sweep comes to its end however often its workers die."""

from __future__ import annotations

import os
import pickle
import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dperm_cli.core.errors import DpermError
from dperm_cli.results.record_format import content_digest
from dperm_cli.results.records.store import Store
from dperm_cli.runner.cells import run_cell
from dperm_cli.runner.compose import study_plan
from dperm_cli.runner.compose.command_line import parse
from dperm_cli.runner.sweep import backends, sweep, worker
from dperm_cli.runner.sweep.attempts import Attempts, read_peak_memory
from dperm_cli.runner.sweep.backends import Dask, Local, NoneWorks, Options, Submitit, WorkerDied
from dperm_cli.runner.sweep.supervisor import cut_chunks
from dperm_cli.runner.verbs import run as app

WORDS = [
    "-m", "dataset=synthetic_logistic", "dataset.n=30", "dataset.p=2", "trials=2",
    "mechanism=noisy_gd", "epsilon=1,2,3,4,5,6,7,8",
]  # fmt: skip
OPTIONS = {
    "local": Options(workers=4),
    "dask": Options(backend="dask", workers=4),
    "submitit": Options(backend="submitit", workers=4, slurm={"cluster": "local"}),
}


@pytest.fixture(scope="module")
def items():
    return app.prepare(study_plan.plan_study(parse(WORDS)).cells)


@pytest.fixture(scope="module")
def serial(items, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("serial"))
    assert sweep.run_cells(items, store).done == len(items)
    return contents(store)


def contents(store):
    return {cell: content_digest(store.read(cell) or []) for cell in store.cells()}


class Pool:
    """Takes the place of every back end: a process for each chunk, which dies as it is told."""

    def __init__(self, monkeypatch, before_work=0, deadly=(), deadly_once=(), died=WorkerDied):
        self.sizes: list[int] = []
        self._died = died
        self._before_work, self._deadly, self._once = before_work, deadly, deadly_once
        self._here, self._run = os.getpid(), run_cell.run
        for kind in (Local, Dask, Submitit):
            monkeypatch.setattr(kind, "run", lambda backend, *rest: self.run(backend, *rest))
        monkeypatch.setattr(run_cell, "run", self.run_cell)
        monkeypatch.setattr(worker, "follow_parent", lambda parent: None)

    def run(self, backend, call, chunks, folder):
        self.sizes.append(backend.workers)
        if self._before_work:
            self._before_work -= 1
            raise self._died("killed as it started")
        for chunk in chunks:
            yield in_a_process(call, chunk)

    def run_cell(self, item, *rest):
        if os.getpid() != self._here and item.key in self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if item.key in self._once and not Path(f"died-{item.key}").exists():
            Path(f"died-{item.key}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self._run(item, *rest)


def in_a_process(call, chunk):
    """What the call returns; WorkerDied when its process is killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, pickle.dumps(call(chunk)))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise WorkerDied(f"signal {os.WTERMSIG(status)}")
    return pickle.loads(said)


@pytest.fixture(params=["local", "dask", "submitit"])
def options(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return OPTIONS[request.param]


def test_workers_that_die_as_they_start_leave_the_work_to_this_process(
    items, serial, tmp_path, monkeypatch, capsys, options
):
    pool = Pool(monkeypatch, before_work=10**9)
    store = Store(tmp_path / "out")
    tally = sweep.run_cells(items, store, options=options)
    assert (tally.done, tally.remaining_count) == (len(items), 0)
    assert pool.sizes == [4, 2, 1]
    assert contents(store) == serial
    assert os.listdir(store.out) == ["records"]
    said = capsys.readouterr().err
    assert "workers died (killed as it started): the sweep goes on with 2 of them" in said
    assert "workers died (killed as it started): the sweep goes on in this process" in said


def test_workers_that_live_and_take_up_no_work_leave_it_to_this_process(
    items, serial, tmp_path, monkeypatch, options
):
    pool = Pool(monkeypatch, before_work=10**9, died=NoneWorks)
    store = Store(tmp_path / "out")
    tally = sweep.run_cells(items, store, options=options)
    assert (tally.done, tally.remaining_count, pool.sizes) == (len(items), 0, [4])
    assert contents(store) == serial


def test_whoever_is_at_a_chunk_is_seen(tmp_path):
    attempts = Attempts(tmp_path)
    assert not attempts.is_anyone_at_work()
    with attempts.note_work():
        assert Attempts(tmp_path).is_anyone_at_work()
    assert not attempts.is_anyone_at_work()


def test_a_start_that_fails_twice_halves_the_pool_twice(
    items, serial, tmp_path, monkeypatch, options
):
    pool = Pool(monkeypatch, before_work=2)
    store = Store(tmp_path / "out")
    tally = sweep.run_cells(items, store, options=options)
    assert (tally.done, tally.remaining_count, pool.sizes) == (len(items), 0, [4, 2, 1])
    assert contents(store) == serial


def test_a_cell_at_which_two_workers_die_fails_alone(items, serial, tmp_path, monkeypatch, options):
    deadly = {items[2].key, items[5].key}
    Pool(monkeypatch, deadly=deadly)
    store = Store(tmp_path / "out")
    tally = sweep.run_cells(items, store, options=options)
    assert {outcome.key for outcome in tally.failures} == deadly
    assert (tally.remaining_count, tally.failed_count) == (0, 2)
    for outcome in tally.failures:
        words = r"its worker died twice \(signal 9; memory of the worker: [0-9.]+ GB\)"
        assert re.match(words, str(outcome.reason))
        assert store.status(outcome.key) == "failed"
        assert (store.read(outcome.key) or [{}])[0]["reason"] == outcome.reason
    whole = {key: digest for key, digest in contents(store).items() if key not in deadly}
    assert whole == {key: digest for key, digest in serial.items() if key not in deadly}
    assert os.listdir(store.out) == ["records"]


def test_a_cell_at_which_one_worker_dies_is_whole(items, serial, tmp_path, monkeypatch, options):
    Pool(monkeypatch, deadly_once={item.key for item in items[::3]})
    store = Store(tmp_path / "out")
    tally = sweep.run_cells(items, store, options=options)
    assert (tally.failed_count, tally.remaining_count) == (0, 0)
    assert contents(store) == serial


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_a_worker_leaves_a_cell_at_which_others_died(items, tmp_path, deaths):
    """Also where the back end itself gives the chunk to another worker, as Dask does."""
    attempts = Attempts(tmp_path / "spool")
    (tmp_path / "spool" / "begun").mkdir(parents=True)
    (tmp_path / "spool" / "begun" / items[0].key).write_text("host-1\n" * deaths)
    assert attempts.count(items[0].key) == deaths
    done = {
        allowed: [
            outcome.key
            for outcome in worker.Worker(
                tmp_path / str(allowed), attempts=attempts, deaths=allowed
            ).run(items[:2])
        ]
        for allowed in ((0, 1) if deaths else (0,))
    }
    keys = [item.key for item in items[:2]]
    assert done[0] == (keys[1:] if deaths else keys)
    if deaths:
        assert done[1] == (keys if deaths == 1 else keys[1:])


def test_an_attempt_is_noted_while_it_lasts(tmp_path):
    attempts = Attempts(tmp_path)
    with attempts.note("abc"):
        assert attempts.list_cells() == ["abc"]
        assert attempts.count("abc") == 1
    with pytest.raises(DpermError), attempts.note("abc"):
        raise DpermError
    assert attempts.list_cells() == []
    assert attempts.read_peak("abc") is None


def test_the_memory_of_a_worker_is_what_it_takes():
    before = read_peak_memory()
    taken = np.ones(1 << 24)
    after = read_peak_memory()
    assert before is not None
    assert after is not None
    assert taken.nbytes // 2 < after < 1 << 40
    assert after >= before


def refuse_threads(*_, **__):
    raise RuntimeError("can't start new thread")


def test_a_worker_that_may_start_no_thread_knows_its_first_peak(tmp_path, monkeypatch):
    attempts = Attempts(tmp_path)
    with attempts.note("abc"):
        monkeypatch.setattr(threading.Thread, "start", refuse_threads)
        attempts.watch_memory()
        assert (attempts.read_peak("abc") or 0) > 1 << 20


def test_a_pool_that_may_start_no_thread_leaves_the_work_to_this_process(
    items, serial, tmp_path, monkeypatch, capsys
):
    pool = SimpleNamespace(submit=refuse_threads, shutdown=lambda kill_workers: None)
    monkeypatch.setattr(backends, "_pools", {workers: pool for workers in (1, 2, 4)})
    store = Store(tmp_path / "out")
    tally = sweep.run_cells(items, store, options=OPTIONS["local"])
    assert (tally.done, tally.remaining_count) == (len(items), 0)
    assert contents(store) == serial
    assert "(can't start new thread: the limit of ulimit -u is reached)" in capsys.readouterr().err


def test_other_errors_of_a_pool_are_not_its_end(tmp_path, monkeypatch):
    def submit(*_):
        raise RuntimeError("cannot schedule new futures")

    pool = SimpleNamespace(submit=submit, shutdown=lambda kill_workers: None)
    monkeypatch.setattr(backends, "_pools", {2: pool})
    with pytest.raises(RuntimeError, match="cannot schedule"):
        list(Local(2).run(len, ["a"], tmp_path))


@pytest.mark.parametrize(("cells", "workers"), [(1, 2), (12, 2), (2000, 2), (2000, 64)])
def test_chunks_hold_every_cell_once(cells, workers):
    tasks = list(range(cells))
    cut = cut_chunks(tasks, Local(workers).chunks(cells))
    assert sorted(task for chunk in cut for task in chunk) == tasks
    assert all(0 < len(chunk) <= 32 for chunk in cut)
