"""The page of a study: offline, safe, the same twice, with the numbers of the tables."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
from html.parser import HTMLParser

import pytest

from dperm_cli.results.charts import chart_model
from dperm_cli.results.charts.curve_points import PointSelection, extend_row, points
from dperm_cli.results.charts.marks import MARKS
from dperm_cli.results.claims import experiment_tables, intervals
from dperm_cli.results.page import html_page, page_data, page_views
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.report import write_report
from dperm_cli.results.tables.summary_table import format_exact
from tests.results import html_study
from tests.results.conftest import stored, study_rows, trial_rows
from tests.results.html_study import EVIL, Adding, embedded, large, page, payload, rows_in

LIMIT = 6_000_000
VOID = {"meta", "link", "img", "br", "input"}


@pytest.fixture(scope="module")
def records():
    return large()


@pytest.fixture(scope="module")
def text(records):
    return page(records)


def test_equal_studies_give_equal_bytes_wherever_they_lie(tmp_path):
    pages = []
    for name, seconds in (("one", 0.5), ("two/deeper", 0.7)):
        stored(tmp_path / name, study_rows(seconds=seconds))
        found = write_report(tmp_path / name, figures=False, accountant=Adding())
        assert found.files[-1].endswith("report.html")
        pages.append((tmp_path / name / "report.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_page_can_be_left_out(tmp_path):
    stored(tmp_path, study_rows())
    write_report(tmp_path, figures=False, accountant=Adding(), page=False)
    assert not (tmp_path / "report.html").exists()


def test_a_damaged_record_is_named_without_the_folder_it_lies_in(tmp_path):
    store = stored(tmp_path, [*trial_rows("a"), *trial_rows("b")])
    store.path("b").write_bytes(b"PAR1")
    write_report(tmp_path, figures=False, accountant=Adding())
    text = (tmp_path / "report.html").read_text()
    assert embedded(text)["gaps"] == ["broken record, to be recomputed: records/b.parquet"]
    assert str(tmp_path) not in text


def test_every_number_of_table_csv_is_in_the_page(tmp_path):
    stored(tmp_path, study_rows())
    write_report(tmp_path, figures=False, accountant=Adding())
    made = embedded((tmp_path / "report.html").read_text())
    with open(tmp_path / "table.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 9
    mine = rows_in(made)
    assert [{name: format_exact(row[name]) for name in table[0]} for row in mine] == table


def test_packing_keeps_every_value_and_its_type():
    values = [1, 1.0, True, None, "1", 1, 1.0, True, None, "1", 1, 1.0, "1", [1], {"a": 2}]
    rows = [{"x": value, "same": 3} for value in values]
    packed = page_data.pack_rows(rows)
    assert "of" in packed["columns"]["x"]
    assert packed["columns"]["same"] == {"one": 3}
    back = html_study.unpack_rows(packed["columns"], packed["count"])
    assert [(type(row["x"]), row["x"]) for row in back] == [(type(v), v) for v in values]


def test_five_hundred_rows_fit(records, text):
    assert len(embedded(text)["rows"]["columns"]) > 40
    assert embedded(text)["rows"]["count"] == 501
    assert len(text.encode()) < LIMIT


def test_names_cannot_leave_the_data(records):
    made = {name: EVIL for name in ("dataset", "mechanism", "reason", "accountant", "overrides")}
    hostile = [{**row, **made} for row in records[:6]]
    text = page(hostile, study=EVIL, argv=[EVIL], versions={EVIL: EVIL}, git=EVIL)
    assert len(re.findall(r"<script", text)) == 2
    assert len(re.findall(r"</script", text)) == 2
    assert "<img" not in text
    assert "\u2028" not in text
    back = embedded(text)
    assert back["title"] == EVIL
    assert rows_in(back)[0]["dataset"] == EVIL
    assert back["provenance"]["argv"] == [EVIL]


def test_infinite_numbers_do_not_break_the_data():
    made = {"a": [math.inf, -math.inf, 1.0], "b": {"c": math.nan}}
    assert json.loads(page_data.encode_payload(made)) == {
        "a": ["inf", "-inf", 1.0],
        "b": {"c": "nan"},
    }


def test_nothing_is_loaded_and_nothing_can_be(text):
    body = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)
    assert set(re.findall(r"https?://[^\s\"'<>)]*", body)) == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r'(?:href|src)="([^"]*)"', body)) == {"data:,", "#main"}
    assert set(re.findall(r"url\(.", body)) == {"url(#"}
    for word in ("@import", "fetch(", "XMLHttpRequest", "WebSocket", "innerHTML", "eval(",
                 "outerHTML", "insertAdjacentHTML", "document.write", "import("):  # fmt: skip
        assert word not in body, word
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_the_markup_is_whole(text):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids, self.tags = [], [], []

        def handle_starttag(self, tag, attrs):
            self.tags.append(tag)
            self.ids += [value for name, value in attrs if name == "id"]
            if tag not in VOID:
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert len(set(reader.ids)) == len(reader.ids) > 4
    assert [reader.tags.count(tag) for tag in ("title", "h1", "main", "nav")] == [1, 1, 1, 1]


def test_axes_and_curves_of_a_sweep(records):
    made = payload(records)
    assert [axis["name"] for axis in made["axes"]] == ["epsilon", "n"]
    assert made["problems"] == [f"data{d}, logistic, l2_ball radius 1" for d in range(5)]
    epsilon, n = made["axes"]
    assert len(epsilon["curves"]) == 5 * 5 * 4
    assert len(n["curves"]) == 5 * 5 * 5
    # delta = 1/n^2 follows n, and dataset.n repeats it
    assert {tuple(curve["moves"]) for curve in n["curves"]} == {("delta",)}
    assert {tuple(curve["held"]) for curve in n["curves"]} == {("epsilon",)}
    assert {tuple(curve["held"]) for curve in epsilon["curves"]} == {("n", "delta")}
    rows = rows_in(made)
    for axis in made["axes"]:
        for curve in axis["curves"]:
            mine = [rows[i] for i in curve["rows"]]
            assert [row[axis["name"]] for row in mine] == curve["x"] == sorted(curve["x"])
            assert {row["mechanism"] for row in mine} == {curve["mechanism"]}
            assert len({row["dataset"] for row in mine}) == 1


def test_slopes_are_those_of_the_medians(records):
    made = payload(records)
    rows = [extend_row(row) for row in records]
    mine = [c for c in made["axes"][0]["curves"] if c["problem"] == 2 and c["held"]["n"] == 1000]
    curve = mine[0]
    for quantity, fit in (("excess_risk", "fit"), ("excess_risk_per_record", "fit_each")):
        chosen = PointSelection(quantity=quantity, axis="epsilon",
                        where={"dataset": "data2", "n": 1000, "mechanism": "noisy_gd"})  # fmt: skip
        ((_, theirs),) = points(rows, chosen).items()
        line = intervals.fit(theirs)
        assert curve["mechanism"] == "noisy_gd"
        assert curve[fit]["slope"] == pytest.approx(line.slope, rel=1e-12)
        assert curve[fit]["half"] == pytest.approx(line.half, rel=1e-9)
        assert (curve[fit]["used"], curve[fit]["of"]) == (line.count, 5)
    assert curve["fit"]["slope"] == pytest.approx(-1.0, abs=0.2)


def test_a_fit_leaves_saturated_points_out_and_says_so():
    rows = summarise(study_rows())
    made = page_views.curves(page_views.select_drawn(rows), "epsilon")
    assert [curve["calibration"] for curve in made] == ["tight", "paper"]
    assert (made[0]["fit"]["used"], made[0]["fit"]["of"]) == (3, 4)
    assert (made[1]["fit"]["used"], made[1]["fit"]["slope"]) == (2, None)


def test_no_slope_below_three_places():
    rows = summarise([*trial_rows("a", epsilon=0.1), *trial_rows("b", epsilon=1.0)])
    (curve,) = page_views.curves(page_views.select_drawn(rows), "epsilon")
    assert (curve["fit"], curve["fit_each"]) == (None, None)


def test_settings_of_a_mechanism_make_curves_and_those_of_data_problems():
    def config(**more):
        return json.dumps(
            {
                "mechanism": {"name": "noisy_gd", "average": more.get("average", "a")},
                "dataset": {"name": "digits", "labels": more.get("labels", "x")},
            }
        )

    records = [
        *trial_rows("a", overrides=config(), epsilon=0.1),
        *trial_rows("b", overrides=config(average="b"), epsilon=0.1),
        *trial_rows("c", overrides=config(labels="y"), epsilon=0.1),
        *trial_rows("d", overrides=config(), epsilon=1.0),
    ]  # fmt: skip
    found = page_views.select_drawn(summarise(records))
    made = page_views.curves(found, "epsilon")
    assert [(c["problem"], c["variant"], len(c["rows"])) for c in made] == [
        (0, "average a", 2), (0, "average b", 1), (1, "average a", 1),
    ]  # fmt: skip
    titles = page_views.name_problems(found)
    assert titles[0].endswith("dataset.labels x")
    assert titles[1].endswith("dataset.labels y")


def test_a_number_that_was_swept_in_a_mechanism_is_an_axis():
    """As in figures: also where the table has a column of the number that is meant."""

    def make(epsilon, steps):
        settings = {"mechanism": {"name": "noisy_gd", "steps": steps}}
        return trial_rows(f"{epsilon}-{steps}", epsilon=epsilon, steps=steps, overrides=settings)

    every = [row for epsilon in (0.1, 1.0) for steps in (5, 20, 80) for row in make(epsilon, steps)]
    found = page_views.select_drawn(summarise(every))
    assert page_views.list_axes(found) == ["epsilon", "mechanism.steps"]
    curves = page_views.curves(found, "mechanism.steps")
    assert [one["x"] for one in curves] == [[5, 20, 80]] * 2
    assert [one["variant"] for one in page_views.curves(found, "epsilon")] == [
        "steps 5", "steps 20", "steps 80"
    ]  # fmt: skip
    alone = page_views.select_drawn(summarise(every[-6:]))
    assert page_views.list_axes(alone) == ["mechanism.steps"]


def test_a_problem_is_called_by_its_kernel():
    config = json.dumps({"kernel": {"name": "rbf"}})
    found = page_views.select_drawn(
        summarise([*trial_rows("a", overrides=config), *trial_rows("b")])
    )
    assert page_views.name_problems(found) == [
        "digits, logistic, kernel rbf, l2_ball radius 1", "digits, logistic, l2_ball radius 1",
    ]  # fmt: skip


def test_ranking_by_median_and_who_has_no_rank():
    def cell(name, level, **more):
        return trial_rows(name, (level, 1.1 * level, 1.2 * level), mechanism=name, **more)

    records = [
        *cell("worse", 3.0), *cell("best", 1.0), *cell("equal", 3.0),
        *cell("open", 0.0, guarantee="none"), *cell("loose", 0.5, epsilon_accounted=1.5),
    ]  # fmt: skip
    ((found),) = page_views.rank_mechanisms(page_views.select_drawn(summarise(records)))
    ranks = {who["mechanism"]: rank for who, (rank,) in
             zip(found["contenders"], found["ranks"], strict=True)}  # fmt: skip
    assert ranks == {"worse": 2, "best": 1, "equal": 2, "open": None, "loose": None}
    assert found["epsilons"] == [1.0]


def test_ranking_has_one_matrix_per_problem_and_setting(records):
    made = payload(records)
    assert len(made["ranking"]) == 5 * 4
    rows = rows_in(made)
    for found in made["ranking"]:
        for j, epsilon in enumerate(found["epsilons"]):
            column = [(line[j], rank[j]) for line, rank in
                      zip(found["rows"], found["ranks"], strict=True)]  # fmt: skip
            risks = [rows[i]["excess_risk_median"] for i, _ in sorted(column, key=lambda c: c[1])]
            assert risks == sorted(risks)
            assert {rows[i]["epsilon"] for i, _ in column} == {epsilon}
            assert {rows[i]["n"] for i, _ in column} == {found["held"]["n"]}


def test_the_ledger_of_the_page_is_the_ledger(records):
    made = payload(records)
    released = html_study.ledger.build_ledger(records, Adding())
    back = made["ledger"]
    mine = html_study.unpack_rows(back["releases"]["columns"], back["releases"]["count"])
    assert [(e["cell"], e["statement"], e["trials"]) for e in mine] == [
        (e["cell"], e["statement"], e["trials"]) for e in released["releases"]
    ]
    assert [e["epsilon_accounted"] for e in mine] == [
        e["accounted"]["epsilon"] for e in released["releases"]
    ]
    assert all(event["words"] for entry in mine for event in entry["events"])
    assert (back["totals"], back["warnings"]) == (released["totals"], released["warnings"])
    assert back["not_released"][0]["reason"] == "pure is not offered"


def test_faults_of_the_ledger_are_told(tmp_path):
    class Doubting(Adding):
        def fault(self, row):
            return "says too little"

    stored(tmp_path, study_rows())
    write_report(tmp_path, figures=False, accountant=Doubting())
    made = embedded((tmp_path / "report.html").read_text())
    assert made["ledger"] is None
    assert made["faults"][0] == "record tight0: says too little"


@pytest.mark.parametrize("statistic", ["median", "q95"])
def test_a_table_for_people_names_the_statistic_that_is_drawn(records, statistic):
    rows = [row for row in records if row["dataset"] == "data0" and row["epsilon"] == 1.0]
    about = html_study.experiment(rows)
    about["plot"] = [{**panel, "statistic": statistic} for panel in about["plot"]]
    heads = next(
        line
        for line in experiment_tables.format_tables(rows, about)["terminal"].splitlines()
        if "curve" in line
    )
    assert heads.split().count(statistic) == 1 + (statistic != "median" and "saturated" in heads)
    assert "value" not in heads


def test_an_experiment_shows_its_panels_table_and_verdicts(records):
    rows = [row for row in records if row["dataset"] == "data0" and row["epsilon"] == 1.0]
    about = html_study.experiment(rows)
    text = experiment_tables.format_tables(rows, about)["csv"]
    table = list(csv.DictReader(io.StringIO(text)))
    finding = {"curve": "noisy_gd", "holds": True, "measured": "slope 0.1"}
    verdict = {"id": "c", "text": "falls", "verdict": "confirmed", "allowed": "tolerance 0.15",
               "findings": [finding]}  # fmt: skip
    found = {"experiment": "mine", "size": "small", "claims": [verdict]}
    made = page_data.build_payload(summarise(rows), rows, {}, about, text, None, claims=found)
    (figure,) = made["figures"]
    assert (made["title"], figure["title"], figure["axis"]) == ("mine", "every n", "n")
    mine = [
        (
            curve["label"],
            format_exact(p["x"]),
            format_exact(p["value"]),
            format_exact(p["low"]),
            format_exact(p["upper"]),
            format_exact(curve["fit"]["slope"]),
        )
        for curve in figure["curves"]
        for p in curve["points"]
    ]
    assert mine == [(r["curve"], r["x"], r["value"], r["q05"], r["bound_upper"], r["slope"])
                    for r in table]  # fmt: skip
    names, lines = made["table"]["names"], made["table"]["lines"]
    assert [dict(zip(names, line, strict=True)) for line in lines] == table
    assert made["claims"][0]["findings"][0]["measured"] == "slope 0.1"
    assert made["claims"][0]["allowed"] == "tolerance 0.15"
    cells = rows_in(made)
    for curve in figure["curves"]:
        for p in curve["points"]:
            assert [cells[i]["n"] for i in p["rows"]] == [p["x"]]
            assert {cells[i]["mechanism"] for i in p["rows"]} == {curve["label"]}


def test_points_per_record_are_those_of_the_sum_over_n(records):
    rows = [row for row in records if row["dataset"] == "data0" and row["epsilon"] == 1.0]
    about = html_study.experiment(rows)
    csv_ = experiment_tables.format_tables(rows, about)["csv"]
    (figure,) = page_data.build_payload(summarise(rows), rows, {}, about, csv_, None)["figures"]
    for total, each in zip(figure["curves"], figure["each"]["curves"], strict=True):
        for a, b in zip(total["points"], each["points"], strict=True):
            for name in ("value", "low", "high", "floor", "upper"):
                assert b[name] == pytest.approx(a[name] / a["x"], rel=1e-12)
        assert each["fit"]["slope"] == pytest.approx(total["fit"]["slope"] - 1.0, abs=1e-9)


@pytest.mark.parametrize(
    "found",
    [None, [], {"experiment": "mine", "size": "full", "claims": []}, {"experiment": "other"},
     {"experiment": "mine", "size": "small", "claims": [3, {"findings": [1, {}]}]},
     {"experiment": "mine", "size": "small", "claims": 7}],
)  # fmt: skip
def test_verdicts_of_another_run_or_of_nonsense_stay_out(records, found):
    about = html_study.experiment(records[:3])
    made = page_data.build_payload(summarise(records[:3]), records[:3], {}, about, "a\n1\n", None,
                             claims=found)  # fmt: skip
    assert all(claim["id"] == "" for claim in made["claims"])


def test_a_study_without_a_single_result_has_a_page(tmp_path):
    rows = [row for row in study_rows() if row["status"] != "ok"]
    stored(tmp_path, rows)
    write_report(tmp_path, figures=False, accountant=Adding())
    made = embedded((tmp_path / "report.html").read_text())
    assert (made["axes"], made["ranking"], made["rows"]["count"]) == ([], [], 1)


def test_the_page_says_what_choosing_costs_and_what_the_table_notes(text):
    assert "costs privacy" in text
    assert any("not for release" in note for note in embedded(text)["notes"])


def test_colours_marks_and_fills_are_those_of_the_figures(text):
    """The model has them, and neither the style nor the scripts have a second list."""
    chart = embedded(text)["chart"]
    assert chart["marks"] == [mark.path for mark in MARKS]
    assert chart["fills"] == list(chart_model.FILLS)
    for i, hue in enumerate(chart_model.HUES):
        light, *dark = re.findall(rf"--h{i}: (#\w+)", text)
        assert (light, len(dark)) == (hue, 1)
    scripts = "".join(map(html_page.read_asset, html_page.SCRIPTS))
    assert not [hue for hue in chart_model.HUES if hue.lower() in scripts.lower()]
    assert len(re.findall(r"[\"']M-?[\d.]+ -?[\d.]+L", scripts)) == 0


def test_the_assets_are_there_and_small():
    for name in ("page.html", "page.css", *html_page.SCRIPTS):
        assert len(html_page.read_asset(name).splitlines()) < 500


def test_a_merged_study_names_its_sources(records):
    origin = {"folder": "a", "cells": 3, "argv": ["-m", "epsilon=1"]}
    told = embedded(page(records[:3], merged=[origin, 7]))["provenance"]["merged"]
    assert told == ["a: 3 cells, -m epsilon=1"]
    assert embedded(page(records[:3], merged=3))["provenance"]["merged"] == []
