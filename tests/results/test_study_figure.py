"""The figure: its data (panels, curves, fitted bounds), hollow points, and equal bytes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from dperm_cli.results.charts import panel_drawing
from dperm_cli.results.charts.chart_model import HOLLOW_WORDS, ReferenceLine
from dperm_cli.results.charts.figure_drawing import _make_pattern_entries
from dperm_cli.results.charts.study_figure import build_figure, draw_figure, plot_study
from dperm_cli.results.charts.study_lines import fit_order
from dperm_cli.results.charts.study_panels import axis_of, panels
from dperm_cli.results.charts.study_view import StudyView
from dperm_cli.results.charts.themes import THEMES
from dperm_cli.results.records.row_facts import title_of
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from tests.results.conftest import refused, study_rows, trial_rows

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def summed(*groups):
    return summarise(normalise(row) for group in groups for row in group)


def test_one_panel_with_a_curve_per_calibration(summary):
    (panel,) = panels(summary)
    assert [curve.label for curve in panel.curves] == ["noisy_gd, tight", "noisy_gd, paper"]
    assert panel.curves[0].hue == panel.curves[1].hue
    assert panel.curves[0].mark == panel.curves[1].mark
    assert [point.x for point in panel.curves[0].points] == [0.1, 0.5, 2.0, 10.0]
    assert [point.epsilon_accounted for point in panel.curves[1].points] == [0.02, 0.1, 0.4, 2.0]
    assert panel.n == 100


def test_lines_are_labelled_with_their_theorems(summary):
    (panel,) = panels(summary)
    lines = {line.kind: line for line in panel.lines}
    assert lines["floor"].label == "data-free floor"
    assert lines["bound_upper"].label == "upper bound [BST14, Thm 2.4]"
    assert lines["bound_lower"].ys == pytest.approx((2.0, 0.4, 0.1, 0.02))
    assert lines["bound_upper"].xs == (0.1, 0.5, 2.0, 10.0)


def test_a_bound_whose_value_differs_between_curves_is_drawn_for_each(summary):
    rows = [
        {**row, "bound_upper": row["bound_upper"] and row["bound_upper"] * (i < 4 or 2)}
        for i, row in enumerate(summary)
    ]
    labels = [line.label for line in panels(rows)[0].lines if line.kind == "bound_upper"]
    assert labels == [
        "upper bound [BST14, Thm 2.4] (noisy_gd, tight)",
        "upper bound [BST14, Thm 2.4] (noisy_gd, paper)",
    ]


def test_the_order_constant_is_fitted_on_unsaturated_tight_points(summary):
    """Tight medians are 8, 2, 0.4 against orders 80, 20, 4; the first point is saturated."""
    (panel,) = panels([{**summary[0], "excess_risk_median": 70.0}, *summary[1:]])
    (line,) = [line for line in panel.lines if line.kind == "order_upper"]
    assert line.constant == "0.1"
    assert line.mechanism == "noisy_gd"
    assert line.ys == pytest.approx((40.0, 8.0, 2.0, 0.4))


def test_fitted_lines_touch_the_points_from_their_side():
    points = [(float(x), ratio * 10.0, 10.0) for x, ratio in enumerate((2, 3, 9, 1, 9, 4), start=1)]
    assert fit_order(points, upper=True) == 9.0
    assert fit_order(points, upper=False) == 1.0
    assert fit_order(points[:2], upper=True) is None


def test_hollow_markers_are_the_saturated_points(summary):
    """Tight medians 40, 8, 2, 0.4 and paper medians 80, 40, 10, 2 against half the floor, 40."""
    (panel,) = panels(summary)
    hollow = [[point.is_near_floor for point in curve.points] for curve in panel.curves]
    assert hollow == [[True, False, False, False], [True, True, False, False]]
    for curve, flags in zip(panel.curves, hollow, strict=True):
        faces = [_draw_mark(panel, curve, point)[0].get_markerfacecolor() for point in curve.points]
        assert [face == "white" for face in faces] == flags


@pytest.mark.parametrize("saturated", [True, False])
def test_the_legend_says_what_hollow_marks_mean(summary, saturated):
    rows = summary if saturated else [r for r in summary if (r["excess_risk_median"] or 40) < 40]
    figure, _ = build_figure(rows, StudyView())
    entries = _make_pattern_entries(figure, THEMES["single"])
    assert (HOLLOW_WORDS in entries) == saturated
    if saturated:
        assert entries[HOLLOW_WORDS].get_markerfacecolor() == "white"


def _draw_mark(panel, curve, point):
    """The lines that make a point's mark and bar."""
    from matplotlib.figure import Figure

    place = Figure().subplots()
    panel_drawing.draw_marks(place, panel, curve, [(point.x, point)])
    return place.lines


def test_a_risk_under_the_gap_is_drawn_at_the_gap():
    (panel,) = panels(summed(trial_rows(risks=(-1e-9, 0.0, 1e-9), optimum_gap=1e-6)))
    (point,) = panel.curves[0].points
    assert panel.height_of(point) == 1e-6
    (mark,) = _draw_mark(panel, panel.curves[0], point)
    assert mark.get_marker() == 11
    assert list(mark.get_ydata()) == [1e-6]


@pytest.mark.parametrize(("gap", "bars"), [(0.019, 0), (0.021, 1), (0.5, 1)])
def test_the_gap_is_a_bar_where_it_is_visible(gap, bars):
    rows = summed(trial_rows(risks=(2.0,), optimum_gap=gap))
    (panel,) = panels(rows)
    lines = _draw_mark(panel, panel.curves[0], panel.curves[0].points[0])
    assert len(lines) == 1 + bars
    if bars:
        assert list(lines[1].get_ydata()) == [2.0, 2.0 + gap]
    told = " ".join(build_figure(rows)[0].notes)
    assert (": the bar above a marker" in told) == bool(bars)


def with_kernel(cell, name, **more):
    return trial_rows(cell, overrides={"kernel": {"name": name}}, preprocessing=name, **more)


def test_the_title_names_the_kernel():
    rows = summed(with_kernel("a", "rbf"), with_kernel("b", "linear"), trial_rows("c"))
    found = panels(rows)
    assert [panel.title for panel in found] == ["kernel rbf", "kernel linear", ""]
    assert not any("kernel" in panel.details[0] for panel in found)
    (alone,) = panels(summed(with_kernel("a", "rbf")))
    assert alone.title == "digits, logistic, kernel rbf, l2_ball radius 1"
    # one panel of several kernels, of which none is everybody's
    assert "kernel" not in title_of(rows)
    assert title_of([{**rows[0], "constraint_radius": 2}, rows[0]]).endswith("kernel rbf, l2_ball")


def local(cell, epsilon, information=None, **more):
    given = {"guarantee": "local", "delta": 0.0, "epsilon": epsilon, "information": information}
    asked = {} if information is None else {"information": information}
    return trial_rows(cell, mechanism="local_sgd", overrides=asked, **given, **more)


def test_a_local_panel_says_so_and_where_its_epsilon_comes_from():
    (plain,) = panels(summed(local("a", 1.0), local("b", 2.0)))
    assert "replace_one, local privacy, delta = 0" in plain.details[0]
    (one,) = panels(summed(local("a", 0.9, 0.01)))
    assert "local privacy, epsilon implied by information = 0.01, delta = 0" in one.details[0]
    assert one.details[0].count("information") == 1
    # every information has its epsilon: one curve along it
    (several,) = panels(summed(local("a", 0.9, 0.01), local("b", 2.5, 0.1)))
    assert "local privacy, epsilon implied by information, delta = 0" in several.details[0]
    assert [[point.x for point in curve.points] for curve in several.curves] == [[0.9, 2.5]]
    assert {curve.note for panel in (plain, one, several) for curve in panel.curves} == {""}


def test_among_others_a_local_curve_is_marked():
    pure = trial_rows("b", mechanism="exponential", guarantee="pure", delta=0.0)
    (panel,) = panels(summed(local("a", 1.0), pure))
    assert [curve.label for curve in panel.curves] == [
        "local_sgd, tight (local)", "exponential, tight",
    ]  # fmt: skip
    assert "local" not in panel.details[0]
    (panel,) = panels(summed(local("a", 1.0), pure, trial_rows("c")))
    assert [curve.note for curve in panel.curves] == ["local", "delta 0", ""]


def test_the_axis_follows_what_varies():
    by_n = summed(trial_rows("a", n=100, delta=1e-4), trial_rows("b", n=1000, delta=1e-6))
    assert axis_of(by_n) == "n"
    assert [point.x for point in panels(by_n)[0].curves[0].points] == [100.0, 1000.0]
    both = summed(trial_rows("a", n=100), trial_rows("b", n=1000, epsilon=2.0))
    assert axis_of(both) == "epsilon"
    assert [panel.n for panel in panels(both)] == [100, 1000]


def test_equal_epsilons_of_different_settings_are_different_curves():
    rows = [
        trial_rows(name, overrides={"mechanism": {"name": "noisy_gd", "average": average}})
        for name, average in (("a", "last"), ("b", "mean"))
    ]
    (panel,) = panels(summed(*rows))
    assert [curve.variant for curve in panel.curves] == ["average last", "average mean"]


@pytest.mark.parametrize(
    "rows", [[refused("a")], trial_rows(risks=(-1.0, -2.0), optimum_gap=0.0)], ids=["none", "minus"]
)
def test_nothing_to_draw_is_a_note_and_no_figure(rows):
    drawn, note = draw_figure(summed(rows))
    assert drawn == {}
    assert note.startswith("no figure")


def test_the_figure_says_what_it_shows(summary, monkeypatch):
    """SVG text is drawn as outlines; matplotlib keeps each text as a comment beside them."""
    monkeypatch.setattr("dperm_cli.results.charts.figure_drawing.FIGURE_FORMATS", ("svg",))
    every = StudyView(show=("floor", "bounds", "orders"))
    svg = draw_figure(summary, every)[0]["svg"].decode()
    words = re.findall(r"<!-- (.*?) -->", svg)
    for text in (
        "noisy_gd", "paper's calibration", "data-free floor",
        "upper bound [BST14, Thm 2.4]", "excess risk (sum over n = 100 records)", "per record",
        "upper order [BST14, Thm 2.4], fitted",
    ):  # fmt: skip
        assert text in words
    told = " ".join(build_figure(summary, every)[0].notes)
    assert "5-95 % band over 3 trials: a simulation" in told
    assert "fitted constants: upper noisy_gd 0.1." in told


@pytest.mark.parametrize("noise", ["research", "secure"])
def test_the_caption_says_whether_trials_are_spent(noise):
    text = " ".join(build_figure(summed(trial_rows(risks=(2.0, 3.0), noise=noise)))[0].notes)
    assert ("a simulation" in text) == (noise == "research")
    assert ("released and spent" in text) == (noise == "secure")


def test_single_epsilon_and_single_trial_studies_draw():
    drawn, note = draw_figure(summed(trial_rows(risks=(2.0,))))
    assert set(drawn) == {"pdf", "svg", "png"}
    assert note is None
    assert "epsilon = 1" in re.findall(r"<!-- (.*?) -->", drawn["svg"].decode())


def test_more_problems_than_panels_is_said(monkeypatch):
    monkeypatch.setattr("dperm_cli.results.charts.figure_drawing.FIGURE_FORMATS", ("svg",))
    monkeypatch.setattr("dperm_cli.results.charts.study_figure.MAX_PANELS", 2)
    rows = summed(*(trial_rows(f"c{i}", (1.0,), dataset=f"set{i}") for i in range(3)))
    drawn, note = draw_figure(rows)
    assert "first 2 of 3" in note
    assert b"<!-- set1 -->" in drawn["svg"]
    assert b"set2" not in drawn["svg"]


def compared(epsilons=(0.5, 2.0)):
    """Eight mechanisms with different keys, as their cells' configurations have them."""
    made = {
        "exponential": {"sampler": {"name": "auto", "most_seconds": 180}},
        "exponential/net": {"sampler": {"name": "net", "most_points": 9}},
        "localization(noisy_gd)": {"inner": {"name": "noisy_gd", "steps": 5}},
        "localization(output_perturbation)": {"inner": {"name": "output_perturbation"}},
        "huberized(objective_perturbation)": {"inner": {"name": "objective_perturbation"}},
        "noisy_gd": {"momentum": "auto"},
        "newton": {"curvature": 1},
        "non_private": {},
    }
    groups = []
    for i, (name, keys) in enumerate(made.items()):
        mechanism = name.partition("(")[0].partition("/")[0]
        mine = {key: value for key, value in keys.items() if key != "sampler"}
        overrides = {"mechanism": {"name": mechanism, **mine}}
        overrides |= {key: value for key, value in keys.items() if key == "sampler"}
        special = {"delta": 0.0} if mechanism == "exponential" else {}
        special |= {"guarantee": "none"} if mechanism == "non_private" else {}
        for epsilon in epsilons:
            groups.append(
                trial_rows(
                    f"{name}{epsilon}",
                    tuple((i + 1) * risk / epsilon for risk in (1.0, 2.0, 3.0)),
                    **{"mechanism": mechanism, "overrides": overrides, "epsilon": epsilon},
                    **special,
                )
            )
    return list(made), summed(*groups)


def test_mechanisms_with_different_keys_share_a_panel():
    names, rows = compared()
    (panel,) = panels(rows)
    assert [curve.name for curve in panel.curves] == names
    assert {curve.variant for curve in panel.curves} == {""}
    assert panel.details[0].endswith("n = 100, p = 2, replace_one, delta = 0.0001")
    labels = [curve.label for curve in panel.curves]
    assert labels[1] == "exponential/net, tight (delta 0)"
    assert labels[-1] == "non_private, tight (no guarantee)"
    assert len({(curve.hue, curve.mark) for curve in panel.curves}) == 8


def test_a_key_that_only_some_mechanisms_have_never_splits_panels():
    rows = [
        trial_rows(f"{i}", mechanism=name, overrides={"mechanism": {"name": name}, **keys})
        for i, (name, keys) in enumerate([("x", {"batch": 1}), ("x", {"batch": 2}), ("y", {})])
    ]
    (panel,) = panels(summed(*rows))
    assert [curve.label for curve in panel.curves] == [
        "x, tight, batch 1", "x, tight, batch 2", "y, tight",
    ]  # fmt: skip


def test_deltas_that_were_asked_for_have_a_panel_each():
    rows = summed(*(trial_rows(f"{delta}", delta=delta) for delta in (1e-4, 1e-6)))
    assert [panel.title for panel in panels(rows)] == ["delta = 0.0001", "delta = 1e-6"]


def test_bars_without_room_have_names_in_the_legend():
    _, rows = compared((1.0,))
    (panel,) = panels(rows)
    size = panel_drawing.PanelSize(24.0, 2.6, THEMES["double"])
    labels = panel_drawing.fit_labels(panel, size)
    assert labels[2] == "localization(noisy_gd)"
    assert panel_drawing.fit_labels(panel, replace(size, width=2.4)) is None
    (legend,) = plot_study(rows).legends
    assert [text.get_text() for text in legend.get_texts()][2] == "localization(noisy_gd)"


def test_the_optimum_itself_does_not_stretch_the_axis():
    free = trial_rows("a", (0.0, 0.0), mechanism="non_private", guarantee="none")
    (panel,) = panels(summed(free, trial_rows("b")))
    assert panel.limits[0] > 0.1
    (alone,) = panels(summed(free))
    assert alone.limits[0] < 1e-6


def test_the_caption_says_which_curves_are_not_private():
    free = trial_rows("a", mechanism="exponential", guarantee="none")
    for group, told in ((free, True), (trial_rows("a"), False)):
        notes = build_figure(summed(group))[0].notes
        assert any("are NOT private." in note for note in notes) == told


def test_a_bound_known_at_one_epsilon_is_drawn_there_only():
    from matplotlib.figure import Figure

    line = ReferenceLine("bound_upper", "u", (0.5,), (3.0,))
    (panel,) = panels(summed(trial_rows("a"), trial_rows("b", epsilon=2.0)))
    place = Figure().subplots()
    panel_drawing.draw_line(place, line, panel)
    assert list(place.lines[0].get_xdata()) == [0.5]


_PRINT = """
import hashlib, sys
from dperm_cli.results.charts.study_figure import draw_figure
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from tests.results.conftest import study_rows
drawn, _ = draw_figure(summarise(normalise(row) for row in study_rows()))
print({name: hashlib.sha256(data).hexdigest() for name, data in drawn.items()})
"""


def test_equal_rows_give_equal_figures_in_every_process(tmp_path):
    """Another process, hash seed, time zone and personal matplotlib settings: same bytes."""
    (tmp_path / "matplotlibrc").write_text("figure.dpi: 50\nfont.size: 20\nlines.linewidth: 9\n")
    extra = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "PYTHONPATH": ROOT,
             "MATPLOTLIBRC": str(tmp_path / "matplotlibrc")}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _PRINT], env={**os.environ, **extra}, cwd=tmp_path,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = draw_figure(summed(study_rows()))[0]
    assert done.stdout.strip() == str(
        {name: hashlib.sha256(data).hexdigest() for name, data in here.items()}
    )
    assert b"CreationDate" not in here["pdf"]
    assert b"<dc:date>" not in here["svg"]
