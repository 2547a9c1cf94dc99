"""What a run needs is known, and refused where it cannot be had, before its first cell."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from dperm_cli.datasets.generated.synthetic_logistic import SyntheticLogistic

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("dataset=synthetic_logistic", "dataset.n=50", "dataset.p=3", "dataset.n_test=10")


def test_the_table_of_needs(dperm):
    done = dperm(
        "run", "-m", "--cfg", "preflight", "dataset=a9a,synthetic_logistic", "epsilon=1,2",
        "workers=2", "limits.memory=3GB",
    )  # fmt: skip
    assert done.code == 0
    assert not os.listdir()
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["a9a", "synthetic_logistic", "the"]
    assert "48,842  123   677,323" in lines[-3]
    assert all("3 GB" in line and line.endswith("yes") for line in lines[-3:])


def test_needs_as_json_follow_public_facts(dperm):
    """Two files of other records and equal shape need the same."""
    found = []
    for name, cell in (("a", "1"), ("b", "7")):
        Path(name).write_text("x,y\n" + f"{cell},1\n" * 5)
        words = ("dataset=csv", f"dataset.path={name}", "dataset.header=true", "format=json")
        done = dperm("run", "--cfg", "preflight", *words)
        assert done.code == 0
        found.append({key: v for key, v in done.rows[0].items() if key != "disk_free"})
    assert found[0] == found[1]
    assert found[0].items() >= {"n": 5, "p": 1, "unpacked": 24, "fits": True, "cells": 1}.items()


def test_more_work_needs_more(dperm):
    def need(*words):
        return dperm("run", "--cfg", "preflight", "format=json", *SMALL, *words).rows[0]

    base = need()
    for more in ("dataset.n=5000", "trials=1000"):
        assert need(more)["seconds"] > base["seconds"], more
    steps = [need("mechanism=noisy_gd", f"mechanism.steps={count}") for count in (200, 100000)]
    assert steps[1]["seconds"] > steps[0]["seconds"]
    for more in ("dataset.n=5000", "dataset.p=300", "trials=1000"):
        assert need(more)["memory"] > base["memory"], more
    assert need("trials=1000")["disk"] > base["disk"]


def test_a_set_that_was_never_fetched_is_known_by_what_is_published(dperm, monkeypatch):
    monkeypatch.setenv("DPERM_DATA_DIR", "nowhere")
    done = dperm("run", "--cfg", "preflight", "dataset=covtype", "format=json")
    assert done.rows[0]["n"] == 581012
    assert done.rows[0]["nonzeros"] == 6901775


@pytest.mark.parametrize("words", [
    ("dataset=svmlight", "dataset.path=f", "dataset.n_features=2000000000"),
    ("dataset=synthetic_logistic", "dataset.n=100000000000"),
    ("dataset=synthetic_logistic", "dataset.p=1000000", "trials=1000000"),
])  # fmt: skip
def test_what_cannot_fit_is_refused_before_it_is_loaded(words, dperm, monkeypatch):
    Path("f").write_text("1 1:1 5:2\n-1 2:1\n1 3:1\n-1 4:2\n1 1:1\n")
    monkeypatch.setattr(SyntheticLogistic, "load", lambda *_: pytest.fail("loaded"))
    done = dperm("run", *words, "limits.memory=8GB", "out=study")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("dperm: limits.memory=8GB: the study needs about ")
    assert "8 GB are allowed (limits.memory); take fewer" in done.err
    assert done.err.count("\n") == 1
    assert not Path("study").exists()


def test_workers_that_do_not_fit_beside_the_data_are_refused(dperm):
    cells = ("-m", "epsilon=1,2,3,4", "trials=1", *SMALL, "out=study")
    done = dperm("run", *cells, "workers=4000", "limits.memory=1GB")
    assert done.code == 2
    assert "workers" in done.err
    assert not Path("study").exists()


def test_a_disk_that_is_too_small_is_said_before_the_first_cell(dperm, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage(10**6, 10**6, 1000))
    done = dperm("run", *SMALL, "trials=1", "out=study")
    assert done.code == 3
    assert "needs about 4.12 kB on the disk, and 1 kB are free; set out=FOLDER" in done.err
    assert not Path("study").exists()


@pytest.mark.parametrize(("word", "said"), [
    ("limits.memory=4", "must be auto, or a size with its unit, such as 4GB"),
    ("limits.memroy=4GB", "did you mean 'memory'"),
    ("limits=4GB", "must be a map: set limits.memory=4GB"),
    ("limits={memory: 1, a: 2}", "limits.a: unknown key"),
    ("limits.memory=[4GB,5GB]", "takes one value for the whole study"),
])  # fmt: skip
def test_a_wrong_limit_is_one_line(word, said, dperm):
    done = dperm("run", *SMALL, word)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_the_limit_is_in_no_record(dperm):
    assert dperm("run", *SMALL, "trials=1", "out=a").code == 0
    assert dperm("run", *SMALL, "trials=1", "out=b", "limits.memory=20GB").code == 0
    assert os.listdir("a/records") == os.listdir("b/records")


_LOAD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from dperm_cli.core.errors import DpermError
from dperm_cli.runner.compose.study_plan import parse_request
from dperm_cli.runner.verbs.run import run
words = ["dataset=csv", "dataset.path=f.gz", "dataset.header=false", "trials=1",
         "mechanism=output_perturbation", "ridge=0.1", "out=study"]
try:
    code = run(words, *parse_request(words), figures=False)
except DpermError as error:
    print(error, file=sys.stderr)
    code = error.exit_code
# not ru_maxrss: where a process is forked, that has what the one that forks it holds
with open("/proc/self/status") as file:
    (peak,) = (int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
print(code, peak)
"""


def _load_packed(folder: Path, mib: int) -> tuple[int, int, int, str]:
    """Exit code, peak memory in bytes, cells and stderr of a run on about so many MiB of rows."""
    lines = [",".join(f"{0.01 * i * k:.4f}" for i in range(20)) for k in (1, -1)]
    block = "".join(f"{line},{label}\n" for line, label in zip(lines, (1, -1), strict=True)) * 3000
    blocks = (mib << 20) // len(block) + 1
    with gzip.open(folder / "f.gz", "wb", compresslevel=1) as file:
        for _ in range(blocks):
            file.write(block.encode())
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _LOAD], cwd=folder, env=env, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    code, peak = map(int, done.stdout.split()[-2:])
    print(f"{mib} MiB of rows: exit code {code}, peak memory {peak / 1e6:.0f} MB\n{done.stderr}")
    return code, peak, blocks * 6000 * 20, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, and ulimit -v that holds")
@pytest.mark.slow
@pytest.mark.parametrize("mib", [8, pytest.param(1024, marks=pytest.mark.faults)])
def test_packed_rows_under_a_limit_of_addresses(mib, tmp_path):
    """They are loaded, or refused with both numbers; the peak is printed (``pytest -s``)."""
    (tmp_path / "first").mkdir()
    _load_packed(tmp_path / "first", 8)  # compiles what no earlier test has: that needs memory too
    code, peak, cells, said = _load_packed(tmp_path, mib)
    if code == 2:
        assert mib > 100
        assert "are allowed (ulimit -v)" in said
    else:
        assert code == 0, said
    assert peak < 8 * cells * 9 / 8 + 500 * 10**6


def test_the_json_names_every_column(dperm):
    row = dperm("run", "--cfg", "preflight", "format=json", *SMALL).rows[-1]
    assert row["dataset"] == "the study"
    assert {"memory", "memory_allowed", "disk", "disk_free", "seconds", "workers"} <= row.keys()
    assert json.dumps(row)
