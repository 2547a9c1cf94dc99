"""The ledger: a privacy statement made of records, and what contradicts it."""

from __future__ import annotations

import copy
import json

import pytest

from dperm_cli.results.ledger import kept_ledger, ledger
from dperm_cli.results.records.schema import normalise
from dperm_cli.results.report import write_report
from tests.results.conftest import refused, stored, trial_rows

EVENTS = [{"event": "Gaussian", "scale": 2.0, "count": 30}]


class Adding:
    """An accountant that adds epsilons, and believes rows with accounted <= asked."""

    def events(self, row):
        return json.loads(row["events"] or "[]")

    def restore_events(self, entries):
        return [dict(entry) for entry in entries]

    def total(self, releases, relation):
        epsilon = sum(row["epsilon_accounted"] * times for row, times in releases)
        kinds = {row["guarantee"] for row, _ in releases}
        kind = "none" if "none" in kinds else "approx"
        return {"kind": kind, "epsilon": epsilon, "delta": 1e-4, "accountant": "sum"}

    def find_missing(self, row):
        return None

    def fault(self, row):
        return "too much" if row["epsilon_accounted"] > row["epsilon"] else None


def rows_of(*groups):
    return [normalise({"events": EVENTS, **row}) for group in groups for row in group]


def cell(name="a", **values):
    values = {"data_fingerprint": "f1", "population_source": "public", **values}
    return trial_rows(name, **values)


def made(*groups):
    return ledger.build_ledger(rows_of(*groups), Adding())


def test_an_entry_says_what_about_whom_and_for_how_much():
    (entry,) = made(cell(lipschitz=1.0, population=100, arithmetic="float64"))["releases"]
    for word in ("2 numbers", "logistic over l2_ball radius 1", "100 training records of digits",
                 "released 3 times", "noisy_gd", "epsilon 0.99 and delta 0.0001",
                 "replace_one", "asked: epsilon 1, delta 0.0001"):  # fmt: skip
        assert word in entry["statement"]
    assert entry["asked"] == {"epsilon": 1.0, "delta": 1e-4, "kind": None}
    assert entry["accounted"]["epsilon"] == 0.99
    assert entry["events"] == EVENTS
    assert entry["trials"] == 3
    assert entry["data"]["fingerprint"] == "f1"
    assert "Changing any one training record" in entry["relation_means"]
    assert entry["not_covered"] == [ledger.REAL_NUMBERS.format("float64")]


@pytest.mark.parametrize(
    ("values", "warning", "uncovered"),
    [
        ({"noise": "research"}, "NOT FOR RELEASE", ""),
        ({"unsafe_scaling": True}, "learnt from the data", "Preprocessing was learnt"),
        ({"population_source": "from the data"}, "disclose", "number of records was taken"),
        ({"guarantee": "none"}, "NOT private", "Nothing is covered"),
    ],
)
def test_what_is_not_covered_is_said(values, warning, uncovered):
    quiet = {"noise": "secure", **values}
    found = made(cell(**quiet))
    assert len(found["warnings"]) == 1
    assert warning in found["warnings"][0]
    assert uncovered in " ".join(found["releases"][0]["not_covered"])
    assert made(cell(noise="secure"))["warnings"] == []


def test_all_releases_about_one_data_set_are_added_up():
    found = made(cell("a"), cell("b", epsilon_accounted=0.5, epsilon=0.5, risks=(1.0,)))
    (total,) = found["totals"]
    assert total["all_trials"]["epsilon"] == pytest.approx(3 * 0.99 + 0.5)
    assert total["one_trial_of_each_cell"]["epsilon"] == pytest.approx(0.99 + 0.5)
    assert total["releases"] == 4
    assert "All 4 releases about digits (2 cells)" in total["statement"]


def test_relations_and_data_sets_are_kept_apart_and_versions_of_a_name_are_joined():
    found = made(
        cell("a"),
        cell("b", relation="add_remove"),
        cell("c", data_fingerprint="f2"),
        cell("d", dataset="other", data_fingerprint="f3"),
    )
    keys = [(t["data"], t["relation"], t["fingerprints"], t["cells"]) for t in found["totals"]]
    assert keys == [
        ("digits", "replace_one", ["f1"], ["a", "b"]),
        ("digits", "add_remove", ["f1"], ["b"]),
        ("digits", "replace_one", ["f2"], ["c"]),
        ("digits", "replace_one", ["f1", "f2"], ["a", "b", "c"]),
        ("digits", "add_remove", ["f1"], ["b"]),
        ("other", "replace_one", ["f3"], ["d"]),
    ]


def test_a_sweep_is_a_choice_and_says_what_it_costs():
    found = made(cell("a"), cell("b", epsilon=2.0), cell("c", dataset="other"))
    (choice,) = found["choices"]
    assert choice["cells"] == ["a", "b"]
    assert choice["total"]["epsilon"] == pytest.approx(2 * 0.99)
    assert "no epsilon covers the choice" in choice["statement"]
    assert made(cell("a"))["choices"] == []


def test_what_was_not_released_is_listed_and_costs_nothing():
    found = made(cell("a"), [refused("no")])
    assert [entry["cell"] for entry in found["releases"]] == ["a"]
    assert found["not_released"][0]["reason"] == "no pure guarantee"
    assert found["totals"][0]["cells"] == ["a"]
    nothing = made([refused("no")])
    assert (nothing["releases"], nothing["totals"], nothing["warnings"]) == ([], [], [])


def test_the_same_noise_under_two_versions_of_the_code_is_warned_of():
    overrides = '{"epsilon": 1, "trials": %d}'
    same = made(cell("a", overrides=overrides % 3),
                cell("b", overrides=overrides % 2, risks=(1.0, 2.0)))  # fmt: skip
    assert not any("same noise" in warning for warning in same["warnings"])
    other = made(cell("a", overrides=overrides % 3),
                 cell("b", overrides=overrides % 2, risks=(1.0, 2.5)))  # fmt: skip
    assert any("same noise" in w and "a, b" in w for w in other["warnings"])


def test_equal_rows_give_equal_bytes_and_infinities_are_words():
    groups = cell("a", guarantee="none", epsilon_accounted=float("inf"))
    first = ledger.encode_ledger(made(groups))
    assert first == ledger.encode_ledger(made(groups))
    assert json.loads(first)["releases"][0]["accounted"]["epsilon"] == "inf"
    assert first.endswith(b"}\n")


def test_a_written_ledger_holds_against_its_own_records():
    found = made(cell("a"), cell("b"))
    assert kept_ledger.ledger_faults(ledger.encode_ledger(found), found) == []
    assert kept_ledger.ledger_faults(None, found) == []
    # records that came later are no contradiction, nor are last bits
    later = made(cell("a"), cell("b"), cell("c"))
    assert kept_ledger.ledger_faults(ledger.encode_ledger(found), later) == []
    close = copy.deepcopy(found)
    close["totals"][0]["all_trials"]["epsilon"] *= 1 + 1e-12
    assert kept_ledger.ledger_faults(ledger.encode_ledger(close), found) == []


def paths(tree, at=()):
    """Every leaf of a JSON tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from paths(value, (*at, key))
        else:
            yield (*at, key)


def test_any_changed_value_is_found():
    found = made(cell("a"), cell("b", unsafe_scaling=True), [refused("no")])
    leaves = [path for path in paths(found) if path != ("form",)]
    assert len(leaves) > 80
    for path in leaves:
        forged = copy.deepcopy(found)
        node = forged
        for key in path[:-1]:
            node = node[key]
        value = node[path[-1]]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        node[path[-1]] = value * 0.9 + 1 if number else "forged"
        assert kept_ledger.ledger_faults(ledger.encode_ledger(forged), found), path


def test_a_forged_true_is_no_one():
    assert kept_ledger.find_difference({"a": True}, {"a": 1}, "") is not None
    assert kept_ledger.find_difference({"a": True}, {"a": True}, "") is None


def test_a_ledger_that_names_a_release_without_record_is_a_fault():
    both, one = made(cell("a"), cell("b")), made(cell("a"))
    (fault,) = kept_ledger.ledger_faults(ledger.encode_ledger(both), one)
    assert fault == "ledger.json: cell b has no record of a release"
    assert kept_ledger.ledger_faults(ledger.encode_ledger(both), one, unread=["b"]) == []


@pytest.mark.parametrize("old", [b"", b"{", b"[]", b'{"releases": 3}', b"[" * 100_000, b"\xff"])
def test_a_ledger_that_cannot_be_read_is_a_fault(old):
    assert kept_ledger.ledger_faults(old, made(cell())) == ["ledger.json: cannot be read"]


def test_a_record_that_contradicts_itself_is_a_fault():
    good, bad = cell("a"), cell("b", epsilon_accounted=2.0)
    assert ledger.record_faults(rows_of(good), Adding()) == []
    assert ledger.record_faults(rows_of(good, bad), Adding()) == ["record b: too much"]
    # one trial of many is enough
    mixed = cell("c")
    mixed[1]["epsilon_accounted"] = 7.0
    assert ledger.record_faults(rows_of(mixed), Adding()) == ["record c: too much"]


def test_the_report_writes_the_ledger_and_leaves_a_forged_one_alone(tmp_path):
    stored(tmp_path, rows_of(cell("a"), cell("b")))
    first = write_report(tmp_path, figures=False, accountant=Adding())
    path = tmp_path / "ledger.json"
    written = path.read_bytes()
    assert (first.faults, first.releases) == ((), 6)
    assert str(path) in first.files
    again = write_report(tmp_path, figures=False, accountant=Adding())
    assert (again.faults, path.read_bytes()) == ((), written)
    forged = written.replace(b'"trials": 3', b'"trials": 1', 1)
    path.write_bytes(forged)
    found = write_report(tmp_path, figures=False, accountant=Adding())
    assert found.faults == ("ledger.json: cell a trials is 1, the records say 3",)
    assert path.read_bytes() == forged
    trusted = write_report(tmp_path, figures=False, accountant=Adding(), trust=True)
    assert (trusted.faults, path.read_bytes()) == ((), written)


def test_releases_of_other_studies_in_the_folder_count(tmp_path):
    store = stored(tmp_path, rows_of(cell("a")))
    store.write("z", rows_of(cell("z")))
    found = write_report(tmp_path, figures=False, accountant=Adding())
    assert [row["cell"] for row in found.summary] == ["a"]
    assert found.releases == 6
