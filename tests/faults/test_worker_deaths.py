"""A worker that dies, at whatever moment, costs the sweep only the time to make up for it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time

import pytest

from tests.faults._program import (
    SMALL,
    WORKERS,
    count_records,
    epsilons,
    kill_session,
    leftovers,
    run_dperm,
    start_dperm,
    wait_for,
    wait_for_none,
    wait_for_records,
    wait_for_worker,
)

CELLS = 24
SWEEP = ["run", "-m", *SMALL, epsilons(CELLS)]


@pytest.fixture(scope="module")
def expected_table(tmp_path_factory) -> bytes:
    """The table of the sweep in one process."""
    folder = tmp_path_factory.mktemp("whole")
    ended = run_dperm([*SWEEP, f"out={folder}/study"], folder)
    assert ended.code == 0, ended.err
    return (folder / "study" / "table.csv").read_bytes()


@pytest.fixture
def sweep(tmp_path):
    """Start the sweep with the workers of a back end; what is still there is killed at the end."""
    started = []

    def start(backend):
        for module in {"dask": ["distributed"], "submitit": ["submitit"]}.get(backend, []):
            pytest.importorskip(module)
        words, worker = WORKERS[backend]
        started.append(start_dperm([*SWEEP, *words, f"out={tmp_path}/study"], tmp_path))
        return started[-1], worker

    yield start
    for process in started:
        if process.poll() is None:
            kill_session(process)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def assert_complete(process, study, expected_table) -> None:
    ended = wait_for(process)
    assert ended.code == 0, ended.err[-2000:]
    assert (study / "table.csv").read_bytes() == expected_table
    counts = re.search(rf"{CELLS} cells: (\d+) done, (\d+) looked up, 0 failed", ended.err)
    assert counts, ended.err[-2000:]
    assert int(counts[1]) + int(counts[2]) == CELLS
    assert leftovers(study) == []
    assert wait_for_none(process.pid) == []


# How far the start has come by then depends on the machine.
LONG = pytest.mark.faults
STARTS = [
    pytest.param("local", 0.0),
    pytest.param("local", 0.2, marks=[LONG]),
    *(pytest.param("local", delay, marks=[LONG]) for delay in (0.5, 1.0)),
    pytest.param("local", 2.0, marks=[LONG]),
    pytest.param("dask", 0.0, marks=[LONG]),
    *(pytest.param("dask", delay, marks=LONG) for delay in (0.5, 1.5)),
    *(pytest.param("submitit", delay, marks=LONG) for delay in (0.0, 0.5, 1.5)),
]  # fmt: skip


@pytest.mark.parametrize(("backend", "delay"), STARTS)
def test_one_worker_dies_while_workers_start(backend, delay, sweep, tmp_path, expected_table):
    process, word = sweep(backend)
    worker = wait_for_worker(process, word)
    assert worker, process.communicate()
    time.sleep(delay)
    kill(worker)
    assert_complete(process, tmp_path / "study", expected_table)


@pytest.mark.faults
@pytest.mark.parametrize("backend", WORKERS)
def test_every_first_worker_dies_while_workers_start(backend, sweep, tmp_path, expected_table):
    process, word = sweep(backend)
    killed = {wait_for_worker(process, word)}
    assert 0 not in killed
    end = time.monotonic() + 1.0
    while len(killed) < 2 and time.monotonic() < end:
        killed.add(wait_for_worker(process, word))
        for pid in killed:
            kill(pid)
    for pid in killed:
        kill(pid)
    assert_complete(process, tmp_path / "study", expected_table)


@pytest.mark.faults
@pytest.mark.parametrize(
    "records", [1, pytest.param(CELLS // 2, marks=pytest.mark.faults_quick), CELLS - 1]
)
@pytest.mark.parametrize("backend", WORKERS)
def test_one_worker_dies_while_records_are_written(
    backend, records, sweep, tmp_path, expected_table
):
    process, word = sweep(backend)
    wait_for_records(process, tmp_path / "study", records)
    worker = wait_for_worker(process, word)
    kill(worker) if worker else None
    assert_complete(process, tmp_path / "study", expected_table)


@pytest.mark.faults
@pytest.mark.parametrize("backend", WORKERS)
def test_one_worker_dies_when_all_records_are_there(backend, sweep, tmp_path, expected_table):
    process, word = sweep(backend)
    wait_for_records(process, tmp_path / "study", CELLS)
    worker = wait_for_worker(process, word, seconds=1.0)
    kill(worker) if worker else None
    assert_complete(process, tmp_path / "study", expected_table)


@pytest.mark.faults
@pytest.mark.parametrize("backend", WORKERS)
def test_a_worker_is_stopped_and_then_dies(backend, sweep, tmp_path, expected_table):
    process, word = sweep(backend)
    wait_for_records(process, tmp_path / "study", 2)
    worker = wait_for_worker(process, word, seconds=1.0)
    if worker:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGSTOP)
        time.sleep(1.0)
        kill(worker)
    assert_complete(process, tmp_path / "study", expected_table)


@pytest.mark.faults
@pytest.mark.parametrize("backend", WORKERS)
def test_kills_of_the_whole_run_at_any_moment_lose_nothing(
    backend, sweep, tmp_path, expected_table
):
    """Kill -9 of the parent from its first moment to its last, resumed until a run gets through."""
    rng = random.Random(18)
    for _ in range(8):
        process, _ = sweep(backend)
        time.sleep(rng.uniform(0.0, 6.0))
        if process.poll() is not None:
            break
        kill(process.pid)
        process.communicate()
    assert wait_for_none(process.pid) == []
    process, _ = sweep(backend)
    ended = wait_for(process)
    assert ended.code == 0, ended.err[-2000:]
    assert (tmp_path / "study" / "table.csv").read_bytes() == expected_table
    assert count_records(tmp_path / "study") == CELLS
    assert leftovers(tmp_path / "study") == []


@pytest.mark.faults
def test_a_memory_limit_on_workers_is_said_or_survived(tmp_path, expected_table):
    """Address space for one process of this size is there, but no room to grow in."""
    ended = run_dperm(
        [*SWEEP, "workers=2", f"out={tmp_path}/study"], tmp_path, before="ulimit -v 1500000"
    )
    assert "Traceback" not in ended.err, ended.err[-2000:]
    assert "without a word" not in ended.err
    if ended.code == 0:
        assert (tmp_path / "study" / "table.csv").read_bytes() == expected_table
    else:
        assert ended.code == 2
        assert "memory" in ended.err.splitlines()[-1]
