"""What all file formats share: where a file is looked for, its labels and its task."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os

import numpy as np
import pandas as pd
import pytest

from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.shared.label_names import canonical, class_map, label_map, map_labels
from tests.datasets.files_data import KINDS, SVM, SVM_X, made, plain, refused


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
    assert Svmlight(path="f", n_features=1).load(there).n == 1
    assert Svmlight(path="g", n_features=1).load(there).n == 1
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    with pytest.raises(InputError, match="looked in"):
        Svmlight(path="g", n_features=1).load()
    monkeypatch.setenv("DPERM_DATA_DIR", str(there))
    assert Svmlight(path="g", n_features=1).load().n == 1


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


# --- labels and tasks
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
        Svmlight(path="f", n_features=1, labels=bad)
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


def three_classes(name, tmp_path):
    """Four records of the labels 7, 8, 9, 8 in each format."""
    path = tmp_path / ("f.npz" if name == "npz" else "f")
    y = np.array([7, 8, 9, 8])
    if name == "svmlight":
        path.write_text("".join(f"{k} 1:{k}\n" for k in y))
    elif name == "csv":
        path.write_text("a,y\n" + "".join(f"{k},{k}\n" for k in y))
    elif name == "parquet":
        pd.DataFrame({"a": y, "y": y}).to_parquet(path)
    else:
        np.savez(path, x=y[:, None], y=y)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_classes_are_declared_and_not_read_from_the_labels(name, tmp_path):
    path, kind = three_classes(name, tmp_path), KINDS[name]
    fields = {"task": "multiclass", "test_fraction": 0}
    data = made(kind, path, labels=[9, 7, 8, "rare"], **fields).load()
    assert data.y.tolist() == [1, 2, 0, 2]
    # A class that no record has counts: the number of classes is public.
    assert data.classes == 4
    merged = made(kind, path, labels={7: 0, 8: 1, 9: 0, "*": 2}, **fields).load()
    assert (merged.y.tolist(), merged.classes) == ([0, 1, 0, 1], 3)
    message = refused(kind, path, "dataset.labels", labels=[7, 8, 10], **fields)
    assert "record 3 is outside the declared map {7: 0, 8: 1, 10: 2}" in message
    assert "takes them from nowhere else" in refused(kind, path, "dataset.labels", **fields)


@pytest.mark.parametrize("name", KINDS)
def test_location_looks_at_no_label(name, tmp_path):
    path = three_classes(name, tmp_path)
    fields = {"drop": ["y"]} if name in ("csv", "parquet") else {}
    dataset = made(KINDS[name], path, task="location", rows="clip", row_bound=9, **fields)
    raw = dataset.raw()
    x = raw.x.toarray() if name == "svmlight" else raw.x
    assert x[:, 0].tolist() == [7, 8, 9, 8]
    assert raw.y.tolist() == [0, 0, 0, 0]
    assert (dataset.load().task, dataset.default_loss) == ("location", "l1_median")


@pytest.mark.parametrize(
    "bad",
    [[], ["a", "b"], "abc", {"a": 0, "b": 1}, {"a": 0, "b": 1, "c": 3}, {"a": 0, "b": 2, "c": 2},
     {"a": 0, "b": 1, "c": 1.5}, {"a": 0, "b": 1, "c": True}, ["a", "b", "a"], [1, 1.0, 2], 3],
)  # fmt: skip
def test_bad_classes(bad):
    with pytest.raises(InputError) as caught:
        Csv(path="f", task="multiclass", labels=bad)
    assert caught.value.key == "dataset.labels"


def test_yaml_booleans_meet_the_words_they_were():
    # YAML reads yes, no, on, off, true and false as booleans unless they are quoted.
    words = np.array(["yes", "No", "on", "OFF", "true", "FALSE"])
    for pairs in (label_map({True: 1, False: -1}), label_map({"True": 1, "False": -1})):
        assert map_labels(words, pairs).tolist() == [1, -1, 1, -1, 1, -1]
    quoted = label_map({"yes": 1, "no": -1})
    assert map_labels(np.array(["yes", "no"]), quoted).tolist() == [1, -1]
    with pytest.raises(InputError, match="true"):
        map_labels(np.array(["true"]), quoted)
    assert class_map([True, False, "maybe"]) == (("true", 0), ("false", 1), ("maybe", 2))
