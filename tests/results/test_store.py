"""The store: round trip, integrity, atomic writes, storage errors."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from dperm_cli.core.digests import hash_sha256
from dperm_cli.core.errors import StorageError
from dperm_cli.results.record_format import content_digest, decode, encode, intact
from dperm_cli.results.records import store as module
from dperm_cli.results.records.manifest import build
from dperm_cli.results.records.schema import (
    COLUMNS,
    OPTIONAL,
    STABLE_COLUMNS,
    normalise,
    normalise_all,
)
from dperm_cli.results.records.store import Store
from tests.results.conftest import refused, stored, trial_rows


def test_rows_come_back_as_they_went_in(tmp_path):
    rows = trial_rows(risks=(0.1, -1e-300, math.inf), settings={"step": 0.1}, n=7)
    rows[0]["theta"] = np.array([0.1, math.nextafter(1.0, 2.0)])
    store = Store(tmp_path)
    store.write("abc", rows)
    assert store.read("abc") == [normalise(row) for row in rows]
    assert Store(tmp_path).has("abc")


def test_a_row_that_did_not_run_keeps_its_nulls(tmp_path):
    store = stored(tmp_path, [refused("u")])
    (row,) = store.read_all()
    assert (row["trial"], row["theta"], row["status"]) == (None, None, "unsupported")


def test_nothing_is_written_before_the_first_write(tmp_path):
    store = Store(tmp_path / "out")
    assert (store.has("a"), store.read("a"), store.state("a")) == (False, None, "absent")
    assert (store.cells(), store.read_all(), store.verify()) == ([], [], [])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        trial_rows("other"),
        trial_rows()[1:],
        [*trial_rows(), *trial_rows()],
        [{**refused("abc"), "status": "fine"}],
        [{**refused("abc"), "relation": None}],
    ],
)
def test_malformed_cells_are_refused(tmp_path, rows):
    with pytest.raises(ValueError, match="cell"):
        Store(tmp_path).write("abc", rows)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cell", ["", "../x", "a/b", ".a", "a b", "a" * 200])
def test_cell_names_stay_inside_the_folder(tmp_path, cell):
    with pytest.raises(ValueError, match="hash"):
        Store(tmp_path).write(cell, trial_rows(cell))


def test_every_truncation_and_every_flipped_byte_is_noticed():
    data = encode([normalise(row) for row in trial_rows()])
    assert intact(data)
    assert not any(intact(data[:length]) for length in range(0, len(data), 7))
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        assert not intact(bytes(flipped))


@pytest.mark.parametrize("damage", [lambda d: d[:-20], lambda d: b"", lambda d: d[:100] + d[101:]])
def test_a_damaged_record_counts_as_absent_and_is_reported(tmp_path, damage):
    store = stored(tmp_path, [*trial_rows("a"), *trial_rows("b")])
    path = store.path("a")
    path.write_bytes(damage(path.read_bytes()))
    assert (store.has("a"), store.read("a"), store.state("a")) == (False, None, "broken")
    assert {row["cell"] for row in store.read_all()} == {"b"}
    assert store.verify() == [str(path)]
    store.write("a", trial_rows("a"))
    assert store.verify() == []


def test_equal_rows_give_equal_bytes_and_diagnostics_leave_the_content_alone():
    rows = [normalise(row) for row in trial_rows()]
    slower = [{**row, "seconds": 9.0} for row in rows]
    other = [{**row, "excess_risk": math.nextafter(row["excess_risk"], 9)} for row in rows]
    assert encode(rows) == encode([dict(row) for row in rows])
    assert encode(rows) != encode(slower)
    assert content_digest(rows) == content_digest(slower) != content_digest(other)


def test_contents_are_true_where_an_optional_column_is_null_in_some_rows_alone(tmp_path):
    first, *others = trial_rows()
    store = stored(tmp_path, [{**first, "bound_released": 2.0}, *others])
    assert store.has_true_content("abc")
    assert store.read("abc")[1]["bound_released"] is None


def test_rows_are_stored_as_each_of_them_alone():
    first, second = trial_rows()[:2]
    shared = {**first, "settings": {"step": 0.5}}
    rows = [shared, {"cell": "c"}, shared, {**shared, "excess_risk": -0.0, "n": True + 1}, second]
    assert normalise_all(iter(rows)) == [normalise(row) for row in rows]
    with pytest.raises(ValueError, match="unknown"):
        normalise_all([first, {**first, "nonsense": 1}])
    with pytest.raises(ValueError, match="wants int"):
        normalise_all([first, {**first, "n": 1.5}])


def test_the_content_digest_is_of_each_row_as_a_list_of_pairs():
    rows = [normalise(row) for row in trial_rows()]
    rows[-1] = {**rows[-1], "population_excess_risk": -0.0}
    texts = [
        ascii([(name, row[name]) for name in STABLE_COLUMNS if name not in OPTIONAL])
        for row in rows
    ]
    assert content_digest(rows) == hash_sha256(*texts)


def test_the_footer_carries_the_content_digest_and_no_pickle(tmp_path):
    store = stored(tmp_path, trial_rows())
    metadata = pq.read_metadata(store.path("abc")).metadata
    assert metadata[b"dperm.content"].decode() == content_digest(store.read("abc"))
    kept = [column.name for column in COLUMNS if column.name not in OPTIONAL]
    assert pq.read_table(store.path("abc")).column_names == kept
    assert decode(store.path("abc").read_bytes()) == store.read("abc")


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_names_the_path_and_keeps_the_old_record(tmp_path, monkeypatch, call):
    store = stored(tmp_path, trial_rows())
    before = store.path("abc").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, call, full)
    with pytest.raises(StorageError, match=r"abc\.parquet: no space left") as caught:
        store.write("abc", trial_rows(risks=(9.0,)))
    assert caught.value.exit_code == 3
    monkeypatch.undo()
    assert store.path("abc").read_bytes() == before
    assert os.listdir(store.records) == ["abc.parquet"]


def test_an_interrupt_leaves_no_half_file(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).write("abc", trial_rows())
    assert os.listdir(tmp_path / "records") == []


def test_a_file_in_the_way_of_the_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(StorageError, match="out"):
        Store(tmp_path / "out").write("abc", trial_rows())
    with pytest.raises(StorageError, match="out"):
        Store(tmp_path / "out").has("abc")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_in_the_way_of_a_record(tmp_path):
    (tmp_path / "records" / "abc.parquet").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"abc\.parquet"):
        Store(tmp_path).write("abc", trial_rows())
    with pytest.raises(StorageError, match=r"abc\.parquet"):
        Store(tmp_path).read("abc")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="permission denied"):
        Store(tmp_path).write("abc", trial_rows())
    tmp_path.chmod(0o700)


_WRITER = """
import sys
sys.path[:0] = {path!r}
from tests.results.conftest import trial_rows
from dperm_cli.results.records.store import Store
store = Store({out!r})
print("ready", flush=True)
i = 0
while True:
    store.write("abc", trial_rows(risks=(float(i),) * 200))
    i += 1
"""


def test_a_reader_beside_a_writer_that_is_killed_sees_whole_records_only(tmp_path):
    """Read while it is rewritten without pause, then killed: whole or, at first, absent."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = _WRITER.format(path=[root], out=str(tmp_path))
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root)
    assert writer.stdout is not None
    writer.stdout.readline()
    store, seen = Store(tmp_path), set()
    try:
        while len(seen) < 6:
            rows = store.read("abc")
            assert store.state("abc") != "broken"
            if rows:
                assert len({row["excess_risk"] for row in rows}) == 1
                seen.add(rows[0]["excess_risk"])
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert store.has("abc")
    assert store.cells() == ["abc"]


def test_the_manifest_gives_the_order_of_the_cells(tmp_path):
    store = stored(tmp_path, [*trial_rows("z"), *trial_rows("a")])
    assert [row["cell"] for row in store.read_all()] == ["z"] * 3 + ["a"] * 3
    assert [row["cell"] for row in store.read_all(["a"])] == ["a"] * 3
    (tmp_path / "manifest.json").write_text('{"cells": [')
    assert store.read_manifest() is None
    assert store.verify() == [str(tmp_path / "manifest.json")]
    assert [row["cell"] for row in store.read_all()] == ["a"] * 3 + ["z"] * 3


@pytest.mark.parametrize("text", ['{"cells": ["../x"]}', '{"cells": 3}', "[]", "{}", "3", "\xff"])
def test_a_manifest_of_another_form_is_no_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    assert Store(tmp_path).read_manifest() is None


def test_the_manifest_says_what_was_run_and_never_when(tmp_path):
    made = build(["a", "b", "a"], ["run", "epsilon=1"], {"study": "s"})
    assert made["cells"] == ["a", "b"]
    assert made["argv"] == ["run", "epsilon=1"]
    assert {"python", "numpy", "scipy", "numba", "dperm"} <= set(made["versions"])
    assert made == build(["a", "b"], ["run", "epsilon=1"], {"study": "s"})
    store = Store(tmp_path)
    store.write_manifest(made)
    assert store.read_manifest() == made
    with pytest.raises(ValueError, match="hashes"):
        store.write_manifest({"cells": ["../x"]})
