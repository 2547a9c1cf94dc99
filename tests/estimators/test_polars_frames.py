"""Estimators take frames of polars as they take those of pandas (skipped without polars)."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dperm_cli.estimators import PrivateLogisticRegression, PrivateRidge

pl = pytest.importorskip("polars")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (400, 3))
LABELS = np.where(X @ [1.0, 2.0, -1.0] > 0.0, "yes", "no")
FRAME = pl.DataFrame({name: X[:, place] for place, name in enumerate("abc")})
TWO = {"epsilon": 5.0, "delta": 1e-5, "bounds": (-1.0, 1.0), "classes": ["no", "yes"]}
SCHEMA = {
    "target": {"column": "dose", "kind": "number", "bounds": [0, 10]},
    "columns": {
        "age": {"kind": "number", "bounds": [0, 100]},
        "sex": {"kind": "category", "values": ["f", "m"]},
        "seen": {"kind": "date", "first": "2024-01-01", "last": "2024-12-31"},
    },
}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))


def test_a_frame_of_numbers_binds_columns_by_name():
    model = PrivateLogisticRegression(**TWO).fit(FRAME, pl.Series("t", LABELS))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.score(FRAME, LABELS) > 0.9
    same = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(model.predict(FRAME), model.predict(same))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME.select(["b", "a", "c"]))


def test_a_pipeline_passes_the_frame_on():
    piped = make_pipeline(FunctionTransformer(), PrivateLogisticRegression(**TWO))
    assert piped.fit(FRAME, LABELS).score(FRAME, LABELS) > 0.9


def make_columns():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(day)) for day in RNG.integers(0, 366, 300)]
    age = [None, *RNG.uniform(0.0, 100.0, 299).tolist()]
    return {"age": age, "sex": RNG.choice(["f", "m"], 300).tolist(), "seen": days}


def test_a_schema_encodes_a_frame_as_it_does_one_of_pandas():
    columns = make_columns()
    dose = np.array([10.0 * (sex == "m") for sex in columns["sex"]])
    model = PrivateRidge(5.0, delta=1e-5, schema=SCHEMA).fit(pl.DataFrame(columns), dose)
    assert model.score(pl.DataFrame(columns), dose) > 0.5
    np.testing.assert_array_equal(
        model.predict(pl.DataFrame(columns)), model.predict(pd.DataFrame(columns))
    )
