"""A run that looks everything up shows and writes what the run wrote that computed it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

STUDY = ["run", "-m", "dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2",
         "mechanism=noisy_gd", "mechanism.steps=3", "trials=3", "epsilon=0.5,1,4"]  # fmt: skip
WRITTEN = ["table.csv", "table.md", "table.tex", "ledger.json", "report.html"]


def written(study: Path) -> dict[str, bytes]:
    return {name: (study / name).read_bytes() for name in WRITTEN}


@pytest.fixture
def first(dperm, tmp_path):
    """What the run says that computes the study, and what it writes."""
    done = dperm(*STUDY, "out=study")
    assert done.code == 0, done.err
    return done, written(tmp_path / "study")


@pytest.mark.parametrize("again", [1, 2])
def test_a_looked_up_run_writes_the_same_files(again, first, dperm, tmp_path):
    done, files = first
    for _ in range(again):
        looked_up = dperm(*STUDY, "out=study")
        assert "3 looked up" in looked_up.err
        assert looked_up.out == done.out
    assert written(tmp_path / "study") == files


def test_a_report_writes_the_same_files(first, dperm, tmp_path):
    done, files = first
    reported = dperm("report", "study")
    assert reported.out == done.out
    now = written(tmp_path / "study")
    assert {name: now[name] for name in WRITTEN[:-1]} == {
        name: files[name] for name in WRITTEN[:-1]
    }


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_is_gone_is_written_again(name, first, dperm, tmp_path):
    (tmp_path / "study" / name).unlink()
    assert dperm(*STUDY, "out=study").code == 0
    assert written(tmp_path / "study") == first[1]


SAME_STUDY = {
    "another folder": (["out=other"], "other"),
    "the whole path": (["out={tmp_path}/study"], "study"),
    "another order": (["format=table", "out=study"], "study"),
    "two workers": (["workers=2", "out=study"], "study"),
    "stopping at failures": (["on_error=stop", "out=study"], "study"),
}


@pytest.mark.parametrize("name", SAME_STUDY)
def test_equal_runs_write_the_same_files_whatever_words_asked_for_them(
    name, first, dperm, tmp_path
):
    """Which folder, and how many workers, is no part of a result."""
    words, folder = SAME_STUDY[name]
    if folder == "other":
        shutil.copytree(tmp_path / "study" / "records", tmp_path / "other" / "records")
    done = dperm(*STUDY, *[word.format(tmp_path=tmp_path) for word in words])
    assert "3 looked up" in done.err
    assert written(tmp_path / folder) == first[1]


def test_a_forced_run_writes_the_same_tables(first, dperm, tmp_path):
    assert dperm(*STUDY, "force=true", "out=study").code == 0
    now = written(tmp_path / "study")
    for name in WRITTEN[:-1]:
        assert now[name] == first[1][name]


@pytest.mark.parametrize("epsilons", [("0.05", "4"), ("0.05,4", "4,5")])
def test_a_table_has_as_many_lines_whether_or_not_a_row_learnt_something(epsilons, dperm, tmp_path):
    """How well a run did is no matter of layout: tables are compared line by line."""
    lines = []
    for number, asked in enumerate(epsilons):
        out = f"study{number}"
        words = [*STUDY[:-1], "mechanism.step_size=1", f"epsilon={asked}", f"out={out}"]
        assert dperm(*words).code == 0
        text = (tmp_path / out / "table.md").read_text()
        lines.append(len(text.splitlines()))
    assert lines[0] == lines[1]
