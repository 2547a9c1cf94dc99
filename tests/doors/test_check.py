"""``dperm check``: correct plug-ins pass, each planted fault is found and said in useful words."""

from __future__ import annotations

import re

import pytest

from tests.doors._doors import dperm, mostly_slow, refused
from tests.doors._plugins import ALL_FAULTS, BROKEN, CLOUD, MECHANISMS, OWN, Fault, replaced


def test_a_correct_file_passes_with_a_line_for_each_promise(own, tmp_path):
    done = dperm("check", "own.py", cwd=tmp_path, code=0)
    for plugin in ("one_step", "quantile", "nonnegative_ball"):
        assert plugin in done.stdout
    for promise in ("budget", "seed", "neighbour", "slope", "conjugate", "project", "convex"):
        assert promise in done.stdout.lower(), promise
    assert len(done.stdout.strip().splitlines()) >= 15
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_a_correct_data_set_passes(cloud, tmp_path):
    assert "cloud" in dperm("check", "cloud.py", cwd=tmp_path, code=0).stdout


@pytest.mark.parametrize(
    "fault",
    mostly_slow(ALL_FAULTS, "half the sensitivity", "a projection in the wrong order"),
)
def test_a_planted_fault_is_found(fault, tmp_path):
    planted = ALL_FAULTS[fault]
    planted.write(tmp_path / "mine.py")
    done = dperm("check", "mine.py", cwd=tmp_path, code=1)
    broken = broken_part(done.stdout)
    assert planted.plugin in done.stdout
    for pattern in planted.words:
        assert re.search(pattern, broken, re.IGNORECASE), f"{pattern}: {done.stdout}"
    assert "Traceback" not in done.stdout + done.stderr


def broken_part(text: str) -> str:
    """The lines of what broke: from one that says so, with the lines that belong to it."""
    lines = text.splitlines()
    said = [
        i for i, line in enumerate(lines) if re.search(r"\b(broke|broken|fail|failed|BROKE)", line)
    ]
    assert said, text
    return "\n".join(lines[i] for first in said for i in range(first, min(first + 6, len(lines))))


@pytest.mark.slow
def test_a_fault_in_one_plugin_leaves_the_others_of_the_file_alone(tmp_path):
    """Each plug-in has a verdict of its own: only the broken one is blamed."""
    ALL_FAULTS["a conjugate of another loss"].write(tmp_path / "mine.py")
    done = dperm("check", "mine.py", cwd=tmp_path, code=1)
    assert "one_step" in done.stdout
    assert "one_step" not in broken_part(done.stdout)
    assert "nonnegative_ball" not in broken_part(done.stdout)


@pytest.mark.slow
def test_two_faults_are_both_found(tmp_path):
    """The check goes on after the first fault."""
    text = OWN
    for name in ("half the sensitivity", "a diameter that is too small"):
        for old, new in ALL_FAULTS[name].edits:
            text = replaced(text, old, new)
    (tmp_path / "mine.py").write_text(text)
    out = dperm("check", "mine.py", cwd=tmp_path, code=1).stdout.lower()
    assert "diameter" in out
    assert re.search("sensitivity|lipschitz", out)


def test_a_file_that_is_no_plugin_is_bad_input(tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN["a syntax error"][0])
    refused(dperm("check", "mine.py", cwd=tmp_path), "mine.py", "syntax")
    refused(
        dperm("check", "absent.py", cwd=tmp_path), "absent.py", "no such file|not found|no file"
    )


def test_neither_pytest_nor_the_repository_is_needed(cloud, tmp_path):
    """A package named pytest that cannot be imported stands before the real one."""
    for name in ("pytest", "_pytest", "hypothesis", "tests"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is not installed')\n")
    done = dperm("check", "cloud.py", cwd=tmp_path, code=0, PYTHONSAFEPATH="")
    assert "not installed" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_check_writes_nothing_beside_the_file(cloud, tmp_path):
    before = set(tmp_path.iterdir())
    dperm("check", "cloud.py", cwd=tmp_path, code=0)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_package_is_checked_by_its_import_name(tmp_path):
    """The argument is a file or the import name of a package."""
    package = tmp_path / "lab"
    package.mkdir()
    (package / "__init__.py").write_text(CLOUD)
    assert "cloud" in dperm("check", "lab", cwd=tmp_path, code=0).stdout


@pytest.mark.slow
def test_a_mechanism_that_takes_a_closed_form_scale_passes(tmp_path):
    """More noise than is needed keeps every promise: the check must not ask for the least."""
    (old, _), *_rest = MECHANISMS["half the sensitivity"].edits
    careful = old.replace("spec.lipschitz", "2 * spec.lipschitz").replace("=spec", "=2 * spec")
    Fault(OWN, ((old, careful),), "one_step", ()).write(tmp_path / "mine.py")
    dperm("check", "mine.py", cwd=tmp_path, code=0)


@pytest.mark.slow
def test_a_mechanism_that_says_no_passes(tmp_path):
    """A refusal with a reason is an answer, not a broken promise; it is counted."""
    text = replaced(
        OWN, "from dperm_cli import ConvexSet", "from dperm_cli import Unsupported, ConvexSet"
    )
    text = replaced(
        text,
        "    def events(self, spec, scale, budget):",
        "    def check(self, spec, budget):\n"
        "        if budget.relation == 'add_remove':\n"
        "            raise Unsupported('one_step is proved for replace_one')\n\n"
        "    def events(self, spec, scale, budget):",
    )
    (tmp_path / "mine.py").write_text(text)
    done = dperm("check", "mine.py", cwd=tmp_path, code=0)
    assert "proved for replace_one" in done.stdout


@pytest.mark.slow
def test_two_checks_of_one_file_say_the_same(own, tmp_path):
    first = dperm("check", "own.py", cwd=tmp_path, code=0).stdout
    assert first == dperm("check", "own.py", cwd=tmp_path, code=0).stdout
