"""The page of an experiment with many panels: places, and labels that stay apart."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from dperm_cli.results.charts import chart_model, figure_drawing
from dperm_cli.results.charts.chart_model import Axis, Panel
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.experiment_figure import (
    choose_label_looks,
    name_quantity,
    panels,
    sort_curves,
)
from dperm_cli.results.charts.mechanism_looks import SHIPPED
from dperm_cli.results.charts.panel_drawing import PanelSize, draw_panel
from dperm_cli.results.charts.themes import THEMES
from dperm_cli.results.claims.experiment_tables import Curve


def make_panel(*curves, scale="log", **more):
    return Panel("a title", Axis("n"), Axis("risk", scale), curves, **more)


def make_curve(label, points, look=0):
    return chart_model.Curve(label, tuple(points), look)


def at(x, value=0.1):
    return Point(x, value, value / 2, 2 * value, 0.0, 4, floor=0.7)


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["p 10", "p 1", "p 2"], ["p 1", "p 2", "p 10"]),
        (["b, p 10", "a", "b, p 9", "a, p 1"], ["b, p 9", "b, p 10", "a", "a, p 1"]),
        (["epsilon 1e-5", "epsilon 0.5", "epsilon 1e-6"],
         ["epsilon 1e-6", "epsilon 1e-5", "epsilon 0.5"]),
        (["p 10, n 1", "p 2, n 7", "p 2, n 5"], ["p 2, n 5", "p 2, n 7", "p 10, n 1"]),
        (["l_2", "l_1", "w10", "w2"], ["l_2", "l_1", "w10", "w2"]),  # names, no numbers
        (["p 5", "p -", "p 3"], ["p 3", "p 5", "p -"]),
    ],
)  # fmt: skip
def test_curves_that_differ_in_numbers_stand_by_these(labels, order):
    assert [c.label for c in sort_curves([Curve(label, (), None, {}) for label in labels])] == order


def test_what_rounding_leaves_of_no_risk_does_not_stretch_the_axis():
    made = [Point(x, v, low, 2 * v, 0.0, 4, floor=0.7) for x, v, low in
            [(1.0, 0.1, 0.05), (2.0, 0.05, 1e-17), (4.0, 1e-17, 0.0)]]  # fmt: skip
    panel = make_panel(make_curve("a", made))
    assert panel.points == made[:2]
    assert make_panel(make_curve("a", made), scale="linear").points == made
    place = Figure().subplots()
    draw_panel(place, panel, PanelSize(2.6, 1.9, THEMES["double"]))
    assert place.get_ylim() == pytest.approx((0.05 / 1.6, 0.2 * 1.6))


def test_lines_widen_the_axis_as_far_as_the_panel_lets_them():
    line = chart_model.ReferenceLine("bound_upper", "u", (1.0, 2.0), (1e4, 1e4))
    curve = make_curve("a", [at(1.0), at(2.0)])
    assert make_panel(curve, lines=(line,)).limits == pytest.approx((0.05 / 1.6, 0.2 * 1.6))
    wide = make_panel(curve, lines=(line,), shows_all_lines=True)
    assert wide.limits == pytest.approx((0.05 / 1.6, 1.6e4))


@pytest.mark.parametrize(("length", "columns"), [(10, 5), (30, 2), (120, 1)])
def test_long_labels_stand_in_few_columns(length, columns):
    curves = [make_curve(f"{i}{'x' * length}", [at(1.0)], i) for i in range(5)]
    figure = chart_model.Figure((make_panel(*curves),), shared_legend=True)
    assert figure_drawing.draw_canvas(figure).legends[0]._ncols == columns


def test_mechanisms_have_their_own_looks_and_settings_a_pattern():
    groups = {"curve": ["mechanism", "p"]}
    labels = ["noisy_gd, p 1", "noisy_gd, p 2", "noisy_sgd, p -"]
    found = choose_label_looks([(groups, [Curve(label, (), None, {}) for label in labels])])
    assert found == {
        "noisy_gd, p 1": (SHIPPED["noisy_gd"], 0),
        "noisy_gd, p 2": (SHIPPED["noisy_gd"], 1),
        "noisy_sgd, p -": (SHIPPED["noisy_sgd"], 0),
    }
    alone = choose_label_looks([(groups, [Curve(label, (), None, {}) for label in labels[:2]])])
    assert alone == {"noisy_gd, p 1": (0, 0), "noisy_gd, p 2": (1, 0)}


PANEL = {"part": [], "x": "n", "y": "test_metric", "curve": [], "lines": [], "where": {}}


@pytest.mark.parametrize(
    ("metrics", "where", "words"),
    [
        (["accuracy", "accuracy"], {}, "held-out accuracy"),
        (["r2", "accuracy"], {}, "held-out accuracy or R2"),
        (["r2", "accuracy"], {"loss": "b"}, "held-out accuracy"),
        (["mean_distance", "residual_norm"], {"loss": "a"}, "held-out mean distance"),
        (["residual_norm", None], {}, "held-out residual norm"),
        ([None, None], {}, "held-out metric"),
    ],
)
def test_the_axis_names_the_metric_that_is_drawn(metrics, where, words):
    common = {"status": "ok", "n": 5, "test_metric": 0.5, "train_metric": 0.6, "_parts": ()}
    found = zip(metrics, "ab", strict=True)
    rows = [{**common, "metric": metric, "loss": loss} for metric, loss in found]
    rows.append({**rows[0], "metric": "not drawn", "test_metric": None, "train_metric": None})
    panel = {**PANEL, "where": where}
    assert name_quantity(rows, panel) == words
    on_training = words.replace("held-out", "training")
    assert name_quantity(rows, {**panel, "y": "train_metric"}) == on_training
    assert name_quantity(rows, {**panel, "y": "excess_risk"}) == "excess risk (sum over records)"


def test_a_number_of_the_paper_is_drawn_across():
    row = {"status": "ok", "n": 5, "metric": "accuracy", "test_metric": 0.5, "cell": "c"}
    rows = [{**row, "_parts": (), "trial": trial} for trial in range(2)]
    about = {"id": "e", "paper": "p", "parts": []}
    about["plot"] = [{**PANEL, "title": "t", "paper": 0.723}]
    (line,) = panels(rows, about)[0].lines
    assert (line.ys, line.label) == ((0.723,), "as printed in the paper: 0.723")
    assert not panels(rows, {**about, "plot": [{**PANEL, "title": "t"}]})[0].lines
