"""Whatever ends a sweep, and whenever: nothing is lost, doubled or different afterwards."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dperm_cli.results.record_format import content_digest
from dperm_cli.results.records.store import Store
from tests.faults.conftest import CELLS, Zygote


def contents(out: Path) -> dict[str, str]:
    store = Store(out)
    found = {cell: content_digest(store.read(cell) or []) for cell in store.cells()}
    assert len(found) == CELLS
    assert store.verify() == []
    return found


def assert_same(out: Path, whole: Path) -> None:
    """The same cells with the same rows, the same table, and nothing else left about."""
    assert contents(out) == contents(whole)
    assert (out / "table.csv").read_bytes() == (whole / "table.csv").read_bytes()
    assert sorted(os.listdir(out)) == sorted(os.listdir(whole))
    assert all(name.endswith(".parquet") for name in os.listdir(out / "records"))


def kill_and_resume(zygote, out: str, kills: int, seed: int, *words: str) -> list[int]:
    """Kill -9 at random instants, resume each time; the records that each kill left."""
    rng = random.Random(seed)
    left = []
    for _ in range(kills):
        found = zygote(*words, out=out, more=rng.randint(0, 2), delay=rng.uniform(0.0, 0.02))
        if found["code"] != -signal.SIGKILL:
            # it had ended by itself before the kill
            assert found["code"] == 0, zygote.log
            break
        assert found["orphans"] == []
        left.append(found["left"])
    assert zygote(*words, out=out)["code"] == 0, zygote.log
    return left


def test_killed_and_resumed_is_uninterrupted(zygote, whole):
    left = kill_and_resume(zygote, "killed", 5, 1)
    assert any(0 < records < CELLS for records in left)
    assert left == sorted(left)
    assert_same(zygote.folder / "killed", whole)


def test_workers_die_with_their_parent(zygote, whole):
    left = kill_and_resume(zygote, "pool", 1, 4, "workers=2")
    assert len(left) == 1
    assert_same(zygote.folder / "pool", whole)


POOL = """
import os, pathlib, sys, time
from dperm_cli.runner.sweep.backends import Local
list(Local(workers=2).run(abs, [-1, -2], pathlib.Path(".")))
children = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
print(*(one for one in children if "loky.backend.popen" in
        pathlib.Path(f"/proc/{one}/cmdline").read_text()), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")
def test_workers_that_got_no_cell_yet_die_with_their_parent():
    """They follow it from their start on: one waited for its first cell for ever."""
    with subprocess.Popen([sys.executable, "-c", POOL], stdout=subprocess.PIPE, text=True) as run:
        workers = [int(word) for word in run.stdout.readline().split()]
        run.kill()
    assert len(workers) == 2
    for _ in range(300):
        if not any(Path(f"/proc/{one}").exists() for one in workers):
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {workers}")


@pytest.mark.faults
@pytest.mark.parametrize(("words", "most"), [((), 50), (("workers=2",), 10)], ids=["here", "pool"])
def test_many_kills(zygote, whole, words, most):
    kills, study = 0, 0
    while kills < most:
        out = f"fifty{len(words)}-{study}"
        left = kill_and_resume(zygote, out, most - kills, 100 + study, *words)
        assert_same(zygote.folder / out, whole)
        kills, study = kills + len(left), study + 1
        assert study < 100


FULL = pytest.mark.faults


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=FULL)])
def test_a_signal_ends_workers_and_keeps_finished_cells(zygote, whole, number):
    out = f"signal{int(number)}"
    found = zygote("workers=2", out=out, more=1, delay=0.0, signal=int(number))
    assert found["code"] == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert found["orphans"] == []
    assert 0 < found["left"] <= CELLS
    assert not (zygote.folder / out / ".work").exists()
    assert zygote(out=out)["code"] == 0
    assert_same(zygote.folder / out, whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [(), pytest.param(("workers=2",), marks=FULL)], ids=["here", "workers"]
)
def test_a_full_disk_is_said_and_leaves_whole_records(zygote, whole, words):
    out = f"full{len(words)}"
    found = zygote(*words, out=out, limit=8192)
    assert found["code"] == 3
    assert f"{zygote.folder / out}" in zygote.log.splitlines()[-1]
    assert "file too large" in zygote.log.splitlines()[-1]
    assert found["left"] == 0
    assert zygote(out=out)["code"] == 0
    assert_same(zygote.folder / out, whole)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB of its own, full but for 300 KiB by the file ``ballast``."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "dperm-test", str(disk)]
    try:
        made = subprocess.run(words, capture_output=True, text=True, timeout=30)
    except OSError as error:
        pytest.skip(f"no mount here: {error}")
    if made.returncode:
        pytest.skip(f"this user may not mount a file system: {made.stderr.strip()}")
    try:
        room = os.statvfs(disk)
        (disk / "ballast").write_bytes(b"\0" * (room.f_bavail * room.f_frsize - 300 * 1024))
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=30)


@pytest.mark.parametrize(
    "words", [(), pytest.param(("workers=2",), marks=FULL)], ids=["here", "workers"]
)
def test_a_disk_that_fills_up_leaves_whole_records(zygote, whole, small_disk, words):
    out = small_disk / "study"
    found = zygote(*words, out=str(out))
    assert found["code"] == 3
    assert f"{out}" in zygote.log.splitlines()[-1]
    assert "no space left on device" in zygote.log.splitlines()[-1]
    assert 0 < found["left"] < CELLS
    assert Store(out).verify() == []
    (small_disk / "ballast").unlink()
    assert zygote(out=str(out))["code"] == 0, zygote.log
    assert_same(out, whole)


def test_a_damaged_record_is_computed_again_alone(zygote, whole):
    assert zygote(out="flipped")["code"] == 0
    store = Store(zygote.folder / "flipped")
    times = {cell: store.path(cell).stat().st_mtime_ns for cell in store.cells()}
    flipped, cut = store.cells()[3], store.cells()[7]
    data = bytearray(store.path(flipped).read_bytes())
    data[len(data) // 3] ^= 4
    store.path(flipped).write_bytes(data)
    store.path(cut).write_bytes(store.path(cut).read_bytes()[:-9])
    assert len(store.verify()) == 2
    assert zygote(out="flipped")["code"] == 0
    now = {cell: store.path(cell).stat().st_mtime_ns for cell in store.cells()}
    assert {cell for cell in now if now[cell] != times[cell]} == {flipped, cut}
    assert_same(zygote.folder / "flipped", whole)


@pytest.mark.parametrize(
    "words", [("workers=2",), pytest.param((), marks=FULL)], ids=["workers", "here"]
)
def test_two_writers_compute_each_cell_once(zygote, whole, tmp_path, words):
    other = Zygote(tmp_path)
    where = zygote.folder / f"both{len(words)}"
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(zygote, *words, out=str(where)), pool.submit(other, out=str(where))]
        found = [run.result() for run in runs]
    logs = [zygote.log, other.log]
    other.close()
    assert [run["code"] for run in found] == [0, 0], logs
    counts = [re.search(r"40 cells: (\d+) done, (\d+) looked up, 0 failed", log) for log in logs]
    assert all(counts), logs
    done = [int(count[1]) for count in counts if count]
    assert sum(done) == CELLS, logs
    assert_same(where, whole)
