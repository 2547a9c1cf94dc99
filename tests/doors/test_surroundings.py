"""The names of the package, and runs beside what else a process does."""

from __future__ import annotations

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
