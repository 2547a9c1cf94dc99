"""``dataset=table``: a table of any columns becomes numbers by a declared, public map."""

from __future__ import annotations

import math
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dperm_cli.core import plain_yaml
from dperm_cli.core.errors import InputError
from dperm_cli.core.number_text import number_in
from dperm_cli.datasets.files.table import Table
from dperm_cli.datasets.shared.schema_draft import write_word
from dperm_cli.datasets.shared.table_cells import read_cells
from dperm_cli.datasets.shared.table_schema import parse_schema

SCHEMA = {
    "target": {"column": "sick", "kind": "label", "classes": ["no", "yes"]},
    "columns": {
        "id": {"kind": "identifier"},
        "age": {"kind": "number", "bounds": [0, 100]},
        "dose": {"kind": "number", "bounds": [0, 10], "missing": 5, "weight": 2.0},
        "sex": {"kind": "category", "values": ["f", "m"]},
        "stage": {"kind": "ordinal", "order": ["low", "mid", "high"], "missing": "drop"},
        "seen": {"kind": "date", "first": "2020-01-01", "last": "2020-12-31", "missing": "drop"},
        "words": {"kind": "drop"},
    },
}
HEADER = "id,age,dose,sex,stage,seen,words,sick"
LINES = [
    "a,50,10,f,low,2020-01-01,x,no",
    "b,,,m,high,2020-12-31,y,yes",
    "c,1e400,-3,x,mid,2020-07-01T10:00,,yes",
    'd,old,2.5,,mid,2020-07-01,"said ""no""",no',
    "e,1,1,f,odd,2020-07-01,,no",  # no such stage: the record does not count
    "f,1,1,f,low,someday,,no",  # no such day
    "g,1,1,f,low,2020-07-01,,perhaps",  # no such class
    "h,1,1",  # too short
]


def write(folder, lines=LINES, schema=SCHEMA, header=HEADER):
    (folder / "t.csv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "s.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    return {"path": str(folder / "t.csv"), "schema": str(folder / "s.yaml")}


def load(words, **more):
    options = {"rows": "none", "row_bound": 100.0, "test_fraction": 0.0, **words, **more}
    return Table(**options).load()


def test_each_kind_is_encoded_as_declared(tmp_path):
    table = Table(**write(tmp_path))
    assert table.table.names == (
        "age", "age=missing", "dose", "sex=f", "sex=m", "sex=other", "sex=missing", "stage", "seen",
        "constant",
    )  # fmt: skip
    data = load(write(tmp_path))
    half = 2.0 * (182 / 365) - 1.0
    np.testing.assert_array_equal(
        data.x,
        [
            [0, 0, 2, 1, 0, 0, 0, -1, -1, 1],
            [0, 1, 0, 0, 1, 0, 0, 1, 1, 1],
            [1, 0, -2, 0, 0, 1, 0, 0, half, 1],
            [0, 1, -1, 0, 0, 0, 1, 0, half, 1],
            *np.zeros((4, 10)),
        ],
    )
    np.testing.assert_array_equal(data.y[:4], [-1, 1, 1, -1])


def test_a_parquet_table_gives_the_same_records(tmp_path):
    words = write(tmp_path, LINES[:2])
    columns = {
        "id": ["a", "b"], "age": pa.array([50, None], pa.int64()), "dose": [10.0, None],
        "sex": pa.array(["f", "m"]).dictionary_encode(), "stage": ["low", "high"],
        "seen": pa.array([18262, 18627], pa.date32()), "words": ["x", "y"], "sick": ["no", "yes"],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=1)
    one, other = load(words), load({**words, "path": str(tmp_path / "t.parquet")})
    assert one.fingerprint == other.fingerprint


FAR = 2**31 - 1  # days after 1970, which Python has no word for
STRANGE = {
    "date32": pa.array([18262, FAR], pa.int32()).view(pa.date32()),
    "timestamp": pa.array([0, 2**62], pa.int64()).view(pa.timestamp("us")),
    "zoned": pa.array([0, -(2**62)], pa.int64()).view(pa.timestamp("ms", tz="Europe/Berlin")),
    "duration": pa.array([0, 2**62], pa.int64()).view(pa.duration("ms")),
    "time": pa.array([0, 2**62], pa.int64()).view(pa.time64("us")),
    "no text": pa.array([b"a", b"\xff\xfe"], pa.binary()).view(pa.string()),
    "no text in a dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int32()), pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    ),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_no_cell_of_a_parquet_table_stops_the_reading(kind, tmp_path):
    """Such a cell was a refusal, or an error of Python's: it told one table from its neighbour."""
    pq.write_table(pa.table({"a": STRANGE[kind]}), tmp_path / "t.parquet")
    (found,) = read_cells("TABLE", tmp_path / "t.parquet", ",", 1 << 30)
    assert found["a"] == [str(STRANGE[kind][0].as_py()), ""]


def test_a_long_cell_that_is_no_number_takes_no_longer_than_one_that_is():
    """Digits were read in every possible way: 32,000 of them took three minutes."""
    started = time.process_time()
    for length in (100_000, 400_000):
        assert number_in("9" * length + "x") is None
        assert number_in("9" * length + "." + "9" * length + "e" + "9" * length + "x") is None
        assert number_in("9" * length) == math.inf
    assert time.process_time() - started < 5.0


def test_a_skewed_target_is_modelled_by_its_logarithm(tmp_path):
    target = {"column": "cost", "kind": "number", "bounds": [1, 100], "transform": "log"}
    schema = {"target": target, "columns": {"x": {"kind": "number", "bounds": [0, 1]}}}
    lines = ["0,1", "0,10", "1,1000", "1,0", "1,-4", "1,", "1,no"]
    data = load(write(tmp_path, lines, schema, "x,cost"))
    np.testing.assert_allclose(data.y, [-1, 0, 1, -1, -1, 0, 0], atol=1e-12)
    np.testing.assert_array_equal(np.any(data.x != 0, axis=1), [1, 1, 1, 1, 1, 0, 0])


def test_of_a_person_the_first_records_count(tmp_path):
    schema = {
        "unit": {"column": "who", "at_most": 2},
        "target": {"column": "y", "kind": "label", "classes": ["a", "b", "c"]},
        "columns": {"x": {"kind": "number", "bounds": [0, 1]}},
    }
    data = load(write(tmp_path, ["p,1,a", "q,1,b", "p,1,c", "p,1,b", "q,1,a"], schema, "who,x,y"))
    assert data.task == "multiclass"
    np.testing.assert_array_equal(np.any(data.x != 0, axis=1), [1, 1, 1, 0, 1])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.text(max_size=8), min_size=8, max_size=8), min_size=1, max_size=4))
def test_no_cell_can_make_it_fail_and_each_record_is_encoded_alone(rows):
    schema = parse_schema(SCHEMA)
    names = [*SCHEMA["columns"], "sick"]
    cells = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    x, dropped = schema.encode(cells)
    assert np.isfinite(x).all()
    assert np.abs(x).max() <= 2.0
    y = schema.target.encode(cells["sick"])
    assert all(math.isnan(v) or v in (-1.0, 1.0) for v in y)
    for i, row in enumerate(rows):
        alone, gone = schema.encode({name: [row[j]] for j, name in enumerate(names)})
        assert alone.tobytes() == x[i : i + 1].tobytes()
        assert gone[0] == dropped[i]


def test_a_schema_survives_being_written():
    schema = parse_schema(SCHEMA)
    assert parse_schema(schema.plain()) == schema
    assert parse_schema(yaml.safe_load(yaml.safe_dump(schema.plain(), sort_keys=False))) == schema


def changed(path, value):
    found = yaml.safe_load(yaml.safe_dump(SCHEMA, sort_keys=False))
    *parts, last = path
    inner = found
    for part in parts:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["target"], None, "schema.target=None: must be a map such as {column: sick"),
        (["target", "column"], "FILL_IN", "schema.target.column=FILL_IN: must name the column"),
        (["target", "kind"], "lable", "did you mean 'label'"),
        (["target", "classes"], ["yes"], "schema.target.classes=['yes']: must list two or more"),
        (["target", "bounds"], [0, 1], "schema.target.bounds=[0, 1]: is for kind: number"),
        (["columns"], {}, "schema.columns={}: must map each column"),
        (
            ["columns", "age", "kind"],
            None,
            "schema.columns.age.kind=FILL_IN: must be one of",
        ),
        (["columns", "age", "bounds"], None, "schema.columns.age.bounds: is missing"),
        (["columns", "age", "bounds"], ["FILL_IN", 5], "FILL_IN is to be replaced"),
        (["target", "classes"], ["FILL_IN", "FILL_IN"], "FILL_IN is to be replaced"),
        (["columns", "age", "bounds"], [5, 5], "must be public [low, high] with low < high"),
        (["columns", "age", "bound"], [5, 6], "schema.columns.age.bound: unknown key"),
        (["columns", "age", "missing"], "mean", "schema.columns.age.missing=mean: must be own"),
        (["columns", "age", "weight"], 0, "schema.columns.age.weight=0"),
        (["columns", "sex", "values"], ["f", "f"], "must list two or more words"),
        (["columns", "sex", "values"], ["f", ""], "stands for a missing cell"),
        (["columns", "sex", "other"], "drop", "must be one of own, zero"),
        (["columns", "stage", "order"], "low", "must list two or more words"),
        (["columns", "seen", "last"], "2019-01-01", "must be a day after `first`"),
        (["columns", "seen", "first"], "01.02.2020", "must be a day such as 2020-12-31"),
        (["columns", "sick"], {"kind": "drop"}, "is the target: it stands under target alone"),
        (["unit"], "person", "schema.unit=person: must be record, or"),
        (["unit"], {"column": "id"}, "schema.unit.at_most=FILL_IN"),
        (["intercept"], "yes", "must be true or false"),
        (["rows"], "unit", "schema.rows: unknown key"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(path, value, words, tmp_path):
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, schema=changed(path, value)))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_and_its_schema_must_agree(tmp_path):
    with pytest.raises(InputError, match=r"to leave it out, write the line `more: {kind: drop}`"):
        load(write(tmp_path, header=HEADER + ",more"))
    with pytest.raises(InputError, match="has no such column"):
        load(write(tmp_path, header=HEADER.replace("dose", "Dose")))
    with pytest.raises(InputError, match="more than once"):
        load(write(tmp_path, header=HEADER.replace("dose", "age")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.text(min_size=1, max_size=12).filter(str.isprintable))
def test_names_in_a_draft_are_read_back(name, tmp_path):
    path = tmp_path / "draft.yaml"
    path.write_text(f"{write_word(name)}: 1\n", encoding="utf-8")
    assert plain_yaml.read_mapping(path, ValueError) == {name: 1}
