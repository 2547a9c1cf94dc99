"""Widths and liftings as cells of an experiment: rows that hold no records."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.results.charts.curve_points import extend_row
from dperm_cli.results.claims.claims import CONFIRMED
from dperm_cli.runner.cells import geometry_rows
from dperm_cli.runner.verbs import reproduce_all
from dperm_cli.sets.l1_ball import L1Ball

LIFT = {"constraint": "l1_ball", "p": 40, "m": 12, "spread": 2, "trials": 3, "seed": 1}


def test_a_width_is_within_three_errors_and_one_that_is_off_would_not_be():
    (row,) = geometry_rows.make_rows({"constraint": "l1_ball", "p": 30})
    found = row["settings"]
    assert found["width"] == pytest.approx(L1Ball(1.0, 30).width()[0])
    assert found["errors_off"] <= 3.0
    assert abs(found["width_simulated"] - 1.05 * found["width"]) > 3.0 * found["width_error"]


def test_a_lifting_has_a_row_a_matrix_and_the_limit_of_the_corollary():
    rows = geometry_rows.make_rows(LIFT)
    assert [row["trial"] for row in rows] == [0, 1, 2]
    assert {row["status"] for row in rows} == {"planned"}
    limit = (2.0 * L1Ball(1.0, 40).width()[0] + 2.0) / math.sqrt(12)
    for row in rows:
        assert row["settings"]["lifting_limit"] == pytest.approx(min(limit, 2.0))
        assert 0.0 <= row["settings"]["lifting_error"] <= row["settings"]["lifting_limit"]
        assert row["settings"]["residual"] <= 1e-8


def test_the_same_point_comes_back_where_nothing_is_lost_and_not_where_much_is():
    same = geometry_rows.make_rows({**LIFT, "m": 40})
    assert max(row["settings"]["lifting_error"] for row in same) <= 1e-12
    lost = geometry_rows.make_rows({**LIFT, "m": 4, "spread": 8})
    errors = np.sort([row["settings"]["lifting_error"] for row in lost])
    assert errors[0] >= 0.1
    # another matrix for every row: these errors are no rounding, and differ by far more than it
    assert np.min(np.diff(errors)) >= 1e-3


def test_a_face_point_has_gauge_one():
    theta = geometry_rows.draw_face_point(L1Ball(2.0, 20), 5, 0, 0)
    assert np.sum(np.abs(theta)) == pytest.approx(2.0)
    assert np.count_nonzero(theta) == 5


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"constraint": "l1_ball", "p": 30, "n": 3}, "geometry.n"),
        ({"constraint": "l2_ball", "p": 30, "m": 3}, "geometry.constraint"),
        ({"constraint": "l1_ball", "p": 30, "m": 31}, "geometry.m"),
        ({"constraint": "no_such", "p": 30}, "geometry.constraint"),
    ],
)
def test_bad_cells_are_named(settings, key):
    with pytest.raises(InputError) as caught:
        geometry_rows.make_rows(settings)
    assert caught.value.key == key


def test_what_a_plan_says_can_be_named_in_claims():
    row = {"settings": json.dumps({"m": 7, "inner": {"noise": "gamma"}}), "overrides": "{}"}
    found = extend_row({"status": "ok", **row})
    assert (found["settings.m"], found["settings.inner.noise"]) == (7, "gamma")
    assert found["settings"] == row["settings"]


def test_an_experiment_of_this_verb_runs_is_judged_and_is_looked_up(tmp_path, capsys):
    out = tmp_path / "out"
    mine = tmp_path / "mine" / "experiment"
    mine.mkdir(parents=True)
    (mine / "widths.yaml").write_text(
        "name: widths\npaper: '[KJ16]'\ntext: t\nverb: geometry\n"
        "parts: {w: {axes: {constraint: [l1_ball, box], p: [5, 20]}}}\n"
        "plot: [{part: w, x: p, y: settings.errors_off, curve: [constraint]}]\n"
        "claims: [{id: w, text: t, theorem: x, kind: value, part: w, axis: p, expect: 3,\n"
        "  quantity: settings.errors_off, group: [constraint], sense: at_most}]\n"
    )
    words = ["widths", "--config-dir", str(tmp_path / "mine"), f"out={out}"]
    assert reproduce_all.reproduce_experiments(words) == 0
    assert CONFIRMED in capsys.readouterr().out
    before = {p.name: p.stat().st_mtime_ns for p in (out / "records").iterdir()}
    assert reproduce_all.reproduce_experiments(words) == 0
    assert {p.name: p.stat().st_mtime_ns for p in (out / "records").iterdir()} == before
