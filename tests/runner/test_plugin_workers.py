"""Workers load the plug-ins of the process that planned a study, of the very same bytes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dperm_cli.cli import main
from dperm_cli.core import plugin_sources
from dperm_cli.problem import data_folder
from dperm_cli.results.records.store import Store
from dperm_cli.runner.compose.study_plan import parse_request
from dperm_cli.runner.sweep.worker import Chunk, Setup, Task, run_chunk
from dperm_cli.runner.verbs.run import prepare
from tests.core.test_plugin_sources import MINE

KEYS = ("-m", "mechanism=one_step,noisy_gd", "loss=quantile", "dataset=diabetes", "trials=2",
        "constraint.radius=1", "epsilon=1,10,100")  # fmt: skip


def pack(folder: Path, path: Path) -> tuple[Setup, Chunk, list[str]]:
    """A study of one cell, planned here and packed for a worker."""
    words = ["mechanism=one_step", "dataset=diabetes", "constraint.radius=1", "trials=2"]
    spool = folder / "spool"
    spool.mkdir()
    with plugin_sources.use_plugins([path]):
        items = prepare(parse_request(words)[1].cells)
        for item in items:
            data_folder.write_folder(spool / item.data.identity, item.data)
        setup = Setup(folder / "out", spool, str(folder), None, False, False, None,
                      plugins=plugin_sources.list_sources())  # fmt: skip
        chunk = Chunk.of([Task(one.cell, one.key, one.data.identity) for one in items])
    return setup, chunk, [item.key for item in items]


def test_a_worker_loads_the_file_by_its_path(tmp_path):
    setup, chunk, (key,) = pack(tmp_path, MINE)
    report = run_chunk(setup, chunk)
    assert report.fault is None
    assert [outcome.key for outcome in report.outcomes] == [key]
    (row, _) = Store(tmp_path / "out").read(key)
    assert "mechanism one_step of mine.py" in row["plugins"]
    assert plugin_sources.list_sources() == ()


@pytest.mark.parametrize("edit", [lambda p: p.write_text(p.read_text() + "#"), Path.unlink])
def test_a_worker_that_reads_other_bytes_refuses_in_one_line(edit, tmp_path):
    path = Path(shutil.copy(MINE, tmp_path))
    setup, chunk, _ = pack(tmp_path, path)
    edit(path)
    report = run_chunk(setup, chunk)
    assert report.outcomes == ()
    assert "mine.py" in str(report.fault)
    assert "\n" not in str(report.fault)
    assert "changed since the study was planned" in str(report.fault) or "is not there" in str(
        report.fault
    )
    assert not (tmp_path / "out" / "records").exists()


def show(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("table.csv", "ledger.json")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of one process."""
    out = tmp_path_factory.mktemp("whole") / "study"
    assert main(["run", "--plugin", str(MINE), *KEYS, f"out={out}"]) == 0
    return show(out)


@pytest.mark.slow
@pytest.mark.parametrize("how", [
    ("workers=2",), ("backend=dask", "workers=2"),
    ("backend=submitit", "workers=2", "slurm={cluster: local}"),
])  # fmt: skip
def test_every_back_end_gives_the_bytes_of_one_process(how, whole, tmp_path):
    needed = {"backend=dask": "distributed", "backend=submitit": "submitit"}.get(how[0])
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    path = shutil.copy(MINE, tmp_path)
    words = ["run", "--plugin", str(path), *KEYS, *how, f"out={tmp_path / 'study'}"]
    command = [sys.executable, "-m", "dperm_cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert "workers died" not in done.stderr
    assert show(tmp_path / "study") == whole


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(whole, tmp_path):
    out = tmp_path / "study"
    command = [sys.executable, "-m", "dperm_cli", "run", "--plugin", str(MINE), *KEYS,
               f"out={out}", "workers=2"]  # fmt: skip
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           start_new_session=True)  # fmt: skip
    until = time.monotonic() + 100
    while run.poll() is None and time.monotonic() < until:
        if any((out / "records").glob("*.parquet")):
            break
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert any((out / "records").glob("*.parquet"))
    assert main(["run", "--plugin", str(MINE), *KEYS, f"out={out}"]) == 0
    assert show(out) == whole
