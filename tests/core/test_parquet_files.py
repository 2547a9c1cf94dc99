"""One reader of Parquet, which leaves no thread behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dperm_cli
from dperm_cli.core.parquet_files import ParquetReader

OTHER_WAYS = re.compile(
    r"\b(ParquetFile|ParquetDataset|read_table|read_metadata|read_schema|read_parquet|read_pandas)\b"
    r"|pyarrow\.dataset|\bfrom pyarrow import dataset|\bpa\.(PythonFile|input_stream)\b"
)


@pytest.fixture
def table(tmp_path):
    """A table in a folder whose name other readers take for a column, by a name of odd bytes."""
    folder = tmp_path / "extra=1"
    folder.mkdir()
    path = folder / os.fsdecode(b"odd\xff.parquet" if sys.platform == "linux" else b"odd.parquet")
    with open(path, "wb") as file:
        pq.write_table(pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), file)
    return path


def test_a_file_and_its_bytes_are_the_same(table):
    for source in (table, table.read_bytes()):
        found = ParquetReader(source)
        assert found.column_names == ["a", "b"]
        assert (found.facts.num_rows, found.facts.num_columns) == (2, 2)
        assert found.read_rows().to_pydict() == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_a_file_that_cannot_be_opened_is_said_in_plain_words(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        ParquetReader(tmp_path / "none")
    assert error.value.strerror == "No such file or directory"


def test_nothing_else_reads_parquet():
    package = Path(dperm_cli.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if OTHER_WAYS.search(path.read_text("utf-8"))
    }
    assert found == {"core/parquet_files.py"}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux's list of threads")
def test_a_refused_table_leaves_no_thread_that_could_abort_the_end(tmp_path):
    columns = {f"x{j}": [float(j)] * 100 for j in range(20)}
    pq.write_table(pa.table({**columns, "text": ["x"] * 100, "y": [1.0] * 100}), tmp_path / "f")
    code = f"""
import os, pathlib
import pyarrow.parquet
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.parquet import Parquet
before = len(os.listdir("/proc/self/task"))
try:
    Parquet(path={str(tmp_path / "f")!r}, target="y").load()
except InputError as error:
    print(error, len(os.listdir("/proc/self/task")) - before, sep="|")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    words, threads = done.stdout.strip().split("|")
    assert "column 'text' holds string" in words
    assert threads == "0"
