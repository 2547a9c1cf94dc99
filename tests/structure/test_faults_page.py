"""The page of faults says of every fault test what the kept verdicts say, and how they are kept."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import page
from tests.faults.verdicts import (
    BROKE,
    FILED,
    HELD,
    KEPT,
    NOT_RUN,
    Verdict,
    clean,
    list_tests,
    name_test,
    read_verdicts,
    write_verdicts,
)

ROOT = Path(__file__).parents[2]
TESTS = list_tests()
CASES = """
import pytest

def test_holds(): pass

def test_breaks(): assert 1 == 2, "in /usr/lib/secret/place"

@pytest.mark.skip(reason="no such disk")
def test_is_not_run(): pass

@pytest.mark.xfail(strict=True, reason="issue: known")
def test_breaks_as_filed(): assert False

@pytest.mark.xfail(strict=True, reason="issue: gone")
def test_holds_though_filed(): pass

@pytest.fixture
def broken(): raise OSError("no fixture")

def test_of_a_broken_fixture(broken): pass

@pytest.mark.parametrize("a", [1, 2])
def test_of_two_cases(a): assert a == 1

def test_measures(record_property): record_property("measured", "1 GB at most")
"""


def test_the_page_is_what_the_kept_verdicts_say():
    assert page.PAGE.read_text() == page.render(TESTS, read_verdicts()), "run `make faults-page`"


def test_every_fault_test_is_on_the_page():
    text = page.PAGE.read_text()
    for path in (ROOT / "tests" / "faults").glob("test_*.py"):
        for name in re.findall(r"^def test_(\w+)", path.read_text(), re.M):
            if path.name != page.MATRIX:
                assert f"| {name.replace('_', ' ')}" in text, f"{path.name}: {name}"
    for place in page.list_places():
        assert f"| {place} |" in text


def test_kept_verdicts_are_of_tests_that_exist():
    keys = {test.key for test in TESTS}
    assert {case for case in read_verdicts() if name_test(case) not in keys} == set()


def test_what_did_not_hold_has_a_reason():
    for case, kept in read_verdicts().items():
        assert kept.verdict in (HELD, BROKE, FILED, NOT_RUN), case
        assert (kept.verdict == HELD) == (kept.why == ""), case
        assert kept.machine, case


def test_nothing_kept_names_a_machine_or_its_paths():
    text = KEPT.read_text()
    assert not re.findall(r'["\s](?:/[\w.-]+){2,}', text)
    assert str(ROOT) not in text
    assert platform.node() not in re.findall(r"[\w.-]+", text)


def test_a_test_that_was_changed_has_no_verdict_any_more():
    test = next(one for one in TESTS if one.file != page.MATRIX)
    kept = {f"{test.key}[a]": Verdict(HELD, "", 1.0, test.digest, "m")}
    assert "| 1 held | 1 |" in page.render([test], kept)
    changed = page.render([replace(test, digest="other")], kept)
    assert "1 held" not in changed
    assert page.CHANGED in changed


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The verdicts of one run of the cases above."""
    folder = tmp_path_factory.mktemp("cases")
    (folder / "test_cases.py").write_text(CASES)
    path = folder / "verdicts.json"
    words = ["-p", "no:cacheprovider", "-p", "tests.faults.verdicts", f"--verdicts={path}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words, f"--rootdir={folder}", str(folder)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    return path


@pytest.mark.parametrize(("name", "verdict", "why"), [
    ("holds", HELD, ""),
    ("breaks", BROKE, "AssertionError: in PATH assert 1 == 2"),
    ("is_not_run", NOT_RUN, "no such disk"),
    ("breaks_as_filed", FILED, "issue: known"),
    ("holds_though_filed", BROKE, "it holds, though it is filed as broken: issue: gone"),
    ("of_a_broken_fixture", BROKE, "OSError: no fixture"),
    ("of_two_cases[1]", HELD, ""), ("measures", HELD, ""),
])  # fmt: skip
def test_each_end_of_a_test_is_a_verdict(kept, name, verdict, why):
    found = read_verdicts(kept)[f"test_cases.py::test_{name}"]
    assert found.verdict == verdict
    assert found.why.startswith(why.split(" assert ")[0])


def test_what_a_test_measured_is_kept_and_on_the_page(kept):
    found = read_verdicts(kept)
    measured = {case: one.measured for case, one in found.items() if one.measured}
    assert measured == {"test_cases.py::test_measures": "1 GB at most"}
    (test,) = (one for one in list_tests(kept.parent) if one.name == "test_measures")
    assert page.list_cases(test, found)[0].measured == "1 GB at most"
    shown = page.render([replace(TESTS[0], digest="d")], {
        TESTS[0].key: Verdict(HELD, "", 2.0, "d", "m", "1 GB at most"),
    })  # fmt: skip
    assert "| 1 held: 1 GB at most | 2 |" in shown


def test_verdicts_of_other_cases_stay_and_of_changed_tests_go(kept):
    before = read_verdicts(kept)
    source = kept.parent / "test_cases.py"
    source.write_text(CASES.replace("assert a == 1", "assert a < 3"))
    digests = {test.key: test.digest for test in list_tests(kept.parent)}
    key = "test_cases.py::test_of_two_cases"
    new = replace(before[f"{key}[2]"], verdict=HELD, why="", digest=digests[key])
    write_verdicts({f"{key}[2]": new}, kept)
    after = read_verdicts(kept)
    assert f"{key}[1]" not in after
    assert after.pop(f"{key}[2]") == new
    assert after == {case: one for case, one in before.items() if name_test(case) != key}


def test_stale_verdicts_of_other_tests_stay_and_are_shown_as_such(tmp_path):
    path, (one, other) = tmp_path / "verdicts.json", TESTS[:2]
    (tmp_path / one.file).write_text((page.FOLDER / one.file).read_text())
    stale = {f"{one.key}[{case}]": Verdict(HELD, "", 1.0, "before", "m") for case in "ab"}
    write_verdicts(stale, path)
    new = {other.key: Verdict(HELD, "", 1.0, "now", "m")}
    write_verdicts(new, path)
    assert read_verdicts(path) == stale | new
    assert f"2 not run: {page.CHANGED}" in page.render([one], read_verdicts(path))


TREE = {
    "faults/test_a.py": """
        from tests.faults.helper import FEW, unused
        from tests.other import fixture
        PROGRAM = "import sys"
        OTHER = 1
        MORE = [FEW for _ in range(2)]

        @pytest.mark.parametrize("case", MORE)
        def test_it(case, near, request):
            start("tests.faults.program", PROGRAM, case)
            request.getfixturevalue("named")
    """,
    "faults/helper.py": """
        BASE = 2
        FEW = make(BASE)
        def make(base):
            return base + 1
        def unused():
            return BASE
    """,
    "faults/program.py": """
        from tests.other import deep
        def main():
            deep()
    """,
    "faults/conftest.py": """
        SIZE = 3
        @pytest.fixture
        def near(far):
            return SIZE
    """,
    "conftest.py": """
        from tests.other import fixture as far
        @pytest.fixture
        def named():
            return "here"
        @pytest.fixture
        def of_others():
            return 0
    """,
    "other.py": """
        @pytest.fixture
        def fixture():
            return 4
        def deep():
            return 5
        def shallow():
            return 6
    """,
}
USED = [("faults/test_a.py", "import sys", "import os"),
        ("faults/helper.py", "BASE = 2", "BASE = 3"), ("faults/helper.py", "base + 1", "base + 2"),
        ("faults/program.py", "deep()\n", "deep(1)\n"),
        ("faults/conftest.py", "SIZE = 3", "SIZE = 4"), ("conftest.py", '"here"', '"there"'),
        ("other.py", "return 4", "return 5"), ("other.py", "return 5", "return 6")]  # fmt: skip
NOT_USED = [("faults/test_a.py", "OTHER = 1", "OTHER = 2"), ("conftest.py", "return 0", "return"),
            ("faults/helper.py", "return BASE", "return BASE + 1"),
            ("faults/helper.py", "BASE = 2", "BASE  =  2  # more"),
            ("faults/program.py", "main():", 'main():\n    """Words."""'),
            ("other.py", "return 6", "return 7")]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [*((*change, True) for change in USED), *((*change, False) for change in NOT_USED)],
)
def test_a_digest_is_of_all_that_a_test_uses_of_the_tests(file, old, new, changes, tmp_path):
    digests = []
    for text in (old, new):
        for name, source in TREE.items():
            path = tmp_path / "tests" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source).replace(old, text if name == file else old))
        (test,) = list_tests(tmp_path / "tests" / "faults")
        digests.append(test.digest)
    assert old in textwrap.dedent(TREE[file])
    assert (digests[0] != digests[1]) == changes


@pytest.mark.parametrize("test", ["test_numbers_hold", "test_every_generator_is_compared"])
def test_a_new_generator_makes_verdicts_stale(test, tmp_path):
    shutil.copytree(page.FOLDER, tmp_path / "tests" / "faults")
    (folder,) = tmp_path.glob("tests/faults")
    path = folder / "test_processors.py"
    before = {one.name: one.digest for one in list_tests(folder)}
    path.write_text(path.read_text().replace('"few_directions": {},', '"another": {},'))
    after = {one.name: one.digest for one in list_tests(folder)}
    assert before[test] != after[test]
    kept = "test_a_run_is_keyed_alike_and_its_numbers_are_close"
    assert before[kept] == after[kept]
    assert {one.name: one.digest for one in TESTS if one.name == test}[test] == before[test]


def test_reasons_are_a_line_without_paths():
    assert clean("\n  in /a/b/c.py: no\nmore") == "in PATH: no"
    assert len(clean("word " * 100)) <= 160
