"""Nothing in a figure lies on something else, and nothing leaves it, at the width of a column."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import pytest
from matplotlib.legend import Legend
from matplotlib.text import Text

from dperm_cli.results.charts import figure_drawing
from dperm_cli.results.charts.chart_model import Axis, Curve, Figure, Panel
from dperm_cli.results.charts.curve_points import Point
from dperm_cli.results.charts.study_figure import plot_study
from dperm_cli.results.charts.study_view import StudyView
from dperm_cli.results.charts.text_fitting import join_numbers, measure, wrap
from dperm_cli.results.charts.themes import THEMES
from dperm_cli.results.charts.tick_places import choose_ticks
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from tests.results.conftest import study_rows, trial_rows

LONG = "a_very_long_name_of_a_mechanism(that_contains_another/with_a_sampler)"
SIZES = ("single", "double", pytest.param("slide", marks=pytest.mark.slow))
EVERYTHING = ("floor", "bounds", "orders", "calibration")


def make_rows(panels, curves, epsilons=(0.01, 0.1, 1.0, 10.0, 100.0), long=False):
    """A study of some problems and mechanisms, with names that fit nowhere where ``long``."""
    rows = []
    for i, j, epsilon in itertools.product(range(panels), range(curves), epsilons):
        name = f"{LONG if long else 'mechanism'}_{j}"
        rows += trial_rows(
            f"{i}-{j}-{epsilon}",
            tuple((j + 1) * risk / epsilon for risk in (1.0, 2.0, 3.0)),
            dataset=f"{'a data set of somebody with a long name ' * long}set_{i}",
            mechanism=name,
            epsilon=epsilon,
            overrides={"mechanism": {"name": name}},
        )
    return summarise(normalise(row) for row in rows)


def find_faults(drawn):
    """What overlaps or leaves the figure, in words."""
    drawn.canvas.draw()
    write, page = drawn.canvas.get_renderer(), drawn.bbox
    hidden = set()
    for axes in drawn.axes:
        sides = ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim()))
        for side, limits in sides:
            for tick in side.get_major_ticks():
                if not min(limits) <= tick.get_loc() <= max(limits):
                    hidden.add(id(tick.label1))
    texts = [text for text in drawn.findobj(Text) if text.get_text().strip()]
    texts = [text for text in texts if text.get_visible() and id(text) not in hidden]
    boxes = [(text.get_text(), text.get_window_extent(write)) for text in texts]
    legends = [(legend, legend.get_window_extent(write)) for legend in drawn.findobj(Legend)]
    frames = [(axes, axes.get_window_extent(write)) for axes in drawn.axes]
    faults = [
        f"{text!r} leaves the page"
        for text, box in boxes
        if min(box.x0, box.y0) < 0 or box.x1 > page.x1 or box.y1 > page.y1
    ]
    for (one, first), (two, second) in itertools.combinations(boxes, 2):
        if is_overlap(first, second):
            faults.append(f"{one!r} lies on {two!r}")
    for (_, first), (_, second) in itertools.product(legends, frames):
        if is_overlap(first, second):
            faults.append("a legend lies on a panel")
    faults += [f"{text.get_text()!r} is small" for text in texts if text.get_fontsize() < 7.0]
    return faults


def is_overlap(first, second):
    wide = min(first.x1, second.x1) - max(first.x0, second.x0)
    tall = min(first.y1, second.y1) - max(first.y0, second.y0)
    return wide > 0.5 and tall > 0.5


@pytest.mark.in_turn
@pytest.mark.parametrize("theme", SIZES)
@pytest.mark.parametrize(
    ("panels", "curves", "long"),
    [(1, 1, False), (1, 24, True), (2, 3, True), (4, 3, False), (6, 24, True),
     *(pytest.param(*found, marks=pytest.mark.slow)
       for found in ((3, 2, False), (5, 2, True), (6, 8, False)))],
)  # fmt: skip
def test_nothing_overlaps(theme, panels, curves, long):
    drawn = plot_study(make_rows(panels, curves, long=long), StudyView(theme=theme))
    assert drawn.get_figwidth() == pytest.approx(THEMES[theme].width)
    assert len(drawn.axes) >= panels
    assert find_faults(drawn) == []


@pytest.mark.in_turn
@pytest.mark.parametrize("theme", SIZES)
@pytest.mark.parametrize("epsilons", [(1.0,), (1.0, 1.1), tuple(2.0**k for k in range(11))])
def test_any_number_of_places_on_the_axis(theme, epsilons):
    for curves, long in ((3, False), (9, True)):
        rows = make_rows(1, curves, epsilons, long)
        assert find_faults(plot_study(rows, StudyView(theme=theme))) == []


@pytest.mark.parametrize("theme", SIZES)
def test_all_lines_at_once(theme):
    rows = summarise(normalise(row) for row in study_rows())
    drawn = plot_study(rows, StudyView(theme=theme, show=EVERYTHING))
    assert find_faults(drawn) == []


@pytest.mark.in_turn
@pytest.mark.parametrize("theme", SIZES)
@pytest.mark.parametrize("count", [1, 4, 17])
def test_panels_with_legends_of_their_own(theme, count):
    points = tuple(Point(x, x, x / 2, 2 * x, 0.0, 4) for x in (1.0, 2.0, 4.0))
    curves = tuple(Curve(f"curve {i} with a rather long label", points, i, slope="slope 1.00 ± 0.1")
                   for i in range(3))  # fmt: skip
    panels = tuple(
        Panel(f"a panel with a title that needs lines {i}", Axis("n"), Axis(f"risk {i}"), curves)
        for i in range(count)
    )
    drawn = figure_drawing.draw_canvas(Figure(panels, "many panels", theme=theme))
    assert len(drawn.legends) == count
    sizes = {tuple(round(x, 3) for x in axes.get_window_extent().size) for axes in drawn.axes}
    assert len(sizes) == 1
    assert find_faults(drawn) == []


@pytest.mark.parametrize("theme", SIZES)
def test_a_long_name_of_both_axes_of_all_panels(theme):
    points = tuple(Point(x, x, x / 2, 2 * x, 0.0, 4) for x in (1.0, 2.0, 4.0))
    label = "95 % quantile of the\nexcess risk (sum over the records of all data sets together)"
    panel = Panel("a panel", Axis("number of records n"), Axis(label), (Curve("a", points),))
    figure = Figure((panel, panel), "two panels", shared_legend=True, theme=theme)
    assert find_faults(figure_drawing.draw_canvas(figure)) == []


@pytest.mark.parametrize("name", [LONG, "x" * 300, "one two three " * 20, "$a_b^{c}$"])
def test_words_are_broken_to_their_room(name):
    lines = wrap(name, 60.0, 7.0)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert all(measure(line, 7.0) <= 60.0 for line in lines)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [("diabetes, n = 456, ridge = 0.1", ("n = 456,", "ridge = 0.1")),
     ("noisy_gd: slope 0.52 ± 0.04", ("0.52 ± 0.04",)),
     ("number of records n", ("records n",)),
     ("5 to 95 % over 20 trials", ("95 %", "20 trials")),
     ("bounds of the set >= 1 at epsilon < 3", ("set >= 1", "epsilon < 3"))],
)  # fmt: skip
def test_a_number_stays_with_its_name_and_its_unit(text, pieces):
    """Whatever the room, as long as it holds the piece, no line ends within it."""
    for piece in pieces:
        for room in range(int(measure(piece, 7.0)) + 1, 200):
            assert any(piece in line for line in wrap(text, room, 7.0)), room


@pytest.mark.parametrize("upright", [True, False])
@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize(("low", "high"), [(1.0, 1.3), (0.1, 100.0), (1e-9, 1e9), (3.0, 7.0)])
def test_an_axis_has_two_numbers_or_more(low, high, scale, upright):
    found = choose_ticks(low, high, scale, 120.0, 7.0, upright)
    assert len(found) >= 2
    room = 0.001 * (high - low)
    assert all(low - room <= place <= high + room for place, _ in found)


def test_a_crowded_axis_keeps_its_last_value():
    values = [2.0**k for k in range(1, 9)]
    found = [place for place, _ in choose_ticks(2.0, 256.0, "log", 80.0, 7.0, False, values)]
    assert found[-1] == 256.0
    assert 1 < len(found) < 8
    assert len({b / a for a, b in itertools.pairwise(found)}) == 1


def test_the_settings_of_the_user_stay():
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 20.0, "text.usetex": True, "figure.dpi": 33.0}):
        drawn = plot_study(make_rows(1, 2))
        assert mpl.rcParams["font.size"] == 20.0
        sizes = {text.get_fontsize() for text in drawn.findobj(Text)}
        assert max(sizes) < 10.0
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("noisy_gd, epsilon 0.1", ["epsilon 0.1"]),
        ("epsilon 10", ["epsilon 10"]),
        ("noisy_gd, steps 50, batch_size 32, paper", ["steps 50,", "batch_size 32,"]),
        ("a release at epsilon 1 and below", ["epsilon 1"]),
        ("digits, delta 1e-6 (delta 0)", ["delta 1e-6"]),
    ],
)
def test_no_line_of_a_legend_ends_between_a_setting_and_its_number(text, pieces):
    for room in range(46, 200):  # points: each piece has room
        lines = wrap(text, float(room), 7.0)
        assert " ".join(lines).split() == text.split()
        for piece in pieces:
            if measure(piece, 7.0) <= room:
                assert any(piece in line for line in lines), (room, lines)


def test_other_words_before_a_number_stay_apart():
    words = ["each", "over", "20", "trials,", "the", "first", "6", "of", "9", "problems"]
    assert join_numbers(words) == ["each", "over", "20 trials,", "the", "first", "6", "of",
                                   "9 problems"]  # fmt: skip
