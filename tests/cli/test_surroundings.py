"""What a process may be started in: closed streams, small limits, folders that are shut."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dperm_cli.core.environment import LIBRARIES
from dperm_cli.core.memory_limits import format_bytes

TINY = ("dataset=synthetic_logistic", "dataset.n=60", "dataset.p=3", "trials=2", "epsilon=1")
RUN = ("run", *TINY, "out=here", "format=json")


def run_shell(folder, words, redirections="", before=""):
    """``dperm`` as a process of its own, started by a shell."""
    command = ["sh", "-c", f'{before} exec "$0" -m dperm_cli "$@" {redirections}']
    return subprocess.run([*command, sys.executable, *words], cwd=folder, capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["list", "mechanism"]])
def test_a_closed_output_is_one_line(words, tmp_path):
    done = run_shell(tmp_path, words, ">&-")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("dperm: standard output cannot be written")
    refused = run_shell(tmp_path, ["lisst"], ">&-")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("redirections", "code"),
    [
        ("<&- >&- 2>&-", 3),
        pytest.param(">&-", 3, marks=pytest.mark.slow),
        pytest.param("2>&-", 0, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_complete_whoever_listens(redirections, code, dperm, tmp_path):
    found = dperm(*RUN).out
    made = set(os.listdir(tmp_path / "here"))
    table = (tmp_path / "here" / "table.csv").read_bytes()
    for path in (tmp_path / "here").glob("*.*"):
        path.unlink()
    done = run_shell(tmp_path, RUN, redirections)
    assert done.returncode == code, done.stderr
    assert done.stdout == (found if code == 0 else "")
    assert "Traceback" not in done.stderr
    assert made <= set(os.listdir(tmp_path / "here"))
    assert (tmp_path / "here" / "table.csv").read_bytes() == table


def test_a_report_that_cannot_be_written_is_printed(dperm, tmp_path):
    dperm(*RUN)
    before = dperm("report", "here").out
    for name in ("table.csv", "report.html", ".ledger.lock"):
        path = tmp_path / "here" / name
        path.unlink(missing_ok=True)
        path.mkdir()  # not even root can put a file there
    done = dperm("report", "here")
    assert (done.code, done.out) == (3, before)
    (line,) = [line for line in done.err.splitlines() if line.startswith("dperm:")]
    assert line.endswith("is a directory; not written: table.csv, ledger.json, report.html")
    (wrote,) = [line for line in done.err.splitlines() if line.startswith("wrote here/: ")]
    files = set(wrote.removeprefix("wrote here/: ").split(", "))
    assert {"table.md", "table.tex"} <= files
    assert not files & {"table.csv", "ledger.json", "report.html"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to ulimit -v")
@pytest.mark.parametrize("limit", [60_000, 300_000, (LIBRARIES >> 10) - 1])
def test_a_limit_that_is_too_small_for_the_libraries_is_one_line(limit, tmp_path):
    done = run_shell(tmp_path, RUN, before=f"ulimit -v {limit};")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("dperm: limits.memory=auto: loading libraries and compiled loops ")
    assert (
        f"needs about 1.07 GB of memory, and {format_bytes(limit << 10)} are allowed (ulimit -v)"
        in line
    )
    assert line.endswith("raise the limit")
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to ulimit -v")
def test_a_run_fits_into_what_is_said_to_suffice(tmp_path):
    """With loops to compile and a figure to draw."""
    before = f"ulimit -v {LIBRARIES >> 10}; export NUMBA_CACHE_DIR={tmp_path}/code;"
    done = run_shell(tmp_path, ["run", *TINY, "mechanism=[noisy_gd,noisy_sgd]"], before=before)
    assert done.returncode == 0, done.stderr
