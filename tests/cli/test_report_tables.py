"""``dperm report``: columns, rows, ranks and slopes; what a terminal shows and what a pipe gets."""

from __future__ import annotations

import re
import sys

import pytest

from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.records.store import Snapshot
from dperm_cli.results.tables.latex_table import WIDTHS, write_latex
from tests.results.test_chosen_table import computer_modern, measure_tables  # noqa: F401

RUN = ("run", "-m", "dataset=diabetes", "loss=squared", "constraint.radius=1", "trials=2",
       "mechanism=noisy_gd,output_perturbation", "epsilon=3,10,30", "seed=0,1")  # fmt: skip
REPORT = ("report", "study", "html=false")


@pytest.fixture
def study(dperm, tmp_path):
    assert dperm(*RUN, "out=study").code == 0
    return tmp_path / "study"


def test_columns_and_rows_of_ones_choice(dperm, study):
    before = (study / "table.csv").read_bytes()
    words = (
        "columns=epsilon,mechanism,excess_risk",
        "rows=mechanism:noisy_gd,epsilon:3,epsilon:10",
    )
    done = dperm(*REPORT, *words, "aggregate=seed")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines() if "noisy_gd" in line]
    assert [line[:2] for line in lines[:2]] == [["3", "noisy_gd"], ["10", "noisy_gd"]]
    assert "steps" not in done.out
    assert "| epsilon | mechanism | excess risk |" in (study / "table.md").read_text()
    assert "{@{}rlr@{}}" in (study / "table.tex").read_text()
    assert (study / "table.csv").read_bytes() == before


def test_a_pipe_gets_all_and_the_same_with_columns_all(dperm, study):
    plain = dperm(*REPORT).out
    assert dperm(*REPORT, "columns=all").out == plain
    for word in ("steps", "accounted", "scale", "lower", "seed"):
        assert word in plain
    assert "\x1b" not in plain


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("columns=mechanisms", "mechanism"), ("rows=noisy_gd", "COLUMN:VALUE"),
        ("rows=mechanism:newton", "noisy_gd"), ("ranks=yes", "true"), ("column=n", "columns"),
    ],
)  # fmt: skip
def test_what_there_is_not_is_refused_and_nothing_written(dperm, study, word, said):
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    done = dperm(*REPORT, word)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
    assert before == {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}


def test_a_terminal_gets_what_fits_it(dperm, study, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = dperm(*REPORT).out
    assert "\x1b[1mmechanism" in shown
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in shown.splitlines()) <= 72
    assert "columns=all shows them" in " ".join(shown.split())
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in dperm(*REPORT).out
    assert "steps" in dperm(*REPORT, "columns=all").out


def test_ranks_and_slopes_are_written_and_printed(dperm, study):
    done = dperm(*REPORT, "ranks=true", "slopes=true")
    assert done.code == 0
    assert re.search(r"noisy_gd +1\.00  best in 3", done.out)
    assert re.search(r"output_perturbation +2\.00  best in 0, refuses 3", done.out)
    assert "noisy_gd against epsilon (diabetes, squared, l2_ball): -" in done.out
    lines = (study / "ranks.csv").read_text().splitlines()
    assert lines[0] == "mechanism,mean_rank,problems,wins,refusals"
    assert lines[1].startswith("noisy_gd,1.0,3,3,0")
    assert (study / "ranks.svg").read_bytes().startswith(b"<?xml")
    assert len((study / "slopes.csv").read_text().splitlines()) == 2
    silent = dperm(*REPORT, "ranks=true", "format=json")
    assert len(silent.rows) == 12


def measure_experiment(folder, measure):
    store = Snapshot(folder)
    manifest = store.read_manifest()
    about = experiment_tables.read_about(manifest)
    made = experiment_tables.choose_table(store.read_all(manifest["cells"]), about)
    text = write_latex(made)
    assert (folder / "table.tex").read_text() == text
    return list(measure_tables(text, measure))


@pytest.mark.parametrize(
    "name", ["bst14_accounting", pytest.param("bst14_table1", marks=pytest.mark.slow)]
)
def test_the_table_of_an_experiment_fits_a_column(name, dperm, tmp_path, computer_modern):  # noqa: F811
    dperm("reproduce", name, "size=small", "out=study")
    widths = measure_experiment(tmp_path / "study", computer_modern)
    assert widths
    assert max(widths) <= WIDTHS["single"]
