"""a9a in the data folder (skipped where it is absent), and the verbs about data."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.published.a9a import A9a
from dperm_cli.datasets.published.breast_cancer import BreastCancer
from dperm_cli.datasets.shared import data_commands

FOLDER = os.environ.get("DPERM_DATA_DIR", "")
FILE = next((f for e in ("", ".bz2", ".gz") if (f := Path(FOLDER, f"a9a{e}")).is_file()), None)
needs_a9a = pytest.mark.skipif(not FOLDER or FILE is None, reason="a9a is not in DPERM_DATA_DIR")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("DPERM_CACHE_DIR", str(cache))


@needs_a9a
def test_a9a_has_the_published_shape_and_split():
    data = A9a().load()
    assert isinstance(data.x, sparse.csr_array)
    assert data.x.shape == (32561, 123)
    assert data.x.nnz == 451592
    assert (int(np.sum(data.y < 0)), int(np.sum(data.y > 0))) == (24720, 7841)
    # The test file never mentions feature 123.
    assert data.x_test.shape == (16281, 123)
    assert int(data.x_test[:, [122]].nnz) == 0
    assert (int(np.sum(data.y_test < 0)), int(np.sum(data.y_test > 0))) == (12435, 3846)
    norms = np.sqrt(np.asarray(data.x.multiply(data.x).sum(axis=1)).ravel())
    assert norms.max() <= 1.0
    assert norms.min() >= 1 - 1e-12


@needs_a9a
def test_a9a_bound_of_the_encoding():
    data = A9a(rows="none").load()
    assert data.row_bound == pytest.approx(14**0.5)
    assert np.all(data.x.data == 1.0)
    assert A9a(intercept=True).load().p == 124


@needs_a9a
def test_a9a_test_file_never_mentions_the_last_column_but_has_it():
    name = next(f.name for f in Path(FOLDER).iterdir() if f.name.split(".bz2")[0] == "a9a.t")
    data = Svmlight(path=name, n_features=123, test_fraction=0).load(Path(FOLDER))
    assert (data.p, int(data.x.indices.max())) == (123, 121)
    with pytest.raises(InputError, match=r"dataset\.n_features"):
        Svmlight(path=name)


@needs_a9a
def test_a9a_is_found_and_verified():
    assert data_commands.path("a9a", Path(FOLDER)) == FILE
    findings = data_commands.verify("a9a", Path(FOLDER))
    assert {f.level for f in findings} == {"ok"}
    assert any("-1: 24720, +1: 7841" in f.detail for f in findings)


def test_a9a_absent_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    monkeypatch.delenv("DPERM_OFFLINE", raising=False)
    fetch = r"dataset=a9a: is not here: run `dperm data fetch a9a`, or put a9a and a9a.t "
    with pytest.raises(InputError, match=fetch + r"\(LIBSVM data page.*DPERM_DATA_DIR names"):
        A9a().load()
    with pytest.raises(InputError, match=fetch) as caught:
        A9a().load(tmp_path)
    assert str(tmp_path) in str(caught.value)
    monkeypatch.setenv("DPERM_OFFLINE", "1")
    with pytest.raises(InputError, match="DPERM_OFFLINE forbids a download: put a9a"):
        A9a().load(tmp_path)


def test_a_file_that_is_not_a9a_is_refused(tmp_path):
    (tmp_path / "a9a").write_text("-1 3:1 123:1\n+1 5:1\n")
    with pytest.raises(InputError, match=r"dataset=a9a: a9a is not the published a9a: 2 records"):
        A9a().load(tmp_path)
    (tmp_path / "a9a").write_text("-1 124:1\n")
    with pytest.raises(InputError, match="n_features=123"):
        A9a().load(tmp_path)


def test_listing_covers_the_registry(tmp_path, monkeypatch):
    monkeypatch.delenv("DPERM_DATA_DIR", raising=False)
    rows = {row.name: row for row in data_commands.list_datasets(tmp_path)}
    assert tuple(rows) == registry.names("dataset")
    assert (rows["digits"].n, rows["digits"].p, rows["digits"].where) == (1797, 64, "embedded")
    assert rows["a9a"].present is False
    assert rows["csv"].n is None
    (tmp_path / "a9a.gz").write_bytes(b"")
    listed = {row.name: row for row in data_commands.list_datasets(tmp_path)}["a9a"]
    assert (listed.present, listed.where) == (True, str(tmp_path / "a9a.gz"))


def test_listed_sizes_are_the_true_ones():
    for row in data_commands.list_datasets():
        if row.where in ("embedded", "generated"):
            kind = registry.load("dataset", row.name)
            none_held = {"n_test": 0, "test_fraction": 0}
            names = {f.name for f in dataclasses.fields(kind)}
            data = kind(**{k: v for k, v in none_held.items() if k in names}).load()
            assert (row.n, row.p, row.task) == (data.n, data.p, data.task)


def test_path_of_each_kind(tmp_path):
    assert data_commands.path("digits") == "embedded"
    assert data_commands.path("synthetic_logistic") == "generated"
    with pytest.raises(InputError, match=r"dataset\.path"):
        data_commands.path("csv")
    with pytest.raises(InputError, match="did you mean 'digits'"):
        data_commands.path("digit")
    with pytest.raises(InputError, match="LIBSVM"):
        data_commands.path("a9a", tmp_path)


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "diabetes", "synthetic_logistic"])
def test_verify_finds_no_problem_in_the_shipped_sets(name):
    findings = data_commands.verify(name)
    assert "problem" not in {f.level for f in findings}
    assert {"row bound", "fingerprint"} <= {f.check for f in findings}


def test_verify_counts_what_is_wrong(tmp_path):
    x = np.array([[3.0, 4.0], [0.0, 0.0], [0.1, 0.2], [9.0, 0.0]])
    path = tmp_path / "f.npz"
    np.savez(path, x=x, y=np.ones(4))
    clipped = Npz(path=str(path), rows="clip", row_bound=5.0, test_fraction=0,
                  intercept=False)  # fmt: skip
    details = {f.check: (f.level, f.detail) for f in data_commands.verify(clipped)}
    assert details["row norm"] == ("note", "1 rows longer than 5, clipped")
    assert details["labels"] == ("note", "-1: 0, +1: 4")
    assert details["zero rows"][1].startswith("1 ")
    scaled = Npz(path=str(path), scaling="bounds", bounds=[0, 3.5])
    details = {f.check: (f.level, f.detail) for f in data_commands.verify(scaled)}
    assert details["bounds"][1].startswith("2 entries")
    unsafe = BreastCancer(scaling="minmax", unsafe_scaling=True)
    assert any(f.check == "scaling" and f.level == "note" for f in data_commands.verify(unsafe))
    np.savez(path, x=np.full((2, 2), np.nan), y=np.ones(2))
    (finding,) = data_commands.verify(Npz(path=str(path)))
    assert (finding.level, finding.check) == ("problem", "load")
    assert "nan" in finding.detail
