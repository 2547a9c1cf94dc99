"""The page of an experiment with many panels: places, and labels that stay apart."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from dperm_cli.results.charts import chart_model, figure_drawing
from dperm_cli.results.charts.chart_model import Axis, Panel
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.experiment_figure import name_quantity, sort_curves
from dperm_cli.results.charts.panel_drawing import draw_panel
from dperm_cli.results.claims.experiment_tables import Curve


def make_panel(*curves, scale="log", **more):
    return Panel("a title", Axis("n"), Axis("risk", scale), curves, **more)


def make_curve(label, points, look=0):
    return chart_model.Curve(label, tuple(points), look)


@pytest.fixture
def draw(monkeypatch):
    """Draws a figure in the style of all figures; gives matplotlib's, laid out."""

    def call(figure):
        kept = []
        monkeypatch.setattr(figure_drawing, "image_bytes", lambda drawn, _: kept.append(drawn))
        figure_drawing.draw_files(figure)
        kept[0].draw_without_rendering()
        return kept[0]

    return call


def at(x, value=0.1):
    return Point(x, value, value / 2, 2 * value, 0.0, 4, floor=0.7)


@pytest.mark.parametrize("longest", [1, 4])
def test_panels_of_a_large_page_keep_their_size_and_their_legends_room(longest, draw):
    curves = [
        make_curve(f"curve {i} with a rather long label", [at(1.0), at(2.0)], i)
        for i in range(longest)
    ]
    drawn = draw(chart_model.Figure((make_panel(*curves),) * 17, "many", columns=3))
    size = np.array(drawn.get_size_inches())
    boxes = [place.get_position() for place in drawn.axes]
    assert len(boxes) == 17
    for box in boxes:
        assert np.allclose((box.width, box.height) * size, (1.9, 1.3))
        assert 0 < box.x0 < box.x1 < 1
        assert box.y1 < 1
    # under each panel: the axis' name and its numbers, its legend, the title of the next
    below = (boxes[0].y0 - boxes[3].y1) * size[1]
    assert below >= 0.42 + 0.13 * longest + 0.245
    assert boxes[-1].y0 * size[1] >= 0.42 + 0.13 * longest
    assert (boxes[1].x0 - boxes[0].x1) * size[0] == pytest.approx(0.65)
    write = drawn.canvas.get_renderer()
    for place, lower in zip(drawn.axes, drawn.axes[3:], strict=False):
        legend = place.get_legend().get_window_extent(write)
        assert legend.y0 > lower._left_title.get_window_extent(write).y1
        assert legend.y1 < place.xaxis.label.get_window_extent(write).y0


@pytest.mark.parametrize("count", [4, 8])
def test_a_crowded_axis_keeps_every_other_label_and_its_last(count):
    place = Figure().add_subplot()
    draw_panel(place, make_panel(make_curve("a", [at(2.0**i) for i in range(1, count + 1)])), 1.9)
    words = [label.get_text() for label in place.get_xticklabels()]
    shown = [word for word in words if word]
    assert len(words) == count
    assert len(shown) == (count if count == 4 else count // 2)
    assert words[-1] == f"{2**count}"


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
    draw_panel(place, panel, 2.6)
    assert place.get_ylim() == pytest.approx((0.05 / 1.6, 0.2 * 1.6))


def test_lines_widen_the_axis_as_far_as_the_panel_lets_them():
    line = chart_model.ReferenceLine("bound_upper", "u", (1.0, 2.0), (1e4, 1e4))
    curve = make_curve("a", [at(1.0), at(2.0)])
    assert make_panel(curve, lines=(line,)).limits == pytest.approx((0.05 / 1.6, 0.2 * 1.6))
    wide = make_panel(curve, lines=(line,), shows_all_lines=True)
    assert wide.limits == pytest.approx((0.05 / 1.6, 1.6e4))


@pytest.mark.parametrize(("length", "columns"), [(10, 2), (40, 1)])
def test_long_labels_stand_in_one_column(length, columns, draw):
    """Two columns of them would leave no room to the panels."""
    curves = [make_curve(f"{i}{'x' * length}", [at(1.0)], i) for i in range(5)]
    drawn = draw(chart_model.Figure((make_panel(*curves),)))
    assert drawn.axes[0].get_legend()._ncols == columns


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
