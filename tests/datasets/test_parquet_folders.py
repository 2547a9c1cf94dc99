"""A folder of Parquet files is one table, in the order of their names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.core.memory_limits import hold_memory_to
from dperm_cli.datasets.files.parquet import Parquet
from dperm_cli.datasets.shared import data_commands
from dperm_cli.datasets.shared.stored_rows import Target, store
from tests.runner.test_data_storage import check_equal

ROWS = 60


def make_table():
    rng = np.random.default_rng(0)
    labels = ["yes" if k % 3 else "no" for k in range(ROWS)]
    return pa.table({"a": rng.random(ROWS), "b": rng.random(ROWS), "y": labels})


def dataset(path, **more):
    return Parquet(path=str(path), target="y", labels={"yes": 1, "no": -1}, **more)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "many"
    made.mkdir()
    table = make_table()
    for k, (begin, end) in enumerate([(0, 20), (20, 20), (20, 53), (53, ROWS)]):
        part = table.slice(begin, end - begin)
        pq.write_table(part, made / f"part-{k}.parquet", row_group_size=9)
    (made / "_SUCCESS").write_text("")
    (made / ".hidden.parquet").write_text("")
    (made / "notes.txt").write_text("")
    return made


def test_it_holds_the_records_of_one_file(folder, tmp_path):
    pq.write_table(make_table(), tmp_path / "one.parquet")
    one, many = dataset(tmp_path / "one.parquet"), dataset(folder)
    check_equal(many.load(), one.load())
    check_equal(store(many, Target(tmp_path / "kept")), one.load())
    size = many.find_size(count=True)
    assert (size.n, size.p) == (ROWS, 2)
    assert many.named_columns() == (("a", "b"), "y")
    assert [path.name for path in many.list_files()] == [f"part-{k}.parquet" for k in range(4)]
    held = dataset(tmp_path / "one.parquet", test_path=str(folder)).load()
    assert held.x_test.shape == (ROWS, 3)


def test_parts_begin_after_the_records_that_are_done(folder):
    made = dataset(folder)
    parts = list(made.load_parts())
    for k, part in enumerate(parts):
        done = sum(one.n for one in parts[:k])
        check_equal(next(made.load_parts(None, done)), part)
    assert list(made.load_parts(None, ROWS)) == []


def test_verify_says_how_many_files_there_are(folder):
    found = data_commands.verify(dataset(folder))
    assert "4 files, together " in found[0].detail


def test_bad_folders_are_refused_in_one_line(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is a folder without a file whose name ends in .parquet"):
        dataset(tmp_path / "empty").load()
    pq.write_table(make_table().select(["b", "a", "y"]), folder / "part-9.parquet")
    with pytest.raises(InputError, match=r"part-9.parquet: has other columns than the first file"):
        dataset(folder).load()
    (folder / "year=2020").mkdir()
    with pytest.raises(InputError, match=r"holds the folder year=2020; name a folder whose files"):
        dataset(folder).load()


def test_a_block_at_a_time_needs_no_memory_for_all_of_it(tmp_path):
    n = 1 << 20
    table = pa.table({"a": np.zeros(n), "y": ["yes"] * n})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=1 << 12)
    made = dataset(tmp_path / "f.parquet")
    with hold_memory_to("auto") as limit:
        room = limit.used + (12 << 20)
    with hold_memory_to(room):
        with pytest.raises(InputError, match=r"reading f.parquet needs about"):
            made.load()
        assert next(made.load_parts()).n == 1 << 12
