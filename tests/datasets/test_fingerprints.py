"""A fingerprint is of the values as they are used: not of their types, their file or its path."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, prepare
from tests.datasets.files_data import KINDS, made

X = np.array([[0.0, 1.0, -2.0], [3.0, 0.0, 0.0], [-1.0, 0.0, 5.0], [0.0, 0.0, 1.0]])
Y = np.array([1.0, -1.0, -1.0, 1.0])
TYPES = ["int8", "int64", "float16", "float32", "float64", ">f8"]


def of_archive(path, x, y, **fields):
    np.savez(path, x=x, y=y)
    return made(KINDS["npz"], path, test_fraction=0, **fields).load()


def same(one, other):
    return one.fingerprint == other.fingerprint and one.identity == other.identity


@pytest.mark.parametrize("rows", ["unit", "clip"])
@pytest.mark.parametrize("kind", TYPES)
def test_types_do_not_matter(kind, rows, tmp_path):
    plain = of_archive(tmp_path / "plain.npz", X, Y, rows=rows)
    found = of_archive(tmp_path / "found.npz", X.astype(kind), Y.astype(kind), rows=rows)
    assert same(plain, found)


@pytest.mark.parametrize("columns", [3, 30])
def test_the_layout_in_memory_does_not_matter(columns, tmp_path):
    x = np.random.default_rng(0).standard_normal((50, columns))
    y = np.where(np.arange(50) % 3 == 0, 1.0, -1.0)
    plain = of_archive(tmp_path / "plain.npz", x, y)
    assert same(plain, of_archive(tmp_path / "found.npz", np.asfortranarray(x), y))


@pytest.mark.parametrize("rows", ["unit", "clip"])
@pytest.mark.parametrize("scaling", ["none", "bounds"])
def test_a_negative_zero_is_zero(rows, scaling, tmp_path):
    fields = {"rows": rows, "scaling": scaling, "bounds": [-5, 5], "task": "regression"}
    fields |= {"target_bounds": [-1, 1]}
    negative, y = np.where(X == 0, -0.0, X), np.array([0.0, 1.0, -1.0, 0.5])
    plain = of_archive(tmp_path / "plain.npz", X, y, **fields)
    found = of_archive(tmp_path / "found.npz", negative, np.where(y == 0, -0.0, y), **fields)
    assert same(plain, found)
    assert not np.signbit(found.x[found.x == 0]).any()
    assert not np.signbit(found.y[found.y == 0]).any()


def test_a_product_that_underflows_is_zero_too():
    class Rows(RowOptions):
        task = "binary"

    options = Rows(test_fraction=0, rows="clip")
    tiny = np.array([[-1e-320, 1e300], [1e-320, 1e300]])
    for x in (tiny, sparse.csr_array(tiny)):
        data = prepare("rows", "binary", options, Raw(x=x, y=np.ones(2)))
        entries = data.x.data if sparse.issparse(x) else data.x
        assert not np.signbit(entries[entries == 0]).any()


def test_formats_and_paths_do_not_matter(tmp_path):
    """Numbers as text are read to the nearest float, so that every format holds the same ones."""
    x = np.random.default_rng(1).standard_normal((40, 5)) * 10.0 ** np.arange(-6, 9, 3)
    y = np.where(np.arange(40) % 3 == 0, 1, -1)
    (tmp_path / "elsewhere").mkdir()
    lines = [
        ",".join([*map(repr, row), str(int(label))])
        for row, label in zip(x.tolist(), y, strict=True)
    ]
    for path in (tmp_path / "a.csv", tmp_path / "elsewhere" / "b.txt"):
        path.write_text("\n".join(["a,b,c,d,e,y", *lines]))
    named = {name: x[:, j] for j, name in enumerate("abcde")} | {"y": y.astype("int8")}
    pq.write_table(pa.table(named), tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", x=x, y=y)
    entries = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) for row in x.tolist()]
    text = "\n".join(f"{label:+d} {line}" for label, line in zip(y, entries, strict=True))
    (tmp_path / "a.svm").write_text(text)
    found = [
        made(KINDS["csv"], tmp_path / "a.csv").load(),
        made(KINDS["csv"], tmp_path / "elsewhere" / "b.txt", max_size=1).load(),
        made(KINDS["parquet"], tmp_path / "a.parquet").load(),
        made(KINDS["npz"], tmp_path / "a.npz").load(),
        made(KINDS["svmlight"], tmp_path / "a.svm", n_features=5, storage="dense").load(),
    ]
    assert all(same(found[0], other) for other in found[1:])


def test_another_value_is_another_fingerprint(tmp_path):
    plain = of_archive(tmp_path / "plain.npz", X, Y, rows="clip")
    other = X.copy()
    other[3, 2] = np.nextafter(1.0, 0.0)
    assert plain.fingerprint != of_archive(tmp_path / "f.npz", other, Y, rows="clip").fingerprint
