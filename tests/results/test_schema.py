"""The record: kinds, nulls, unknown columns, and the page that documents it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dperm_cli.results.records.schema import (
    BY_NAME,
    COLUMNS,
    arrow_schema,
    canonical_json,
    normalise,
)
from dperm_cli.results.records.summary import SUMMARY

ROLES = {"identity", "public", "result", "diagnostic"}
PAGE = Path(__file__).parents[2] / "docs" / "records.md"


def test_missing_values_become_null_in_column_order():
    row = normalise({"cell": "a", "epsilon": 1})
    assert tuple(row) == tuple(column.name for column in COLUMNS)
    assert row["epsilon"] == 1.0
    assert type(row["epsilon"]) is float
    assert all(row[name] is None for name in row if name not in ("cell", "epsilon"))


def test_an_unknown_column_names_the_nearest():
    with pytest.raises(ValueError, match=r"'excess_rsk'.*'excess_risk'"):
        normalise({"excess_rsk": 1.0})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 1.5), ("n", True), ("n", "3"), ("epsilon", True), ("epsilon", "1"),
        ("dataset", 3), ("unsafe_scaling", 1), ("theta", [[1.0]]), ("theta", ["a"]),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        normalise({name: value})


def test_numpy_values_become_plain_ones():
    row = normalise(
        {
            "n": np.int64(3),
            "epsilon": np.float32(0.5),
            "unsafe_scaling": np.True_,
            "theta": np.array([1, 2]),
        }
    )
    assert [type(row[k]) for k in ("n", "epsilon", "unsafe_scaling")] == [int, float, bool]
    assert row["theta"] == [1.0, 2.0]
    assert all(type(value) is float for value in row["theta"])


def test_json_columns_are_canonical_and_know_no_infinity():
    row = normalise({"settings": {"b": np.float64(math.inf), "a": (1, np.int64(2))}})
    assert row["settings"] == '{"a":[1,2],"b":"inf"}'
    assert normalise({"settings": "{}"})["settings"] == "{}"
    assert json.loads(canonical_json([math.nan, -math.inf, None])) == ["nan", "-inf", None]


def test_names_are_unique_and_roles_known():
    assert len(BY_NAME) == len(COLUMNS) == len(arrow_schema())
    assert {column.role for column in (*COLUMNS, *SUMMARY)} == ROLES
    assert {c.name for c in COLUMNS if c.role == "diagnostic"} == {"seconds", "seconds_optimum"}


@pytest.mark.parametrize(
    ("title", "columns"), [("Columns of a record", COLUMNS), ("Columns of the summary", SUMMARY)]
)
def test_the_page_documents_every_column_and_no_other(title, columns):
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    entries = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, flags=re.MULTILINE)
    assert entries == [(c.name, f"{c.kind} | {c.unit} | {c.role} | {c.doc}") for c in columns]
