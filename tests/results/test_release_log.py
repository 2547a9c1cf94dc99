"""The log of releases whose noise is fresh: what it keeps, and what the ledger makes of it."""

from __future__ import annotations

import hashlib
import json
import threading

import pytest

from dperm_cli.results.ledger import kept_ledger, ledger, release_log
from dperm_cli.results.ledger.release_log_lines import new_name
from dperm_cli.results.record_format import encode
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.store import Store
from dperm_cli.results.study_files import LEDGER, LOG
from tests.results.conftest import refused, trial_rows
from tests.results.html_study import Adding


def rows(cell="abc", risks=(1.0, 2.0), **values):
    """A release with fresh noise, under a name of its own at every call."""
    kept = {"noise": "secure", "population": 100, "settings": "{}", "events": "[]",
            "data_fingerprint": "f" * 32, "population_source": "public",
            "release": new_name(), **values}  # fmt: skip
    return trial_rows(cell, risks, **kept)


def unnamed(store, cell="abc", **values):
    """A release as an earlier dperm wrote it: no name, and a line without the one before."""
    found = [normalise(row) for row in rows(cell, release=None, **values)]
    entry = release_log.make_entry(cell, found)
    facts = {name: value for name, value in entry.row.items() if name != "release"}
    text = json.dumps(
        {"cell": cell, "content": entry.content, "row": facts, "trials": entry.trials},
        sort_keys=True, separators=(",", ":"),
    ).encode()  # fmt: skip
    store.records.mkdir(exist_ok=True, parents=True)
    with open(store.out / LOG, "ab") as file:
        file.write(hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n")
    store.path(cell).write_bytes(encode(found))


def stated(store):
    return ledger.build_ledger(
        store.read_all(store.cells()), Adding(), release_log.list_unrecorded(store)
    )


def totals(store):
    return [total["releases"] for total in stated(store)["totals"]]


def test_a_record_that_is_written_over_still_counts(tmp_path):
    store = Store(tmp_path)
    store.write("abc", rows())
    assert release_log.list_unrecorded(store) == []
    assert totals(store) == [2]
    store.write("abc", rows(risks=(5.0, 6.0, 7.0)))
    (old,) = {item.row["cell"] for item in release_log.list_unrecorded(store)}
    assert old.startswith("abc-")
    assert totals(store) == [5]
    found = stated(store)
    assert [entry.get("record") for entry in found["releases"]] == [None, False]
    assert found["releases"][1]["accounted"]["epsilon"] == 0.99
    assert found["choices"] == []  # nobody can choose what has gone


def test_a_record_that_fails_after_a_release_does_not_hide_it(tmp_path):
    store = Store(tmp_path)
    store.write("abc", rows())
    store.write("abc", [refused("abc", "failed")])
    assert totals(store) == [2]


@pytest.mark.parametrize("end", ["deleted", "damaged"])
def test_a_record_that_is_lost_still_counts(tmp_path, end):
    store = Store(tmp_path)
    store.write("abc", rows())
    if end == "deleted":
        store.path("abc").unlink()
    else:
        store.path("abc").write_bytes(store.path("abc").read_bytes()[:-9])
    assert totals(store) == [2]
    store.write("abc", rows(risks=(3.0,)))
    assert totals(store) == [3]


def test_another_key_of_the_same_cell_counts_both(tmp_path):
    """Another version of the code names its record anew: both stand, with or without a record."""
    store = Store(tmp_path)
    store.write("old", rows("old"))
    store.write("new", rows("new"))
    assert totals(store) == [4]
    store.path("old").unlink()
    assert totals(store) == [4]


def test_a_record_from_before_the_log_enters_it_when_it_is_replaced(tmp_path):
    store = Store(tmp_path)
    unnamed(store)
    (tmp_path / LOG).unlink()
    store.write("abc", rows(risks=(3.0,)))
    assert totals(store) == [3]


def test_seeded_noise_is_drawn_again_and_not_logged(tmp_path):
    store = Store(tmp_path)
    store.write("abc", rows(noise="research", seed=0, release=None))
    store.write("abc", rows(noise="research", seed=0, release=None))
    assert not (tmp_path / LOG).exists()
    assert totals(store) == [2]


def test_a_session_is_logged(tmp_path):
    store = Store(tmp_path)
    settings = json.dumps({"session": True})
    store.write("session-1", rows("session-1", (1.0,), noise="research", settings=settings))
    store.path("session-1").unlink()
    (entry,) = stated(store)["releases"]
    assert "answered in one session" in entry["statement"]


def test_the_log_holds_no_point_and_no_risk(tmp_path):
    store = Store(tmp_path)
    store.write("abc", rows(risks=(123.456789,), train_metric=0.87654321))
    text = (tmp_path / LOG).read_text()
    assert "123.456789" not in text
    assert "0.87654321" not in text
    row = release_log.read_entries(tmp_path)[0].row
    assert not {"theta", "excess_risk", "optimum", "train_metric", "records_exposed"} & set(row)


def test_lines_are_only_added(tmp_path):
    store, path = Store(tmp_path), tmp_path / LOG
    same = rows()
    store.write("abc", same)
    first = path.read_bytes()
    store.write("abc", same)  # the same once more: the same release
    assert path.read_bytes() == first
    store.write("abc", rows(risks=(9.0,)))
    assert path.read_bytes().startswith(first)
    assert len(release_log.read_entries(tmp_path)) == 2


def test_the_log_is_written_before_the_record(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    store = Store(tmp_path)
    monkeypatch.setattr("dperm_cli.results.records.store.write_atomically", fail)
    with pytest.raises(KeyboardInterrupt):
        store.write("abc", rows())
    assert store.state("abc") == "absent"
    assert totals(store) == [2]


def test_a_torn_line_spoils_no_other_and_is_told(tmp_path):
    store, path = Store(tmp_path), tmp_path / LOG
    store.write("abc", rows())
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    store.write("abc", rows(risks=(9.0,)))
    assert [entry.trials for entry in release_log.read_entries(tmp_path)] == [2, 1]
    (message,) = release_log.list_damage(tmp_path)
    assert message == "releases.log: line 2: is damaged (its checksum is another)"
    path.write_bytes(path.read_bytes().replace(b'"trials":2', b'"trials":1'))
    assert len(release_log.list_damage(tmp_path)) == 2


def test_many_writers_lose_no_line(tmp_path):
    def write(k):
        for i in range(5):
            release_log.append(
                tmp_path,
                [release_log.make_entry("abc", [normalise(rows()[0] | {"p": k * 10 + i})])],
            )

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert release_log.list_damage(tmp_path) == []
    assert len(release_log.read_entries(tmp_path)) == 40
    assert [path.name for path in tmp_path.iterdir()] == [LOG]


def test_a_ledger_that_was_written_between_log_and_record_is_no_contradiction(tmp_path):
    store = Store(tmp_path)
    store.write("abc", rows())
    record = store.path("abc").read_bytes()
    store.path("abc").unlink()
    between = ledger.encode_ledger(stated(store))
    store.path("abc").write_bytes(record)
    assert kept_ledger.ledger_faults(between, stated(store)) == []


def test_equal_points_are_two_releases(tmp_path):
    """Two draws of a coarse law are often equal; each was made, and each is paid for."""
    store = Store(tmp_path)
    for _ in range(3):
        store.write("abc", rows())
    assert len(release_log.read_entries(tmp_path)) == 3
    assert totals(store) == [6]


def test_a_lost_log_takes_nothing_from_the_ledger(tmp_path):
    store = Store(tmp_path)
    store.write("abc", rows())
    store.write("abc", rows())
    (tmp_path / LEDGER).write_bytes(ledger.encode_ledger(stated(store)))
    (tmp_path / LOG).unlink()
    found = kept_ledger.state(store, store.cells(), Adding())
    assert [entry["trials"] for entry in found.found["releases"]] == [2, 2]
    assert found.gaps


@pytest.mark.parametrize("release", [None, "", "x", 32 * "g", 31 * "a"])
def test_fresh_noise_without_a_name_is_not_written(tmp_path, release):
    with pytest.raises(ValueError, match="needs the name of its release"):
        Store(tmp_path).write("abc", rows(release=release))
    assert not any(tmp_path.iterdir())


def test_seeded_noise_has_no_name(tmp_path):
    with pytest.raises(ValueError, match="and no other"):
        Store(tmp_path).write("abc", rows(noise="research", seed=0))
    seeded = [normalise(row) for row in rows(noise="research", seed=0, release=None)]
    assert b"release" not in encode(seeded)


def test_a_record_of_an_earlier_dperm_is_read_by_the_old_rule(tmp_path):
    """Cell and content: the same content is the same release, and another one is another."""
    store = Store(tmp_path)
    unnamed(store)
    assert release_log.list_unrecorded(store) == []
    assert (release_log.list_damage(tmp_path), release_log.find_unlogged(store)) == ([], [])
    unnamed(store, risks=(7.0,))
    assert totals(store) == [3]
    store.write("abc", rows(risks=(7.0,)))  # the same point, drawn again
    assert totals(store) == [4]
    assert len(release_log.read_entries(tmp_path)) == 3
    assert release_log.list_damage(tmp_path) == []
