"""``dataset.invalid=zero``: whether a file loads, and what it says, follows from no record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dperm_cli.core.errors import InputError
from tests.datasets.files_data import KINDS, made

GOOD = [["0.5", "0.25", "1"], ["-0.5", "1", "-1"], ["0.125", "-1", "1"]]
ZERO = ["0", "0", "1"]
# What may stand in the place of the second record, by format: cells of a row, or a whole line.
BAD = {
    "csv": [
        ["", "1", "-1"], ["0.5", "", "1"], ["0.5", "nan", "1"], ["inf", "0", "1"],
        ["1e999", "0", "1"], ["9" * 400, "0", "1"], ["0.5", "maybe", "1"], ["1_0", "1", "1"],
        ["0.5", "1", ""], ["0.5", "1", "2"], ["0.5", "1", "nan"], ["0.5", "1"],
        ["0.5", "1", "1", "1"], ['"0.5', "1", "1"], ["0.5", "1", '"1'], ["\0", "1", "1"],
        ["\xff", "1", "1"], ["1" * 200_000, "1", "1"],
    ],
    "svmlight": [
        "1 1:nan", "1 1:inf 2:1", "1 1:1e999", "nan 1:1", "2 1:1", "word 1:1", "1 1", "1 1:word",
        "1 0:1", "1 3:1", "1 1:1 1:1", "1 2:1 1:2 2:1", "1 1.5:1", "1 -1:1", "1 1:1:1", "\0 1:1",
        "1 99999999999999999999:1", "\xff 1:1",
    ],
    "npz": [(np.nan, 1.0, 1.0), (0.5, -np.inf, 1.0), (0.5, 1.0, np.nan), (0.5, 1.0, 2.0)],
    "parquet": [(None, 1.0, "1"), (0.5, np.nan, "1"), (0.5, 1.0, None), (0.5, 1.0, "2")],
}  # fmt: skip
CASES = [(kind, bad) for kind, found in BAD.items() for bad in found]


def write(kind, path, rows):
    """Records in a file of two columns and a label."""
    if kind == "csv":
        lines = [row if isinstance(row, str) else ",".join(row) for row in [["a", "b", "y"], *rows]]
        path.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    elif kind == "svmlight":
        lines = [r if isinstance(r, str) else f"{r[2]} 1:{r[0]} 2:{r[1]}" for r in rows]
        path.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    elif kind == "npz":
        table = np.array([[float(cell) for cell in row] for row in rows])
        np.savez(path, x=table[:, :2], y=table[:, 2])
    else:
        columns = list(zip(*rows, strict=True))
        numbers = [[None if v is None else float(v) for v in column] for column in columns[:2]]
        names = ["a", "b", "y"]
        pq.write_table(pa.table([*map(pa.array, numbers), pa.array(columns[2])], names=names), path)


def loaded(kind, tmp_path, rows, name="data.npz", **fields):
    write(kind, tmp_path / name, rows)
    declared = {"n_features": 2} if kind == "svmlight" else {}
    fields = {"test_fraction": 0, "rows": "clip"} | declared | fields
    return made(KINDS[kind], tmp_path / name, **fields).load()


@pytest.mark.parametrize(("kind", "bad"), CASES)
def test_an_invalid_record_is_the_zero_record_and_nothing_else_tells(kind, bad, tmp_path):
    with pytest.raises(InputError):
        loaded(kind, tmp_path, [GOOD[0], bad, GOOD[2]])
    found = loaded(kind, tmp_path, [GOOD[0], bad, GOOD[2]], invalid="zero")
    meant = loaded(kind, tmp_path, [GOOD[0], ZERO, GOOD[2]], invalid="zero")
    as_ever = loaded(kind, tmp_path, [GOOD[0], ZERO, GOOD[2]])
    assert found.fingerprint == meant.fingerprint == as_ever.fingerprint
    assert np.array_equal(found.names, as_ever.names)
    assert found.preprocessing == meant.preprocessing  # the same words, with no count
    assert found.preprocessing[0] == (
        "a record with a missing, non-finite or unreadable cell is the zero record "
        "(features 0 and label +1)"
    )
    assert found.preprocessing[1:] == as_ever.preprocessing


@pytest.mark.parametrize("kind", KINDS)
def test_valid_records_are_read_as_ever(kind, tmp_path):
    plain, zero = (loaded(kind, tmp_path, GOOD, invalid=word) for word in ("refuse", "zero"))
    assert plain.fingerprint == zero.fingerprint
    assert not any("zero record" in step for step in plain.preprocessing)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_invalid_records_alone_is_loaded(kind, tmp_path):
    data = loaded(kind, tmp_path, BAD[kind][:2] * 2, invalid="zero")
    assert data.n == 4
    x = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
    assert not x.any()


def test_the_zero_record_of_each_task(tmp_path):
    rows = [["0.5", "0.25", "3"], ["0.5", "", "5"], ["0.5", "0.25", "word"], ["1", "1", "5"]]
    fields = {"task": "regression", "target_bounds": [2, 6], "invalid": "zero"}
    data = loaded("csv", tmp_path, rows, **fields)
    # a target of 0, clipped into its bounds: what a record of zeros in the file would have
    zero = loaded("csv", tmp_path, [rows[0], ["0", "0", "0"], ["0", "0", "0"], rows[3]], **fields)
    assert np.array_equal(data.y, [-0.5, -1.0, -1.0, 0.5])
    assert data.fingerprint == zero.fingerprint
    data = loaded("csv", tmp_path, rows, task="multiclass", labels=[5, 3, 7], invalid="zero")
    assert np.array_equal(data.y, [1, 0, 0, 0])
    assert not data.x[1:3].any()
    data = loaded("csv", tmp_path, rows, task="location", drop=["y"], invalid="zero")
    assert np.flatnonzero(data.x.any(axis=1)).tolist() == [0, 2, 3]
    data = loaded("csv", tmp_path, rows, labels={"5": -1}, invalid="zero")
    assert np.array_equal(data.y, -np.ones(4))  # a label that is declared


def test_it_comes_before_columns_are_scaled(tmp_path):
    """The zero record is a row of zeros in the file, and not in the middle of every column."""
    fields = {"scaling": "bounds", "bounds": [0, 2], "invalid": "zero"}
    data = loaded("csv", tmp_path, [GOOD[0], ["", "1", "1"]], **fields)
    assert np.allclose(data.x[1], [-np.sqrt(0.5), -np.sqrt(0.5)])


def test_held_out_files_follow_the_same_rule(tmp_path):
    write("csv", tmp_path / "test.csv", [GOOD[0], ["", "1", "-1"]])
    fields = {"test_path": str(tmp_path / "test.csv"), "invalid": "zero"}
    data = loaded("csv", tmp_path, GOOD, **fields)
    assert not data.x_test[1].any()
    assert data.y_test[1] == 1.0


def test_a_record_moves_no_other_one(tmp_path):
    """A quote that nobody closes would take in the lines behind it."""
    rows = [GOOD[0], ['"0.5', "1", "1"], *GOOD, ["0.5", '1"', "1"], *GOOD]
    data = loaded("csv", tmp_path, rows, invalid="zero")
    assert data.n == len(rows)
    assert np.flatnonzero(~data.x.any(axis=1)).tolist() == [1, 5]


def test_a_column_of_its_own_keeps_empty_lines(tmp_path):
    (tmp_path / "one.csv").write_text("a\n0.5\n\n0.25\n")
    data = made(KINDS["csv"], tmp_path / "one.csv", task="location", invalid="zero").raw()
    assert np.array_equal(data.x, [[0.5], [0.0], [0.25]])


def test_blocks_of_svmlight_are_halved(tmp_path, monkeypatch):
    monkeypatch.setattr("dperm_cli.datasets.shared.svmlight_reader.BLOCK", 64)
    rows = [row for row in GOOD for _ in range(20)]
    for at in (0, 17, 18, 41, 64):
        rows.insert(at, "word")
    for cache in (False, True):
        data = loaded("svmlight", tmp_path, rows, invalid="zero", cache=cache)
        empty = np.flatnonzero(np.diff(data.x.indptr) == 0)
        assert empty.tolist() == [0, 17, 18, 41, 64]


def test_other_words_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"dataset\.invalid=drop: must be one of refuse, zero"):
        loaded("csv", tmp_path, GOOD, invalid="drop")
