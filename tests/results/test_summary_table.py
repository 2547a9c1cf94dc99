"""Tables: what is shown, what is left out, escaping, exact bytes."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest

from dperm_cli.results.records.row_facts import find_variants, name_of, number
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import DIAGNOSTIC, SUMMARY_NAMES, summarise
from dperm_cli.results.tables import summary_table
from dperm_cli.results.tables.chosen_table import TableRequest, build_table, choose_rows
from dperm_cli.results.tables.latex_table import write_latex
from tests.results.conftest import refused, study_rows, trial_rows


def format_terminal(rows):
    return summary_table.format_terminal(summary_table.build(rows))


def markdown(rows):
    return summary_table.markdown(summary_table.build(rows))


def latex(rows, columns=None):
    request = TableRequest(columns)
    return write_latex(build_table(choose_rows(rows, request), request))


def summed(*groups):
    return summarise(normalise(row) for group in groups for row in group)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0.0, "0"), (12345, "12345"), (10**9, "1e9"), (0.07503, "0.07503"),
        (1014.2, "1014"), (1.5e-7, "1.5e-7"), (123456.0, "1.235e5"), (0.0012345, "0.001234"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


def test_the_terminal_table_says_what_it_must(summary):
    text = format_terminal(summary)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 130
    head = text.splitlines()[0]
    for word in ("digits", "logistic", "l2_ball radius 1", "n 100", "p 2", "replace_one",
                 "delta 0.0001", "approx guarantee", "3 trials"):  # fmt: skip
        assert word in head
    assert "data-free floor: excess risk 80, per record 0.8" in text
    assert "optimum gap at most 1e-6" in text
    assert "not a release" in text
    assert "not for release" in text
    assert "upper bound: [BST14, Thm 2.4]." in text
    assert "unsupported: noisy_sgd (tight) on digits" in text
    assert "no pure guarantee" in text


def test_bound_factor_is_a_column_that_says_what_it_compares(summary):
    for write in (format_terminal, markdown):
        text = write(summary)
        assert "worst case" in text
        assert "4500" in text
    assert "bound_factor" in summary_table.csv_text(summary).splitlines()[0].split(",")
    without = [{**row, "bound_factor": None} for row in summary]
    assert "worst case" not in format_terminal(without)
    assert "factor" not in format_terminal(without)


def test_nominal_and_accounted_epsilon_stand_side_by_side(summary):
    line = next(line for line in format_terminal(summary).splitlines() if " paper " in line)
    assert line.split()[:4] == ["noisy_gd", "paper", "0.1", "0.02"]


def test_columns_line_up(summary):
    lines = format_terminal(summary).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("----"))
    ends = [match.end() for match in re.finditer("-+", lines[at])]
    assert len(ends) > 8
    for line in lines[at + 1 : at + 9]:
        assert all(line[end : end + 2].strip() == "" for end in ends)


def test_columns_without_values_are_left_out():
    text = format_terminal(summed(trial_rows(risks=(2.0,))))
    for word in ("band", "upper", "test", "unsafe", "simulation"):
        assert word not in text
    assert "1 trial" in text


def test_trials_with_fresh_noise_are_called_spent():
    text = format_terminal(summed(trial_rows(noise="secure")))
    assert "all of them are spent" in text
    assert "simulation" not in text


def test_unsafe_scaling_is_printed_in_the_row():
    text = format_terminal(summed(trial_rows(unsafe_scaling=True)))
    assert "YES" in text
    assert "NOT covered" in text


def test_each_problem_has_its_own_section():
    text = format_terminal(summed(trial_rows("a"), trial_rows("b", dataset="other", n=10)))
    assert "digits | logistic" in text
    assert "other | logistic" in text
    assert text.count("------") > 10


def test_settings_that_set_cells_apart_become_a_column():
    rows = [
        trial_rows(name, overrides={"mechanism": {"name": "noisy_gd", "average": average},
                                    "trials": 3, "dataset": "digits"})
        for name, average in (("a", "last"), ("b", "mean"))
    ]  # fmt: skip
    summary = summed(*rows)
    assert find_variants(summary) == [{"mechanism.average": "last"}, {"mechanism.average": "mean"}]
    assert "average" in format_terminal(summary)
    assert find_variants(summed(rows[0])) == [{}]


def test_fields_of_another_mechanism_do_not_tell_cells_apart():
    rows = summed(
        trial_rows("a", overrides={"mechanism": {"name": "x", "batch": 1}}, mechanism="x"),
        trial_rows("b", overrides={"mechanism": {"name": "y", "steps": 9}}, mechanism="y"),
    )
    assert find_variants(rows) == [{}, {}]


@pytest.mark.parametrize(
    ("mechanism", "overrides", "name"),
    [
        ("localization", {"mechanism": {"inner": {"name": "noisy_gd"}}}, "localization(noisy_gd)"),
        ("localization", {"mechanism": {"inner": "noisy_gd"}}, "localization(noisy_gd)"),
        ("a", {"mechanism": {"inner": {"name": "b", "inner": {"name": "c"}}}}, "a(b(c))"),
        ("exponential", {"sampler": {"name": "proximal"}}, "exponential/proximal"),
        ("exponential", {"sampler": {"name": "auto"}}, "exponential"),
        ("noisy_gd", {"mechanism": {"name": "noisy_gd"}}, "noisy_gd"),
    ],
)
def test_one_name_says_what_runs(mechanism, overrides, name):
    rows = summed(trial_rows(mechanism=mechanism, overrides=overrides))
    assert name_of(rows[0]) == name
    assert f"\n{name} " in format_terminal(rows)


def test_only_settings_that_differ_within_a_name_are_columns():
    keys = [
        {"mechanism": {"name": "m", "inner": {"name": "x", "steps": 1, "same": 0}}},
        {"mechanism": {"name": "m", "inner": {"name": "x", "steps": 2, "same": 0}}},
        {"mechanism": {"name": "m", "inner": {"name": "y", "width": 3}}},
        {"mechanism": {"name": "m", "inner": {"name": "y", "width": 3}}, "sampler": {"name": "s"}},
    ]
    rows = summed(*(trial_rows(str(i), overrides=o, mechanism="m") for i, o in enumerate(keys)))
    key = "mechanism.inner.steps"
    assert find_variants(rows) == [{key: "1"}, {key: "2"}, {}, {}]
    assert "default" not in format_terminal(rows)


def test_each_name_with_a_certificate_has_a_line_and_at_most_four():
    def text(many):
        rows = (
            trial_rows(f"{i}", mechanism=f"m{i}", certificate=f"proof {i}") for i in range(many)
        )
        return format_terminal(summed(trial_rows("none"), *rows))

    assert [line for line in text(2).splitlines() if "certificate" in line] == [
        "certificate of m0: proof 0.", "certificate of m1: proof 1.",
    ]  # fmt: skip
    assert text(6).count("certificate of") == 4
    assert "certificate of m3: proof 3 (and 2 more: see ledger.json)." in text(6)


def test_refusals_with_one_reason_share_a_line():
    text = format_terminal(summed([refused("a", epsilon=0.1)], [refused("b", epsilon=1.0)]))
    assert text.count("no pure guarantee") == 1
    assert "epsilon 0.1, 1:" in text


def test_csv_is_exact_and_without_diagnostics(summary):
    text = summary_table.csv_text(summary)
    assert "\r" not in text
    found = list(csv.DictReader(io.StringIO(text)))
    assert list(found[0]) == [name for name in SUMMARY_NAMES if name not in DIAGNOSTIC]
    assert not any(name.startswith("seconds") for name in found[0])
    assert [float(row["excess_risk_median"]) for row in found[:-1]] == [
        row["excess_risk_median"] for row in summary[:-1]
    ]
    assert found[-1]["excess_risk_median"] == ""


def test_tables_do_not_depend_on_running_times():
    def texts(seconds):
        rows = summed(study_rows(seconds=seconds, seconds_optimum=seconds))
        return [
            f(rows)
            for f in (
                summary_table.csv_text,
                format_terminal,
                markdown,
                latex,
            )
        ]

    assert texts(1.0) == texts(2.0)


def test_markdown_rows_have_one_width(summary):
    rows = [line for line in markdown(summary).splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 8
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


def test_latex_is_escaped_and_balanced():
    rows = summed(trial_rows(mechanism="a_b", preprocessing=r"50% & $x_1$ \ {y} ~^<>#"))
    text = latex(rows)
    assert r"a\_b" in text
    assert r"50\% \& \$x\_1\$ \textbackslash{} \{y\} \textasciitilde{}\textasciicircum{}" in text
    assert text.isascii()
    for name in ("toprule", "midrule", "bottomrule"):
        assert f"\\{name}" in text
    for name in ("table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    assert r"$1 \cdot 10^{9}$" in latex(summed(trial_rows(steps=10**9)), ("steps",))


def test_a_study_where_nothing_ran_still_has_a_table():
    rows = summed([refused("a")])
    assert "unsupported" in format_terminal(rows)
    assert "unsupported" in markdown(rows)
    assert "Unsupported" in latex(rows)


def test_numbers_that_are_not_finite_print_as_dashes():
    text = format_terminal(summed(trial_rows(risks=(math.nan, math.inf))))
    assert "nan" not in text.split("\n\n")[1]
    assert json.dumps(text)


def test_an_optimum_that_ran_out_of_time_is_told():
    found, rough = trial_rows("a", (1.0, 2.0)), trial_rows("b", (1.0, 2.0), optimum_gap=90.0)
    text = format_terminal(summed(found, rough))
    assert text.count("NO CERTIFIED OPTIMUM") == 1
    assert "(gap 90): the search ran out of time" in " ".join(text.split())
    assert "NO CERTIFIED OPTIMUM" not in format_terminal(summed(found))
    # the search stopped at the data-free point itself
    none = trial_rows("c", (-1.0,), optimum_gap=90.0, floor_excess_risk=0.0)
    assert "NO CERTIFIED OPTIMUM" in format_terminal(summed(none))
    sharp = trial_rows("d", (1e-9,), optimum_gap=1e-12, floor_excess_risk=0.0)
    assert "NO CERTIFIED OPTIMUM" not in format_terminal(summed(sharp))


def test_a_median_over_the_floor_is_named():
    good, bad = trial_rows("a", (1.0, 79.0, 90.0)), trial_rows("b", (81.0, 82.0), epsilon=0.1)
    text = format_terminal(summed(good, bad))
    assert "nothing was learnt: noisy_gd (tight) at epsilon 0.1." in text
    # a risk decides on the words of this line, and not on whether there is one
    assert "every median is better than the data-free floor" in format_terminal(summed(good))
    assert "nothing was learnt" not in format_terminal(summed(good))
    lower = trial_rows("b", (1.0, 2.0), epsilon=0.1)
    shown = [markdown(summed(good, rows)) for rows in (bad, lower)]
    assert shown[0] != shown[1]
    assert len(shown[0].splitlines()) == len(shown[1].splitlines())
    nowhere = trial_rows("a", (1.0,), floor_excess_risk=None)
    assert "nothing was learnt" not in format_terminal(summed(nowhere))
    kernels = [trial_rows(name, (81.0,), overrides={"kernel": {"name": name}})
               for name in ("rbf", "linear")]  # fmt: skip
    said = "noisy_gd (kernel rbf, tight) at epsilon 1; noisy_gd (kernel linear, tight) at epsilon 1"
    assert f"nothing was learnt: {said}." in format_terminal(summed(*kernels))


def test_secure_noise_and_a_declared_population_are_told():
    facts = {"noise": "secure", "arithmetic": "grid 2^-20", "relation": "add_remove"}
    rows = trial_rows(**facts, population=500, population_source="declared")
    text = format_terminal(summed(rows))
    assert "noise=secure: the system's generator, on grid 2^-20." in text
    assert "not for release" not in text
    assert "population 500 (declared)" in text
