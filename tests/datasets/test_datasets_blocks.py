"""Files are read block by block: what memory that takes, and where reading ends."""

from __future__ import annotations

import gzip
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dperm_cli.core.errors import InputError
from dperm_cli.core.memory_limits import current_limit, hold_memory_to
from dperm_cli.datasets.files import csv
from dperm_cli.datasets.files.csv import Csv
from dperm_cli.datasets.files.npz import Npz
from dperm_cli.datasets.files.svmlight import Svmlight
from dperm_cli.datasets.shared import row_blocks, svmlight_reader
from dperm_cli.datasets.shared.row_pipeline import Raw, RowOptions, prepare
from dperm_cli.problem.record_names import name_records
from tests.datasets.files_data import made, refused

ROWS = np.random.default_rng(0).normal(size=(300, 7)) * (np.arange(300)[:, None] % 3)


def text_of(kind, rows=ROWS) -> bytes:
    lines = []
    for i, row in enumerate(rows):
        label = 1 - 2 * (i % 2)
        if kind is Csv:
            lines.append(",".join(map(repr, [*row.tolist(), label])))
        else:
            pairs = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v)
            lines.append(f"{label} {pairs}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("more", [{}, {"rows": "clip", "intercept": True}, {"test_fraction": 0}])
@pytest.mark.parametrize("kind", [Csv, Svmlight, Npz, "dense svmlight"])
def test_the_size_of_blocks_changes_nothing(kind, more, tmp_path, monkeypatch):
    path, fields = tmp_path / "f.npz", {"header": False} if kind is Csv else {}
    if kind is Npz:
        np.savez(path, x=ROWS, y=1 - 2 * (np.arange(300) % 2))
    else:
        path.write_bytes(text_of(kind))
    if kind in (Svmlight, "dense svmlight"):
        storage = "sparse" if kind is Svmlight else "dense"
        kind, fields = Svmlight, {"n_features": 7, "storage": storage}
    fields |= more | {"scaling": "bounds", "bounds": [-3.0, 3.0]}
    whole = made(kind, path, **fields).load()
    monkeypatch.setattr(row_blocks, "BLOCK_CELLS", 40)
    monkeypatch.setattr(row_blocks, "_BLOCK_ENTRIES", 30)
    monkeypatch.setattr(csv, "BLOCK_CELLS", 40)
    monkeypatch.setattr(csv, "LEAST_ROWS", 3)
    monkeypatch.setattr(svmlight_reader, "BLOCK", 50)
    parts = made(kind, path, **fields).load()
    assert (parts.fingerprint, parts.identity) == (whole.fingerprint, whole.identity)
    for one, other in ((parts.x, whole.x), (parts.x_test, whole.x_test)):
        if one is not None:
            one, other = (v.toarray() if sparse.issparse(v) else v for v in (one, other))
            np.testing.assert_array_equal(one, other)


def test_rows_are_prepared_within_the_memory_that_holds_them(tmp_path):
    rows = np.ones((250_000, 32))  # 64 MB
    rows[::2] *= 1 + 1e-3 * np.arange(32)
    np.savez(tmp_path / "f.npz", x=rows, y=np.ones(250_000))
    held = rows.nbytes
    del rows
    name_records(np.zeros((2**17 + 1, 1)), np.zeros(2**17 + 1))  # compiling takes memory too
    tracemalloc.start()
    try:
        data = Npz(path=str(tmp_path / "f.npz"), rows="clip", intercept=False).load()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.x.nbytes + data.x_test.nbytes == held
    assert peak < held + 4 * 8 * row_blocks.BLOCK_CELLS + 100 * 250_000


@pytest.mark.parametrize("scaling", ["none", "bounds"])
def test_sparse_rows_are_prepared_in_little_more_than_a_copy(scaling):
    n, p = 200_000, 40
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(p), (n, 1)), axis=1)[:, :15], axis=1)
    ends = 15 * np.arange(n + 1, dtype=np.int32)
    parts = (rng.random(15 * n), columns.astype(np.int32).ravel(), ends)
    x = sparse.csr_array(parts, shape=(n, p))
    del columns, parts
    held = 12 * x.nnz
    bounds = np.tile([0.0, 1.0], (p, 1))
    bounds[3] = -1.0, 1.0  # this column is filled
    options = RowOptions(scaling=scaling, centred=False, test_fraction=0.0)
    name_records(np.zeros((2**17 + 1, 1)), np.zeros(2**17 + 1))  # compiling takes memory too
    tracemalloc.start()
    try:
        data = prepare("made", "binary", options, Raw(x, np.ones(n), bounds=bounds))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.x.nnz >= x.nnz
    assert data.x.indices.dtype == data.x.indptr.dtype == np.int32
    assert peak < 1.4 * held + 100 * row_blocks._BLOCK_ENTRIES


@pytest.mark.in_turn
@pytest.mark.parametrize(("kind", "bad"), [
    (Csv, b"1,x,1\n"), (Csv, b"1,,1\n"), (Csv, b"1,2,7\n"), (Csv, b"1,2,3,1\n"),
    (Svmlight, b"1 x\n"), (Svmlight, b"1 9:1\n"), (Svmlight, b"7 1:1\n"), (Svmlight, b"1 1:nan\n"),
])  # fmt: skip
def test_nothing_is_read_beyond_the_first_refusal(kind, bad, tmp_path):
    """Behind the bad record lies another fault, which nobody comes to see."""
    row = b"1,2,1\n" if kind is Csv else b"1 1:1 2:1\n"
    packed = gzip.compress(row * 4 + bad + row * 4_000_000, 1)
    (tmp_path / "f.gz").write_bytes(packed[:-2000])
    more = {"header": False} if kind is Csv else {}
    key = "dataset.labels" if bad in (b"1,2,7\n", b"7 1:1\n") else "dataset.path"
    assert "5" in refused(kind, tmp_path / "f.gz", key=key, **more)


@pytest.mark.parametrize("kind", [Csv, pytest.param(Svmlight, marks=pytest.mark.slow)])
def test_reading_ends_where_the_memory_does(kind, tmp_path):
    row = b"1,2,1\n" if kind is Csv else b"1 1:1 2:1\n"
    packed = gzip.compress(row * 40_000_000, 1)
    (tmp_path / "f.gz").write_bytes(packed[:-2000])
    more = {"header": False} if kind is Csv else {}
    with hold_memory_to(current_limit().used + 150 * 10**6):
        said = refused(kind, tmp_path / "f.gz", key="limits.memory", **more)
    assert "reading f.gz needs" in said
    assert re.search(r"[MG]B are allowed \(limits.memory\)", said)


def test_a_dense_row_that_does_not_fit_is_not_made(tmp_path):
    (tmp_path / "f").write_bytes(b"1 1:1\n")
    with hold_memory_to(10**10), pytest.raises(InputError, match=r"1[6-9]\S* GB"):
        Svmlight(path=str(tmp_path / "f"), n_features=2 * 10**9, storage="dense").load()
