"""A Parquet file that is refused ends the program with a line and exit code 2, each time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults._program import SMALL, assert_refused_in_a_line, run_dperm

ROWS = 50


def write_good(path, **extra):
    rng = np.random.default_rng(0)
    columns = {"a": rng.random(ROWS), "b": rng.random(ROWS), "y": rng.choice([-1.0, 1.0], ROWS)}
    pq.write_table(pa.table(columns | extra), path)


def cut(path):
    write_good(path)
    path.write_bytes(path.read_bytes()[:-9])


def flipped(path):
    write_good(path)
    data = bytearray(path.read_bytes())
    for place in range(20, 120):
        data[place] ^= 0xFF
    path.write_bytes(data)


FILES = {
    "no Parquet": lambda path: path.write_bytes(b"not a table\n" * 50),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": cut,
    "damaged pages": flipped,
    "missing cell": lambda path: write_good(path, c=[None, *[0.5] * (ROWS - 1)]),
    "text column": lambda path: write_good(path, c=["word"] * ROWS),
    "nested column": lambda path: write_good(path, c=[[1.0, 2.0]] * ROWS),
}


def words_of(path):
    return ["run", "dataset=parquet", f"dataset.path={path}", "dataset.target=y", *SMALL[3:]]


# About one run in ten aborts after its line: whether one of so few does is chance.


@pytest.mark.faults
@pytest.mark.parametrize("name", FILES)
def test_refused_parquet_files_end_with_code_2_each_time(name, tmp_path):
    FILES[name](tmp_path / "rows.parquet")
    for _ in range(8):
        ended = run_dperm(words_of("rows.parquet"), tmp_path, seconds=60)
        assert_refused_in_a_line(ended)
        assert ended.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.faults
@pytest.mark.parametrize("verb", ["describe", "data", "predict"])
def test_other_verbs_end_with_code_2_each_time(verb, tmp_path):
    cut(tmp_path / "rows.parquet")
    (tmp_path / "model.npz").write_bytes(b"no model")
    words = {
        "describe": ["describe", *words_of("rows.parquet")[1:4]],
        "data": ["data", "verify", *words_of("rows.parquet")[1:4]],
        "predict": ["predict", "model.npz", "rows.parquet"],
    }[verb]
    for _ in range(8):
        ended = run_dperm(words, tmp_path, seconds=60)
        assert ended.code == 2, (ended.code, ended.err)
        assert "Traceback" not in ended.err


@pytest.mark.faults
def test_a_parquet_pipe_is_refused_and_not_waited_for(tmp_path):
    """Nobody ever writes to this pipe."""
    import os

    os.mkfifo(tmp_path / "rows.parquet")
    assert_refused_in_a_line(run_dperm(words_of("rows.parquet"), tmp_path, seconds=60))
