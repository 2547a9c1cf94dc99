"""A record's name is a hash of the record as it was read, and everything else passes it on."""

from __future__ import annotations

import ast
import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dperm_cli
from dperm_cli.core import registry
from dperm_cli.datasets.shared import projected_records
from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, prepare
from dperm_cli.problem import data_folder, record_names
from dperm_cli.problem.data import Data, pad_with_zeros
from dperm_cli.problem.record_names import NO_RECORD, batch_of, name_records
from tests.conftest import small_problem
from tests.datasets.files_data import KINDS, made


def expected(row, label):
    """The name of one record, from the layout in words, one value at a time."""
    values = [*row, label]
    if len(row) <= record_names.WIDE:
        content = b"".join(struct.pack("<d", value + 0.0) for value in values)
    else:
        filled = ((j, v) for j, v in enumerate(row) if v != 0.0)
        content = b"".join(struct.pack("<Qd", j, v) for j, v in filled)
        content += struct.pack("<d", label + 0.0)
    digest = hashlib.blake2b(content, key=b"dperm-record-1", digest_size=8).digest()
    return int.from_bytes(digest, "little")


def test_the_published_vector():
    (name,) = name_records(np.array([[1.0, -2.5]]), np.array([1.0]))
    assert name.tobytes().hex() == "1f0d532de58e4635"
    assert int(name) == 3838912847338999071
    assert batch_of(np.array([name]), 10).tolist() == [2]
    assert batch_of(np.array([name]), 7).tolist() == [1]


@pytest.mark.parametrize("columns", [1, 3, record_names.WIDE, record_names.WIDE + 1, 1500])
def test_dense_and_sparse_records_have_the_name_of_the_layout(columns):
    rng = np.random.default_rng(columns)
    x = np.where(rng.random((9, columns)) < 0.3, rng.standard_normal((9, columns)), 0.0)
    x[2] = 0.0
    x[3, -1] = -0.0
    y = np.array([1.0, -1.0, 0.0, -0.0, 2.5, 1.0, 1.0, 1.0, 1.0])
    names = [expected(row, label) for row, label in zip(x, y, strict=True)]
    thin = sparse.csr_array(x)
    assert name_records(x, y).tolist() == names
    assert name_records(np.asfortranarray(x), y).tolist() == names
    assert name_records(thin, y).tolist() == names
    # a stored zero, an entry in two parts and columns out of order are spellings of one row
    parts = (
        np.append([0.0], np.repeat(thin.data / 2.0, 2)),
        np.append([columns - 1], np.repeat(thin.indices, 2)),
        np.append([0], 2 * thin.indptr[1:] + 1),
    )
    messy = sparse.csr_array(parts, shape=x.shape)
    before = messy.data.copy()
    assert name_records(messy, y).tolist() == names
    np.testing.assert_array_equal(messy.data, before)  # the caller's rows are left as they are


@pytest.mark.parametrize("columns", [3, record_names.WIDE + 1])
def test_many_records_have_the_names_of_few(columns, monkeypatch):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, columns)) < 0.2, rng.standard_normal((40, columns)), -0.0)
    x[3], x[7, 1] = 0.0, np.nan
    y = rng.choice([-1.0, 0.0, -0.0, 1.0], 40)
    few = [name_records(x, y), name_records(sparse.csr_array(x), y)]
    monkeypatch.setattr(record_names, "_FEW", 0)
    many = [name_records(x, y), name_records(sparse.csr_array(x), y)]
    np.testing.assert_array_equal(many, few)


def test_all_zeros_and_all_nans_are_one():
    other = np.frombuffer(struct.pack("<Q", 0xFFF8000000000001), dtype="<f8")[0]
    x = np.array([[0.0, np.nan], [-0.0, other], [0.0, 0.0]])
    names = name_records(x, np.array([0.0, -0.0, 0.0]))
    assert names[0] == names[1] != names[2]


def test_a_name_hangs_on_its_record_alone(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((500, 4)), rng.choice([-1.0, 1.0], 500)
    names = name_records(x, y)
    monkeypatch.setattr(record_names, "_BYTES", 100)  # other blocks
    np.testing.assert_array_equal(name_records(x, y), names)
    np.testing.assert_array_equal(name_records(x[7:300], y[7:300]), names[7:300])
    assert len(np.unique(names)) == 500
    changed = x.copy()
    changed[3, 2] = np.nextafter(changed[3, 2], 2.0)
    assert np.flatnonzero(name_records(changed, y) != names).tolist() == [3]
    assert np.flatnonzero(name_records(x, -y) == names).size == 0
    assert name_records(np.zeros((0, 4)), np.zeros(0)).shape == (0,)


def test_batches_are_the_name_s_share_of_all_names():
    names = np.random.default_rng(0).integers(0, 2**64, 300, dtype=np.uint64)
    names[:2] = 0, 2**64 - 1
    for batches in (1, 2, 7, 4096, 2**32 - 1):
        wanted = [int(name) * batches >> 64 for name in names]
        assert batch_of(names, batches).tolist() == wanted
    for wrong in (0, -1, 2**32):
        with pytest.raises(ValueError, match="batches"):
            batch_of(names, wrong)
    counts = np.bincount(batch_of(name_records(np.arange(5e3)[:, None], np.ones(5000)), 10))
    assert np.all(np.abs(counts - 500) < 5 * np.sqrt(500))


# --- readers


TABLE = np.array([[0.5, 0.0, 2.0], [0.0, -0.1, 0.0], [1.0, 0.0, 0.25], [3.0, 1e-3, -7.0]])
LABELS = np.array([1, -1, 1, -1])


def written(kind, folder, y):
    path = folder / {"npz": "f.npz"}.get(kind, f"{kind}.data")
    frame = pd.DataFrame({"a": TABLE[:, 0], "b": TABLE[:, 1], "c": TABLE[:, 2], "y": y})
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "npz":
        np.savez(path, x=TABLE, y=y)
    else:
        rows = (" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(map(float, row)) if v)
                for row in TABLE)  # fmt: skip
        path.write_text("".join(f"{k} {row}\n" for k, row in zip(y, rows, strict=True)))
    return path


ROW_RULES = (
    {"rows": "none", "row_bound": 10.0},
    {"rows": "unit", "intercept": True},
    {"rows": "clip", "row_bound": 0.5, "norm": "inf"},
    {"scaling": "bounds", "bounds": [-4, 4]},
    {"scaling": "standardise", "unsafe_scaling": True},
)


@pytest.mark.parametrize("rule", range(len(ROW_RULES)))
@pytest.mark.parametrize("kind", KINDS)
def test_readers_and_row_rules_give_the_same_names(kind, rule, tmp_path):
    names = [expected(row, label) for row, label in zip(TABLE, LABELS, strict=True)]
    path = written(kind, tmp_path, LABELS)
    forms = [{"storage": "dense"}, {"cache": True}, {"cache": True}] if kind == "svmlight" else [{}]
    for form in forms:
        fields = {"test_fraction": 0.0} | ROW_RULES[rule] | form
        data = made(KINDS[kind], path, **fields).load()
        assert data.names.tolist() == names
        assert data.names.dtype == np.uint64


@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_named_as_they_stand_in_the_file(kind, tmp_path):
    y = np.array([5.0, 20.0, 2.5, 0.0])
    path = written(kind, tmp_path, y)
    data = made(
        KINDS[kind], path, task="regression", target_bounds=[0, 10], test_fraction=0.0
    ).load()
    assert data.names.tolist() == [expected(r, t) for r, t in zip(TABLE, y, strict=True)]
    assert data.y.max() <= 1.0  # while what is trained on is mapped and clipped


def test_a_split_keeps_names():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 3)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    places = {int(name): place for place, name in enumerate(name_records(x, y))}
    data = prepare("toy", "binary", RowOptions(test_fraction=0.3, rows="none", row_bound=9.0),
                   Raw(x=x, y=y))  # fmt: skip
    kept = [places[int(name)] for name in data.names]
    assert len(kept) == 14
    np.testing.assert_array_equal(data.x, x[kept])


GENERATED = [
    n for n in registry.names("dataset") if registry.load("dataset", n).where == "generated"
]


@pytest.mark.parametrize("name", GENERATED)
def test_generated_records_are_named_as_they_are_drawn(name):
    data = registry.load("dataset", name)().load()
    np.testing.assert_array_equal(data.names, name_records(data.x, data.y))


# --- what passes names on


def test_rows_that_are_computed_keep_their_names():
    data = small_problem(n=30).data
    for x in (data.x * 2.0, sparse.csr_array(data.x), np.ones((30, 1))):
        np.testing.assert_array_equal(data.with_rows(x, row_bound=9.0).names, data.names)
    chosen = np.array([4, 4, 0])
    np.testing.assert_array_equal(data.take(chosen).names, data.names[chosen])
    changed = data.with_record(3, np.array([0.1, 0.2, 0.3]), 1.0, fingerprint="other")
    assert np.flatnonzero(changed.names != data.names).tolist() == [3]
    assert int(changed.names[3]) == expected([0.1, 0.2, 0.3], 1.0)
    thin = data.with_rows(sparse.csr_array(data.x)).with_record(3, np.array([0.1, 0.2, 0.3]), 1.0)
    np.testing.assert_array_equal(thin.names, changed.names)
    np.testing.assert_array_equal(thin.x.toarray(), changed.x)
    projected = projected_records.backwards(data, np.eye(3))
    np.testing.assert_array_equal(projected.names, data.names)
    named = data.with_records(data.x + 1.0, data.y)
    np.testing.assert_array_equal(named.names, name_records(data.x + 1.0, data.y))


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_rows_that_fill_up_are_no_records(form):
    data = small_problem(n=30).data
    data = data if form == "dense" else data.with_rows(sparse.csr_array(data.x))
    filled = pad_with_zeros(data, 37)
    np.testing.assert_array_equal(filled.names[:30], data.names)
    assert np.all(filled.names[30:] == NO_RECORD)
    assert pad_with_zeros(data, 30).names is data.names


def test_workers_of_other_processes_get_the_names(tmp_path):
    data = prepare("toy", "binary", RowOptions(test_fraction=0.0),
                   Raw(x=2.0 * np.eye(3), y=np.ones(3)))  # fmt: skip
    data_folder.write_folder(tmp_path / "d", data)
    back = data_folder.read_folder(tmp_path / "d")
    np.testing.assert_array_equal(back.names, data.names)
    assert back.identity == data.identity
    twice = prepare("toy", "binary", RowOptions(test_fraction=0.0),
                    Raw(x=4.0 * np.eye(3), y=np.ones(3)))  # fmt: skip
    # the same unit rows of other records: one fingerprint, and not the same data set
    assert twice.fingerprint == data.fingerprint
    assert twice.identity != data.identity


def test_there_is_no_data_set_without_names():
    x, y = np.ones((3, 2)), np.ones(3)
    with pytest.raises(TypeError, match="names"):
        Data("a", "binary", x, y, 2.0, 1.0, "a")  # type: ignore[call-arg]
    good = Data.of_records("a", "binary", x, y, 2.0, 1.0, "a")
    for names in (good.names[:2], good.names.astype(float), good.names[None, :]):
        with pytest.raises(ValueError, match="names"):
            replace(good, names=names)
    with pytest.raises(ValueError, match="names"):
        replace(good, x=x[:2], y=y[:2])


MAKERS = {"problem/data.py", "datasets/shared/row_pipeline.py", "problem/data_folder.py"}
FIELDS = {"x", "y", "names"}  # that only the makers may set


def test_records_are_made_and_changed_in_one_place():
    """No other module calls ``Data(...)``, hashes rows, or replaces the rows of a data set."""
    package, found = Path(dperm_cli.__file__).parent, []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name in MAKERS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            about_data = node.args and "data" in ast.unparse(node.args[0]).lower()
            keys = {word.arg for word in node.keywords}
            if called.endswith("replace") and about_data and keys & FIELDS:
                found.append(f"{name}:{node.lineno}: replaces {sorted(keys & FIELDS)}")
            if called == "Data" or (called == "name_records" and name != "problem/record_names.py"):
                found.append(f"{name}:{node.lineno}: {called}")
    assert found == []
