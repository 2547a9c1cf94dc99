"""Estimators with ``schema=``: frames are encoded as a release encodes a table."""

from __future__ import annotations

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dperm_cli import cli
from dperm_cli.datasets.files.frame import write_cells
from dperm_cli.estimators import (
    PrivateKernelClassifier,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSoftmaxRegression,
)
from dperm_cli.runner.models import model_file

RNG = np.random.default_rng(4)
N = 400
COLUMNS = {
    "age": {"kind": "number", "bounds": [0, 100]},
    "sex": {"kind": "category", "values": ["f", "m"]},
    "stage": {"kind": "ordinal", "order": ["low", "mid", "high"]},
    "seen": {"kind": "date", "first": "2024-01-01", "last": "2024-12-31"},
    "patient": {"kind": "identifier"},
}
SICK = {"target": {"column": "sick", "classes": ["no", "yes"]}, "columns": COLUMNS}
DOSE = {
    "target": {"column": "dose", "kind": "number", "bounds": [1, 1000], "transform": "log"},
    "columns": COLUMNS,
}
LEVEL = {"target": {"column": "level", "classes": ["a", "b", "c"]}, "columns": COLUMNS}


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))


def make_frame(n=N):
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({
        "age": rng.integers(0, 100, n).astype(float),
        "sex": pd.Categorical(rng.choice(["f", "m"], n)),
        "stage": rng.choice(["low", "mid", "high"], n),
        "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D"),
        "patient": np.arange(n),
    })  # fmt: skip
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "stage"] = None
    frame.loc[6, "seen"] = pd.NaT
    return frame


class NoText:
    """A value that cannot be written."""

    def __str__(self) -> str:
        raise RuntimeError("a secret")


def test_no_value_of_a_frame_stops_a_fit():
    """A number of 5000 digits, or a signalling NaN, was an error of Python's."""
    values = [10**5000, Decimal("sNaN"), NoText(), pd.NA, pd.NaT, np.zeros(2), Decimal("1.5")]
    assert write_cells(values) == ["", "sNaN", "", "", "", "[0. 0.]", "1.5"]


def make_labels(frame):
    return np.where(frame["age"].fillna(0.0) > 50, "yes", "no")


class PlainFrame:
    """As other libraries' frames are: ``columns`` and ``frame[name].to_list()``."""

    def __init__(self, frame):
        self.columns = list(frame.columns)
        self._frame = frame
        self.shape = frame.shape

    def __getitem__(self, name):
        return self._frame[name]


RESEARCH = {"noise": "research", "random_state": 1}


def test_a_fit_is_the_release_of_the_same_table():
    """One theta from a frame and from its csv, through ``dperm run``."""
    import dperm_cli

    frame = make_frame()
    labels = make_labels(frame)
    frame.assign(sick=labels).to_csv("table.csv", index=False)
    model = PrivateLogisticRegression(4.0, schema=SICK, **RESEARCH).fit(frame, labels)
    study = dperm_cli.run(
        dataset="table", epsilon=4.0, trials=1, seed=1, out="run", progress=False,
        **{"dataset.path": "table.csv", "dataset.schema": SICK, "dataset.test_fraction": 0.0,
           "loss": "logistic", "constraint.radius": "auto", "save": "m.npz"},
    )  # fmt: skip
    assert study.frame()["status"].tolist() == ["ok"]
    np.testing.assert_array_equal(model_file.read("m.npz").theta, model.theta_)
    assert model.score(frame, labels) > 0.8


def test_a_saved_model_predicts_a_file_by_names(capsys):
    frame = make_frame()
    model = PrivateLogisticRegression(4.0, schema=SICK).fit(frame, make_labels(frame))
    model.save("m.npz")
    shuffled = frame[:50][["patient", "seen", "stage", "sex", "age"]].assign(more=1)
    shuffled.to_csv("new.csv", index=False)
    assert cli.main(["predict", "m.npz", "new.csv"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert found["patient"].tolist() == frame["patient"][:50].tolist()
    label = next(name for name in found.columns if set(found[name]) <= {"no", "yes"})
    assert found[label].tolist() == model.predict(frame[:50]).tolist()
    assert model.predict(shuffled).tolist() == model.predict(frame[:50]).tolist()


def test_several_classes_and_a_logarithm():
    frame = make_frame()
    words = np.array(["a", "b", "c"])[np.digitize(frame["age"].fillna(0.0), [33, 66])]
    model = PrivateSoftmaxRegression(20.0, schema=LEVEL).fit(frame, words)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(frame).shape == (N, 3)
    assert model.score(frame, words) > 0.5
    dose = np.exp(0.06 * frame["age"].fillna(0.0)) + 1.0
    rest = PrivateRidge(20.0, schema=DOSE).fit(frame, dose)
    found = rest.predict(frame)
    assert np.all((found > 0.0) & np.isfinite(found))
    assert np.corrcoef(np.log(found), np.log(dose))[0, 1] > 0.8
    assert rest.coef_.shape == (len(rest.release_.schema.columns) - 1,)


def test_a_kernel_on_a_frame():
    frame = make_frame()
    model = PrivateKernelClassifier(20.0, schema=SICK).fit(frame, make_labels(frame))
    assert model.predict(frame[:5]).shape == (5,)


def test_declared_values_stand_for_the_words():
    told = {"target": {"column": "sick", "classes": [0, 1]}, "columns": COLUMNS}
    frame = make_frame()
    labels = (make_labels(frame) == "yes").astype(int)
    model = PrivateLogisticRegression(4.0, schema=told, classes=[0, 1]).fit(frame, labels)
    assert model.predict(frame).dtype.kind == "i"
    assert model.score(frame, labels) > 0.8
    with pytest.raises(ValueError, match="must be those of the schema"):
        PrivateLogisticRegression(schema=told, classes=[1, 2]).fit(frame, labels)


def test_frames_of_other_libraries_have_the_same_cells():
    from dperm_cli.datasets.files.frame import read_frame

    frame = make_frame(20)
    found = read_frame(frame)
    assert found == read_frame(PlainFrame(frame))
    assert (found["age"][3], found["stage"][5], found["seen"][6]) == ("", "", "")
    assert read_frame(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})) == {"a": ["1", ""]}


def test_no_cell_decides_whether_a_fit_ends():
    """Unknown words, numbers out of bounds, odd objects, unknown labels: rows, and no error."""
    frame = make_frame().astype(object)
    frame.loc[0] = ["many", "x", [1, 2], {"a": 1}, None]
    labels = make_labels(make_frame()).astype(object)
    labels[0] = "perhaps"
    model = PrivateLogisticRegression(4.0, schema=SICK).fit(frame, labels)
    assert model.classes_.tolist() == ["no", "yes"]


def test_records_beyond_a_persons_are_rows_of_zeros():
    told = SICK | {"unit": {"column": "person", "at_most": 2}}
    frame = make_frame().assign(person=lambda one: one["patient"] // 4)
    labels = make_labels(frame)
    columns = COLUMNS | {"person": {"kind": "drop"}}
    first = PrivateLogisticRegression(4.0, schema=told | {"columns": columns}, **RESEARCH)
    assert first.fit(frame, labels).theta_ is not None
    changed = labels.copy()
    beyond = frame["patient"] % 4 >= 2
    changed[beyond] = np.where(labels[beyond] == "yes", "no", "yes")
    again = clone(first).fit(frame, changed)
    np.testing.assert_array_equal(first.theta_, again.theta_)


def test_a_schema_is_a_file_as_well():
    import yaml

    with open("schema.yaml", "w") as file:
        yaml.safe_dump(SICK, file, sort_keys=False)  # columns are in its order
    frame = make_frame()
    one = PrivateLogisticRegression(4.0, schema="schema.yaml", **RESEARCH)
    other = PrivateLogisticRegression(4.0, schema=SICK, **RESEARCH)
    labels = make_labels(frame)
    assert np.array_equal(one.fit(frame, labels).theta_, other.fit(frame, labels).theta_)
    assert list(one.feature_names_in_) == list(frame.columns)
    assert not hasattr(clone(one), "release_")


FRAME = make_frame(30)
Y = make_labels(FRAME)


@pytest.mark.parametrize(
    ("keys", "X", "y", "told"),
    [
        ({}, FRAME.assign(more=1), Y, "more"),
        ({}, FRAME.drop(columns="age"), Y, "age"),
        ({}, FRAME.assign(sick=Y), Y, "is the target: it stands in y alone"),
        ({}, FRAME, Y[:-1], "must be 30: one for each row of X"),
        ({}, FRAME[:0], Y[:0], "must hold records"),
        ({}, FRAME.to_numpy(), Y, "must be a frame of pandas or polars"),
        ({}, None, Y, "must be a frame of pandas or polars"),
        ({"bounds": (0, 1)}, FRAME, Y, "cannot stand beside schema"),
        ({"schema": DOSE}, FRAME, Y, "declares a target for regression"),
        ({"schema": LEVEL}, FRAME, Y, "declares a target for multiclass"),
        ({"schema": "nowhere.yaml"}, FRAME, Y, "no such file"),
        ({"schema": {"columns": {}}}, FRAME, Y, "schema.target"),
        ({"schema": 3}, FRAME, Y, "schema"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_line(keys, X, y, told):
    with pytest.raises(ValueError, match=told) as caught:
        PrivateLogisticRegression(**{"epsilon": 4.0, "schema": SICK} | keys).fit(X, y)
    assert "\n" not in str(caught.value)


def test_rows_without_a_prediction_are_named():
    told = SICK | {"columns": COLUMNS | {"age": COLUMNS["age"] | {"missing": "drop"}}}
    frame = make_frame()
    model = PrivateLogisticRegression(4.0, schema=told).fit(frame, make_labels(frame))
    with pytest.raises(ValueError, match="row 4: has no prediction"):
        model.predict(frame)
    with pytest.raises(ValueError, match=r"column .sex.: is missing"):
        model.predict(frame.drop(columns="sex"))
    assert len(model.predict(frame[10:20])) == 10
