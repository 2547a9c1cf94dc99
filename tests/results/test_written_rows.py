"""Rows that a run holds for its report: those of the file, byte for byte, and no others."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dperm_cli import cli
from dperm_cli.results import record_format
from dperm_cli.results.records import store as module
from dperm_cli.results.records import written_rows
from dperm_cli.results.records.store import Snapshot, Store
from tests.results.conftest import refused, trial_rows


def make_cell(cell="abc"):
    rows = trial_rows(cell, risks=(0.1, -1e-300, math.inf, -0.0), settings={"step": 0.1}, n=7)
    rows[0]["theta"] = np.array([0.1, math.nextafter(1.0, 2.0), -0.0])
    rows[1]["theta"] = np.array([1.0])
    return rows


def count_decoded(monkeypatch):
    decoded = []

    def decode_file(path, data):
        decoded.append(path.name)
        return record_format.decode_file(path, data)

    monkeypatch.setattr(module, "decode_file", decode_file)
    return decoded


def test_held_rows_are_those_that_would_be_decoded(tmp_path, monkeypatch):
    with written_rows.hold_rows():
        Store(tmp_path).write("abc", make_cell())
        Store(tmp_path).write("u", [refused("u")])
        decoded = count_decoded(monkeypatch)
        held = [Snapshot(tmp_path).read(cell) for cell in ("abc", "u")]
    assert decoded == []
    read = [Snapshot(tmp_path).read(cell) for cell in ("abc", "u")]
    assert len(decoded) == 2
    assert repr(held) == repr(read)
    orders = [[list(row) for rows in found for row in rows or ()] for found in (held, read)]
    assert orders[0] == orders[1]
    assert len(orders[0]) == 5


def test_what_another_writes_in_its_place_is_decoded(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    Store(tmp_path / "other").write("abc", make_cell()[:1])
    other = (tmp_path / "other" / "records" / "abc.parquet").read_bytes()
    with written_rows.hold_rows():
        Store(tmp_path).write("abc", make_cell())
        (tmp_path / "records" / "abc.parquet").write_bytes(other)
        decoded = count_decoded(monkeypatch)
        assert len(Snapshot(tmp_path).read("abc") or ()) == 1
        assert decoded == ["abc.parquet"]


def test_a_damaged_file_is_broken_though_its_rows_are_held(tmp_path):
    with written_rows.hold_rows():
        Store(tmp_path).write("abc", make_cell())
        path = tmp_path / "records" / "abc.parquet"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        found = Snapshot(tmp_path)
        assert (found.state("abc"), found.read("abc")) == ("broken", None)


def test_nothing_is_held_outside_of_a_run_or_after_it(tmp_path, monkeypatch):
    Store(tmp_path).write("abc", make_cell())
    with written_rows.hold_rows():
        Store(tmp_path).write("abd", make_cell("abd"))
    decoded = count_decoded(monkeypatch)
    for cell in ("abc", "abd"):
        assert Snapshot(tmp_path).read(cell) is not None
    assert decoded == ["abc.parquet", "abd.parquet"]


def test_runs_of_several_threads_hold_rows_of_their_own(tmp_path, monkeypatch):
    decoded, both = count_decoded(monkeypatch), threading.Barrier(2)

    def run(cell):
        out = tmp_path / cell
        with written_rows.hold_rows():
            Store(out).write(cell, make_cell(cell))
            both.wait(timeout=60)  # each has written while the other holds its rows
            found = Snapshot(out).read(cell)
            both.wait(timeout=60)
        return [row["cell"] for row in found or ()]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, ("a", "b"))) == [["a"] * 4, ["b"] * 4]
    assert decoded == []


def test_the_first_rows_go_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(written_rows, "_MOST", 2 * 5 * written_rows._ROW)
    with written_rows.hold_rows():
        for cell in ("a", "b", "c"):
            Store(tmp_path).write(cell, make_cell(cell))
        decoded = count_decoded(monkeypatch)
        assert all(Snapshot(tmp_path).read(cell) for cell in ("a", "b", "c"))
    assert decoded == ["a.parquet"]


def test_a_run_decodes_none_of_its_new_records(tmp_path, monkeypatch):
    decoded = count_decoded(monkeypatch)
    words = ["dataset=synthetic_logistic", "dataset.n=40", "dataset.p=2", "mechanism=noisy_gd",
             "mechanism.steps=2", "epsilon=1,2", f"out={tmp_path / 's'}"]  # fmt: skip
    assert cli.main(["run", "-m", *words]) == 0
    assert decoded == []
    tables = {name: (tmp_path / "s" / name).read_bytes() for name in ("table.csv", "ledger.json")}
    assert cli.main(["run", "-m", *words, "format=json"]) == 0
    (tmp_path / "s" / "table.csv").unlink()
    assert cli.main(["run", "-m", *words]) == 0
    assert len(decoded) >= 2
    assert tables == {name: (tmp_path / "s" / name).read_bytes() for name in tables}
