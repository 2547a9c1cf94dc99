"""The traps in the published data sets themselves, where the data folder has their files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core import registry
from dperm_cli.datasets.shared import data_commands

FOLDER = os.environ.get("DPERM_DATA_DIR", "")


def data_file(stem):
    """A file of the data folder, or a skip."""
    folder = Path(FOLDER) if FOLDER else None
    found = None
    if folder is not None:
        found = next(
            (f for e in ("", ".bz2", ".gz") if (f := folder / f"{stem}{e}").is_file()), None
        )
    if found is None:
        pytest.skip(f"{stem} is not in DPERM_DATA_DIR")
    return found


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    # One parse of each large file for the whole session.
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


def load(name, stem, **fields):
    path = data_file(stem)
    return registry.load("dataset", name)(**fields).load(path.parent)


@pytest.mark.slow  # half a million records each; the smaller files below are read the same way
def test_covtype_labels_split_and_bounds():
    data = load("covtype", "covtype.libsvm.binary")
    assert data.x.shape == (500000, 54)
    assert data.x_test.shape == (81012, 54)
    assert sparse.issparse(data.x)
    positive = int(np.sum(data.y > 0) + np.sum(data.y_test > 0))
    assert (positive, 581012 - positive) == (283301, 297711)
    # Shuffled: the file is in spatial order, and both parts must hold the classes alike.
    assert abs(np.mean(data.y > 0) - np.mean(data.y_test > 0)) < 0.01
    assert data.x.data.min() > 0
    assert "columns to [0, 1] by public bounds, clipped" in data.preprocessing
    findings = {f.check: f for f in data_commands.verify("covtype", Path(FOLDER))}
    assert findings["bounds"].detail.startswith("0 entries")
    assert findings["digest"].level == "ok"


@pytest.mark.slow
def test_kddcup99_keeps_duplicates_and_says_so():
    data = load("kddcup99", "kddcup.data_10_percent", test_fraction=0)
    assert data.x.shape == (494021, 122)
    assert int(np.sum(data.y < 0)) == 97278
    assert any("duplicates are kept" in step for step in data.preprocessing)
    # Three indicators a record, all of declared words.
    assert np.all(np.diff(data.x[:, 38:].indptr) == 3)
    kind = registry.load("dataset", "kddcup99")
    every = kind(classes="all").load(Path(FOLDER))
    assert (every.task, every.classes) == ("multiclass", 23)
    raw = kind(log=False).raw(Path(FOLDER))
    assert raw.bounds is not None
    assert raw.x.max() == pytest.approx(693375640)


def test_news20_stays_sparse_and_balanced():
    data = load("news20", "news20", test_fraction=0)
    assert data.x.shape == (15935, 62061)
    assert sparse.issparse(data.x)
    assert 62061 - np.unique(data.x.indices).size == 1715
    assert float(np.mean(data.y > 0)) == pytest.approx(0.499, abs=0.003)
    every = registry.load("dataset", "news20")(classes="all").load(Path(FOLDER))
    assert (every.classes, set(np.unique(every.y))) == (20, set(range(20)))


def test_reuters_has_few_positives_and_unit_rows():
    data = load("reuters_moneyfx", "reuters_moneyfx.trn")
    assert (data.n, data.x_test.shape[0], data.p) == (7770, 3299, 8315)
    assert (int(np.sum(data.y > 0)), int(np.sum(data.y_test > 0))) == (538, 179)
    assert any("6.9 %" in step for step in data.preprocessing)


def test_cal_housing_targets_are_censored_and_said_to_be():
    raw = registry.load("dataset", "cal_housing")().raw(data_file("cal_housing.data").parent)
    assert raw.x.shape == (20640, 8)
    assert (raw.y.min(), raw.y.max()) == (14999, 500001)
    assert int(np.sum(raw.y == 500001)) == 965
    assert any("censored" in note for note in raw.notes)


def test_song_years_split_by_the_row_number_which_is_no_feature():
    data = load("yearpredictionmsd_10k", "yearpredictionmsd_10k.csv", intercept=False)
    assert (data.x.shape, data.x_test.shape) == ((8984, 90), (1016, 90))
    plain = registry.load("dataset", "yearpredictionmsd_10k")().raw(Path(FOLDER))
    assert plain.x[:, 0].max() < 100
    assert (plain.y.min(), plain.y_test.max()) == (1927, 2010)
