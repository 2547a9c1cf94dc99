"""Rows of a study as frames of pandas: one row a cell, or one row a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dperm_cli.results.records.row_facts import find_variants
from dperm_cli.results.records.schema import COLUMNS, OPTIONAL, Column
from dperm_cli.results.records.summary import SUMMARY

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, Any]
_KINDS = {"int": "Int64", "float": "float64", "bool": "boolean"}


def make_frame(rows: Sequence[Row]) -> DataFrame:
    """Summary rows without times, and a column for each key that sets some of them apart.

    Such a key (``mechanism.steps``) has no column of its own; it is in the cells' configuration.
    ``attrs["units"]`` has the unit of each column that has one.
    """
    kept = [c for c in SUMMARY if c.role != "diagnostic" and c.kind != "json"]
    frame = _build_frame(rows, kept)
    variants = find_variants(rows)
    for key in dict.fromkeys(key for variant in variants for key in variant):
        frame[key] = _read_numbers([variant.get(key) for variant in variants])
    return frame


def make_trials(records: Sequence[Row]) -> DataFrame:
    """Records as they are stored: maps are JSON, points are lists of numbers."""
    return _build_frame(records, COLUMNS)


def _build_frame(rows: Sequence[Row], columns: Sequence[Column]) -> DataFrame:
    import pandas as pd

    shown = [
        column
        for column in columns
        if column.name not in OPTIONAL or any(row.get(column.name) is not None for row in rows)
    ]
    found = {
        column.name: pd.Series(
            [row.get(column.name) for row in rows], dtype=_KINDS.get(column.kind, "object")
        )
        for column in shown
    }
    frame = pd.DataFrame(found)
    frame.attrs["units"] = {column.name: column.unit for column in shown if column.unit}
    return frame


def _read_numbers(texts: Sequence[str | None]) -> list[Any]:
    """Numbers, where all of the texts are."""
    try:
        return [None if text is None else float(text) for text in texts]
    except ValueError:
        return list(texts)
