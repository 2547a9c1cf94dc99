"""Names with dollar signs are drawn as they are: no figure parses its words as mathematics."""

from __future__ import annotations

import pytest
from matplotlib.text import Text

from dperm_cli.results.charts import (
    account_figure,
    experiment_figure,
    figure_drawing,
    problem_portrait,
    study_figure,
)
from dperm_cli.results.charts.study_view import StudyView
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from tests.results import html_study, test_account, test_problem_portrait
from tests.results.conftest import study_rows

NAMES = ("$x^2$", "a_b$", r"$\frac{1", "$", "5$ or 10$", r"\alpha$^{", "$\\mathrm{}$%#&")


@pytest.fixture
def texts(monkeypatch):
    """Draws in all formats; gives every word that stands in the figure, and how it is read."""
    kept = []
    real = figure_drawing.image_bytes

    def keep(drawn, ending):
        kept.append(drawn)
        return real(drawn, ending)

    monkeypatch.setattr(figure_drawing, "image_bytes", keep)

    def call(draw):
        draw()
        assert len(kept) == 3  # pdf, svg, png
        found = [text for drawn in kept[:1] for text in drawn.findobj(Text)]
        words = [text.get_text() for text in found if text.get_text()]
        assert len(words) > 10
        assert not any(text.get_parse_math() for text in found)
        assert not any("mathdefault" in word for word in words)
        return " ".join(" ".join(words).split())

    return call


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_a_study(texts, name):
    values = {"dataset": name, "loss": name, "constraint": name, "bound_upper_id": f"[{name}]"}
    rows = [row | values | {"mechanism": f"m {name}"} for row in study_rows()]
    view = StudyView(show=("floor", "bounds"))
    seen = texts(lambda: study_figure.draw_figure(summarise(map(normalise, rows)), view))
    assert f"{name}, {name}" in seen
    assert f"m {name}" in seen
    assert f"upper bound [{name}]" in seen


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_a_study_with_many_epsilons_and_one_with_a_single_one(texts, name):
    rows = [row | {"dataset": name, "epsilon": 1.0, "calibration": "tight"} for row in study_rows()]
    assert name in texts(
        lambda: study_figure.draw_figure(summarise(normalise(row) for row in rows))
    )


def test_an_axis_of_many_values_has_numbers_and_no_formulas(texts):
    rows = [
        row | {"cell": f"{row['cell']}-{k}", "epsilon": row["epsilon"] * 1.2**k}
        for k in range(6) for row in study_rows()[:-1]
    ]  # fmt: skip
    seen = texts(lambda: study_figure.draw_figure(summarise(normalise(row) for row in rows)))
    assert "epsilon 0.1 0.1 0.2 0.2 0.5 0.5 1 1 2 2 5 5 10 10 20 20" in seen


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_a_portrait(texts, name):
    found = test_problem_portrait.facts(2, kernel=name) | {"dataset": name, "loss": name}
    for rows in found["mechanisms"].values():
        for row in rows:
            row["bound_upper_id"] = name
    seen = texts(lambda: problem_portrait.draw_figure(found))
    assert f"{name}, {name}, kernel {name}, l2_ball: n = 5" in seen
    assert f"upper: {name}" in seen


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_what_account_draws(texts, name):
    values = {"mechanism": name, "relation": name}
    rows, points = [test_account.row(**values)], [p | values for p in test_account.POINTS]
    seen = texts(lambda: account_figure.draw_files(rows, points))
    assert f"{name}, paper" in seen
    assert f"delta = 1e-6, {name}" in seen


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_an_experiment(texts, name):
    rows = html_study.large(data_sets=1)
    about = html_study.experiment(rows)
    about = about | {"id": name, "paper": f"[{name}]"}
    seen = texts(lambda: experiment_figure.draw_figure(rows, about))
    assert f"{name} [{name}], size=" in seen
