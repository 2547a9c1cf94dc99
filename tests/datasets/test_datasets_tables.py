"""Tables of text and of Parquet: columns, headers, cells that are no numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.parquet import Parquet
from tests.datasets.files_data import KINDS, plain, refused

TABLE = "id,a,b,kind\n7,1.5,2,yes\n8,-1,0,no\n9,3e2,4,yes\n"
MAP = {"yes": 1, "no": -1}


def table(name, tmp_path, text=TABLE):
    path = tmp_path / f"t.{name}"
    if name == "csv":
        path.write_text(text)
    else:
        from io import StringIO

        pd.read_csv(StringIO(text)).to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_tables_choose_columns(name, tmp_path):
    path, kind = table(name, tmp_path), KINDS[name]
    every = plain(kind, path, labels=MAP)
    assert every.x.tolist() == [[7, 1.5, 2], [8, -1, 0], [9, 300, 4]]
    assert every.y.tolist() == [1, -1, 1]
    assert np.array_equal(plain(kind, path, labels=MAP, drop=["id"]).x, every.x[:, 1:])
    assert np.array_equal(plain(kind, path, labels=MAP, columns=["b", 1]).x, every.x[:, [2, 1]])
    by_name = plain(kind, path, target="kind", labels=MAP, drop=[0])
    assert np.array_equal(by_name.x, every.x[:, 1:])
    moved = plain(kind, path, target="a", task="regression", target_bounds=[0, 9], columns=["b"])
    assert (moved.x.tolist(), moved.y.tolist()) == ([[2], [0], [4]], [1.5, -1, 300])


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_tables_name_unknown_columns(name, tmp_path):
    path, kind = table(name, tmp_path), KINDS[name]
    assert "did you mean 'kind'" in refused(kind, path, "dataset.target", target="kindd")
    assert "4 columns" in refused(kind, path, "dataset.target", target=4)
    assert "no such column" in refused(kind, path, "dataset.drop", drop=["zz"], labels=MAP)
    for columns in (["a", "a"], ["a", "kind"]):
        refused(kind, path, "dataset.columns", columns=columns, labels=MAP)
    for bad in ("a", [None], [[1]], []):
        with pytest.raises(InputError, match=r"dataset\.columns"):
            kind(path=str(path), columns=bad)


@pytest.mark.parametrize("name", ["csv", "parquet"])
@pytest.mark.parametrize("cell", ["", "nan", "inf", "1e999", "NA", "text"])
def test_tables_refuse_what_is_not_a_number(name, cell, tmp_path):
    path = table(name, tmp_path, f"a,b,y\n1,2,1\n{cell},3,-1\n4,5,1\n")
    message = refused(KINDS[name], path)
    assert name == "parquet" or "record 2" in message


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_tables_refuse_a_missing_label(name, tmp_path):
    path = table(name, tmp_path, "a,y\n1,x\n2,\n")
    assert "record 2 has no label" in refused(KINDS[name], path, labels={"x": 1, "*": -1})


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,1\n1,2\n",
        "a,b,y\n1,2,1\n1,2,3,1\n",
        "a,b,y\n9,1,2,1\n9,3,4,-1\n",
        "a,y\n9,1,2,1\n9,3,4,-1\n",
        "a,b,y\n",
        "\n\n",
        'a,"b,y\n1,2,1\n',
        "y\n1\n-1\n",
        "a,y\n1_000,1\n",
        "a,y\n0x10,1\n",
    ],
)
def test_ragged_and_empty_csv(text, tmp_path):
    (tmp_path / "f").write_text(text)
    refused(Csv, tmp_path / "f", target=-1)


def test_csv_bytes_that_are_not_text(tmp_path):
    (tmp_path / "f").write_bytes(b"a,y\n\xff\xfe,1\n")
    assert "UTF-8" in refused(Csv, tmp_path / "f")
    (tmp_path / "g").write_bytes(b"a,y\n1\x00,1\n")
    refused(Csv, tmp_path / "g")


def test_csv_without_header_and_with_other_delimiters(tmp_path):
    (tmp_path / "f").write_text("1;2;-1\n3;4;1\n")
    raw = plain(Csv, tmp_path / "f", header=False, delimiter=";")
    assert (raw.x.tolist(), raw.y.tolist()) == ([[1, 2], [3, 4]], [-1, 1])
    with pytest.raises(InputError, match=r"dataset\.delimiter"):
        Csv(path="f", delimiter="ab")


def test_csv_header_with_bom_spaces_and_twins(tmp_path):
    (tmp_path / "f").write_bytes("a, b,b,y\n1,2,3,1\n".encode("utf-8-sig"))
    raw = plain(Csv, tmp_path / "f", columns=["a", 1])
    assert raw.x.tolist() == [[1, 2]]
    assert "more than once" in refused(Csv, tmp_path / "f", "dataset.columns", columns=["b"])


def test_column_bounds_of_a_table(tmp_path):
    path = table("csv", tmp_path)
    fields = {"labels": MAP, "drop": ["id"], "scaling": "bounds", "test_fraction": 0,
              "intercept": False}  # fmt: skip
    data = Csv(path=str(path), bounds=[[0, 3], [0, 4]], rows="none", **fields).load()
    assert np.allclose(data.x, [[0, 0], [-1, -1], [1, 1]])
    assert data.row_bound == pytest.approx(2**0.5)
    refused(Csv, path, "dataset.bounds", bounds=[[0, 1]], **fields)
    refused(Csv, path, "dataset.bounds", **fields)
    for bad in ([1, 0], [0], "01", [[0, 1], [0]], [0, float("inf")]):
        refused(Csv, path, "dataset.bounds", bounds=bad, **fields)
    refused(Csv, path, "dataset.row_bound", labels=MAP, rows="none")


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "bool"])
def test_parquet_number_kinds(dtype, tmp_path):
    frame = pd.DataFrame({"a": np.array([0, 1, 1]).astype(dtype), "y": [1, -1, 1]})
    frame.to_parquet(tmp_path / "f")
    assert plain(Parquet, tmp_path / "f").x.tolist() == [[0], [1], [1]]


def test_parquet_nulls_and_other_kinds(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "y": [1, -1]})
    frame.to_parquet(tmp_path / "f")
    assert "record 2, column 1" in refused(Parquet, tmp_path / "f")
    frame = pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"]), "y": [1, -1]})
    frame.to_parquet(tmp_path / "g")
    assert "not numbers" in refused(Parquet, tmp_path / "g")


def test_csv_first_line_with_a_number_is_refused_unless_it_is_declared(tmp_path):
    (tmp_path / "f").write_text("1,2,-1\n3,4,1\n5,6,1\n")
    message = refused(Csv, tmp_path / "f", "dataset.header")
    assert "dataset.header=false" in message
    assert "holds the number 1" in message
    assert plain(Csv, tmp_path / "f", header=False).x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert plain(Csv, tmp_path / "f", header=True).x.tolist() == [[3, 4], [5, 6]]
    # One record with a text label must not pass for names either.
    (tmp_path / "g").write_text("5.1,3.5,yes\n4.9,3.0,no\n")
    refused(Csv, tmp_path / "g", "dataset.header", labels=MAP)
    with pytest.raises(InputError, match=r"true or false, or auto"):
        Csv(path="f", header="yes")


@pytest.mark.parametrize("name", ["tab", "\\t", "\t", "space", " "])
def test_csv_delimiters_by_name(name, tmp_path):
    sign = " " if name in ("space", " ") else "\t"
    (tmp_path / "f").write_text("a,b,y\n1,2,1\n".replace(",", sign))
    assert plain(Csv, tmp_path / "f", delimiter=name).x.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("1,2,1\n\n1,2\n", "line 4 has 2 fields, the first line 3"),
        ("1,2,1\n1,2,3,1\n", "line 3 has 4 fields, the first line 3"),
        ("9,1,2,1\n9,1,2,1\n", "line 2 has 4 fields, the first line 3"),
        ('1,"2\n",1\n1,2\n', "line 4 has 2 fields"),
    ],
)
def test_csv_names_the_line_that_has_another_length(rows, words, tmp_path):
    (tmp_path / "f").write_text("a,b,y\n" + rows)
    assert words in refused(Csv, tmp_path / "f")


def test_parquet_error_names_the_file_and_no_internals(tmp_path):
    for name, content in [("short", b"PAR1"), ("text", b"a,b\n1,2\n" * 9), ("cut", b"PAR1" * 9)]:
        (tmp_path / name).write_bytes(content)
        message = refused(Parquet, tmp_path / name)
        assert f"dataset.path={name}: is not a Parquet file" in message
        assert "Buffer" not in message


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_location_takes_every_column_that_is_not_dropped(name, tmp_path):
    path, kind = table(name, tmp_path), KINDS[name]
    raw = plain(kind, path, task="location", drop=["id", "kind"])
    assert raw.x.tolist() == [[1.5, 2], [-1, 0], [300, 4]]
    assert raw.y.tolist() == [0, 0, 0]
    assert "dataset.drop" in refused(kind, path, "dataset.target", task="location", target=-1)
    assert "intercept" in refused(kind, path, "dataset.intercept", task="location", intercept=True)
