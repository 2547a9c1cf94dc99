"""Shared fixtures: small problems, and a private cache folder for every test session."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

# before numpy is imported: test workers must not fight over cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# programs that tests start and signal inherit what is ignored, as in a shell's background job
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

import pytest
from hypothesis import settings

from dperm_cli.audit.contracts.problems import small_problem
from dperm_cli.core import registry
from tests.other_user import interpreter, open_folder

__all__ = ["interpreter", "open_folder", "small_problem"]

# the same examples every time: a suite must not fail by the day's luck
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.load_profile("same")

# `make test` hands out whole files in this order: no process is left alone with a long one at last
LONG = (
    "mutants/test_mutants.py",
    "faults/test_crash.py",
    "contract/test_mechanisms.py",
    "contract/test_contracts.py",
    "runner/test_audit_cells.py",
    "contract/test_pairs.py",
    "cli/test_what_is_recomputed.py",
    "cli/test_writers.py",
    "audit/test_statistical_attack.py",
)


# files of whose grids every fifth case is in the default suite
IN_TURN = (
    "breaks/test_choices_privacy.py",
    "breaks/test_files_of_others.py",
    "breaks/test_minimiser_distance_is_paid.py",
    "breaks/test_mutants_survive.py",
    "breaks/test_predict_files.py",
    "breaks/test_utility_auto.py",
    "breaks/test_utility_auto_tasks.py",
    "breaks/test_utility_baselines.py",
    "breaks/test_utility_choices.py",
    "breaks/test_utility_descent.py",
    "breaks/test_utility_floor.py",
    "breaks/test_utility_plan.py",
    "breaks/test_utility_sufficient_statistics.py",
    "cli/test_strange_data.py",
    "contract/test_check.py",
    "contract/test_contracts.py",
    "contract/test_kernel_mechanisms.py",
    "contract/test_mechanisms.py",
    "contract/test_pairs.py",
    "loops/test_proximal_chain.py",
    "mechanisms/test_kernel_semi_interactive.py",
    "mechanisms/test_noisy_sgd.py",
    "results/test_figure_layout.py",
    "results/test_hostile_names.py",
    "runner/test_audit_cells.py",
    "runner/test_fuzz.py",
    "runner/test_neighbour_runs.py",
    "runner/test_record_digest.py",
    "runner/test_supervisor.py",
    "samplers/test_proximal.py",
    "samplers/test_rejection.py",
    "samplers/test_truncated_gaussian.py",
    "sets/test_sets_all.py",
    "sets/test_sets_localised.py",
    "solvers/test_optimum.py",
    "solvers/test_optimum_lasso.py",
    "solvers/test_optimum_pairs.py",
    "structure/test_outside_plugins.py",
)


# folders and files that only read the sources and pages: a rule holds for every file or for none
WHOLE = (
    "core",
    "structure",
    "test_page_commands.py",
    "test_public_facts.py",
    "test_worked_examples.py",
)


# of how many cases of one test at most the default suite has all
MOST_CASES = 8
PLUGINS = {name for room in registry.ROOMS for name in registry.names(room)}


def _count_turns(item: pytest.Item, cases: int) -> int:
    """Of how many cases of its grid one is in the default suite; 1 where all are."""
    if not hasattr(item, "callspec"):
        return 1
    if not {item.path.parent.name, item.path.name} & set(WHOLE):
        turns = -(-cases // MOST_CASES)
    else:
        turns = 1
    if "/".join(item.path.parts[-2:]) in IN_TURN:
        turns = max(turns, 5)
    return turns if item.get_closest_marker("in_turn") is None else max(turns, 3)


def _is_of_one_name(item: pytest.Item) -> bool:
    """Whether a case is one of a plug-in, by its name and nothing else."""
    values = list(item.callspec.params.values())
    return len(values) == 1 and isinstance(values[0], str) and values[0] in PLUGINS


def read_cases(name: str) -> set[str]:
    """Cases that take too long for the default suite: the lines of a file beside this one.

    ``slow_cases.txt`` has those of the slow suite, ``longer_cases.txt`` those that CI runs after
    the default suite. A line of the latter without ``::`` stands for all cases of a file.
    """
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Sort the files, mark the cases in the lists of cases, and of most of a grid as slow.

    A test with more than ``MOST_CASES`` cases has about so many of them in the default suite, of
    one marked ``in_turn`` it is at most every third, and of the files in ``IN_TURN`` every fifth.
    A value of one axis is left out with some values of another and met with others. Where the only
    axis is the names of plug-ins, what is left out is run in CI: a new one is met by every test.
    """
    seen: dict[tuple, dict[int, int]] = {}
    cases = Counter((item.path, item.cls, item.originalname) for item in items)
    slow, longer = read_cases("slow_cases.txt"), read_cases("longer_cases.txt")
    for item in items:
        case = item.nodeid.removeprefix("tests/")
        if case in slow:
            item.add_marker(pytest.mark.slow)
        if case in longer or case.partition("::")[0] in longer:
            item.add_marker(pytest.mark.longer)
        turns = _count_turns(item, cases[item.path, item.cls, item.originalname])
        if turns == 1:
            continue
        place = 0
        for axis, value in item.callspec.params.items():
            values = seen.setdefault((item.path, item.cls, item.originalname, axis), {})
            place += values.setdefault(id(value), len(values))
        if place % turns:
            item.add_marker(pytest.mark.longer if _is_of_one_name(item) else pytest.mark.slow)
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(LONG)))


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory):
    """Optima and parsed files of tests never touch the user's cache."""
    before = os.environ.get("DPERM_CACHE_DIR")
    os.environ["DPERM_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["DPERM_CACHE_DIR"]
    else:
        os.environ["DPERM_CACHE_DIR"] = before


@pytest.fixture(autouse=True)
def modules_of_one_test(tmp_path_factory):
    """Modules that a test wrote and imported are gone after it: the next one's has its own name.

    Fixtures that a test asks for by name are undone before this one, so that a module which one of
    them puts back is dropped as well.
    """
    before = set(sys.modules)
    yield
    folder = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if isinstance(path, str) and path.startswith(folder):
            del sys.modules[name]


@pytest.fixture
def data_folder() -> Path:
    """The folder of real files; tests that need it skip where it is absent."""
    folder = os.environ.get("DPERM_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("DPERM_DATA_DIR names no folder")
    return Path(folder)


def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a figure's files hold their format's name: drawing takes longer than a small study."""
    from dperm_cli.results.charts import account_figure, figure_drawing, problem_portrait
    from dperm_cli.results.study_files import FIGURE_FORMATS

    def draw_files(figure, formats=FIGURE_FORMATS) -> dict[str, bytes]:
        return {name: name.encode() for name in formats}

    monkeypatch.setattr(figure_drawing, "draw_files", draw_files)
    monkeypatch.setattr(problem_portrait, "draw_files", draw_files)
    monkeypatch.setattr(account_figure, "draw_figure", draw_files)
