"""No test is left out everywhere: what the default suite leaves out has a target and a time."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
VARIABLES = dict(re.findall(r"^(ONLY|BY_DAY) \??:?= (.*)$", MAKEFILE, re.M))
LEFT_OUT = re.findall(r"not (\w+)", SETTINGS["addopts"])
# Marks that say something else than when a test runs, or that another mark goes along with.
OTHERS = {"stat", "in_turn", "browser", "faults_quick"}


def read_schedule() -> dict[str, str]:
    """target -> when it runs, from the table of CONTRIBUTING.md."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## What runs when")[1].split("\n## ")[0]
    return {
        target: when
        for when, target in re.findall(r"^\| (.+?) \| `make ([\w-]+)` \|", section, re.M)
    }


def read_words(target: str) -> str:
    """What a target gives to pytest."""
    found = re.search(rf"^{target}:.*\n(?:\t.*\n)*?\t.*-m pytest\b([^|\n]*)", MAKEFILE, re.M)
    assert found, f"no target {target} with pytest in the Makefile"
    return re.sub(r"\$\((ONLY|BY_DAY)\)", lambda name: VARIABLES[name[1]], found[1].strip())


def read_expression(target: str) -> str | None:
    """The marks that a target runs, "" for all; None for those of the default suite."""
    found = re.search(r"-m (?:'([^']*)'|(\w+))", read_words(target))
    return found and (found[1] or found[2] or "")


def read_folder(target: str) -> str:
    found = re.search(r"(tests/\w+)$", read_words(target))
    return found[1] if found else "tests"


def runs(expression: str, marks: tuple[str, ...]) -> bool:
    """Whether pytest, asked for an expression, runs a test that has these of the left-out marks."""
    if not expression:
        return True
    return bool(eval(expression, {}, {mark: mark in marks for mark in (*LEFT_OUT, *OTHERS)}))


SCHEDULE = read_schedule()
COMBINATIONS = [
    marks for many in (1, 2, 3) for marks in itertools.combinations(LEFT_OUT, many)
]  # fmt: skip


def test_every_mark_is_known_here():
    declared = {line.partition(":")[0] for line in SETTINGS["markers"]}
    assert declared == {*LEFT_OUT, *OTHERS}


@pytest.mark.parametrize("marks", COMBINATIONS, ids="+".join)
def test_what_the_default_suite_leaves_out_runs_on_the_schedule(marks):
    expressions = {target: read_expression(target) for target in SCHEDULE if target != "test-full"}
    assert [
        target for target, asked in expressions.items() if asked is not None and runs(asked, marks)
    ], f"no test with the marks {marks} runs at any time but in test-full"


@pytest.mark.parametrize("mark", LEFT_OUT)
def test_a_target_of_one_folder_has_all_tests_of_its_mark(mark):
    """``make slurm`` looks for its tests in one folder: there are none elsewhere."""
    targets = [one for one in SCHEDULE if (asked := read_expression(one)) and runs(asked, (mark,))]
    folders = {ROOT / read_folder(target) for target in targets}
    files = [
        path for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(rf"^[^#\n]*mark\.{mark}\b", path.read_text(), re.M)
    ]  # fmt: skip
    assert [path for path in files if not folders & {*path.parents}] == []


def test_every_target_that_runs_tests_has_a_time():
    targets = re.findall(r"^([\w-]+):.*\n(?:\t.*\n)*?\t.*-m pytest\b", MAKEFILE, re.M)
    assert {*targets} == {*SCHEDULE}


def test_ci_runs_what_the_schedule_says():
    ci = re.search(r"^for target in (.*); do$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert ci
    tests = {target for target in ci[1].split() if target in SCHEDULE}
    assert tests == {target for target, when in SCHEDULE.items() if ".ci/run" in when}


def test_the_full_suite_leaves_nothing_out():
    assert read_expression("test-full") == ""
    assert read_folder("test-full") == "tests"
