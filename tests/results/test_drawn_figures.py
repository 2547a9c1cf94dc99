"""A figure is drawn once: a report of the same records finds its files as they are."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from dperm_cli import cli
from dperm_cli.core.package_paths import CACHE_DIR
from dperm_cli.results import kept_report
from dperm_cli.results.charts import drawn_figures, figure_drawing

RUN = ["run", "mechanism=noisy_gd", "mechanism.steps=2", "trials=2", "out=study"]


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """The figures that are drawn, in a folder and with a cache of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_DIR, str(tmp_path / "cache"))
    found = []
    draw = figure_drawing.draw_files
    monkeypatch.setattr(
        figure_drawing, "draw_files", lambda *asked: found.append(asked) or draw(*asked)
    )
    return found


def read_figures(folder):
    return {path.name: path.read_bytes() for path in folder.glob("figure.???")}


def test_a_study_that_is_reported_again_is_not_drawn_again(drawn, tmp_path):
    assert cli.main(RUN) == 0
    first = read_figures(tmp_path / "study")
    assert list(first) == ["figure.png"]
    assert cli.main(RUN) == 0
    assert len(drawn) == 1
    assert read_figures(tmp_path / "study") == first
    assert cli.main([*RUN, "epsilon=2"]) == 0
    assert len(drawn) == 2
    assert read_figures(tmp_path / "study") != first


@pytest.mark.parametrize("harm", ["changed", "gone", "no cache"])
def test_files_that_are_not_those_that_were_drawn_are_drawn_again(drawn, tmp_path, harm):
    assert cli.main(RUN) == 0
    first = read_figures(tmp_path / "study")
    path = tmp_path / "study" / "figure.png"
    if harm == "changed":
        path.write_text("<svg/>")
    elif harm == "gone":
        path.unlink()
    else:
        for room in (drawn_figures.FOLDER, kept_report.FOLDER):
            for note in (tmp_path / "cache" / room).iterdir():
                note.write_text("[]")
    assert cli.main(RUN) == 0
    assert len(drawn) == 2
    assert read_figures(tmp_path / "study") == first


def test_formats_that_were_asked_for_stay_true(drawn, tmp_path):
    """A PDF that a paper has taken is drawn again when the records change, and not before."""
    assert cli.main(RUN) == 0
    assert cli.main(["report", "study", "formats=pdf,svg"]) == 0
    first = read_figures(tmp_path / "study")
    assert set(first) == {"figure.png", "figure.pdf", "figure.svg"}
    assert first["figure.pdf"].startswith(b"%PDF")
    assert cli.main(RUN) == 0
    assert len(drawn) == 2
    assert cli.main([*RUN, "epsilon=2"]) == 0
    again = read_figures(tmp_path / "study")
    assert set(again) == set(first)
    assert all(again[name] != first[name] for name in first)


@pytest.mark.parametrize("word", ["jpg", "PDF", "pdf,,svg", "pdf;svg"])
def test_a_format_that_nobody_draws_is_refused(drawn, tmp_path, capsys, word):
    assert cli.main(RUN) == 0
    before = read_figures(tmp_path / "study")
    capsys.readouterr()
    assert cli.main(["report", "study", f"formats={word}"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("dperm: formats=")
    assert "pdf, svg" in told.err
    assert told.err.count("\n") == 1
    assert read_figures(tmp_path / "study") == before


def test_every_part_of_a_figure_is_in_its_name(drawn, tmp_path):
    assert cli.main(RUN) == 0
    [(figure, _)] = drawn
    assert " at 0x" not in repr(figure)
    assert drawn_figures._find_note(figure) == drawn_figures._find_note(replace(figure))
    panel = figure.panels[0]
    curve = panel.curves[0]
    moved = replace(curve.points[0], value=curve.points[0].value * (1 + 1e-15))
    curves = (replace(curve, points=(moved, *curve.points[1:])), *panel.curves[1:])
    other = replace(figure, panels=(replace(panel, curves=curves), *figure.panels[1:]))
    assert drawn_figures._find_note(figure) != drawn_figures._find_note(other)
    assert len(os.listdir(tmp_path / "cache" / drawn_figures.FOLDER)) == 1
