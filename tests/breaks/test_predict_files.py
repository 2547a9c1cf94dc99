"""Break 7: ``predict`` binds columns by name, believes nothing in its file and says so in one line.

Every awkward file below is either refused (exit code 2, one line, nothing on stdout) or harmless.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re

import numpy as np
import pytest

from tests.breaks._doors import rebuild_events, recompute
from tests.breaks._files import (
    NAMES,
    WAYS,
    assert_refused,
    make_rows,
    replaced,
    write_model,
    write_named,
)


def scores(done):
    assert done.code == 0, done.err
    return [float(line["score"]) for line in csv.DictReader(io.StringIO(done.out))]


# --- columns -----------------------------------------------------------------------------------


def two_files(tmp_path, names):
    """The same four rows twice: in the order of the training file, and with columns as named."""
    rows = make_rows(4, seed=5)[:, :3]
    order = [NAMES.index(name) for name in names]
    straight = write_named(tmp_path / "straight.csv", rows, NAMES)
    return straight, write_named(tmp_path / "turned.csv", rows[:, order], names)


@pytest.mark.parametrize("names", [["c1", "c0", "c2"], ["c2", "c0", "c1"]])
@pytest.mark.parametrize("way", WAYS)
def test_columns_in_another_order_give_the_same_scores(way, names, saved, predict, tmp_path):
    write_model(tmp_path / "forged.npz", *saved(way))
    straight, turned = two_files(tmp_path, names)
    expected = scores(predict(straight))
    done = predict(turned)
    if done.code == 2:  # refusing them is as good
        assert_refused(done)
    else:
        assert scores(done) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("names", [["c0", "c1", "other"], ["c0", "c1", "c1"], ["a", "b", "c"]])
def test_columns_that_the_model_does_not_know_are_refused(names, saved, predict, tmp_path):
    write_model(tmp_path / "forged.npz", *saved())
    rows = write_named(tmp_path / "other.csv", make_rows(4, seed=5)[:, :3], names)
    assert_refused(predict(rows))


def test_rows_in_the_order_of_the_training_file_are_predicted(saved, predict, tmp_path):
    facts, arrays = saved()
    write_model(tmp_path / "forged.npz", facts, arrays)
    rows = make_rows(4, seed=5)[:, :3]
    rows = np.column_stack([rows, np.ones(4)])  # with the intercept
    x = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert scores(predict()) == pytest.approx(list(x @ arrays["theta"]), abs=1e-9)


# --- the point ---------------------------------------------------------------------------------

POINTS = {
    "nan": lambda theta: theta * np.nan,
    "one nan": lambda theta: np.array([np.nan, *theta[1:]]),
    "infinite": lambda theta: np.array([np.inf, *theta[1:]]),
    "too short": lambda theta: theta[:-1],
    "too long": lambda theta: np.append(theta, 0.0),
    "empty": lambda theta: theta[:0],
    "two points": lambda theta: np.stack([theta, theta]),
    "a number": lambda theta: np.array(1.0),
    "words": lambda theta: np.array(["a", "b", "c"]),
    "numbers in words": lambda theta: np.array([str(value) for value in theta]),
    "complex": lambda theta: theta + 1j,
    "truth values": lambda theta: theta > 0,
}


@pytest.mark.parametrize("what", POINTS)
def test_a_point_that_is_none_is_refused(what, saved, predict, tmp_path):
    facts, arrays = saved()
    arrays["theta"] = POINTS[what](arrays["theta"])
    write_model(tmp_path / "forged.npz", facts, arrays)
    assert_refused(predict())


# --- the claim ---------------------------------------------------------------------------------


def test_a_forged_secure_noise_is_not_believed(saved, predict, tmp_path):
    facts, arrays = saved()

    def change(key, value):
        return "secure" if value == "research" else value

    forged = replaced(facts, change)
    assert forged != facts
    write_model(tmp_path / "forged.npz", forged, arrays)
    done = predict()
    # a file cannot prove its noise: that is said, or the file is refused
    if done.code == 0:
        assert "the file says noise=secure, which nothing in it can prove" in done.err
        assert done.err.count("secure") == 1
    else:
        assert_refused(done)


@pytest.mark.parametrize("where", ["", "facts", "schema"])
@pytest.mark.parametrize("key", ["epsilon", "epsilon_accounted", "guarantee", "accountant"])
def test_a_claim_beside_the_events_is_refused(key, where, saved, predict, tmp_path):
    """The file holds no epsilon, so that nobody can forge one; one that is put in is not read."""
    facts, arrays = saved()
    assert not [path for path in paths_of(facts) if "epsilon" in path[-1]]
    forged = copy.deepcopy(facts)
    (forged[where] if where else forged)[key] = 0.000123
    write_model(tmp_path / "forged.npz", forged, arrays)
    assert_refused(predict())


@pytest.mark.parametrize("delta", [0.000123, 1e-12])
def test_what_is_said_follows_from_the_events(delta, saved, predict, tmp_path):
    """The delta at which it is said may be any: the epsilon is the one of that delta."""
    facts, arrays = saved()
    write_model(tmp_path / "forged.npz", {**facts, "delta": delta}, arrays)
    done = predict()
    assert done.code == 0, done.err
    (said,) = re.findall(r"epsilon ([0-9.]+), delta ([0-9.e-]+)", done.err)
    assert float(said[1]) == delta
    true = recompute(rebuild_events(facts["events"]), delta, facts["relation"])
    assert float(said[0]) == pytest.approx(true, rel=1e-3)
    assert float(said[0]) != pytest.approx(8.0, rel=0.05)  # what was asked for at 1e-5


@pytest.mark.parametrize("times", [2, 20, 1500])
def test_no_event_of_a_file_is_left_out(times, saved, predict, tmp_path):
    """All are added up, or the file is refused: a claim over some of them would be too small."""
    facts, arrays = saved()
    forged = {**facts, "events": facts["events"] * times}
    write_model(tmp_path / "forged.npz", forged, arrays)
    done = predict()
    if done.code:
        assert times > 1000
        assert_refused(done)
        return
    (said,) = re.findall(r"epsilon ([0-9.e+]+), delta", done.err)
    true = recompute(rebuild_events(forged["events"]), facts["delta"], facts["relation"])
    assert float(said) == pytest.approx(true, rel=1e-3)


CLAIMS = {
    "nan scale": {"scale": float("nan")},
    "negative scale": {"scale": -1.0},
    "scale in words": {"scale": "one"},
    "no scale": {"scale": None},
    "no draw": {"count": 0},
    "a negative contribution": {"record_norm": -1.0},
    "an unknown event": {"event": "Magic"},
    "delta above one": {"delta": 2.0},
    "delta is no number": {"delta": float("nan")},
    "negative steps": {"steps": -1},
    "unknown relation": {"relation": "friendship"},
    "unknown noise": {"noise": "quiet"},
    "unknown mechanism": {"mechanism": "magic"},
    "a line break": {"mechanism": "noisy_gd, epsilon 0\nall is well"},
    "terminal codes": {"mechanism": "noisy_gd\x1b[2J\x1b[1;1H"},
    "very long": {"mechanism": "x" * 10**6},
}


@pytest.mark.parametrize("what", CLAIMS)
def test_a_claim_that_is_none_is_refused(what, saved, predict, tmp_path):
    """Wherever the file holds these keys."""
    facts, arrays = saved()

    def change(key, value):
        return CLAIMS[what].get(key, value)

    forged = replaced(facts, change)
    assert json.dumps(forged) != json.dumps(facts)
    write_model(tmp_path / "forged.npz", forged, arrays)
    assert_refused(predict())


# --- missing and malformed parts ---------------------------------------------------------------


def paths_of(tree, path=()):
    """Every key of a JSON tree of objects, outermost first, as paths."""
    if isinstance(tree, dict):
        for key, item in tree.items():
            yield (*path, key)
            yield from paths_of(item, (*path, key))


def without(tree, path):
    found = copy.deepcopy(tree)
    inside = found
    for key in path[:-1]:
        inside = inside[key]
    del inside[path[-1]]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_every_missing_key_is_one_line(way, saved, predict, tmp_path):
    """A key may be left out without harm (the scores stay), or the file is refused."""
    facts, arrays = saved(way)
    write_model(tmp_path / "forged.npz", facts, arrays)
    whole = scores(predict())
    refused = 0
    for path in paths_of(facts):
        write_model(tmp_path / "forged.npz", without(facts, path), arrays)
        done = predict()
        if done.code == 0:
            assert scores(done) == whole, path
        else:
            assert_refused(done)
            refused += 1
    assert refused >= 5
    for name in arrays:
        write_model(tmp_path / "forged.npz", facts, {k: v for k, v in arrays.items() if k != name})
        assert_refused(predict())


FEATURES = {"kind": "fourier", "kernel": {"name": "rbf", "gamma": 1.0}, "source": "file"}


def within(facts, part, **changes):
    """The facts with some of the values inside a part replaced."""
    assert set(changes) <= set(facts[part])
    return {**facts, part: {**facts[part], **changes}}


FACTS = {
    "a list": lambda facts: [facts],
    "a number": lambda facts: 7,
    "null": lambda facts: None,
    "no utf-8": lambda facts: b"\xff\xfe" + json.dumps(facts).encode(),
    "two documents": lambda facts: json.dumps(facts).encode() * 2,
    "nothing": lambda facts: b"",
    "very deep": lambda facts: b"[" * 200_000,
    "a huge whole number": lambda facts: b'{"format": ' + b"9" * 5000 + b"}",
    "another format": lambda facts: {**facts, "format": "dperm-model-999"},
    "an earlier format": lambda facts: {**facts, "format": "dperm-model-1"},
    "format of another kind": lambda facts: {**facts, "format": ["dperm-model-2"]},
    "no column": lambda facts: within(facts, "schema", count=0),
    "columns in words": lambda facts: within(facts, "schema", count="3"),
    "columns by halves": lambda facts: within(facts, "schema", count=3.5),
    "fewer columns than none": lambda facts: within(facts, "schema", count=-3),
    "too many columns": lambda facts: within(facts, "schema", count=10**400),
    "more columns than names": lambda facts: within(facts, "schema", count=4),
    "columns are a truth value": lambda facts: within(facts, "schema", count=True, columns=None),
    "a name twice": lambda facts: within(facts, "schema", columns=["c0", "c1", "c1"]),
    "a name that is none": lambda facts: within(facts, "schema", columns=["c0", "c1", 2]),
    "unknown task": lambda facts: within(facts, "schema", task="divination"),
    "a regression without targets": lambda facts: within(
        facts, "schema", task="regression", labels=None, target_bounds=[1.0]),
    "targets the wrong way round": lambda facts: within(
        facts, "schema", task="regression", labels=None, target_bounds=[20.0, 10.0]),
    "unknown map": lambda facts: {**facts, "features": FEATURES | {"kind": "treasure"}},
    "a map that is not there": lambda facts: {**facts, "features": FEATURES},
    "unknown kernel": lambda facts: {**facts, "features": FEATURES | {
        "kind": "explicit", "kernel": {"name": "os.system"}}},
    "a kernel of code": lambda facts: {**facts, "features": FEATURES | {
        "kind": "explicit", "kernel": {"_target_": "os.system", "name": "rbf"}}},
    "a key nobody knows": lambda facts: {**facts, "extra": {"private": 1}},
    "a number of records that is none": lambda facts: within(facts, "facts", population=0),
    "an unknown loss": lambda facts: within(facts, "facts", loss="regret"),
    "events that are no list": lambda facts: {**facts, "events": {}},
    "no event": lambda facts: {**facts, "events": []},
    "events in words": lambda facts: {**facts, "events": ["Gaussian"]},
}  # fmt: skip
RULES = {
    "no rule": None,
    "unknown rows": {"rows": "explode"},
    "rows by a number": {"rows": 3},
    "nan bound": {"row_bound": float("nan")},
    "no bound": {"row_bound": None},
    "bound below zero": {"row_bound": -1.0},
    "norm zero": {"norm": 0.0},
    "unknown scaling": {"scaling": "minmax"},
    "scaling without bounds": {"scaling": "bounds", "bounds": None},
    "bounds the wrong way round": {"scaling": "bounds", "bounds": [2.0, 1.0]},
    "bounds of other columns": {"scaling": "bounds", "bounds": [[0, 1], [0, 1]]},
    "intercept in words": {"intercept": "no"},
}


@pytest.mark.in_turn
@pytest.mark.parametrize("what", FACTS)
def test_facts_that_are_none_are_refused(what, saved, predict, tmp_path):
    facts, arrays = saved()
    write_model(tmp_path / "forged.npz", FACTS[what](facts), arrays)
    assert_refused(predict())


@pytest.mark.parametrize("what", RULES)
def test_a_rule_that_is_none_is_refused(what, saved, predict, tmp_path):
    facts, arrays = saved()
    forged = {**facts, "schema": None}
    if RULES[what] is not None:
        forged = within(facts, "schema", **RULES[what])
    write_model(tmp_path / "forged.npz", forged, arrays)
    assert_refused(predict())


MAPS = {
    "nan": lambda w: w * np.nan,
    "of other columns": lambda w: w[:, :2],
    "too few": lambda w: w[:-1],
    "flat": lambda w: w.ravel(),
    "complex": lambda w: w + 1j,
}


@pytest.mark.parametrize("what", MAPS)
def test_frequencies_that_are_none_are_refused(what, saved, predict, tmp_path):
    facts, arrays = saved("fourier")
    (name,) = set(arrays) - {"theta"}
    arrays[name] = MAPS[what](arrays[name])
    write_model(tmp_path / "forged.npz", facts, arrays)
    assert_refused(predict())
