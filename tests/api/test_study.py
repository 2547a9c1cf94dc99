"""A study in Python: frames, ledger, comparison, table, figure, and how it shows itself."""

from __future__ import annotations

import csv
import json
import math
import shutil

import pytest

import dperm_cli
from dperm_cli.api import studies
from dperm_cli.results.records.schema import STABLE_COLUMNS
from tests.api.conftest import SMALL


def test_the_frame_is_the_table(study):
    frame = study.frame()
    with (study.folder / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(frame) == len(study) == len(rows) == 4
    assert frame["cell"].tolist() == [row["cell"] for row in rows]
    medians = [float(row["excess_risk_median"]) for row in rows]
    assert frame["excess_risk_median"].tolist() == pytest.approx(medians)
    assert frame["epsilon"].dtype == "float64"
    assert frame.attrs["units"]["epsilon"] == "nats"


def test_trials_are_the_records(study):
    trials = study.trials()
    assert len(trials) == 8
    assert set(STABLE_COLUMNS) >= {"theta", "events"}
    medians = trials.groupby("cell")["excess_risk"].median()
    found = study.frame().set_index("cell")["excess_risk_median"]
    assert dict(medians) == pytest.approx(dict(found))
    assert len(trials["theta"][0]) == trials["p"][0]


def test_a_key_that_sets_cells_apart_has_a_column(run_small):
    found = run_small(*SMALL[:3], mechanism="noisy_gd", **{"mechanism.steps": [5, 10]})
    assert found.frame()["mechanism.steps"].tolist() == [5.0, 10.0]


def test_the_ledger_is_that_of_the_folder(study):
    stored = json.loads((study.folder / "ledger.json").read_text())
    assert json.loads(json.dumps(study.ledger)) == stored


def test_a_ledger_that_does_not_hold_is_refused(study, monkeypatch):
    from dperm_cli.runner.cells.ledger_accountant import Accounting

    monkeypatch.setattr(Accounting, "fault", lambda self, row: "epsilon is too small")
    with pytest.raises(dperm_cli.PrivacyError, match="epsilon is too small"):
        _ = dperm_cli.load(study.folder).ledger


def test_a_study_equals_itself_and_differs_from_another(study, run_small):
    other = run_small(*SMALL[:3], mechanism="noisy_gd", epsilon=[1, 3], ridge=0.02)
    same = study.compare(study.folder)
    assert "4 identical" in repr(same)
    assert repr(study.compare(other)) != repr(same)
    assert list(same.weaker) == []


@pytest.mark.parametrize(
    ("style", "word"), [("terminal", "noisy_gd"), ("md", "noisy_gd"), ("latex", "tabular")]
)
def test_a_table_in_a_style(study, style, word):
    assert word in study.table(style=style)


def test_a_style_that_there_is_not(study):
    with pytest.raises(dperm_cli.InputError, match="latex"):
        study.table(style="latx")


def test_a_figure_is_matplotlibs(study):
    from matplotlib.figure import Figure

    figure = study.plot()
    assert isinstance(figure, Figure)
    assert figure.axes


@pytest.mark.parametrize(("theme", "inches"), [("single", 3.3), ("double", 6.9)])
def test_a_notebook_shows_a_figure_at_its_width_in_print(study, theme, inches):
    for figure in (study.plot(theme=theme), study.plot_ranks(theme=theme)):
        image, about = figure._repr_png_()
        assert image.startswith(b"\x89PNG")
        assert about["width"] == pytest.approx(96 * inches, abs=1)
        pixels = int.from_bytes(image[16:20], "big")  # sharp on a fine screen too
        assert pixels == pytest.approx(2 * about["width"], abs=2)


def test_a_long_study_shows_its_first_rows(study, monkeypatch):
    monkeypatch.setattr(studies, "MOST_ROWS", 3)
    text = study._repr_html_()
    assert text.count("<tr") == 4
    assert "the first 3 of 4 lines" in text


def test_what_a_study_says_of_itself(study):
    text = repr(study)
    for word in ("4 cells", "noisy_gd", "output_perturbation", "diabetes", "1, 3"):
        assert word in text
    assert len(text) < 600
    assert study._repr_html_().count("<tr") == 5


def test_names_in_html_are_text(study, tmp_path):
    folder = tmp_path / "<script>"
    shutil.copytree(study.folder, folder)
    assert "<script>" not in dperm_cli.load(folder)._repr_html_()


def test_refusals_are_rows_with_reasons(run_small):
    found = run_small(*SMALL[:3], mechanism=["noisy_gd", "output_perturbation"])
    assert found.frame()["status"].tolist() == ["ok", "unsupported"]
    (line,) = found.failures
    assert line.startswith("output_perturbation on diabetes: unsupported: ")
    assert "1 unsupported cell" in repr(found)


def test_loading_writes_nothing(study):
    before = {path: path.stat().st_mtime_ns for path in study.folder.rglob("*")}
    found = dperm_cli.load(str(study.folder))
    found.frame(), found.trials(), found.table(), found.ledger, repr(found)
    assert before == {path: path.stat().st_mtime_ns for path in study.folder.rglob("*")}
    assert found == study
    assert dperm_cli.load(found) is found


def test_a_folder_without_a_study(tmp_path):
    with pytest.raises(dperm_cli.InputError, match="holds no study"):
        dperm_cli.load(tmp_path)


def test_a_damaged_folder_is_an_error_of_storage(run_small, tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "records").write_text("no folder")
    with pytest.raises(dperm_cli.StorageError):
        run_small(*SMALL[:3], mechanism="noisy_gd")


@pytest.mark.parametrize("given", [3, math.nan, True])
@pytest.mark.parametrize(
    ("call", "key"),
    [("table", "columns"), ("table", "aggregate"), ("plot", "aggregate"), ("plot", "show")],
)
def test_what_are_no_words_is_refused(study, call, key, given):
    with pytest.raises(dperm_cli.InputError, match=f"^{key}=.*must be words"):
        getattr(study, call)(**{key: given})
