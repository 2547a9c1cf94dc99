"""Rows for a model come whole and in order, in however many blocks their file is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files import csv
from dperm_cli.runner.models import query_rows
from dperm_cli.runner.models.input_schema import InputSchema

SCHEMA = InputSchema(dataset="csv", task="binary", count=2, columns=("a", "b"), target="y")
ROWS = np.arange(20.0).reshape(10, 2)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv, "BLOCK_CELLS", 1)
    monkeypatch.setattr(csv, "LEAST_ROWS", 3)


def write_csv(path, rows):
    path.write_text("b,a\n" + "".join(f"{b},{a}\n" for a, b in rows))


def _rows(path):
    (block,) = query_rows.read_blocks(str(path), SCHEMA)
    return block.rows


def test_rows_of_many_blocks_are_joined(small_blocks, tmp_path):
    write_csv(tmp_path / "f.csv", ROWS)
    table = pa.table({"b": ROWS[:, 1], "y": ["word"] * 10, "a": ROWS[:, 0]})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=3)
    for name in ("f.csv", "f.parquet"):
        np.testing.assert_array_equal(_rows(tmp_path / name), ROWS)


def test_a_bad_row_is_counted_from_the_first_block(small_blocks, tmp_path):
    rows = ROWS.copy()
    rows[7, 1] = np.inf
    write_csv(tmp_path / "f.csv", rows)
    with pytest.raises(InputError, match="row 8 holds a number that is missing, nan or infinite"):
        _rows(tmp_path / "f.csv")


def test_a_table_of_no_row_group_holds_no_rows(tmp_path):
    table = pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.float64())})
    pq.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(InputError, match="holds no rows of numbers"):
        _rows(tmp_path / "f.parquet")
