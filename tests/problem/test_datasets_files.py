"""The file formats: what they read, and the one line they answer to a bad file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.problem.datasets import _cache, _svmlight
from dperm_cli.problem.datasets._files import canonical, label_map, map_labels
from dperm_cli.problem.datasets.csv import Csv
from dperm_cli.problem.datasets.npz import Npz
from dperm_cli.problem.datasets.parquet import Parquet
from dperm_cli.problem.datasets.svmlight import Svmlight

SVM = b"1 1:0.5 3:2\n-1 2:-1e-1 # a comment\n\n+1\n-1 3:.25 1:1.\r\n"
SVM_X = np.array([[0.5, 0, 2], [0, -0.1, 0], [0, 0, 0], [1, 0, 0.25]])
SVM_Y = [1, -1, 1, -1]
KINDS = {"svmlight": Svmlight, "csv": Csv, "parquet": Parquet, "npz": Npz}


def plain(kind, path, **fields):
    """Records as read: no row rule, no split."""
    return kind(path=str(path), **fields).raw()


def refused(kind, path, key="dataset.path", **fields):
    """The message of the one-line InputError that loading must raise."""
    with pytest.raises(InputError) as caught:
        kind(path=str(path), **fields).load()
    assert caught.value.key == key
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- finding and opening


@pytest.mark.parametrize("kind", KINDS.values())
def test_missing_folder_and_special_files(kind, tmp_path):
    assert "no such file" in refused(kind, tmp_path / "absent")
    assert "is a folder" in refused(kind, tmp_path)
    assert "not a regular file" in refused(kind, os.devnull)
    assert "cannot be read" in refused(kind, tmp_path / ("x" * 300))
    (tmp_path / "empty").write_bytes(b"")
    assert "dataset.path=" in refused(kind, tmp_path / "empty")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
@pytest.mark.parametrize("kind", KINDS.values())
def test_unreadable_file(kind, tmp_path):
    path = tmp_path / "locked"
    path.write_bytes(SVM)
    path.chmod(0)
    assert "cannot be read" in refused(kind, path)


def test_path_is_relative_to_the_working_then_the_data_folder(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, content in [(here, b"1 1:1\n"), (there, b"1 1:1\n1 1:1\n")]:
        folder.mkdir()
        (folder / "f").write_bytes(content)
    (there / "g").write_bytes(b"1 1:1\n")
    monkeypatch.chdir(here)
    assert Svmlight(path="f").load(there).n == 1
    assert Svmlight(path="g").load(there).n == 1
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    with pytest.raises(InputError, match="looked in"):
        Svmlight(path="g").load()
    monkeypatch.setenv("DPERM_DATA_DIR", str(there))
    assert Svmlight(path="g").load().n == 1


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_text_by_content_not_by_name(pack, tmp_path):
    (tmp_path / "f").write_bytes(pack(SVM))
    assert np.array_equal(plain(Svmlight, tmp_path / "f").x.toarray(), SVM_X)
    (tmp_path / "t").write_bytes(pack(b"a,y\n2,1\n3,-1\n"))
    assert plain(Csv, tmp_path / "t").x.tolist() == [[2], [3]]
    damaged = pack(SVM * 1000)[:-20]
    (tmp_path / "d").write_bytes(damaged)
    assert "cannot be read" in refused(Svmlight, tmp_path / "d")
    assert "dataset.path" in refused(Csv, tmp_path / "d")


# --- labels


def test_label_spellings_and_maps():
    assert [canonical(v) for v in (1, 1.0, "+1", b"1", " 1.0 ")] == ["1"] * 5
    assert canonical("normal.") == "normal."
    pairs = label_map({"1": 1, 2: -1})
    assert map_labels(np.array([2.0, 1.0]), pairs).tolist() == [-1, 1]
    rest = label_map({"normal.": 1, "*": -1})
    assert map_labels(np.array(["smurf.", "normal."]), rest).tolist() == [-1, 1]
    for missing in ("", "nan", "None"):
        with pytest.raises(InputError, match=r"dataset\.labels"):
            map_labels(np.array([missing]), rest)


@pytest.mark.parametrize("bad", [{}, 3, "1", {"1": 0}, {"1": 2}, {"1": True}, {"1": 1, 1.0: -1}])
def test_bad_label_maps(bad):
    with pytest.raises(InputError) as caught:
        Svmlight(path="f", labels=bad)
    assert caught.value.key == "dataset.labels"


@pytest.mark.parametrize("name", KINDS)
def test_label_outside_the_map_is_named_with_the_map(name, tmp_path):
    path = tmp_path / "f"
    y = np.array([1.0, 2.0, 3.0])
    if name == "svmlight":
        path.write_text("1 1:1\n2 1:1\n3 1:1\n")
    elif name == "csv":
        path.write_text("a,y\n1,1\n1,2\n1,3\n")
    elif name == "parquet":
        pd.DataFrame({"a": [1, 2, 3], "y": y}).to_parquet(path)
    else:
        np.savez(tmp_path / "f.npz", x=np.ones((3, 1)), y=y)
        path = tmp_path / "f.npz"
    message = refused(KINDS[name], path, key="dataset.labels", labels={1: 1, 2: -1})
    assert "dataset.labels=3: " in message
    assert "record 3" in message
    assert "{1: +1, 2: -1}" in message
    assert plain(KINDS[name], path, labels={1: 1, "*": -1}).y.tolist() == [1, -1, -1]
    # One class must load: a refusal would depend on a single record.
    assert plain(KINDS[name], path, labels={"*": 1}).y.tolist() == [1, 1, 1]


def test_regression_needs_target_bounds(tmp_path):
    with pytest.raises(InputError, match=r"dataset\.target_bounds"):
        Csv(path="f", task="regression")
    for bad in ([1, 1], [2, 1], [0], "01", [0, float("nan")], [-1.7e308, 1.7e308]):
        with pytest.raises(InputError, match=r"dataset\.target_bounds"):
            Csv(path="f", task="regression", target_bounds=bad)
    (tmp_path / "f").write_text("a,y\n1,5\n2,20\n")
    data = Csv(
        path=str(tmp_path / "f"), task="regression", target_bounds=[0, 10], test_fraction=0
    ).load()
    assert data.y.tolist() == [0.0, 1.0]
    assert data.task == "regression"


# --- svmlight


def test_svmlight_reads(tmp_path):
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf" + SVM)
    raw = plain(Svmlight, tmp_path / "f")
    assert isinstance(raw.x, sparse.csr_array)
    assert raw.x.has_sorted_indices
    assert np.array_equal(raw.x.toarray(), SVM_X)
    assert raw.y.tolist() == SVM_Y
    wide = plain(Svmlight, tmp_path / "f", n_features=9, storage="dense")
    assert isinstance(wide.x, np.ndarray)
    assert wide.x.shape == (4, 9)
    assert np.array_equal(wide.x[:, :3], SVM_X)


def test_svmlight_undeclared_width_is_said(tmp_path):
    (tmp_path / "f").write_bytes(SVM)
    notes = Svmlight(path=str(tmp_path / "f")).load().preprocessing
    assert any("n_features" in note for note in notes)
    notes = Svmlight(path=str(tmp_path / "f"), n_features=3).load().preprocessing
    assert not any("n_features" in note for note in notes)


def test_svmlight_zero_rows_and_stored_zeros(tmp_path):
    (tmp_path / "f").write_bytes(b"1 1:0 2:3\n-1\n")
    data = Svmlight(path=str(tmp_path / "f"), test_fraction=0).load()
    assert data.x.nnz == 1
    assert data.x.toarray().tolist() == [[0, pytest.approx(1)], [0, 0]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 0:1", "index 0"),
        ("1 4:1", "n_features=3"),
        ("1 1:1 1:2", "index 1 twice"),
        ("1 2:1 1:2 2:0", "index 2 twice"),
        ("1 1:nan", "record 2, column 1"),
        ("1 1:1 3:inf", "record 2, column 3"),
        ("1 2:1e999", "record 2, column 2"),
        ("1 1", "line 3"),
        ("1 1:", "line 3"),
        ("1 :1", "line 3"),
        ("1 1:2:3", "line 3"),
        ("1 1 2:3:4", "line 3"),
        ("1 1: 2", "line 3"),
        ("1 1.5:1", "line 3"),
        ("1 -1:1", "line 3"),
        ("1 1:a", "line 3"),
        ("1 1:0x1", "line 3"),
        ("1 a:1", "line 3"),
        ("1 qid:3 1:1", "line 3"),
        ("1:1", "line 3"),
        ("yes 1:1", "line 3"),
        ("1,2 1:1", "line 3"),
        ("1 1:1\x00", "line 3"),
        ("1 99999999999999999999:1", "line 3"),
        ("1 9999999999:1", "index 9999999999"),
    ],
)
def test_svmlight_bad_lines(line, words, tmp_path):
    (tmp_path / "f").write_text(f"1 1:1\n\n{line}\n-1 2:1\n")
    assert words in refused(Svmlight, tmp_path / "f", n_features=3)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only\n# comments\n"])
def test_svmlight_without_records(content, tmp_path):
    (tmp_path / "f").write_bytes(content)
    assert "holds no records" in refused(Svmlight, tmp_path / "f")
    assert "holds no records" in refused(Svmlight, tmp_path / "f", n_features=3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1, 1]),
            st.dictionaries(
                st.integers(1, 30),
                st.floats(allow_nan=False, allow_infinity=False).filter(bool),
                max_size=5,
            ),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_svmlight_round_trip_across_block_borders(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("svm") / "f"
    lines = [" ".join([str(y), *(f"{j}:{v!r}" for j, v in x.items())]) for y, x in rows]
    path.write_text("\n".join(lines))
    expected = np.zeros((len(rows), 30))
    for i, (_, x) in enumerate(rows):
        for j, v in x.items():
            expected[i, j - 1] = v
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_svmlight, "BLOCK", 7)
        x, labels = _svmlight.read("dataset.path", path, 30)
    assert np.array_equal(x.toarray(), expected)
    assert labels.tolist() == [y for y, _ in rows]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="1-+.:e#ax \n\t", max_size=40))
def test_svmlight_any_text_is_read_or_refused_in_one_line(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.svm"
    path.write_text(text)
    try:
        x, labels = _svmlight.read("dataset.path", path, None)
    except InputError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message
    if message:
        return
    lines = [s for s in (line.partition("#")[0].split() for line in text.split("\n")) if s]
    assert labels.tolist() == [float(s[0]) for s in lines]
    pairs = [[token.split(":") for token in s[1:]] for s in lines]
    dense = np.zeros(x.shape)
    for i, row in enumerate(pairs):
        for index, value in row:
            dense[i, int(index) - 1] = float(value)
    assert np.array_equal(x.toarray(), dense)


def test_svmlight_test_file_and_its_width(tmp_path):
    (tmp_path / "train").write_bytes(b"1 1:1 3:1\n-1 2:1\n")
    (tmp_path / "test").write_bytes(b"1 1:1\n")
    names = {"path": str(tmp_path / "train"), "test_path": str(tmp_path / "test")}
    with pytest.raises(InputError, match=r"dataset\.test_path=.*1 columns"):
        Svmlight(**names).load()
    data = Svmlight(**names, n_features=3).load()
    assert (data.n, data.x_test.shape) == (2, (1, 3))


# --- the cache of parsed files


def test_cache_is_used_checked_and_private(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(SVM)
    first, _ = _svmlight.read("dataset.path", path, 3, cache=True)
    (entry,) = (tmp_path / "cache").iterdir()
    assert entry.stat().st_mode & 0o077 == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_svmlight, "_parse", lambda *_: pytest.fail("not cached"))
        again, labels = _svmlight.read("dataset.path", path, 3, cache=True)
    assert np.array_equal(first.toarray(), again.toarray())
    assert labels.tolist() == SVM_Y
    # The declared width is checked against a cached parse too.
    with pytest.raises(InputError, match="n_features=2"):
        _svmlight.read("dataset.path", path, 2, cache=True)


@pytest.mark.parametrize("harm", ["truncate", "flip", "swap", "pickle"])
def test_damaged_cache_entry_is_rebuilt(harm, tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(SVM)
    _svmlight.read("dataset.path", path, 3, cache=True)
    (entry,) = (tmp_path / "cache").iterdir()
    content = bytearray(entry.read_bytes())
    if harm == "truncate":
        entry.write_bytes(content[: len(content) // 2])
    elif harm == "flip":
        place = content.find(np.float64(-0.1).tobytes())
        content[place] ^= 1
        entry.write_bytes(content)
    elif harm == "swap":
        arrays = {k: v.copy() for k, v in (_cache._load(entry) or {}).items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_cache, "_digest", lambda _: "0" * 32)
            _cache._store(entry, {**arrays, "values": arrays["values"] + 1})
    else:
        entry.write_bytes(pickle.dumps({"labels": 1}))
    x, _ = _svmlight.read("dataset.path", path, 3, cache=True)
    assert np.array_equal(x.toarray(), SVM_X)
    assert _cache._load(entry) is not None


def test_cache_follows_the_content_and_failures_store_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f"
    path.write_bytes(SVM)
    _svmlight.read("dataset.path", path, None, cache=True)
    path.write_bytes(b"1 1:7\n")
    assert _svmlight.read("dataset.path", path, None, cache=True)[0].toarray() == [[7.0]]
    path.write_bytes(b"1 1:x\n")
    with pytest.raises(InputError):
        _svmlight.read("dataset.path", path, None, cache=True)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_cache_folder_that_cannot_be_made_costs_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    (tmp_path / "f").write_bytes(SVM)
    x, _ = _svmlight.read("dataset.path", tmp_path / "f", 3, cache=True)
    assert np.array_equal(x.toarray(), SVM_X)


def test_files_are_not_cached_unless_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "f").write_bytes(SVM)
    before = Svmlight(path=str(tmp_path / "f")).load()
    assert not (tmp_path / "cache").exists()
    after = Svmlight(path=str(tmp_path / "f"), cache=True).load()
    assert (tmp_path / "cache").exists()
    assert before.fingerprint == after.fingerprint


# --- tables

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
    for bad in ("a", [1.5], [True], []):
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
    fields = {"labels": MAP, "drop": ["id"], "scaling": "bounds", "test_fraction": 0}
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


# --- npz


def test_npz_reads_named_arrays(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, rows=np.arange(6, dtype=np.int32).reshape(3, 2), kind=np.array(["u", "v", "u"]))
    raw = plain(Npz, path, x="rows", y="kind", labels={"u": 1, "v": -1})
    assert (raw.x.tolist(), raw.y.tolist()) == ([[0, 1], [2, 3], [4, 5]], [1, -1, 1])
    assert "did you mean 'rows'" in refused(Npz, path, "dataset.x", x="row", y="kind")


class Bomb:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_npz_never_unpickles(tmp_path):
    objects = np.array([Bomb(tmp_path / "fired")] * 2, dtype=object)
    np.savez(tmp_path / "f.npz", x=objects.reshape(2, 1), y=np.ones(2))
    assert "pickled" in refused(Npz, tmp_path / "f.npz")
    (tmp_path / "g.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "fired")))
    refused(Npz, tmp_path / "g.npz")
    assert not (tmp_path / "fired").exists()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones(3), np.ones(3)),
        (np.ones((3, 2, 1)), np.ones(3)),
        (np.ones((3, 2)), np.ones(2)),
        (np.ones((3, 2)), np.ones((3, 2))),
        (np.ones((3, 2), dtype=complex), np.ones(3)),
        (np.array([["a"]] * 3), np.ones(3)),
        (np.ones((0, 2)), np.ones(0)),
        (np.ones((3, 0)), np.ones(3)),
        (np.full((3, 2), np.nan), np.ones(3)),
        (np.full((3, 2), np.inf), np.ones(3)),
    ],
)
def test_npz_bad_arrays(x, y, tmp_path):
    np.savez(tmp_path / "f.npz", x=x, y=y)
    refused(Npz, tmp_path / "f.npz")


def test_npz_damaged(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, x=np.ones((30, 2)), y=np.ones(30))
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-30])
    refused(Npz, path)
    content[300] ^= 255
    path.write_bytes(content)
    refused(Npz, path)


def test_huge_entries_are_bounded(tmp_path):
    np.savez(tmp_path / "f.npz", x=np.array([[1e308, 1e308], [5e-324, 0], [0, 0]]), y=np.ones(3))
    data = Npz(path=str(tmp_path / "f.npz"), test_fraction=0).load()
    assert np.allclose(data.x, [[0.5**0.5, 0.5**0.5], [1, 0], [0, 0]])
