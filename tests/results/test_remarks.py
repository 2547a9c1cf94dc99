"""Remarks on weak guarantees: in the row, in the ledger, and from public numbers alone."""

from __future__ import annotations

import csv
import io

import pytest

from dperm_cli.results.ledger import ledger
from dperm_cli.results.ledger.remarks import list_remarks, summarise_remarks
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.summary import summarise
from dperm_cli.results.tables.summary_table import csv_text
from tests.results.conftest import refused, trial_rows
from tests.results.html_study import Adding


def row(**values):
    kept = {"population": 100, "delta_accounted": 1e-4, "epsilon_accounted": 1.0, **values}
    return trial_rows(**kept)[0]


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({}, []),
        ({"delta_accounted": 0.01}, ["delta"]),
        ({"delta_accounted": 0.00999}, []),
        ({"delta_accounted": 1 / 49, "population": 49}, ["delta"]),  # 49 * (1/49) < 1
        ({"delta_accounted": 0.0}, []),
        ({"delta_accounted": None, "epsilon_accounted": None, "guarantee": "none"}, []),
        # the delta of auto: min(1/4, 1/n^2)
        ({"delta_accounted": 0.25, "population": 1}, []),
        ({"delta_accounted": 0.25, "population": 2}, []),
        ({"delta_accounted": 1 / 9, "population": 3}, []),
        ({"epsilon_accounted": 10.0}, []),
        ({"epsilon_accounted": 10.1}, ["epsilon"]),
        ({"epsilon_accounted": 1e6, "delta_accounted": 0.9}, ["delta", "epsilon"]),
        ({"epsilon_accounted": 50.0, "guarantee": "local", "delta_accounted": 0.0}, ["epsilon"]),
    ],
)
def test_kinds_of_remarks(values, kinds):
    assert [text.partition(" ")[0] for text in list_remarks(row(**values))] == kinds


def test_what_did_not_run_has_none():
    assert list_remarks(refused("no", epsilon=1e3, delta=0.5)) == []


@pytest.mark.parametrize(("population", "count"), [(1000, 1), (500, 0)])
def test_a_declared_population_stands_for_n(population, count):
    """Whatever n is: data sets of 99 and of 400 records get the same words."""
    declared = {
        "population": population, "population_source": "declared", "relation": "add_remove",
        "delta_accounted": 1e-3,
    }  # fmt: skip
    first, second = (list_remarks(row(n=n, **declared)) for n in (99, 400))
    assert first == second
    assert len(first) == count


def test_rows_tables_and_the_lines_of_a_run():
    groups = [trial_rows("a", population=100, delta_accounted=0.05, epsilon_accounted=20.0),
              trial_rows("b", population=100, delta_accounted=0.02, epsilon_accounted=1.0),
              trial_rows("c", population=100)]  # fmt: skip
    rows = summarise(normalise(r) for group in groups for r in group)
    assert rows[0]["remarks"].count(";") == 1
    assert rows[1]["remarks"].startswith("delta 0.02 is not below 1/n (n 100)")
    assert rows[2]["remarks"] is None
    read = list(csv.DictReader(io.StringIO(csv_text(rows))))
    assert [line["remarks"] for line in read] == [r["remarks"] or "" for r in rows]
    first, second = summarise_remarks(rows)
    assert first.startswith("delta 0.05")
    assert first.endswith("(2 rows have such a remark)")
    assert second.startswith("epsilon 20 is above 10")
    assert second.endswith("protects little")


def test_the_ledger_says_it_of_the_release_and_at_the_top():
    plain = [normalise(r) for r in trial_rows("a", population=100)]
    weak = [normalise(r) for r in trial_rows("b", population=100, delta_accounted=0.05)]
    for values in (plain, weak):
        for r in values:
            r |= {"population_source": "public", "settings": "{}", "overrides": "{}"}
    found = ledger.build_ledger(plain, Adding())
    assert "remarks" not in found["releases"][0]["accounted"]
    assert not any("weak guarantee" in text for text in found["warnings"])
    found = ledger.build_ledger([*plain, *weak], Adding())
    (text,) = found["releases"][1]["accounted"]["remarks"]
    assert f"A weak guarantee: {text}." in found["warnings"]
