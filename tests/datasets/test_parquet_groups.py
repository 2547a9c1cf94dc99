"""A Parquet file is read by row groups; nothing is read beyond one that is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.core.memory_limits import hold_memory_to
from dperm_cli.datasets.files.parquet import Parquet

ROWS = 40


def table(**more):
    rng = np.random.default_rng(0)
    labels = ["yes" if k % 3 else "no" for k in range(ROWS)]
    return pa.table({"a": rng.random(ROWS), "b": rng.random(ROWS), "y": labels} | more)


def dataset(path, **more):
    return Parquet(path=str(path), target="y", labels={"yes": 1, "no": -1}, **more)


def test_row_groups_do_not_matter(tmp_path):
    found = []
    for size in (ROWS, 7):
        pq.write_table(table(), tmp_path / f"{size}.parquet", row_group_size=size)
        found.append(dataset(tmp_path / f"{size}.parquet").load())
    assert found[0].fingerprint == found[1].fingerprint


def test_a_record_is_counted_over_row_groups(tmp_path):
    cells = [0.5] * ROWS
    pq.write_table(table(a=[*cells[:-3], None, 0.5, 0.5]), tmp_path / "f", row_group_size=7)
    with pytest.raises(InputError, match=f"record {ROWS - 2}, column 1 is missing"):
        dataset(tmp_path / "f").load()


def test_nothing_is_read_beyond_the_row_group_that_is_refused(tmp_path):
    path = tmp_path / "f"
    pq.write_table(table(a=[None, *[0.5] * (ROWS - 1)]), path, row_group_size=ROWS // 2)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start : start + 40] = b"\xff" * 40
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="record 1, column 1 is missing"):
        dataset(path).load()


def test_more_rows_than_memory_are_refused_by_what_the_footer_says(tmp_path):
    pq.write_table(pa.table({"y": np.zeros(1 << 20)}), tmp_path / "f")
    with hold_memory_to(1 << 20), pytest.raises(InputError, match="reading f needs about"):
        dataset(tmp_path / "f").load()
