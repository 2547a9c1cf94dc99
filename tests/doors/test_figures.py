"""Figures for a paper: size, fonts, one look for a mechanism everywhere, and nothing overlaps."""

from __future__ import annotations

import itertools
import re
import shutil

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from tests.doors._doors import (
    SMALL,
    dperm,
    drawn_panels,
    legend_entries,
    mostly_slow,
    public,
    refused,
    texts_of,
)

WIDTHS = {"single": 3.3, "double": 6.9}
VIEWS = {
    "plain": {},
    "by seed": {"facet": "seed"},
    "by mechanism": {"facet": "mechanism", "hue": "seed"},
    "accuracy": {"y": "test_metric"},
}


@pytest.fixture(scope="module")
def figures(study):
    """Each view at each width, drawn once."""
    return {
        (theme, view): study.plot(theme=theme, **keys)
        for theme in WIDTHS
        for view, keys in VIEWS.items()
    }


@pytest.mark.parametrize("theme", WIDTHS)
def test_the_figure_has_the_width_of_its_column(theme, figures):
    for view in VIEWS:
        figure = figures[theme, view]
        assert isinstance(figure, Figure)
        width, height = figure.get_size_inches()
        assert width == pytest.approx(WIDTHS[theme], abs=0.01)
        assert 1.0 < height < 9.0


@pytest.mark.parametrize("theme", WIDTHS)
def test_each_letter_is_at_least_seven_points(theme, figures):
    """The figure is as wide as the column, so that sizes in it are sizes in print."""
    for view in VIEWS:
        for text, _ in texts_of(figures[theme, view]):
            assert text.get_fontsize() >= 7.0, (view, text.get_text())


@pytest.mark.parametrize("theme", WIDTHS)
@pytest.mark.parametrize("view", VIEWS)
def test_no_text_overlaps_another_or_leaves_the_figure(theme, view, figures):
    figure = figures[theme, view]
    boxes = texts_of(figure)
    assert len(boxes) > 4
    page = figure.bbox
    for text, box in boxes:
        inside = box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1
        inside = inside and box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1
        assert inside, f"{text.get_text()!r} leaves the page"
    for (first, one), (second, two) in itertools.combinations(boxes, 2):
        width = min(one.x1, two.x1) - max(one.x0, two.x0)
        height = min(one.y1, two.y1) - max(one.y0, two.y0)
        if width > 1 and height > 1:
            pytest.fail(f"{first.get_text()!r} lies on {second.get_text()!r}")


@pytest.mark.parametrize("theme", WIDTHS)
def test_no_legend_lies_on_a_point(theme, figures):
    figure = figures[theme, "plain"]
    figure.canvas.draw()
    legends = figure.findobj(Legend)
    assert legends
    for legend, axes in itertools.product(legends, drawn_panels(figure)):
        box = legend.get_window_extent()
        for line in axes.lines:
            if line.get_marker() not in ("None", "", None, " "):
                points = axes.transData.transform(line.get_xydata())
                points = points[np.isfinite(points).all(axis=1)]
                assert not any(box.contains(*point) for point in points)


def test_the_legend_has_what_is_needed(figures):
    """One entry a mechanism: bounds, floor and calibration come by show=, or not at all."""
    figure = figures["single", "plain"]
    entries = [t.get_text() for one in figure.findobj(Legend) for t in one.get_texts()]
    assert len(entries) <= 4, entries
    assert sum("noisy_gd" in entry for entry in entries) == 1
    assert sum("noisy_sgd" in entry for entry in entries) == 1


def test_long_notes_are_not_in_the_figure(figures):
    for text, _ in texts_of(figures["double", "plain"]):
        assert len(text.get_text()) <= 60, text.get_text()


def test_a_mechanism_looks_the_same_in_each_study(study, other_order):
    """Another order, and one more mechanism in between, changes neither colour nor marker."""
    first = legend_entries(study.plot())
    second = legend_entries(other_order.plot())
    for name in ("noisy_gd", "noisy_sgd"):
        assert first[name] == second[name], name
    assert len({first["noisy_gd"], first["noisy_sgd"], second["objective_perturbation"]}) == 3
    colours = [second[name][0] for name in second if name in first]
    assert len(set(colours)) == len(colours)


@pytest.mark.slow
def test_the_look_of_a_mechanism_is_that_of_the_command_line(study, study_folder, tmp_path):
    """A colour that the figure in Python has is in the SVG that report writes."""
    shutil.copytree(study_folder, tmp_path / "study")
    dperm("report", "study", "html=false", "formats=svg", cwd=tmp_path, code=0)
    svg = (tmp_path / "study/figure.svg").read_text().lower()
    for name in ("noisy_gd", "noisy_sgd"):
        assert legend_entries(study.plot())[name][0] in svg


def test_repeated_seeds_are_one_curve_in_one_panel(study):
    figure = study.plot(aggregate="seed")
    assert len(drawn_panels(figure)) == 1
    (axes,) = drawn_panels(figure)
    curves = [line for line in axes.lines if len(line.get_xdata()) == 4]
    assert len(curves) == 2, "one curve of four budgets for each of two mechanisms"


@pytest.mark.slow
def test_twenty_seeds_are_not_twenty_panels(tmp_path):
    keys = {"mechanism": "noisy_gd", "epsilon": [1, 10], "seed": list(range(20))}
    study = public("run")(*SMALL, **keys, out=tmp_path / "seeds")
    assert len(drawn_panels(study.plot())) == 1
    shown = study.table(style="md")
    assert len([line for line in shown.splitlines() if line.startswith("| noisy_gd")]) == 2


def test_a_swept_number_is_a_numeric_axis(tmp_path):
    """10, 40 and 640 stand where these numbers are, not at equal distances."""
    study = public("run")(
        *SMALL,
        mechanism="noisy_gd",
        epsilon=10,
        out=tmp_path / "sweep",
        **{"mechanism.steps": [10, 40, 640]},
    )
    for figure in (study.plot(), study.plot(x="mechanism.steps")):
        (axes,) = drawn_panels(figure)
        xs = {x for line in axes.lines for x in np.asarray(line.get_xdata(), dtype=float)}
        assert {10.0, 40.0, 640.0} <= xs
        assert "steps" in axes.get_xlabel()
        assert axes.xaxis.get_units() is None


def test_report_writes_the_width_and_a_caption(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "study")
    words = ("theme=single", "x=epsilon", "y=excess_risk", "hue=mechanism", "aggregate=seed")
    words = (*words, "formats=svg")
    dperm("report", "study", *words, "html=false", cwd=tmp_path, code=0)
    (caption,) = (tmp_path / "study").glob("*caption*")
    text = caption.read_text()
    for word in ("diabetes", "epsilon", "median", "simulation"):
        assert word in text
    svg = (tmp_path / "study/figure.svg").read_text()
    (width,) = re.findall(r'<svg[^>]*?\bwidth="([\d.]+)pt"', svg, re.DOTALL)
    assert float(width) == pytest.approx(72 * 3.3, rel=0.02)


@pytest.mark.parametrize(
    "asked",
    mostly_slow(
        [
            ("theme=tripple", "single"),
            ("x=epsilom", "epsilon"),
            ("aggregate=trial_", "seed"),
            ("columns=no_such", "excess_risk"),
        ],
        ("theme=tripple", "single"),
    ),
)
def test_a_bad_word_of_report_changes_nothing(asked, study_folder, tmp_path):
    word, said = asked
    shutil.copytree(study_folder, tmp_path / "study")
    before = {p.name: p.read_bytes() for p in (tmp_path / "study").iterdir() if p.is_file()}
    refused(dperm("report", "study", word, cwd=tmp_path), said)
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "study").iterdir() if p.is_file()}


@pytest.mark.slow
def test_all_shipped_mechanisms_look_different(tmp_path):
    """No two share colour and marker, whoever stands beside them."""
    names = [
        "noisy_gd",
        "noisy_sgd",
        "newton",
        "one_pass_sgd",
        "objective_perturbation",
        "frank_wolfe",
        "mirror_descent",
        "regularized_exponential",
        "approximate_minima_perturbation",
        "non_private",
    ]
    study = public("run")(*SMALL, mechanism=names, epsilon=10, out=tmp_path / "all")
    looks = legend_entries(study.plot(theme="double"))
    shown = {name: look for name, look in looks.items() if name in names}
    assert len(shown) >= 9
    assert len(set(shown.values())) == len(shown)
