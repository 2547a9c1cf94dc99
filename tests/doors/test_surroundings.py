"""What a notebook owns stays as it was: stdout, backend, log, loop, signals and threads."""

from __future__ import annotations

import json
import threading

import pytest

from tests.doors._doors import ROOT, SMALL, public, python

HEAVY = (
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "numba",
    "hydra",
    "pyarrow",
    "rich",
    "dask",
    "joblib",
    "clarabel",
    "asyncio",
)
NAMES = (
    "run",
    "load",
    "plans",
    "account",
    "audit",
    "describe",
    "Study",
    "Problem",
    "Budget",
    "Mechanism",
    "Release",
    "ConvexSet",
    "MarginLoss",
    "DataSet",
    "Data",
    "Event",
    "Gaussian",
    "Range",
    "Unsupported",
)

WATCHED = """
import asyncio, json, logging, os, signal, sys, threading, warnings
out = {}
sys.stdout.flush()
import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
logging.basicConfig(level=logging.WARNING, format="mine %(message)s")
np.random.seed(7)
figure = plt.figure()

def state():
    root = logging.getLogger()
    return {
        "backend": matplotlib.get_backend(),
        "rcParams": str(dict(matplotlib.rcParams)),
        "open figures": plt.get_fignums(),
        "handlers": [type(h).__name__ + h.formatter._fmt for h in root.handlers],
        "level": root.level,
        "disabled": logging.root.manager.disable,
        "signals": [str(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM)],
        "excepthook": sys.excepthook is sys.__excepthook__,
        "threads": [t.name for t in threading.enumerate()],
        "np.random": str(np.random.get_state()),
        "errors of numpy": np.geterr(),
        "warnings": len(warnings.filters),
        "folder": os.getcwd(),
        "stdout": sys.stdout is sys.__stdout__,
        "argv": sys.argv,
        "path": sys.path,
        "recursion": sys.getrecursionlimit(),
        "files": sorted(os.listdir(".")),
    }

before = state()
import dperm_cli

async def cell():
    study = dperm_cli.run(*KEYS, epsilon=[1, 10], out="study")
    study.plot()
    study.table(style="latex")
    repr(study), study._repr_html_()
    return study

asyncio.run(cell())
after = state()
after["files"] = [name for name in after["files"] if name != "study"]
print("MARK" + json.dumps([before, after]))
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """What stood before and after a run within a running event loop, and what was printed."""
    public("run")
    folder = tmp_path_factory.mktemp("notebook")
    done = python(WATCHED.replace("KEYS", repr(SMALL)), cwd=folder, MPLBACKEND="svg")
    printed, _, states = done.stdout.partition("MARK")
    before, after = json.loads(states)
    return before, after, printed, done.stderr


def test_the_names_are_there_and_nothing_heavy_is_loaded(tmp_path):
    """The import takes little because it loads little: a count of modules, no clock."""
    script = (
        "import sys; first = set(sys.modules); import dperm_cli; shown = set(dir(dperm_cli))\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - first}\n"
        f"print(sorted(set({HEAVY!r}) & new), sorted(set({NAMES!r}) - shown), len(new))"
    )
    out = python(script, cwd=tmp_path).stdout.strip()
    assert out.startswith("[] [] "), out
    assert int(out.split()[-1]) < 100


def test_an_unknown_name_is_an_attribute_error_and_star_works(tmp_path):
    script = (
        "import dperm_cli\nfrom dperm_cli import *\nassert callable(run)\n"
        "assert set(dperm_cli.__all__) <= set(dir(dperm_cli))\n"
        "try:\n    dperm_cli.no_such_name\nexcept AttributeError as error:\n    print(error)"
    )
    public("run")
    assert "no_such_name" in python(script, cwd=tmp_path).stdout


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "dperm_cli" / "py.typed").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_documented_with_an_example(name):
    thing = public(name)
    assert thing.__doc__, name
    assert ">>>" in thing.__doc__ or ">>>" in (thing.__init__.__doc__ or ""), name


@pytest.mark.parametrize("name", ["run", "load", "plans", "account", "audit", "describe"])
def test_each_call_says_what_it_gives(name):
    assert "return" in public(name).__annotations__, name


@pytest.mark.parametrize(
    "what",
    [
        "backend",
        "rcParams",
        "open figures",
        "handlers",
        "level",
        "disabled",
        "signals",
        "excepthook",
        "threads",
        "np.random",
        "errors of numpy",
        "warnings",
        "folder",
        "stdout",
        "argv",
        "path",
        "recursion",
        "files",
    ],
)
def test_a_run_in_a_notebook_leaves_it_alone(what, watched):
    before, after, *_ = watched
    assert after[what] == before[what]


def test_nothing_is_printed_on_stdout(watched):
    assert watched[2] == ""


def test_progress_in_a_pipe_has_no_control_characters(watched):
    assert "\x1b" not in watched[3]
    assert "\r" not in watched[3]
    assert "Traceback" not in watched[3]


@pytest.mark.slow
def test_a_run_in_a_thread_gives_the_same_numbers(tmp_path, capfd):
    """Handlers of signals can be set in the main thread alone: a run must not need them."""
    run, found = public("run"), {}

    def work():
        try:
            found["frame"] = run(*SMALL, epsilon=1, out=tmp_path / "thread").frame()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "error" not in found, found.get("error")
    here = run(*SMALL, epsilon=1, out=tmp_path / "here").frame()
    assert found["frame"].to_csv() == here.to_csv()
    assert capfd.readouterr().out == ""
