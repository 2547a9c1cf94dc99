"""A clock that goes backwards, stands still or is years off decides nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.faults._program import REPOSITORY, SMALL, SWEEP, epsilons, leftovers, run_dperm

# What each call of the clock does before it tells ``now[0]``.
CLOCKS = {
    "backwards": "now[0] -= 3600.0",
    "still": "pass",
    "leaping": "now[0] += -1e8 if now[0] > 1.7e9 else 2e8",
}
# Python runs a file of the name ``sitecustomize.py`` at its start.
PROGRAM = """
import time
now = [time.time()]
def tell():
    {step}
    return now[0]
time.time, time.time_ns = tell, lambda: int(tell() * 1e9)
"""


@pytest.mark.parametrize(("clock", "words"), [
    pytest.param("backwards", ["workers=2"], marks=[pytest.mark.faults, pytest.mark.faults_quick]),
    *(pytest.param(clock, [], marks=pytest.mark.slow) for clock in CLOCKS),
    pytest.param("backwards", ["backend=dask", "workers=2"], marks=pytest.mark.faults),
])  # fmt: skip
def test_an_odd_clock_changes_no_byte(clock, words, tmp_path, expected_table):
    if "backend=dask" in words:
        pytest.importorskip("distributed")
    (tmp_path / "sitecustomize.py").write_text(PROGRAM.format(step=CLOCKS[clock]))
    package = Path(f"{tmp_path}{os.pathsep}{REPOSITORY}")
    ended = run_dperm([*SWEEP, *words], tmp_path, package=package)
    assert ended.code == 0, ended.err[-1000:]
    assert "Traceback" not in ended.err
    assert (tmp_path / "study" / "table.csv").read_bytes() == expected_table
    assert leftovers(tmp_path / "study") == []


@pytest.mark.slow
@pytest.mark.parametrize("years", [-40, 10])
def test_files_of_another_year_are_looked_up(years, tmp_path, expected_table):
    """The clock was put right between two runs: what lies there is from the future, or very old."""
    assert run_dperm(["run", "-m", *SMALL, epsilons(2), "out=study"], tmp_path).code == 0
    then = time.time() + years * 365 * 86400
    for path in (tmp_path / "study").rglob("*"):
        os.utime(path, (then, then))
    ended = run_dperm(SWEEP, tmp_path)
    assert ended.code == 0, ended.err[-1000:]
    assert "4 cells: 2 done, 2 looked up, 0 failed" in ended.err
    assert (tmp_path / "study" / "table.csv").read_bytes() == expected_table
    for verb in ("status", "verify", "report"):
        ended = run_dperm([verb, "study"], tmp_path)
        assert ended.code == 0, ended.err + ended.out
