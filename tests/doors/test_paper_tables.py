"""Tables: LaTeX that fits a column, Markdown, HTML and plain text with the same numbers."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
import subprocess

import pytest
import yaml

from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.tables.chosen_table import ChosenTable, Group
from dperm_cli.results.tables.latex_table import write_latex
from tests.doors._doors import ROOT, dperm, public, table

LATEX = next((path for name in ("pdflatex", "lualatex") if (path := shutil.which(name))), None)
# 3.3 inches hold 53 letters of 4.5 pt, the mean of a 9 pt font
COLUMN = 53
ARTICLE = r"""\documentclass[twocolumn]{article}
\usepackage{booktabs}
\begin{document}
%s
\end{document}
"""
needs_latex = pytest.mark.skipif(LATEX is None, reason="no LaTeX is installed")


def compile_page(text: str, folder) -> str:
    """Compile tables in an article of two columns; the log."""
    (folder / "page.tex").write_text(ARTICLE % text)
    done = subprocess.run(
        [LATEX, "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return (folder / "page.log").read_text(errors="replace")


def body_rows(tex: str) -> list[list[str]]:
    """Cells of the lines between the first rule and the last one."""
    inner = tex[tex.index(r"\toprule") : tex.rindex(r"\bottomrule")]
    lines = [line for line in inner.splitlines() if line.rstrip().endswith(r"\\")]
    return [[cell.strip() for cell in line.rstrip()[:-2].split("&")] for line in lines]


def printed(cell: str) -> str:
    """A cell as it is printed, roughly: commands go, braces go."""
    cell = re.sub(r"\\multicolumn\{\d+\}\{[^}]*\}", "", cell)
    cell = cell.replace(r"\_", "_").replace(r"\pm", "±").replace(r"\times", "x")
    return re.sub(r"\\[a-zA-Z]+|[{}$]", "", cell)


@pytest.fixture(scope="module")
def tex(study):
    return study.table(style="latex")


def test_it_is_a_float_with_rules_caption_and_notes(tex):
    for word in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption"):
        assert tex.count(word) == 1, word
    start, end = tex.index(r"\begin{table"), tex.rindex(r"\end{table")
    assert start < tex.index(r"\caption") < end
    assert start < tex.index(r"\toprule") < end
    outside = tex[:start] + tex[tex.index("\n", end) if "\n" in tex[end:] else len(tex) :]
    assert [line for line in outside.splitlines() if line and not line.startswith("%")] == []
    assert "simulation" in tex[start:end]  # the note that medians are no release
    assert "|" not in re.search(r"\\begin\{tabular\}.*", tex)[0]


def test_its_columns_fit_one_column_of_a_page(tex):
    rows = body_rows(tex)
    assert len(rows) >= 9  # a head, and eight lines: two mechanisms, four budgets
    width = sum(
        max(len(printed(row[i])) for row in rows if len(row) == len(rows[-1]))
        for i in range(len(rows[-1]))
    )
    assert width + 2 * len(rows[-1]) <= COLUMN, rows


def test_numbers_stand_in_columns_that_align_them(tex):
    (spec,) = re.findall(r"\\begin\{tabular[x*]?\}(?:\{[^}]*\})?\{((?:[^{}]|\{[^}]*\})*)\}", tex)
    kinds = re.findall(r"[lcrSX]", re.sub(r"[@>!]?\{[^}]*\}", "", spec))
    row = [printed(cell) for cell in body_rows(tex)[-1]]
    assert len(kinds) == len(row)
    for kind, cell in zip(kinds, row, strict=True):
        if re.fullmatch(r"[-−+]?\d[\d.]*", cell):
            assert kind in "rS", (spec, cell)


def test_numbers_are_rounded_to_their_uncertainty(tex):
    for row in body_rows(tex)[1:]:
        for cell in row:
            for number in re.findall(r"\d+\.?\d*", printed(cell)):
                digits = number.replace(".", "").strip("0")
                assert len(digits) <= 4, cell


def test_columns_and_rows_are_chosen(study):
    text = study.table(columns=["mechanism", "epsilon", "excess_risk"], style="latex")
    assert {len(row) for row in body_rows(text)} == {3}
    few = study.table(rows={"mechanism": "noisy_gd"}, style="md")
    assert "noisy_gd" in few
    assert "noisy_sgd" not in few


@pytest.mark.slow
def test_a_name_with_an_underscore_is_text(tmp_path):
    """The name that a user gave to a data set must not break LaTeX."""
    load = public("load")
    conf = tmp_path / "conf" / "dataset"
    conf.mkdir(parents=True)
    (conf / "x_1.yaml").write_text("name: diabetes\n")
    words = ("dataset=x_1", "loss=squared", "constraint.radius=1", "trials=2", "out=study")
    dperm("run", "--config-dir", "conf", *words, cwd=tmp_path, code=0)
    text = load(tmp_path / "study").table(columns=["dataset", "epsilon"], style="latex")
    assert r"x\_1" in text
    assert not re.search(r"(?<!\\)_", body_rows(text)[-1][0])


@pytest.mark.parametrize("style", ["md", "html", "terminal"])
def test_each_style_has_the_same_lines(style, study, capfd):
    text = study.table(style=style)
    assert isinstance(text, str)
    assert sum("noisy_gd" in line for line in text.splitlines()) >= 4
    assert capfd.readouterr().out == ""
    if style == "html":
        assert text.count("<tr") == text.count("</tr>") >= 9
        assert "<script" not in text
    if style == "md":
        bars = {line.replace(r"\|", "").count("|") for line in text.splitlines() if "|" in line}
        assert len(bars) == 1
    if style == "terminal":
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 100


def test_report_writes_the_columns_one_asked_for(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "study")
    words = ("columns=mechanism,epsilon,excess_risk", "aggregate=seed", "html=false")
    done = dperm("report", "study", *words, cwd=tmp_path, code=0)
    rows = body_rows((tmp_path / "study/table.tex").read_text())
    assert {len(row) for row in rows} == {3}
    assert len(rows) == 9
    assert "steps" not in done.stdout
    assert len(table(tmp_path / "study")) == 16  # the exact numbers of all cells stay


@needs_latex
def test_it_compiles_without_an_overfull_box(tex, tmp_path):
    assert "Overfull" not in compile_page(tex, tmp_path)


@needs_latex
def test_the_table_of_make_run_compiles(tmp_path):
    """The command that the Makefile has, and the file that it writes."""
    (line,) = re.findall(r"^\t\$\(BIN\)/dperm (run .*)$", (ROOT / "Makefile").read_text(), re.M)
    words = [word for word in line.split() if not word.startswith("out=")]
    dperm(*words, "out=study", cwd=tmp_path, code=0)
    text = (tmp_path / "study/table.tex").read_text()
    assert len(body_rows(text)) > 15  # noisy_gd has no calibration of a paper
    assert "Overfull" not in compile_page(text, tmp_path)


def read_kept_table(name: str) -> ChosenTable:
    """The table of an experiment from the points that are kept of it, as ``table.tex`` has it."""
    conf = yaml.safe_load((ROOT / "conf/experiment" / f"{name}.yaml").read_text())
    titles = {part: keys.get("text") or part for part, keys in conf["parts"].items()}
    with (ROOT / "experiments" / name / "table.csv").open() as file:
        points = list(csv.DictReader(file))
    groups = []
    for part, lines in itertools.groupby(points, lambda point: point["part"]):
        texts, before = [], None
        for point in lines:
            values = [read_value(word) for word in point.values()]
            texts.append(experiment_tables.write_point(values, point["curve"] != before))
            before = point["curve"]
        words = "; ".join(titles.get(word, word) for word in part.split("+"))
        groups.append(Group(words, tuple(texts)))
    return ChosenTable(conf["text"], experiment_tables.POINT_COLUMNS, tuple(groups), ())


def read_value(word: str):
    if word in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[word]
    return float(word) if re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", word) else word


@needs_latex
@pytest.mark.parametrize("width", ["single", "double"])
def test_the_table_of_an_experiment_compiles(width, tmp_path):
    table = read_kept_table("bst14_table1")
    assert sum(len(group.lines) for group in table.groups) > 50
    text = write_latex(table, width)
    assert text.count("noisy") > 10
    assert "Overfull" not in compile_page(text, tmp_path)


@pytest.mark.slow
def test_the_table_of_an_experiment_fits_as_well(tmp_path):
    """Of bst14_table1, from cells that take no time: what is asked is its form."""
    words = ("reproduce", "bst14_accounting", "out=study")
    dperm(*words, cwd=tmp_path)
    text = (tmp_path / "study/table.tex").read_text()
    rows = [row for row in body_rows(text) if len(row) > 1]
    width = sum(max(len(printed(row[i])) for row in rows) for i in range(len(rows[-1])))
    wide = r"\begin{table*}" in text
    assert width + 2 * len(rows[-1]) <= COLUMN * (2 if wide else 1)
