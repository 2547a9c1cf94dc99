"""A ledger forgets nothing: what happens to it when its log or its records are lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dperm_cli.results.ledger import kept_ledger
from dperm_cli.results.records.store import Store
from dperm_cli.results.report import write_report
from dperm_cli.results.study_files import LEDGER, LOG
from tests.results.html_study import Adding
from tests.results.test_release_log import rows, unnamed


def events():
    return json.dumps([{"event": "Gaussian", "words": "noise"}])


def written(out, trust=False, others=()):
    return write_report(
        out, figures=False, accountant=Adding(), trust=trust, page=False, others=others
    )


def kept(out):
    """Trials, record and log of every release of the ledger, and what its totals say."""
    found = json.loads((Path(out) / LEDGER).read_text())
    entries = [(e["trials"], e.get("record"), e.get("logged")) for e in found["releases"]]
    return entries, [total["releases"] for total in found["totals"]], found


@pytest.fixture
def study(tmp_path):
    """Three releases of a cell, the first two without a record, and their ledger."""
    store = Store(tmp_path / "o")
    for trials in (1, 2, 3):
        store.write("abc", rows(risks=(1.0,) * trials, events=events()))
    store.write_manifest({"cells": ["abc"]})
    made = written(store.out)
    assert (made.faults, made.gaps, made.releases) == ((), (), 6)
    return store


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("harm", ["lost", "emptied", "garbage", "first line", "last line"])
def test_no_report_shrinks_the_ledger(study, trust, harm):
    path = study.out / LOG
    lines = path.read_bytes().splitlines(keepends=True)
    if harm == "lost":
        path.unlink()
    else:
        left = {"emptied": [], "garbage": [b"\xff\n"] * 3, "first line": lines[1:],
                "last line": lines[:-1]}  # fmt: skip
        path.write_bytes(b"".join(left[harm]))
    for _ in range(2):
        made = written(study.out, trust)
        assert made.faults == ()
        assert made.gaps
        entries, totals, found = kept(study.out)
        assert totals == [6]
        assert sorted(trials for trials, _, _ in entries) == [1, 2, 3]
        assert found["warnings"][0].startswith("AT LEAST")
        assert found["totals"][0]["at_least"] is True
        assert found["totals"][0]["statement"].startswith("AT LEAST")
    lost = [trials for trials, _, logged in entries if logged is False]
    assert lost == {"lost": [1, 2], "first line": [1], "last line": []}.get(harm, [1, 2])


def test_a_record_that_goes_with_the_log_stays_in_the_ledger(study):
    (study.out / LOG).unlink()
    study.path("abc").unlink()
    study.write("abc", rows(risks=(1.0,) * 4, events=events()))
    assert written(study.out).faults == ()
    entries, totals, found = kept(study.out)
    assert totals == [10]
    assert len({entry["cell"] for entry in found["releases"]}) == len(entries) == 4


def test_a_log_that_is_found_again_is_believed_again(study):
    path = study.out / LOG
    log, before = path.read_bytes(), (study.out / LEDGER).read_bytes()
    path.unlink()
    written(study.out)
    path.write_bytes(log)
    made = written(study.out)
    assert (made.faults, made.gaps) == ((), ())
    assert (study.out / LEDGER).read_bytes() == before


def test_releases_of_an_earlier_dperm_are_kept_too(tmp_path):
    """They have no names: as many entries of a cell stay as there were."""
    store = Store(tmp_path)
    for trials in (1, 2, 3):
        unnamed(store, risks=tuple(float(trials + i) for i in range(trials)), events=events())
    store.write_manifest({"cells": ["abc"]})
    assert written(tmp_path).gaps == ()
    assert kept(tmp_path)[1] == [6]
    (tmp_path / LOG).unlink()
    for _ in range(2):
        assert written(tmp_path).gaps
        assert kept(tmp_path)[1] == [6]


def test_a_seeded_record_that_goes_is_told(tmp_path):
    """With seeded noise it can be made again: a run says that it leaves the ledger."""
    store = Store(tmp_path)
    for cell in ("a", "b"):
        store.write(cell, rows(cell, noise="research", seed=0, release=None, events=events()))
    store.write_manifest({"cells": ["a", "b"]})
    assert written(tmp_path, trust=True).notes == ()
    store.path("b").unlink()
    assert written(tmp_path).faults == ("ledger.json: cell b has no record of a release",)
    assert kept(tmp_path)[1] == [4]
    assert "1 release with seeded noise left ledger.json" in written(tmp_path, trust=True).notes[0]
    assert kept(tmp_path)[1] == [2]


def odd(name):
    def change(entry):
        node = entry
        *path, last = name.split(".")
        for key in path:
            node = node[key]
        node[last] = ODD[name]

    return change


ODD = {
    "trials": 10_000_000, "cell": 5, "events": [5], "accounted": None, "data": [],
    "accounted.epsilon": "small", "accounted.delta": -1.0, "settings": 5, "statement": None,
    "release": "../x", "not_covered": 5, "data.population": 2**70,
}  # fmt: skip


@pytest.mark.parametrize("name", list(ODD))
def test_an_odd_entry_of_a_lost_release_is_no_traceback(study, name):
    """A report leaves the ledger and says so; a run replaces it, and the log says so for good."""
    (study.out / LOG).unlink()
    path = study.out / LEDGER
    found = json.loads(path.read_text())
    odd(name)(next(e for e in found["releases"] if e.get("record") is False))
    path.write_text(json.dumps(found))
    before = path.read_bytes()
    made = written(study.out)
    assert made.faults or name == "settings"
    if made.faults:
        assert path.read_bytes() == before
    made = written(study.out, trust=True)
    assert made.faults == ()
    assert made.gaps or made.notes


def test_any_changed_value_of_a_fresh_release_is_found(study):
    path = study.out / LEDGER
    new = json.loads(path.read_text())
    for entry in (0, 1):
        for key, value in new["releases"][entry].items():
            forged = json.loads(path.read_text())
            number = isinstance(value, int) and not isinstance(value, bool)
            forged["releases"][entry][key] = value + 1 if number else "forged"
            assert kept_ledger.ledger_faults(json.dumps(forged).encode(), new), key


def test_a_merged_folder_keeps_what_only_a_source_knows(study, tmp_path):
    (study.out / LOG).unlink()
    target = Store(tmp_path / "m")
    target.write("xyz", rows("xyz", events=events()))
    target.write_manifest({"cells": ["xyz"]})
    for _ in range(2):
        made = written(target.out, trust=True, others=[study])
        assert made.gaps
        assert sum(kept(target.out)[1]) == 2 + 6
