"""Data sets as colours, panels or places of an axis: what follows from them parts nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dperm_cli.results.charts.figure_drawing import draw_canvas
from dperm_cli.results.charts.study_figure import build_figure
from dperm_cli.results.charts.study_view import StudyView
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from tests.results.conftest import trial_rows

SETS = {"digits": (100, 2, 80.0), "cells": (400, 9, 20.0), "flats": (900, 4, 300.0)}
FLOOR = "data-free floor"


@pytest.fixture
def study():
    """Two mechanisms at two epsilons on three data sets of other sizes and floors."""
    rows = []
    for name, mechanism, epsilon in itertools.product(SETS, ("noisy_gd", "newton"), (1.0, 10.0)):
        n, p, floor = SETS[name]
        rows += trial_rows(
            f"{name}-{mechanism}-{epsilon}", (0.6 * floor / epsilon,), dataset=name, n=n, p=p,
            mechanism=mechanism, epsilon=epsilon, delta=1 / n**2, floor_excess_risk=floor,
            preprocessing=f"{p} columns", data_fingerprint=name,
            overrides={"mechanism": {"name": mechanism}, "dataset": {"name": name}},
        )  # fmt: skip
    return summarise(normalise(row) for row in rows)


def build(study, **asked):
    figure, note = build_figure(study, StudyView(**asked))
    assert note is None
    assert figure is not None
    return figure.panels


def test_a_colour_for_each_data_set_and_a_panel_for_each_mechanism(study):
    panels = build(study, hue="dataset", facet="mechanism")
    assert [panel.title for panel in panels] == ["noisy_gd", "newton"]
    for panel in panels:
        assert sorted(curve.name for curve in panel.curves) == sorted(SETS)


def test_each_data_set_of_a_panel_has_its_floor_in_its_colour(study):
    for panel in build(study, hue="dataset", facet="mechanism", show=("floor",)):
        floors = {line.mechanism: line for line in panel.lines}
        assert {name: set(line.ys) for name, line in floors.items()} == {
            name: {floor} for name, (_, _, floor) in SETS.items()
        }
        assert len({line.color for line in panel.lines}) == len(SETS)
        looks = {curve.name: curve.hue for curve in panel.curves}
        assert {name: line.color for name, line in floors.items()} == looks


def test_one_data_set_keeps_its_grey_floor(study):
    rows = [row for row in study if row["dataset"] == "cells"]
    (panel,) = build(rows, show=("floor",))
    (line,) = panel.lines
    assert line.mechanism is None
    assert line.color == line.style.color


def test_data_sets_on_an_axis_each_have_a_floor_at_their_place(study):
    panels = build(study, x="dataset", facet="epsilon", show=("floor",))
    assert len(panels) == 2
    figure, _ = build_figure(study, StudyView(x="dataset", facet="epsilon", show=("floor",)))
    assert figure is not None
    axes = [place for place in draw_canvas(figure).axes if place.get_title(loc="left")]
    assert len(axes) == 2
    for place in axes:
        (drawn,) = [line for line in place.lines if str(line.get_label()).startswith(FLOOR)]
        xs, ys = drawn.get_xdata(), drawn.get_ydata()
        assert set(ys) == {floor for _, _, floor in SETS.values()}
        assert np.isnan(xs[2::3]).all()
        assert np.all((xs[1::3] - xs[::3] > 0) & (xs[1::3] - xs[::3] <= 1.0))
