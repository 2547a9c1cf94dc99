"""Lines of ``releases.log`` that dperm never wrote: each is named and none is believed."""

from __future__ import annotations

import hashlib
import json

import pytest

from dperm_cli.results.ledger import ledger, release_log, release_log_lines
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.records.store import Store
from tests.results.html_study import Adding
from tests.results.test_release_log import rows

GAP = {"before": "", "gap": "a: a line is gone"}


def entry(cell="abc", **values):
    return release_log.make_entry(cell, [normalise(row) for row in rows(cell, **values)])


def facts(**more):
    """What a true line says, with other values."""
    found = entry()
    true = {"before": "", "cell": found.cell, "content": found.content, "row": found.row}
    return {**true, "trials": found.trials, **more}


def signed(text):
    """A line with the checksum that anybody can make."""
    text = text if isinstance(text, bytes) else text.encode()
    return hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"


def with_row(**values):
    return json.dumps(facts(row={**facts()["row"], **values}))


def without(name):
    return json.dumps(facts(row={k: v for k, v in facts()["row"].items() if k != name}))


FORGED = {
    "a list": "[1]",
    "a word": "hello",
    "no bytes": "",
    "no text": b"\xff\xfe",
    "a number": "5",
    "null": "null",
    "an empty mapping": "{}",
    "deep lists": "[" * 100_000,
    "a deep mapping": '{"a":' * 100_000,
    "a key more": json.dumps(facts(more=1)),
    "a key less": json.dumps({k: v for k, v in facts().items() if k != "content"}),
    "a key twice": json.dumps(facts())[:-1] + ',"trials":1}',
    "row null": json.dumps(facts(row=None)),
    "row empty": json.dumps(facts(row={})),
    "row a list": json.dumps(facts(row=[])),
    "trials a text": json.dumps(facts(trials="a")),
    "trials true": json.dumps(facts(trials=True)),
    "trials a float": json.dumps(facts(trials=2.0)),
    "trials below": json.dumps(facts(trials=-1)),
    "no trials": json.dumps(facts(trials=0)),
    "too many trials": json.dumps(facts(trials=10_000_000)),
    "cell a number": json.dumps(facts(cell=5)),
    "cell a path": json.dumps(facts(cell="../../etc")),
    "cell of another row": json.dumps(facts(cell="abd")),
    "content a text": json.dumps(facts(content="../x")),
    "before a number": json.dumps(facts(before=5)),
    "an unknown column": with_row(theta2=1),
    "epsilon a text": with_row(epsilon_accounted="small"),
    "epsilon nan": with_row(epsilon_accounted=float("nan")),
    "epsilon below 0": with_row(epsilon_accounted=-1.0),
    "delta above 1": with_row(delta_accounted=2.0),
    "a number beyond 64 bits": with_row(n=2**64),
    "a number beyond float64": with_row(epsilon=10**400),
    "events a list": with_row(events=[]),
    "settings a mapping": with_row(settings={}),
    "a name of a release that is none": with_row(release="x"),
    "a release with seeded noise": with_row(noise="research"),
    "a failure": with_row(status="failed"),
    "no events": without("events"),
    "no data set": without("dataset"),
    "no relation": without("relation"),
    "a gap and a release": json.dumps(facts(gap="words")),
    "a gap without the line before": json.dumps({"gap": "words"}),
    "a gap of two lines": json.dumps(GAP | {"gap": "a\nb"}),
    "a gap of many words": json.dumps(GAP | {"gap": "a" * 2000}),
}


def test_a_true_line_and_a_gap_are_read():
    found = release_log_lines.read_lines(signed(json.dumps(facts())))
    assert (len(found.entries), found.faults) == (1, ())
    found = release_log_lines.read_lines(signed(json.dumps(GAP)))
    assert (len(found.gaps), len(found.faults)) == (1, 1)


@pytest.mark.parametrize("name", list(FORGED))
def test_a_forged_line_is_a_damaged_one(tmp_path, name):
    """One message of one line that names the number; the lines around it are read."""
    whole = release_log_lines.line_of(entry(), b"")
    forged = signed(FORGED[name])
    last = release_log_lines.line_of(entry(), whole + forged)
    (tmp_path / release_log.LOG).write_bytes(whole + forged + last)
    (fault,) = release_log.list_damage(tmp_path)
    assert fault.startswith("releases.log: line 2: is damaged (")
    assert fault.isprintable()
    assert len(fault) < 200
    assert len(release_log.read_entries(tmp_path)) == 2
    store = Store(tmp_path)
    assert [item.trials for item in release_log.list_unrecorded(store)] == [2, 2]
    store.write("abc", rows())  # and a run goes on
    assert len(release_log.read_entries(tmp_path)) == 3


def test_a_million_trials_are_one_row(tmp_path):
    """A count stands beside the row: a line costs what it is long, whatever it says."""
    many = signed(json.dumps(facts(trials=release_log_lines.MOST_TRIALS)))
    (tmp_path / release_log.LOG).write_bytes(many)
    (item,) = release_log.list_unrecorded(Store(tmp_path))
    assert item.trials == release_log_lines.MOST_TRIALS
    found = ledger.build_ledger([], Adding(), [item])
    assert found["totals"][0]["releases"] == release_log_lines.MOST_TRIALS


def test_lines_taken_away_or_changed_are_noticed(tmp_path):
    lines = b""
    for _ in range(4):
        lines += release_log_lines.line_of(entry(), lines)
    one, two, three, four = lines.splitlines(keepends=True)
    assert release_log_lines.read_lines(lines).faults == ()
    words = "what stood before it was changed or taken away"
    for bad, at in (
        (two + three + four, 1),  # the first line is gone
        (one + three + four, 2),
        (one + two + four, 3),
        (one + signed(json.dumps(facts())) + three + four, 2),  # another one in its place
        (one + three + two + four, 2),
    ):
        assert f"line {at}: {words}" in release_log_lines.read_lines(bad).faults


def test_lines_of_an_earlier_dperm_are_read_and_chained():
    old = {k: v for k, v in facts().items() if k != "before"}
    old["row"] = {k: v for k, v in old["row"].items() if k != "release"}
    first = signed(json.dumps(old))
    second = release_log_lines.line_of(entry(), first)
    found = release_log_lines.read_lines(first + second)
    assert (len(found.entries), found.faults) == (2, ())
    assert found.entries[0].identity[0] == "content"
    assert len(release_log_lines.read_lines(second).faults) == 1


@pytest.mark.parametrize("end", [b"", b"\n", b"x", b" ", b"\r\n", b"\x00"])
def test_any_ending_is_survived(tmp_path, end):
    path = tmp_path / release_log.LOG
    path.write_bytes(release_log_lines.line_of(entry(), b"") + end)
    release_log.append(tmp_path, [entry()])
    assert len(release_log.read_entries(tmp_path)) == 2
    assert len(release_log.list_damage(tmp_path)) == (1 if end else 0)


def test_a_name_on_two_releases_counts_both(tmp_path):
    """Who copies a name to a release that costs less does not take the other's place."""
    true = entry()
    cheap = release_log.make_entry(
        "abc", [normalise(row) for row in rows(release=true.release, epsilon_accounted=1e-9)]
    )
    release_log.append(tmp_path, [cheap, true, true])
    found = release_log.list_unrecorded(Store(tmp_path))
    assert [item.row["epsilon_accounted"] for item in found] == [1e-9, 0.99]
    assert len({item.row["cell"] for item in found}) == 2
    total = ledger.build_ledger([], Adding(), found)["totals"][0]
    assert total["releases"] == 4
