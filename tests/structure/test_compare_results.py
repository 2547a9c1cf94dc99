"""The comparison of two commits' results, on folders that are made up; no job is run."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.structure import compare_results
from tests.structure.compare_results import (
    CannotCompare,
    Difference,
    compare_folders,
    list_commands,
    main,
)

CSV = 'epsilon,cell,overrides\n1,{0},"{{""seed"":0}}"\n3,{1},"{{""seed"":0}}"\n'


def write_job(folder: Path, names=("a1", "b2"), code: int = 0, **files: str) -> Path:
    """Write what a job with two records leaves; ``{0}`` and ``{1}`` stand for their names."""
    files = {"table.csv": CSV, "claims.json": '{{"claims": []}}', **files}
    job = folder / "leak"
    job.mkdir(parents=True)
    for name, text in files.items():
        (job / name).write_bytes(text.format(*names).encode())
    (job / "manifest.json").write_text(json.dumps({"cells": list(names)}))
    (job / "job.json").write_text(json.dumps({"exit code": code, "with": {}}))
    return folder


@pytest.fixture
def compare(tmp_path):
    """``compare(names=..., **files)``: places at which a new side differs from the usual one."""
    old = write_job(tmp_path / "old", **{"table.md": "| {0} | 1 |\n", "printed.txt": "done\n"})

    def take(**changes) -> list[str]:
        usual = {"table.md": "| {0} | 1 |\n", "printed.txt": "done\n"}
        new = write_job(tmp_path / "new", **{**usual, **changes})
        return [difference.place for difference in compare_folders(old, new, ["leak"])]

    return take


class TestCompareFolders:
    """What counts as a difference."""

    def test_equal_bytes(self, compare):
        assert compare() == []

    def test_names_of_records_do_not_count(self, compare):
        assert compare(names=("another-name", "a1")) == []

    def test_the_order_of_records_counts(self, compare):
        text = CSV.replace("{0}", "{x}").replace("{1}", "{0}").replace("{x}", "{1}")
        assert compare(**{"table.csv": text}) == [
            "leak/table.csv, line 2, cell",
            "leak/table.csv, line 3, cell",
        ]

    def test_the_column_is_named(self, compare):
        text = CSV.replace("3,", "3.0000000000000004,")
        assert compare(**{"table.csv": text}) == ["leak/table.csv, line 3, epsilon"]

    def test_another_column_is_told_by_its_heading(self, compare):
        assert compare(**{"table.csv": CSV.replace("epsilon", "eps")})[0] == (
            "leak/table.csv, line 1"
        )

    @pytest.mark.parametrize(
        ("text", "line"),
        [(CSV.replace("\n", "\r\n"), 1), (CSV[:-1], 4), (CSV.replace("1,", '"1",'), 2)],
        ids=["ends of lines", "no end of the last line", "quotes"],
    )
    def test_bytes_count_where_the_values_are_equal(self, compare, text, line):
        assert compare(**{"table.csv": text})[0] == f"leak/table.csv, line {line}"

    def test_a_missing_line(self, compare):
        text = "".join(CSV.splitlines(keepends=True)[:2])
        assert "leak/table.csv, line 3" in compare(**{"table.csv": text})

    @pytest.mark.parametrize("name", ["table.md", "claims.json", "printed.txt"])
    def test_every_file_counts(self, compare, name):
        assert compare(**{name: "else"})[0] == f"leak/{name}, line 1"

    def test_the_exit_code_counts(self, compare):
        assert compare(code=1) == ["leak: exit code"]

    def test_a_file_of_one_side_alone(self, compare):
        assert compare(**{"ledger.json": "[]"}) == ["leak/ledger.json"]

    def test_no_more_differences_of_a_file_than_a_screen_holds(self, compare):
        assert len(compare(printed="", **{"table.md": "x\n" * 1000})) == compare_results.SHOWN

    def test_a_job_that_the_new_commit_does_not_have(self, tmp_path):
        old = write_job(tmp_path / "old")
        found = compare_folders(old, tmp_path / "new", ["leak"])
        assert str(found[0]) == "leak: exit code\n    old: '0'\n    new: 'None'"
        assert {one.new for one in found[1:]} == {"missing"}

    def test_an_old_side_without_tables_is_no_yardstick(self, tmp_path):
        (tmp_path / "leak").mkdir()
        with pytest.raises(CannotCompare, match="left no table"):
            compare_folders(tmp_path, tmp_path, ["leak"])


def test_of_long_lines_the_part_that_differs_is_shown():
    found = Difference("a.md, line 1", "x" * 500 + "old" + "y" * 500, "x" * 500 + "new")
    place, old, new = str(found).splitlines()
    assert place == "a.md, line 1"
    assert ("xold" in old, "xnew" in new, len(old) < 150) == (True, True, True)


class TestCommand:
    """The command, with commits whose results are made up."""

    @pytest.fixture
    def answer(self, tmp_path, monkeypatch, capsys):
        sides = {
            "old": write_job(tmp_path / "old"),
            "new": write_job(tmp_path / "new", ("c3", "d4")),
        }
        sides["changed"] = write_job(tmp_path / "changed", **{"table.csv": CSV.replace("3,", "4,")})
        monkeypatch.setattr(
            compare_results, "collect_results", lambda ref, keep, only: (sides[ref], ["leak"])
        )

        def call(*words: str) -> tuple[int, str]:
            return main(words), capsys.readouterr().out

        return call

    def test_equal(self, answer):
        assert answer("old", "new") == (0, "1 jobs, record names left out: all equal\n")

    def test_different(self, answer):
        code, text = answer("old", "changed")
        assert code == 1
        assert text.splitlines() == [
            "leak/table.csv, line 3, epsilon",
            "    old: '3'",
            "    new: '4'",
            "1 jobs, record names left out: 1 files differ",
        ]

    def test_nothing_to_compare(self, tmp_path, capsys):
        assert main(["no-such-commit", "HEAD", "--keep", str(tmp_path)]) == 2
        assert "cannot compare: git rev-parse" in capsys.readouterr().err


class TestKeptResults:
    """A job's results are used again while what they hang on is the same."""

    @pytest.fixture
    def kept(self, tmp_path, monkeypatch):
        ran: list[str] = []

        def run_job(words, tree, folder):
            ran.append(folder.name)
            folder.mkdir(parents=True, exist_ok=True)
            note = {"exit code": 0, "with": compare_results.describe_surroundings()}
            (folder / "job.json").write_text(json.dumps(note))

        monkeypatch.setattr(compare_results, "run_job", run_job)
        monkeypatch.setattr(compare_results, "check_out", lambda commit: nullcontext(Path()))
        monkeypatch.setattr(compare_results, "run_git", lambda *words: "abc")
        monkeypatch.setattr(
            compare_results, "list_commands", lambda commit: {"run": ["run"], "leak": ["reproduce"]}
        )
        return ran

    def test_a_second_comparison_runs_nothing(self, tmp_path, kept):
        for _ in range(2):
            folder, jobs = compare_results.collect_results("HEAD", tmp_path, [])
        assert (folder, jobs, kept) == (tmp_path / "abc", ["run", "leak"], ["run", "leak"])

    def test_other_data_run_again(self, tmp_path, kept, monkeypatch):
        compare_results.collect_results("HEAD", tmp_path, ["leak"])
        monkeypatch.setenv("DPERM_DATA_DIR", "/elsewhere")
        compare_results.collect_results("HEAD", tmp_path, ["leak"])
        assert kept == ["leak", "leak"]

    def test_a_job_that_is_not_there(self, tmp_path, kept):
        with pytest.raises(CannotCompare, match="has no job lake; it has run, leak"):
            compare_results.collect_results("HEAD", tmp_path, ["lake"])


def test_the_jobs_are_those_of_the_makefile():
    if not (compare_results.ROOT / ".git").exists():
        pytest.skip("no git checkout")
    commands = list_commands("HEAD")
    assert commands["run"][:2] == ["run", "-m"]
    assert "trials=20" in commands["run"]
    assert commands["leak"] == ["reproduce", "leak", "size=small"]
    experiments = {path.name for path in (compare_results.ROOT / "experiments").glob("*/")}
    assert set(commands) == {"run", *experiments}
