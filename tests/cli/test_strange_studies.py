"""Folders that a stranger may have filled: one line or a fault, never a traceback.

The checksums of a record prove nothing about who wrote it: whoever has dperm can make them.
"""

from __future__ import annotations

import hashlib
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dperm_cli import cli
from dperm_cli.results.records.schema import arrow_schema
from dperm_cli.results.records.store import Store
from tests.conftest import draw_nothing

DEEP = "[" * 5000 + "]" * 5000
FILES = {
    "a manifest of deep lists": ("manifest.json", "[" * 100_000),
    "a manifest of one number": ("manifest.json", "5"),
    "a manifest with another path": ("manifest.json", '{"cells": ["../x"]}'),
    "a ledger of deep lists": ("ledger.json", "[" * 100_000),
    "a ledger of releases that are none": ("ledger.json", '{"releases": [5]}'),
    "totals that are no list": ("ledger.json", '{"form": 1, "releases": [], "totals": 5}'),
    "a manifest of a text of cells": ("manifest.json", '{"cells": "abc"}'),
    "a manifest of a mapping of cells": ("manifest.json", '{"cells": {"abc": 1}}'),
    "a manifest of a list": ("manifest.json", "[1]"),
    "a manifest that is no text": ("manifest.json", "\udcff"),
    "a ledger of a list": ("ledger.json", "[1]"),
    "a ledger whose release is a name": ("ledger.json", '{"form": 1, "releases": [{"cell": "a"}]}'),
    "a ledger of releases by number": ("ledger.json", '{"form": 1, "releases": [{"cell": 5}]}'),
    "a ledger of a secure release without facts": (
        "ledger.json",
        '{"form": 1, "releases": [{"cell": "a", "noise": "secure"}], "totals": []}',
    ),
    "a ledger of a session without facts": (
        "ledger.json",
        '{"form": 1, "releases": [{"cell": "a", "settings": {"session": true}}], "totals": []}',
    ),
    "verdicts of deep lists": ("claims.json", "[" * 100_000),
}
RECORDS = {
    "events of a number": {"events": "[5]"},
    "events of null": {"events": "[null]"},
    "events nested deeply": {"events": DEEP},
    "no events": {"events": "[]", "epsilon_accounted": 0.0},
    "another guarantee": {"guarantee": "perfect"},
    "a configuration nested deeply": {"overrides": DEEP},
    "a configuration that is cut": {"overrides": "["},
    "settings nested deeply": {"settings": DEEP},
    "a guarantee without numbers": {"epsilon_accounted": float("nan")},
}
BELIEVED = ("a configuration", "settings", "verdicts")  # nothing in these is a claim
VERBS = (("report", "f"), ("verify", "f"), ("status", "f"), ("merge", "f", "s", "out=g"),
         ("compare", "f", "s"))  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        draw_nothing(patch)
        words = ["dataset=breast_cancer", "mechanism=noisy_gd", "mechanism.steps=2", "trials=2"]
        assert cli.main(["run", *words, "out=s"]) == 0
    return folder / "s"


def check(name, capsys):
    codes = []
    for verb in VERBS:
        capsys.readouterr()
        codes.append(cli.main(list(verb)))
        assert codes[-1] in (0, 1, 2, 3), verb
        assert "Traceback" not in capsys.readouterr().err
    if not name.startswith(BELIEVED):
        assert 0 not in codes[:1] or "manifest" in name


@pytest.mark.parametrize("name", list(FILES))
def test_a_strange_file_is_no_traceback(study, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    for folder in ("s", "f"):
        shutil.copytree(study, folder)
    file, text = FILES[name]
    (tmp_path / "f" / file).write_bytes(text.encode(errors="surrogateescape"))
    check(name, capsys)


ABOUTS = {
    "no parts": {},
    "parts of a number": {"parts": 5},
    "a part of a number": {"parts": [5]},
    "a part without cells": {"parts": [{"name": "a"}]},
    "cells of a number": {"parts": [{"name": "a", "cells": 5, "absent": None}]},
    "a name of a list": {"parts": [{"name": [], "cells": [], "absent": None}]},
    "cells of mappings": {"parts": [{"name": "a", "cells": [{}], "absent": None}]},
}


@pytest.mark.parametrize("name", list(ABOUTS))
def test_a_manifest_of_a_strange_experiment_is_no_traceback(
    study, tmp_path, monkeypatch, capsys, name
):
    monkeypatch.chdir(tmp_path)
    for folder in ("s", "f"):
        shutil.copytree(study, folder)
    path = tmp_path / "f" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"experiment": ABOUTS[name]}))
    check(f"a manifest: {name}", capsys)
    assert cli.main(["merge", "f", "f", "out=h"]) == 0


def planted(rows, **kinds):
    """A Parquet file of the rows with a true checksum, columns of these kinds among them."""
    columns = {n: [row[n] for row in rows] for n in (rows[0] if rows else ["cell"])}
    known = {f.name: f.type for f in arrow_schema()}
    table = pa.table({n: pa.array(v, kinds.get(n, known[n])) for n, v in columns.items()})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, write_statistics=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"dperm.sha256": "dperm-sha256:" + "0" * 64})
    return checked(sink.getvalue().to_pybytes())


def checked(data):
    digest = hashlib.sha256(data).hexdigest().encode()
    return (b"dperm-sha256:" + digest).join(data.rsplit(b"dperm-sha256:" + b"0" * 64, 1))


PLANTED = {
    "no Parquet": lambda rows: checked(b"junk dperm-sha256:" + b"0" * 64),
    "no rows": lambda rows: planted([]),
    "an epsilon of text": lambda rows: planted(
        [{**row, "epsilon": "a"} for row in rows], epsilon=pa.string()
    ),
    "noise of bytes": lambda rows: planted(
        [{**row, "noise": b"secure"} for row in rows], noise=pa.binary()
    ),
    "a release of a number": lambda rows: planted(
        [{**row, "release": 5} for row in rows], release=pa.int64()
    ),
}


@pytest.mark.parametrize("name", list(PLANTED))
def test_a_planted_file_is_one_line(study, tmp_path, monkeypatch, capsys, name):
    """Its checksum is right, and it is no record that dperm wrote."""
    monkeypatch.chdir(tmp_path)
    for folder in ("s", "f"):
        shutil.copytree(study, folder)
    store = Store("f")
    (cell,) = store.cells()
    store.path(cell).write_bytes(PLANTED[name](store.read(cell)))
    for verb in (("report", "f"), ("verify", "f"), ("merge", "f", "f", "out=g")):
        capsys.readouterr()
        assert cli.main(list(verb)) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert "is no record that dperm wrote" in line
    check(name, capsys)


@pytest.mark.parametrize("name", list(RECORDS))
def test_a_strange_record_is_no_traceback(study, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    for folder in ("s", "f"):
        shutil.copytree(study, folder)
    store = Store("f")
    (cell,) = store.cells()
    rows = [{**row, **RECORDS[name]} for row in store.read(cell) or []]
    store.write(cell, rows)
    check(name, capsys)


def test_a_record_without_events_claims_nothing(study, tmp_path, monkeypatch, capsys):
    """No event costs epsilon 0: a record that names none would be a proof of whatever it likes."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(study, "f")
    store = Store("f")
    (cell,) = store.cells()
    nothing = {"events": json.dumps([]), "epsilon_accounted": 0.0}
    store.write(cell, [{**row, **nothing} for row in store.read(cell) or []])
    assert cli.main(["report", "f"]) == 1
    assert "its events cannot be accounted for: there are none" in capsys.readouterr().err
