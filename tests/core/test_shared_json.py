"""Values that mappings share are written once, and the text is that of the whole."""

from __future__ import annotations

import json
import random

import pytest

from dperm_cli.core.digests import write_facts
from dperm_cli.core.shared_json import SharedJson
from dperm_cli.results.records.schema import canonical_json, json_lines

SHARED = {"z": [1, {"b": None, "a": float("inf")}], "a": 'ä\n"', "m": {}}


def make_rows(seed=0):
    """Mappings some of whose values are the same objects, and some alike but not the same."""
    rng, rows = random.Random(seed), []
    values = [SHARED, dict(SHARED), [], [SHARED], 1, 1.0, True, None, "1", 0.1, -0.0]
    for _ in range(200):
        keys = rng.sample(["a", "b", "ab", "A", "é", "", "x y"], rng.randint(0, 7))
        rows.append({key: rng.choice(values) for key in keys})
    return rows


@pytest.mark.parametrize("write", [canonical_json, write_facts])
def test_the_text_is_that_of_the_whole(write):
    made = SharedJson(write)
    for row in [*make_rows(), 3, None, [1, 2], {1: 2}, {"a": {1: 2}}]:
        assert made.write(row) == write(row)


def test_a_value_that_several_have_is_written_once():
    written = []

    def write(value):
        written.append(value)
        return json.dumps(value)

    made, shared = SharedJson(write), {"a": 1}
    texts = [made.write({"shared": shared, "own": [number]}) for number in range(5)]
    assert texts[4] == '{"own":[4],"shared":{"a": 1}}'
    assert sum(value is shared for value in written) == 1
    assert len(written) == 6


def test_a_value_that_has_taken_anothers_place_is_written_anew():
    made = SharedJson(json.dumps)
    for number in range(2000):  # each list is freed before the next is made
        assert made.write({"a": [number]}) == f'{{"a":[{number}]}}'


def test_lines_are_those_of_each_row():
    rows = make_rows(1)
    assert json_lines(rows).split("\n") == [canonical_json(row) for row in rows]
