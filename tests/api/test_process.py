"""What a notebook owns stays as it was: stdout, log, settings, signals, threads, event loop."""

from __future__ import annotations

import io
import json
import sys
import threading
import warnings

import pytest

import dperm_cli
from dperm_cli.runner.sweep import progress
from tests.api.conftest import SMALL
from tests.api.test_names import start_python

WATCHED = """
import asyncio, json, logging, os, signal, sys, threading, warnings
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from hydra.core.global_hydra import GlobalHydra
from threadpoolctl import threadpool_info

matplotlib.use("svg")
matplotlib.rcParams["lines.linewidth"] = 7.0
logging.basicConfig(level=logging.WARNING, format="mine %(message)s")
warnings.filterwarnings("ignore", message="mine")
np.random.seed(7)
plt.figure()
GlobalHydra.instance().hydra = "mine"

def look():
    root = logging.getLogger()
    return {
        "backend": matplotlib.get_backend(),
        "settings": str(dict(matplotlib.rcParams)),
        "open figures": plt.get_fignums(),
        "log": [root.level, [h.formatter._fmt for h in root.handlers], root.manager.disable],
        "signals": [str(signal.getsignal(s)) for s in signal.valid_signals()],
        "threads": [thread.name for thread in threading.enumerate()],
        "BLAS": [one["num_threads"] for one in threadpool_info() if "numpy" in one["filepath"]],
        "random": str(np.random.get_state()),
        "numpy": np.geterr(),
        "warnings": [str(one) for one in warnings.filters],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "hydra": str(GlobalHydra.instance().hydra),
        "path": sys.path,
        "words": sys.argv,
        "recursion": sys.getrecursionlimit(),
        "streams": [sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
        "hook": sys.excepthook is sys.__excepthook__,
        "files": sorted(os.listdir(".")),
    }

before = look()
import dperm_cli

async def cell():
    study = dperm_cli.run(*WORDS, epsilon=[1, 10], out="study")
    study.plot(), study.table(style="latex"), repr(study), study._repr_html_()
    dperm_cli.account(mechanism="noisy_gd")

asyncio.run(cell())
after = look()
after["files"].remove("study")
print("MARK" + json.dumps([before, after]))
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """What stood before and after calls inside a running event loop, and stderr."""
    folder = tmp_path_factory.mktemp("notebook")
    done = start_python(WATCHED.replace("WORDS", repr(SMALL)), folder)
    printed, _, states = done.stdout.partition("MARK")
    assert printed == ""
    return *json.loads(states), done.stderr


@pytest.mark.parametrize(
    "what",
    [
        "backend", "settings", "log", "signals", "threads", "BLAS", "random", "numpy", "warnings",
        "folder", "hydra", "path", "files", "open figures", "words", "recursion", "streams", "hook",
    ],
)  # fmt: skip
def test_a_call_leaves_it_alone(what, watched):
    before, after, _ = watched
    assert after[what] == before[what]


def test_the_environment_stays_but_for_folders_of_caches(watched):
    """numba and matplotlib read once, when they are imported, where they may keep files."""
    before, after = (state["environment"] for state in watched[:2])
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert changed <= {"NUMBA_CACHE_DIR", "MPLCONFIGDIR"}


def test_progress_in_a_pipe_has_no_control_characters(watched):
    assert "Traceback" not in watched[2]
    assert not set("\x1b\r") & set(watched[2])


NESTED = """
import concurrent.futures, threading, dperm_cli

found = []

def call():
    try:
        found.append(dperm_cli.account(mechanism="noisy_gd"))
    except dperm_cli.InputError as error:
        found.append(error)

def in_a_thread():
    thread = threading.Thread(target=call, daemon=True)
    thread.start(), thread.join()

def in_a_pool():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()

def in_both():
    thread = threading.Thread(target=in_a_pool, daemon=True)
    thread.start(), thread.join()

from dperm_cli.api.requests import open_call

for nested in (in_a_thread, in_a_pool, in_both, call):
    with open_call((), {}):
        nested()
print(*[type(one).__name__ for one in found])
print(found[0])
"""


def test_a_call_in_a_thread_that_another_call_waits_for_is_refused(tmp_path):
    """It waited for ever. A call inside a call of the same thread works."""
    done = start_python(NESTED, tmp_path)
    kinds, line = done.stdout.splitlines()
    assert kinds.split()[:3] == 3 * ["InputError"]
    assert kinds.split()[3] != "InputError"
    assert "waits for this call" in line


def test_calls_of_two_threads_do_not_meet(tmp_path, undrawn, capfd):
    found, before = {}, list(warnings.filters)

    def work(name):
        try:
            found[name] = dperm_cli.run(*SMALL, epsilon=1, out=tmp_path / name, progress=False)
        except BaseException as error:
            found[name] = error

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, two = (found[name].frame() for name in ("one", "two"))
    assert one.to_csv() == two.to_csv()
    assert list(warnings.filters) == before
    assert capfd.readouterr() == ("", "")


class _Cell(io.StringIO):
    """A stream as that of a notebook's cell."""


_Cell.__module__ = "ipykernel.iostream"


def test_a_notebook_has_one_line_that_is_rewritten(monkeypatch):
    cell = _Cell()
    monkeypatch.setattr(sys, "stderr", cell)
    with progress.Meter.open(2) as meter:
        monkeypatch.setattr(meter, "_printed", 0.0)
        meter.cell(0, "a long name")
        meter.note("a note")
    text = cell.getvalue()
    assert "\x1b" not in text
    assert text.count("\n") == 1
    shown = [line.strip() for line in text.split("\r") if line.strip()]
    assert shown[0].startswith("0/2  a long name")
    assert shown[1:] == ["a note"]


def test_a_long_line_of_a_notebook_keeps_its_count_and_its_pace(monkeypatch):
    cell = _Cell()
    monkeypatch.setattr(sys, "stderr", cell)
    with progress.Meter.open(2) as meter:
        monkeypatch.setattr(meter, "_printed", 0.0)
        meter.cell(1, "a name " * 40)
    first, *rest = [line.strip() for line in cell.getvalue().split("\r") if line.strip()]
    assert rest == []
    assert len(first) < 120
    assert first.startswith("1/2  a name")
    assert first.endswith("left]")


def test_who_had_nothing_to_show_takes_nothing_away(monkeypatch):
    cell = _Cell()
    monkeypatch.setattr(sys, "stderr", cell)
    with progress.Meter.open(1):
        pass
    assert cell.getvalue() == ""


def test_progress_can_be_silenced(capfd):
    with progress.show_progress(False), progress.Meter.open(2) as meter:
        meter.step("a step", 0, 10)
        meter.note("a note")
    progress.tell("heard again")
    assert capfd.readouterr() == ("", "heard again\n")
