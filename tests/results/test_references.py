"""Baseline, optimum and floor stand together beside a metric, and what looks good is judged."""

from __future__ import annotations

import pytest

from dperm_cli.results.charts.study_figure import build_figure
from dperm_cli.results.claims import experiment_tables
from dperm_cli.results.records.aggregate import aggregate_rows
from dperm_cli.results.records.references import find_unbeaten_baseline, warn_of_baselines
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables import summary_table
from dperm_cli.results.tables.chosen_table import TableRequest, build_table, choose_rows
from dperm_cli.results.tables.latex_table import write_latex
from dperm_cli.results.tables.text_tables import write_html, write_markdown, write_terminal
from tests.results import html_study
from tests.results.conftest import trial_rows

KNOWN = {
    "metric": "r2", "test_metric": 0.2, "baseline": "mean", "baseline_metric": -0.013,
    "optimum_metric": 0.37, "floor_metric": -0.052, "floor_excess_risk": 80.0,
}  # fmt: skip
LINE = "test r2: non-private optimum 0.37, baseline (mean) -0.013, data-free floor -0.052"


def summed(*groups):
    return summarise(normalise(row) for group in groups for row in group)


def rows_with(cell="a", **facts):
    return trial_rows(cell, risks=(2.0, 3.0), **(KNOWN | facts))


def chosen(rows):
    request = TableRequest()
    return build_table(choose_rows(rows, request), request)


def test_every_table_has_all_three_beside_a_metric():
    rows = summed(rows_with())
    table = summary_table.build(rows)
    written = [summary_table.format_terminal(table), write_terminal(chosen(rows), None),
               summary_table.markdown(table), write_markdown(chosen(rows)),
               write_html(chosen(rows)), write_latex(chosen(rows))]  # fmt: skip
    for text in written:
        plain = text.replace("\\allowbreak{}", "").replace("Test r2", "test r2")
        assert LINE in " ".join(plain.split())
    head, line = summary_table.csv_text(rows).splitlines()
    cells = dict(zip(head.split(","), line.split(","), strict=False))
    assert [cells["metric"], cells["baseline"]] == ["r2", "mean"]
    assert [cells["baseline_metric"], cells["optimum_metric"]] == ["-0.013", "0.37"]
    assert cells["floor_metric"] == "-0.052"


@pytest.mark.parametrize(("quantity", "told"), [("test_metric", True), ("excess_risk", False)])
def test_the_table_of_an_experiment_says_them_where_it_shows_a_metric(quantity, told):
    rows = [normalise(row) for group in (rows_with("a"), rows_with("b", ridge=0.5, n=900))
            for row in group]  # fmt: skip
    about = html_study.experiment(rows)
    about |= {"plot": [{**panel, "y": quantity} for panel in about["plot"]], "table": []}
    note = f"{rows[0]['dataset']}, {rows[0]['loss']}, l2_ball radius 1: {LINE}"
    text = " ".join(experiment_tables.format_tables(rows, about)["terminal"].split())
    notes = [note for note, _ in experiment_tables.choose_table(rows, about).remarks]
    assert (note in text) is (note in notes) is told
    assert (note.replace(": test", ", ridge 0.5: test") in text) is told


def test_several_problems_each_have_their_own():
    rows = summed(rows_with("a"), rows_with("b", dataset="other", optimum_metric=0.5))
    for text in (summary_table.format_terminal(summary_table.build(rows)),
                 write_terminal(chosen(rows), 60), write_markdown(chosen(rows))):  # fmt: skip
        flat = " ".join(text.split())
        assert "non-private optimum 0.37" in flat
        assert "non-private optimum 0.5" in flat


def test_columns_hold_them_where_rows_of_a_problem_differ():
    rows = summed(rows_with("a"), rows_with("b", baseline_metric=-0.2, data_fingerprint="f"))
    text = summary_table.format_terminal(summary_table.build(rows))
    assert "non-private optimum" not in text
    assert "-0.200" in text
    assert "-0.013" in text


def test_the_caption_of_a_figure_says_them():
    figure, _ = build_figure(summed(rows_with("a"), rows_with("b", epsilon=1.0)))
    assert figure is not None
    assert f"{LINE[0].upper()}{LINE[1:]}." in figure.notes


@pytest.mark.parametrize(
    ("metric", "value", "baseline", "expected"),
    [
        ("r2", -0.9, -0.01, "mean"), ("r2", 0.1, -0.01, None), ("accuracy", 0.6, 0.6, "mean"),
        ("mean_distance", 0.3, 0.4, None), ("mean_distance", 0.5, 0.4, "mean"),
        ("residual_norm", 3.0, 2.0, "mean"), ("r2", None, -0.01, None), ("r2", 0.1, None, None),
    ],
)  # fmt: skip
def test_no_better_than_a_constant(metric, value, baseline, expected):
    facts = {"metric": metric, "test_metric": value, "train_metric": None}
    row = summed(rows_with(**facts, baseline_metric=baseline))[0]
    assert row["no_better_than"] == expected


def test_without_held_out_records_the_training_metric_is_judged():
    row = summed(rows_with(test_metric=None, train_metric=-0.5))[0]
    assert row["no_better_than"] == "mean"


def test_a_success_that_is_none_is_said_in_row_note_and_warning():
    rows = summed(rows_with("a", test_metric=-0.9), rows_with("b", test_metric=0.3, epsilon=1.0))
    assert [row["no_better_than"] for row in rows] == ["mean", None]
    (line,) = warn_of_baselines(rows)
    assert "test r2 -0.9 is no better than the mean (-0.013)" in line
    assert "\n" not in line
    table = summary_table.format_terminal(summary_table.build(rows))
    assert "no better than the mean, whatever the excess risk says: noisy_gd (tight)" in table
    better = summary_table.format_terminal(summary_table.build(rows[1:]))
    assert "every metric is better than that of the mean" in better
    assert warn_of_baselines(rows[1:]) == []


def test_what_looks_good_is_told_first_and_why():
    """A risk above the floor does not look good, and is one of those that are counted."""
    rows = summed(rows_with("a", test_metric=-0.9, floor_excess_risk=1.0, epsilon=0.5),
                  rows_with("b", test_metric=-0.9))  # fmt: skip
    (line,) = warn_of_baselines(rows)
    assert line.startswith("noisy_gd on digits at epsilon 1: ")
    assert line.endswith("though its excess risk is below the data-free floor (and 1 more)")
    (line,) = warn_of_baselines(rows[:1])
    assert line.endswith("is no better than the mean (-0.013)")


def test_where_the_optimum_is_no_better_either_the_warning_says_so():
    """A median on a simplex: no noise is to blame for what the set does not allow."""
    facts = {"metric": "mean_distance", "test_metric": 3.5, "baseline_metric": 0.5}
    (line,) = warn_of_baselines(summed(rows_with(**facts, optimum_metric=3.4)))
    assert "nor is the non-private optimum (3.4)" in line
    (line,) = warn_of_baselines(summed(rows_with(**facts, optimum_metric=0.4)))
    assert "optimum" not in line


def test_a_release_says_nothing_more_about_the_records():
    rows = summed(rows_with(test_metric=-0.9, noise="secure"))
    assert rows[0]["no_better_than"] is None
    assert warn_of_baselines(rows) == []
    text = summary_table.format_terminal(summary_table.build(rows))
    assert "no better than the mean" not in text
    assert "every metric" not in text


def test_joined_seeds_are_judged_by_their_median():
    groups = [rows_with(str(seed), seed=seed, test_metric=value)
              for seed, value in enumerate((-0.9, 0.2, 0.3))]  # fmt: skip
    (joined,) = aggregate_rows(summed(*groups), ["seed"])
    assert joined["test_metric"] == 0.2
    assert joined["no_better_than"] is None
    assert find_unbeaten_baseline(joined | {"test_metric": -1.0}) == "mean"
