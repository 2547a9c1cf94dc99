"""An exported graph says what ``dperm predict`` says, in a runtime that knows nothing of dperm."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from dperm_cli import cli
from dperm_cli.core.errors import Unsupported
from dperm_cli.datasets.shared.table_schema import parse_schema
from dperm_cli.kernels.laplacian import Laplacian
from dperm_cli.kernels.linear import Linear
from dperm_cli.kernels.polynomial import Polynomial
from dperm_cli.kernels.rbf import Rbf
from dperm_cli.privacy.events import Gaussian
from dperm_cli.runner.models import model_file
from dperm_cli.runner.models.input_schema import InputSchema
from dperm_cli.runner.models.onnx_model import write_onnx
from dperm_cli.runner.models.publishable import FeatureMap, Publishable, ReleaseFacts
from dperm_cli.runner.models.query_rows import QueryBlock
from dperm_cli.runner.verbs.predict import predict_block

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1.0, 1.0, (5, 4))
MAPS = {
    "frequencies": FeatureMap("fourier", Rbf(gamma=0.7), {"frequencies": RNG.normal(size=(6, 4))}),
    "monomials": FeatureMap("explicit", Polynomial(degree=3, offset=0.5), {}),
    "monomials alone": FeatureMap("explicit", Polynomial(degree=2, offset=0.0), {}),
    "columns": FeatureMap("explicit", Linear(), {}),
} | {
    f"points of {type(kernel).__name__}": FeatureMap(
        "landmarks", kernel, {"points": POINTS, "basis": RNG.normal(size=(5, 3))}
    )
    for kernel in (Rbf(gamma=0.7), Laplacian(gamma=0.4), Polynomial(degree=2), Linear())
}
CLASSES = (("a", 0.0), ("b", 1.0), ("c", 2.0))
SCHEMAS = {
    "labels": {"labels": (("no", -1.0), ("yes", 1.0))},
    "numbers for labels": {},
    "unit rows": {"rows": "unit", "row_bound": 2.0, "intercept": True},
    "bounds": {"scaling": "bounds", "bounds": (-2.0, 3.0), "rows": "clip"},
    "bounds of each": {"scaling": "bounds", "centred": False, "intercept": True,
                       "bounds": ((-1.0, 1.0), (0.0, 2.0), (-3.0, 0.0), (0.0, 1.0))},
    "norm 1": {"norm": "1", "row_bound": 0.5},
    "largest entry": {"norm": "inf", "row_bound": 0.4, "rows": "none"},
    "classes": {"task": "multiclass", "labels": CLASSES, "columns": ("p", "q", "r", "s")},
    "target": {"task": "regression", "target_bounds": (-4.0, 20.0)},
}  # fmt: skip
LOSSES = {"binary": "logistic", "multiclass": "multinomial", "regression": "squared"}
TABLE = {
    "target": {"column": "ill", "kind": "label", "classes": ["no", "yes"]},
    "columns": {
        "age": {"kind": "number", "bounds": [0, 100]},
        "weight": {"kind": "number", "bounds": [30, 200], "missing": 80, "weight": 0.5},
        "sex": {"kind": "category", "values": ["f", "m"]},
        "ward": {"kind": "category", "values": ["a", "b", "c"], "missing": "zero", "weight": 2.0,
                 "other": "zero"},
        "town": {"kind": "category", "values": ["x", "y"], "missing": "y"},
        "stage": {"kind": "ordinal", "order": ["low", "mid", "high"], "missing": "mid"},
        "pain": {"kind": "ordinal", "order": ["1", "2", "3", "4"]},
        "seen": {"kind": "date", "first": "2019-05-01", "last": "2021-07-31"},
        "left": {"kind": "drop"},
        "name": {"kind": "identifier"},
    },
}  # fmt: skip
DROPPED = {
    "age": {"kind": "number", "bounds": [0, 100], "missing": "drop"},
    "sex": {"kind": "category", "values": ["f", "m"], "missing": "drop"},
    "stage": {"kind": "ordinal", "order": ["low", "mid", "high"], "missing": "drop"},
}
COST = {"column": "cost", "kind": "number", "bounds": [1, 1e4], "transform": "log"}


def model(schema, features=None):
    facts = ReleaseFacts(LOSSES[schema.task], "l2_ball", 5.0, 0.1, 0.0, schema.row_bound, 100,
                         "public")  # fmt: skip
    empty = Publishable(
        "0", "noisy_gd", (Gaussian(9.0, 1.0, gap=1.0),), "replace_one", 1e-6, 1, "secure",
        "float64", facts, schema, features, None,
    )  # fmt: skip
    theta = np.random.default_rng(1).normal(size=empty.coordinates)
    return dataclasses.replace(empty, theta=theta)


def runtime(found):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        write_onnx(found), options, providers=["CPUExecutionProvider"]
    )


def agree(found, session, inputs, block):
    """All columns that ``dperm predict`` prints are outputs with the same values."""
    names = [output.name for output in session.get_outputs()]
    given = dict(zip(names, session.run(None, inputs), strict=True))
    expected = predict_block(found, block)
    assert {name.partition("=")[0] for name in expected} == set(names)
    classes = [found.schema.format_label(float(k)) for k in range(found.schema.classes)]
    for name, values in expected.items():
        word, several, label = name.partition("=")
        got = given[word]
        if several and got.ndim == 2:
            got = got[:, [str(one) for one in classes].index(label)]
        assert len(got) == len(values)
        for one, other in zip(got.tolist(), values, strict=True):
            if other is None:
                assert one == "" or math.isnan(one)
            elif word == "label":
                assert one == str(other)
            else:
                assert one == pytest.approx(other, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", SCHEMAS)
def test_linear_models_on_rows(name):
    given = SCHEMAS[name]
    found = model(InputSchema(**({"dataset": "csv", "task": "binary", "count": 4} | given)))
    rows = np.vstack([RNG.normal(0.0, 2.0, (40, 4)), np.zeros((1, 4)), np.full((1, 4), 1e150)])
    agree(found, runtime(found), {"rows": rows}, QueryBlock(rows))


@pytest.mark.parametrize("name", MAPS)
def test_models_on_features_of_kernels(name):
    found = model(InputSchema(dataset="csv", task="binary", count=4), MAPS[name])
    rows = RNG.normal(0.0, 1.0, (40, 4))
    agree(found, runtime(found), {"rows": rows}, QueryBlock(rows))


def draw_cells(count, missing):
    """Texts of the columns of ``TABLE``: values in and out of bounds, unknown words, gaps."""
    rng = np.random.default_rng(5)
    words = {
        "sex": ["f", "m", "z"], "ward": ["a", "b", "c", "d"], "town": ["x", "y", "w"],
        "stage": ["low", "mid", "high", "worst"], "pain": ["1", "2", "3", "4", "5"],
    }  # fmt: skip
    cells = {name: rng.choice(known, count).tolist() for name, known in words.items()}
    cells["age"] = [repr(float(v)) for v in rng.uniform(-20, 130, count)]
    cells["weight"] = [repr(float(v)) for v in rng.uniform(0, 250, count)]
    days = rng.integers(-100, 1000, count)
    cells["seen"] = [str(date(2019, 5, 1) + timedelta(int(day))) for day in days]
    for column in cells.values():
        for i in np.flatnonzero(rng.uniform(size=count) < missing):
            column[i] = ""
    return cells


def as_inputs(cells, names):
    """The graph's inputs: numbers, days since 1970 and words."""

    def number(name, cell):
        if not cell:
            return math.nan
        return float((date.fromisoformat(cell) - date(1970, 1, 1)).days) if name == "seen" else (
            float(cell))  # fmt: skip

    made = {}
    for name in names:
        if name in ("age", "weight", "seen"):
            made[name] = np.array([[number(name, cell)] for cell in cells[name]])
        else:
            made[name] = np.array([[cell] for cell in cells[name]], dtype=object)
    return made


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("form", ["all kinds", "dropped rows", "logarithm", "no constant"])
def test_tables_with_a_schema(form, missing):
    given: dict[str, Any] = dict(TABLE)
    if form == "dropped rows":
        given["columns"] = TABLE["columns"] | DROPPED
    if form == "logarithm":
        given["target"] = COST
    if form == "no constant":
        given["intercept"] = False
    table = parse_schema(given)
    schema = InputSchema(
        dataset="table", task=table.task, count=len(table.names), columns=table.names,
        labels=table.target.labels, target_bounds=table.target.model_bounds, row_bound=1.5,
        table=table,
    )  # fmt: skip
    found = model(schema)
    cells = draw_cells(60, missing)
    names = [name for name, _ in table.features]
    rows, unusable = table.encode({name: cells[name] for name in names})
    session = runtime(found)
    assert [one.name for one in session.get_inputs()] == names
    block = QueryBlock(rows, {}, unusable if np.any(unusable) else None)
    assert np.any(unusable) == (form == "dropped rows")  # a word of no order is missing too
    agree(found, session, as_inputs(cells, names), block)


def test_the_file_is_of_public_facts_and_the_same_each_time():
    found = model(InputSchema(**({"dataset": "csv", "task": "binary", "count": 4})))
    file = write_onnx(found)
    assert file == write_onnx(found)
    facts = {one.key: one.value for one in onnx.load_from_string(file).metadata_props}
    assert facts["level"] == found.level()
    assert json.loads(facts["facts"]) == json.loads(json.dumps(found.plain()))


def test_the_verb_writes_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = model(InputSchema(**({"dataset": "csv", "task": "binary", "count": 4})))
    (tmp_path / "m.npz").write_bytes(model_file.bytes_of(found))
    assert cli.main(["export", "m.npz", "format=onnx"]) == 2
    assert "out=model.onnx" in capsys.readouterr().err
    assert cli.main(["export", "m.npz", "format=onnx", "out=m.onnx"]) == 0
    assert (tmp_path / "m.onnx").read_bytes() == write_onnx(found)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(Unsupported, match="pip install 'dperm"):
        write_onnx(model(InputSchema(**({"dataset": "csv", "task": "binary", "count": 4}))))


def test_a_kernel_that_cannot_be_written_is_named():
    from dperm_cli.kernels.histogram_intersection import HistogramIntersection

    arrays = {"points": np.abs(POINTS), "basis": RNG.normal(size=(5, 3))}
    found = model(
        InputSchema(dataset="csv", task="binary", count=4),
        FeatureMap("landmarks", HistogramIntersection(), arrays),
    )
    with pytest.raises(Unsupported, match="kernel=histogram_intersection cannot"):
        write_onnx(found)
