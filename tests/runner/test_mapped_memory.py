"""A run on mapped records takes little memory of its own, however many records there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# anonymous memory: pages of mapped files are the system's, which drops them when memory is short
_PROGRAM = """
import re, sys, threading
from dperm_cli import cli

peak, ended = 0, threading.Event()

def read():
    with open("/proc/self/status") as file:
        return int(re.search(r"RssAnon:\\s+(\\d+) kB", file.read())[1]) << 10

def watch():
    global peak
    while not ended.wait(0.005):
        peak = max(peak, read())

def run(n, out):
    global peak
    peak = read()
    words = ["dataset=synthetic_logistic", f"dataset.n={n}", "dataset.p=40", "dataset.n_test=0",
             "mechanism=noisy_gd", "mechanism.steps=5", "trials=1", "constraint.radius=2"]
    assert cli.main(["run", *words, "data_storage=mapped", f"out={out}"]) == 0
    return peak

threading.Thread(target=watch, daemon=True).start()
small = run(20000, "small")
large = run(1000000, "large")
ended.set()
print("peaks", small, large)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.slow
def test_storing_and_running_need_little_memory_of_their_own(tmp_path):
    """320 MB of rows: what grows are numbers of records, such as a margin, and not rows."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DPERM_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=tmp_path, env=env, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    small, large = map(int, done.stdout.split()[-2:])
    print(f"peaks of anonymous memory: {small / 1e6:.0f} MB, {large / 1e6:.0f} MB")
    assert large - small < 200e6
    assert large < 512 << 20
